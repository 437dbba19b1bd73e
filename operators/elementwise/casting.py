"""Casts and copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DTypeError
from ...registry.dtypes import ALL, DType, bfloat16
from ...registry.values import TensorSpec
from ..declare import batching
from ..declare.declaration import ErrorInput
from ..declare.derivatives import Linear, Rule
from ..declare.kinds import array_op, composite, view
from ..declare.shape_rules import is_tensor, spec_of
from ..scalar_ir import nodes as s
from ..scalar_ir.numpy_evaluation import cast_array

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Tensor


# -- cast --------------------------------------------------------------------------------------------------------------
def _cast_shape_rule(self: TensorSpec, dtype: DType) -> TensorSpec:
    spec = spec_of(self)
    if spec.dtype.kind == "c" and dtype.kind not in "bc":
        raise DTypeError(f"astype: {spec.dtype} to {dtype} would drop the imaginary part; call real(x) first")
    return TensorSpec(spec.shape, dtype, spec.device)


def _cast_kernel(xp: ArrayModule, self: Array, dtype: DType) -> Array:
    """Cast an array.

    Native twin: backends/cpu/fastpath/entries/rt_elementwise.py:cast
    """
    array = xp.asarray(self)
    if array.dtype == bfloat16.np and dtype.is_integer:
        array = array.astype(xp.float32)  # its conversions to integers are defined
    with xp.errstate(all="ignore"):
        result: Array = cast_array(array, dtype)
        return result


def _cast_transpose(g: Tensor, self_spec: TensorSpec) -> Tensor:
    if g.dtype.kind == "c" and self_spec.dtype.kind != "c":
        g = batching.get_operator("real")(g)
    return cast(g, self_spec.dtype)


cast = array_op(
    "cast",
    "cast(Tensor self, ScalarType dtype) -> Tensor",
    _cast_shape_rule,
    _cast_kernel,
    body=s.cast,
    doc="""A new tensor with the elements converted to another dtype.

    Casts of floats to integers truncate; NaN and values out of range have the results that
    :mod:`tandem.operators.scalar_ir.nodes` lists, the same on every backend.

    Args:
        self: any tensor.
        dtype: the dtype of the result.

    Returns:
        A new tensor, even if the dtype is the same.

    Raises:
        DTypeError: complex to real.

    >>> td.ops.td.cast(td.asarray([1.7, -1.7]), td.int32).tolist()
    [1, -1]
    """,
    reference="references.basic.cast",
    dtypes=ALL,
    derivative=Linear({"self": _cast_transpose}),
    batching=batching.pointwise,
    samples="samples.elementwise.cast_samples",
    errors="samples.elementwise.cast_errors",
    method=False,
)


@composite(
    "astype(Tensor self, ScalarType dtype, *, bool copy=True, Device? device=None) -> Tensor",
    doc="""The tensor with another dtype.

    Args:
        self: any tensor.
        dtype: the dtype of the result.
        copy: whether to copy if dtype and device are the same; otherwise the result is ``self``.
        device: the device of the result; None: that of ``self``.

    Returns:
        A tensor of that dtype. Casts of floats to integers truncate.

    Raises:
        DTypeError: complex to real: call ``real(x)`` first.
        DeviceError: the device is unknown or unavailable.

    >>> td.astype(td.asarray([1.5, 2.5]), td.int64).tolist()
    [1, 2]
    """,
    reference="references.basic.cast",
    samples="samples.elementwise.cast_samples",
    errors="samples.elementwise.cast_errors",
    dtypes=ALL,
    owns=False,
)
def astype(self: Tensor, dtype: DType, *, copy: bool, device: str | None) -> Tensor:
    keep = is_tensor(self) and self.dtype is dtype and (not copy or device not in (None, self.device))
    result = self if keep else cast(self, dtype)
    return result if device is None else result.to_device(device)


# -- copies ------------------------------------------------------------------------------------------------------------
def _identity_shape_rule(self: TensorSpec) -> TensorSpec:
    return spec_of(self)


clone = array_op(
    "copy",
    "clone(Tensor self) -> Tensor",
    _identity_shape_rule,
    lambda xp, self: xp.array(self, order="C"),
    doc="""A copy of the tensor, in row-major order.

    Args:
        self: any tensor.

    Returns:
        A new tensor, equal to ``self``.

    >>> x = td.zeros(2)
    >>> td.clone(x).tolist()
    [0.0, 0.0]
    """,
    reference="references.basic.identity",
    dtypes=ALL,
    derivative=Linear({"self": lambda g: g}),
    batching=batching.pointwise,
    samples="samples.elementwise.layout_samples",
    errors=lambda: [ErrorInput((None,), TypeError, "Tensor")],
    aliases=("copy",),
    ignored=("memory_format",),
)

contiguous = array_op(
    "copy",
    "contiguous(Tensor(a) self) -> Tensor(a)",
    _identity_shape_rule,
    lambda xp, self: xp.asarray(self, order="C"),
    doc="""The tensor in row-major order: a view of the same memory if it is contiguous already, else a copy.

    Args:
        self: any tensor.

    Returns:
        A tensor equal to ``self`` for which ``is_contiguous()`` is true.

    >>> td.contiguous(td.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """,
    reference="references.basic.identity",
    dtypes=ALL,
    ignored=("memory_format",),
    derivative=Linear({"self": lambda g: g}),
    batching=batching.pointwise,
    samples="samples.elementwise.layout_samples",
    errors=lambda: [ErrorInput((None,), TypeError, "Tensor")],
)

stop_gradient = view(
    "stop_gradient(Tensor(a) self) -> Tensor(a)",
    lambda x: x,
    shape_rule=_identity_shape_rule,
    kernel=lambda xp, self: xp.asarray(self)[...],
    doc="""The tensor as a constant: no derivative flows through it, in either mode.

    Args:
        self: any tensor.

    Returns:
        A view of the tensor.

    >>> td.stop_gradient(td.ones(2)).requires_grad
    False
    """,
    reference="references.basic.identity",
    dtypes=ALL,
    derivative=Rule(vjp={}),
    batching=batching.pointwise,
    samples="samples.elementwise.layout_samples",
    errors=lambda: [ErrorInput((None,), TypeError, "Tensor")],
    method=False,
)
