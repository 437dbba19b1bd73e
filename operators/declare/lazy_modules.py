"""Operators that are declared lazily: a module is imported when one of its operators is first used.

Names that start with a dot are methods of Tensor too.
"""

from __future__ import annotations

LAZY_OPERATORS: dict[str, str] = {
    ".fft": (
        "fft_fftshift fft_ifftshift fft_c2c fft_r2c fft_c2r fft_fft fft_ifft fft_rfft fft_ihfft fft_irfft fft_hfft "
        "fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2"
    ),
    ".linalg": (
        "linalg_solve_triangular_stack "
        "linalg_solve_stack linalg_solve linalg_inv linalg_det linalg_slogdet linalg_pinv linalg_matrix_power "
        "linalg_cholesky linalg_cholesky_lower linalg_cholesky_ex linalg_cholesky_or_nan linalg_indefinite_minor "
        "linalg_cholesky_symmetric "
        "linalg_eig linalg_eigvals linalg_eigh linalg_eigh_lower linalg_eigvalsh linalg_eigvalsh_lower linalg_svd "
        "linalg_svdvals linalg_qr linalg_vector_norm linalg_matrix_norm linalg_norm linalg_matrix_rank "
        "linalg_lu_permuted linalg_cond linalg_lstsq linalg_multi_dot linalg_tensorinv linalg_tensorsolve"
    ),
    ".operators.elementwise.activation": (
        "relu_with_slope hardsigmoid hardswish "
        "gelu_erf gelu_tanh .relu .sigmoid .silu .softplus .gelu .leaky_relu .elu .relu_ .sigmoid_ .silu_ "
        ".softplus_ .leaky_relu_ .elu_"
    ),
    ".operators.contraction.matrix_products": (
        ".mm .bmm .mv .ger .addmm .addmv .addr .baddbmm .addbmm .addmm_ .addmv_ .addr_ .baddbmm_ .addbmm_"
    ),
    ".control.divisors": ".gcd .lcm .gcd_ .lcm_",
    ".operators.collective": "axis_sum axis_gather",
    ".operators.elementwise.complex_parts": "complex real imag .conj .conj_",
    ".operators.nn.convolution": "convolution",
    ".operators.nn.convolution_layers": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    ),
    ".operators.shape.diagonals": ".diagonal .trace .diag",
    ".operators.contraction.einsum": "einsum",
    ".operators.elementwise.elementary": ".angle .sinc .nan_to_num .sinc_ .nan_to_num_",
    ".operators.indexing.along_axis": (
        ".gather .scatter .scatter_add .scatter_reduce .index_select .index_add .index_copy .index_fill .masked_fill "
        ".masked_scatter .scatter_ .scatter_add_ .scatter_reduce_ .index_add_ .index_copy_ .index_fill_ .masked_fill_ "
        ".masked_scatter_"
    ),
    ".operators.indexing.index_reduce": "index_reduce index_reduce_",
    ".operators.indexing.choosing": "choose select",
    ".operators.indexing.flat_indices": "ravel_multi_index unravel_index",
    ".operators.indexing.writing": "put_along_axis fill_diagonal",
    ".operators.reductions.partitions": "lexsort partition argpartition sort_complex",
    ".operators.indexing.positions": ".argwhere flatnonzero extract compress where",
    ".operators.shape.joining": "concat stack .unstack",
    ".operators.nn.losses": "cross_entropy mse_loss .one_hot",
    ".operators.nn.layers": "dropout scaled_dot_product_attention",
    ".operators.nn.normalization": ".softmax .log_softmax .logsumexp .layer_norm",
    ".operators.reductions.segments": "segment_sum segment_prod segment_max segment_min",
    ".operators.reductions.selection": "argselect",
    ".operators.reductions.sorting": ".argsort .sort argtopk sort_values",
    ".operators.reductions.extrema": (
        ".max .min .amax .amin .aminmax .cummax .cummin running_max running_min running_argmax running_argmin"
    ),
    ".operators.reductions.order_statistics": ".kthvalue .topk .mode",
    ".operators.shape.splitting": ".split .diff",
    ".operators.creation.grids": (
        "identity tri logspace geomspace vander indices tril_indices triu_indices diag_indices"
    ),
    ".operators.creation.windows": "hanning hamming blackman bartlett kaiser",
    ".operators.elementwise.closeness": ".isclose .allclose array_equal array_equiv",
    ".operators.elementwise.number_parts": (
        "divmod modf .ldexp .frexp .float_power bitwise_count around .ldexp_ .float_power_"
    ),
    ".operators.elementwise.scaling": (
        ".deg2rad .rad2deg cbrt fabs rint .logaddexp2 .heaviside .isposinf .isneginf .isreal iscomplex "
        ".deg2rad_ .rad2deg_ .logaddexp2_ .heaviside_ .isposinf_ .isneginf_ .isreal_"
    ),
    ".operators.elementwise.weighted_sums": (
        ".lerp .addcmul .addcdiv rsub .frac .clamp_min .clamp_max .lerp_ .addcmul_ .addcdiv_ .frac_ .clamp_min_ "
        ".clamp_max_"
    ),
    ".operators.elementwise.options": ".add .sub .div .round",
    ".operators.shape.cutting": "array_split .vsplit .hsplit .dsplit",
    ".operators.shape.inserting": "append insert delete resize",
    ".operators.shape.stacking": "vstack hstack dstack column_stack atleast_1d atleast_2d atleast_3d",
    ".operators.shape.turning": ".transpose .rot90 .fliplr .flipud rollaxis .diagflat",
    ".operators.contraction.products": ".dot .inner .vdot matvec vecmat",
    ".operators.reductions.calculus": "ediff1d trapezoid polyval",
    ".operators.reductions.covariance": "ptp average .cov .corrcoef",
    ".operators.reductions.histograms": ".bincount digitize histogram histogram_bin_edges histogram2d",
    ".operators.reductions.signals": "interp convolve correlate unwrap",
    ".operators.reductions.polynomials": "polyadd polysub polymul polydiv polyder polyint",
    ".operators.reductions.set_operations": "intersect1d union1d setdiff1d setxor1d",
    ".operators.elementwise.packing": "packbits unpackbits",
    ".operators.reductions.nan_reductions": (
        ".nansum nanprod nancumsum nancumprod nanmax nanmin nanargmax nanargmin .nanmean nanvar nanstd"
    ),
    ".operators.reductions.quantiles": ".quantile percentile .nanquantile nanpercentile .median .nanmedian",
    ".operators.nn.pooling": "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d",
    ".operators.contraction.kron": ".kron .cross",
    ".operators.random.namespace": (
        "random_key random_bits random_split random_fold_in random_polar random_log random_cotangent random_erfc "
        "random_ndtri random_uniform random_normal random_integers random_order random_permutation random_bernoulli "
        "random_exponential random_gumbel random_laplace random_logistic random_cauchy random_lognormal "
        "random_pareto random_rayleigh random_weibull_min random_triangular random_truncated_normal random_maxwell "
        "random_rademacher random_top random_pick random_categorical random_choice random_gamma_slope "
        "random_draw_loggamma random_loggamma random_gamma random_beta random_chisquare random_t random_f "
        "random_generalized_normal random_dirichlet random_draw_poisson random_draw_binomial random_poisson "
        "random_binomial random_geometric random_wald random_double_sided_maxwell random_multinomial "
        "random_multivariate_normal random_orthogonal random_ball"
    ),
    ".operators.remat": "checkpoint_name recompute_barrier",
    ".operators.shape.parts": ".chunk .split_with_sizes .narrow .unflatten .unfold .t block_diag",
    ".operators.shape.bitcast": "bitcast",
    ".operators.shape.complex_view": "view_part",
    ".operators.shape.strided": ".as_strided",
    ".operators.shape.padding": ".pad",
    ".operators.shape.repeating": ".roll .repeat .tile",
    ".operators.reductions.statistics": ".mean .var .std .count_nonzero",
    ".operators.shape.triangles": ".tril .triu .tril_ .triu_",
    ".operators.elementwise.trigonometry": (
        ".sin .cos .tan .asin .acos .atan .atan2 .sinh .cosh .tanh .asinh .acosh .atanh .sin_ .cos_ .tan_ .asin_ "
        ".acos_ .atan_ .atan2_ .sinh_ .cosh_ .tanh_ .asinh_ .acosh_ .atanh_"
    ),
    ".operators.elementwise.neighbours": ".nextafter .nextafter_",
    ".operators.elementwise.spacings": "spacing",
    ".operators.reductions.cumulative": "cumulative_sum cumulative_prod",
    ".operators.reductions.searching": ".searchsorted isin",
    ".operators.reductions.sets": "unique_all unique_counts unique_inverse unique_values",
    ".special": (
        "special_i0 special_i1 special_i0e special_i1e special_j0 special_j1 special_y0 special_y1 special_xlogy "
        "special_xlog1py special_entr special_logit special_polygamma special_digamma special_gammaln "
        "special_gamma special_betaln special_beta special_gammainc special_gammaincc special_betainc special_zeta "
        "special_ndtr special_log_ndtr special_ndtri special_erfinv"
    ),
}
"""Names of operators by module."""
