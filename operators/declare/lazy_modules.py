"""Operators that are declared lazily: a module is imported when one of its operators is first used.

Names that start with a dot are methods of Tensor too.
"""

from __future__ import annotations

LAZY_OPERATORS: dict[str, str] = {
    "fft": (
        "fft_fftshift fft_ifftshift fft_c2c fft_r2c fft_c2r fft_fft fft_ifft fft_rfft fft_ihfft fft_irfft fft_hfft "
        "fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2"
    ),
    "linalg": (
        "linalg_solve_stack linalg_solve linalg_inv linalg_det linalg_slogdet linalg_pinv linalg_matrix_power "
        "linalg_cholesky linalg_cholesky_ex linalg_eig linalg_eigvals linalg_eigh linalg_eigvalsh linalg_svd "
        "linalg_svdvals linalg_qr linalg_vector_norm linalg_matrix_norm linalg_norm linalg_matrix_rank"
    ),
    "operators.elementwise.activation": (
        "gelu_erf gelu_tanh .relu .sigmoid .silu .softplus .gelu .leaky_relu .elu .relu_ .sigmoid_ .silu_ "
        ".softplus_"
    ),
    "operators.collective": "axis_sum axis_gather",
    "operators.elementwise.complex_parts": ".real .imag .conj",
    "operators.nn.convolution": "convolution",
    "operators.nn.convolution_layers": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    ),
    "operators.shape.diagonals": ".diagonal .trace .diag",
    "operators.contraction.einsum": "einsum",
    "operators.elementwise.elementary": ".angle .sinc .nan_to_num",
    "operators.indexing.index_reduce": "index_reduce index_reduce_",
    "operators.shape.joining": "concat stack .unstack",
    "operators.nn.losses": "cross_entropy mse_loss .one_hot",
    "operators.nn.layers": "dropout scaled_dot_product_attention",
    "operators.nn.normalization": ".softmax .log_softmax .logsumexp .layer_norm",
    "operators.reductions.sorting": ".argsort .sort",
    "operators.shape.splitting": ".split .diff",
    "operators.nn.pooling": "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d",
    "operators.contraction.kron": ".kron .cross",
    "operators.random.namespace": (
        "random_key random_bits random_split random_fold_in random_polar random_log random_cotangent random_ndtri "
        "random_uniform random_normal random_integers random_order random_permutation random_bernoulli "
        "random_exponential random_gumbel random_laplace random_logistic random_cauchy random_lognormal "
        "random_pareto random_rayleigh random_weibull_min random_triangular random_truncated_normal random_maxwell "
        "random_rademacher random_top random_pick random_categorical random_choice random_gamma_slope "
        "random_draw_loggamma random_loggamma random_gamma random_beta random_chisquare random_t random_f "
        "random_generalized_normal random_dirichlet random_draw_poisson random_draw_binomial random_poisson "
        "random_binomial random_geometric random_wald random_double_sided_maxwell random_multinomial "
        "random_multivariate_normal random_orthogonal random_ball"
    ),
    "operators.remat": "checkpoint_name recompute_barrier",
    "operators.shape.repeating": ".roll .repeat .tile .pad",
    "operators.reductions.statistics": ".mean .var .std",
    "operators.shape.triangles": ".tril .triu",
    "operators.elementwise.trigonometry": (
        ".sin .cos .tan .asin .acos .atan .atan2 .sinh .cosh .tanh .asinh .acosh .atanh .sin_ .cos_ .tan_ .asin_ "
        ".acos_ .atan_ .atan2_ .sinh_ .cosh_ .tanh_ .asinh_ .acosh_ .atanh_"
    ),
    "special": (
        "special_i0 special_i1 special_i0e special_i1e special_j0 special_j1 special_y0 special_y1 special_xlogy "
        "special_xlog1py special_entr special_logit special_polygamma special_digamma special_gammaln "
        "special_gamma special_betaln special_beta special_gammainc special_gammaincc special_betainc special_ndtr "
        "special_log_ndtr special_ndtri special_erfinv"
    ),
}
"""Names of operators by module."""

# Second names of operators: those of the Array API and NumPy, where the registered name is PyTorch's.
ALIASES: dict[str, str] = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "bitwise_invert": "bitwise_not",
    "divide": "div",
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "permute_dims": "permute",
    "power": "pow",
    "ravel": "flatten",
    "right_shift": "bitwise_right_shift",
    "subtract": "sub",
    "swapaxes": "transpose",
    "true_divide": "div",
    "unsqueeze": "expand_dims",
}
"""alias: registered name."""
ALIASES_OF: dict[str, list[str]] = {}
"""registered name: its aliases."""
for _alias, _name in ALIASES.items():
    ALIASES_OF.setdefault(_name, []).append(_alias)
