"""The operator functions in the namespace ``td``, made from the declarations, and the modules of lazy methods."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, NoReturn

from ... import lazy
from ...errors import UnknownNameError
from ...operators.declare.aliases import NAMES_OF
from ...operators.declare.declaration import declared_operators
from ...registry.function import functions, library_functions
from ...registry.operator import Operator

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

_numpy = lazy.Module(".numpy")
_synonyms = lazy.Module(".spellings.synonyms")
_named_results = lazy.Module(".operators.declare.named_results")
_torch = lazy.Module(".torch")
library_functions.extend((lambda name: getattr(_numpy, name, None), lambda name: getattr(_torch, name, None)))
# Name prefixes of operators in td.random, td.linalg, ...
NAMESPACED = ("random_", "linalg_", "fft_", "special_")
# Operators used by composites only, available as td.ops.td.<name>.
INTERNAL = frozenset(
    (
        "atleast_1d atleast_2d atleast_3d basic_index basic_put cast clip_max clip_min fill_diagonal gelu_erf "
        "gelu_tanh hardsigmoid hardswish index index_put put_along_axis random_bits relu_with_slope running_max "
        "running_min"
    ).split()
)

# Methods and properties of Tensor whose modules are imported at their first use.
MODULES_OF_METHODS: dict[str, str] = {
    ".eager.autograd.backward": "backward",
    ".eager.autograd.hooks": "register_hook register_post_accumulate_grad_hook retain_grad",
    ".eager.tensor.interop.array_namespace": "to_device",
    ".eager.tensor.attributes": (
        "__array_interface__ adjoint apply_ _become_shape block_until_ready data data_ptr detach_ dim element_size "
        "expand_as flags "
        "get_device grad_fn H "
        "is_complex is_cpu is_cuda is_floating_point is_inference is_meta is_nonzero is_same_size is_signed "
        "is_sparse map_ mH ndimension nelement new_empty new_full new_ones new_tensor new_zeros numel "
        "reshape_as retains_grad stride _version view view_as"
    ),
    ".eager.tensor.complex_parts": "imag real",
    ".eager.tensor.deletion": "delete is_deleted",
    ".eager.tensor.forwards": (
        "det digamma erfinv index_put index_put_ inverse lgamma logit masked_select matrix_power pinverse select xlogy"
    ),
    ".eager.tensor.conversions": (
        "bfloat16 bool byte cdouble cfloat char double float half int long short type type_as"
    ),
    ".numpy.methods": "argpartition compress fill put tobytes tofile",
    ".torch.complex_views": "conj_physical is_conj resolve_conj resolve_neg",
    ".torch.diagonals": "diag_embed diagonal_scatter narrow_copy select_scatter slice_scatter",
    ".torch.distances": "dist norm renorm",
    ".torch.filling": "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_",
    ".torch.groups": "unique_consecutive",
    ".torch.histograms": "histc histogram",
    ".torch.in_place": (
        "conj_physical_ digamma_ erfinv_ fill_diagonal_ i0_ igamma_ igammac_ index_reduce_ is_set_to lgamma_ logit_ "
        "mvlgamma_ polygamma_ put_ renorm_ resize_ resize_as_ set_ squeeze_ swapaxes_ swapdims_ t_ transpose_ "
        "unsqueeze_ xlogy_"
    ),
    ".torch.linear_algebra": (
        "cholesky cholesky_inverse cholesky_solve geqrf logdet lu lu_solve matrix_exp orgqr ormqr qr slogdet svd "
        "triangular_solve"
    ),
    ".torch.methods": (
        "const_data_ptr dense_dim dim_order index_reduce polygamma sparse_dim sum_to_size tensor_split untyped_storage "
        "where"
    ),
    ".torch.positions": "msort nonzero_static",
    ".torch.reductions": "unique",
    ".torch.sampling": "bernoulli multinomial",
    ".torch.special_functions": "hardshrink i0 igamma igammac mvlgamma",
    ".torch.spectra": "istft stft",
}

# Attributes of NumPy's arrays and PyTorch's tensors that tensors lack; reading one raises an error that names the
# tandem spelling, from spellings/foreign_names.py.
FOREIGN_ATTRIBUTES = (
    "as_strided_ as_strided_scatter as_subclass base byteswap ccol_indices chalf choose col_indices "
    "crow_indices ctypes dequantize dump dumps eig flat getfield grad_dtype hash_tensor index indices int_repr "
    "ipu is_coalesced is_distributed is_ipu is_maia is_mkldnn is_mps is_mtia is_neg is_nested is_pinned "
    "is_quantized is_shared is_sparse_csr is_vulkan is_xla is_xpu lstsq map2_ module_load mtia name new "
    "new_empty_strided output_nr partition prelu q_per_channel_axis q_per_channel_scales "
    "q_per_channel_zero_points q_scale q_zero_point qscheme record_stream reinforce resize resize_as "
    "resize_as_sparse_ row_indices setfield setflags share_memory_ slice_inverse smm solve sparse_mask "
    "sparse_resize_ sparse_resize_and_clear_ sspaddmm storage_type symeig to_mkldnn to_padded_tensor "
    "to_sparse_bsc to_sparse_bsr to_sparse_csc unsafe_chunk unsafe_split unsafe_split_with_sizes values "
    "volatile xpu"
).split()


class ForeignAttribute:
    """A descriptor that raises for an attribute that arrays of another library have and tensors lack.

    Python calls it for this name only, so that other attributes cost what they did, as with ``__getattr__`` they would
    not.

    >>> import tandem as td
    >>> td.zeros(2).flat
    Traceback (most recent call last):
    ...
    tandem.errors.UnknownNameError: 'Tensor' object has no attribute 'flat'; with tandem write x.flatten(), ...
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise UnknownNameError(
            f"{owner.__name__!r} object has no attribute {self.name!r}",
            lambda: _synonyms.suggest(self.name, (), "x."),
        )


def public_functions() -> dict[str, OperatorFunction[Tensor]]:
    """Name to function, for every public operator, with second names."""
    result: dict[str, OperatorFunction[Tensor]] = {}
    for op in declared_operators():
        publish(op, result)
    return result


def publish(op: Operator, namespace: dict[str, OperatorFunction[Tensor]], taken: Container[str] = ()) -> None:
    """Add an operator's function to a namespace, under its name and second names that are not taken."""
    function = public_function(op) if op.decl.result_type else functions[op.name]
    for name in public_names(op.schema.name):
        if name not in taken:
            namespace.setdefault(name, function)


def public_function(op: Operator) -> OperatorFunction[Tensor]:
    """The function that users call: the operator's, or the one that returns its results as a named tuple."""
    if op.decl.result_type is None:
        return functions[op.name]
    result: OperatorFunction[Tensor] = _named_results.name_results(op)
    return result


def public_names(name: str) -> tuple[str, ...]:
    """The public names of an operator; none for internal operators."""
    if name in INTERNAL or name.startswith(NAMESPACED) or name.endswith("_"):
        return ()
    return (name, *NAMES_OF[name]) if name in NAMES_OF else (name,)
