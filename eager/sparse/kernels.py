"""The kernels of the sparse keys: operators on sparse tensors, written with operators on their values."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...errors import FallbackWarning, UnsupportedError
from ...operators.declare.shape_rules import device_mismatch_error, is_tensor, normalize_axes, promoted_dtype
from ...operators.sparse_quantized import sparse as parts
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import SPARSE
from ...registry.dispatch.state import state
from ...registry.dtypes import float32, is_half
from ...registry.function import functions
from ...registry.layouts import sparse_coo
from ...registry.operator import Operator
from ...registry.values import TensorSpec, describe
from ..tensor.dunders import by_name
from ..tensor.tensor import Tensor, wrap
from ..tensor.transfer import to_device
from .construct import (
    coalesce,
    from_linear_index,
    sum_duplicates,
    take_values,
    to_csr,
    to_csr_tensors,
    to_sparse,
)
from .indices import HOST, linear_index
from .tensor import Pattern, SparseTensor, dense, sparse_tensor, with_values

if TYPE_CHECKING:
    from ...registry.dtypes import DType
    from ...registry.types import Args, Array, DTypeLike, Kwargs, Shape, TensorLike

scipy_sparse = lazy.Module("scipy.sparse")

Kernel = Callable[..., Tensor]


class UseDense(Exception):
    """Raised by a kernel for sparse tensors that does not support a call, which is then computed dense."""


def cast(x: Tensor, dtype: DType) -> Tensor:
    """A tensor of a dtype."""
    return x if x.dtype is dtype else by_name("astype")(x, dtype)


# -- element by element ------------------------------------------------------------------------------------------------
def on_values(name: str) -> Kernel:
    """Make the kernel of an operator that maps 0 to 0: it runs on the stored values."""

    def kernel(self: SparseTensor, *args: object, **kwargs: object) -> SparseTensor:
        x = coalesce(self)
        return with_values(x, by_name(name)(x._values, *args, **kwargs))

    return kernel


def add(self: Any, other: Any) -> Tensor:
    """Add two tensors: the sum of two sparse tensors is sparse, that of a sparse and a dense one is dense."""
    if not (is_tensor(self) and is_tensor(other)) or self.shape != other.shape:
        raise UseDense
    dtype = promoted_dtype("add", (self, other))
    if not isinstance(self, SparseTensor):
        self, other = other, self
    if not isinstance(other, SparseTensor):
        values = cast(self._values, dtype)
        return by_name("index_put")(cast(other, dtype), self._pattern.tensors(), values, 0, accumulate=True)
    one, two = cast(self._values, dtype), cast(other._values, dtype)
    if self._pattern.has_same_indices(other._pattern):
        return with_values(self, by_name("add")(one, two))
    return _concatenate(self, other, by_name("concat")([one, two]))


def _concatenate(self: SparseTensor, other: SparseTensor, values: Tensor) -> SparseTensor:
    """Create a coalesced tensor from the indices of two tensors, one after the other, and values for both."""
    linear = self._pattern.space.xp.concatenate([self._pattern.linear(), other._pattern.linear()])
    return sum_duplicates(self.layout, self.shape, linear, values)


def sub(self: Tensor, other: Tensor) -> Tensor:
    """Subtract two tensors: add the negated second operand (:func:`add`)."""
    if not (is_tensor(self) and is_tensor(other)):
        raise UseDense
    return add(self, by_name("neg")(other))


def mul(self: Any, other: Any) -> SparseTensor:
    """Multiply elementwise; the result is sparse, and elements that are not stored stay zero even times NaN."""
    if not isinstance(self, SparseTensor):
        self, other = other, self
    x = coalesce(self)
    if isinstance(other, SparseTensor):
        return _multiply_common(x, coalesce(other))
    if is_tensor(other) and len(other.shape):
        if len(other.shape) > len(x.shape) or any(
            size not in (1, mine) for size, mine in zip(reversed(other.shape), reversed(x.shape))
        ):
            raise UseDense
        other = by_name("index")(by_name("broadcast_to")(other, x.shape), x._pattern.tensors(), 0)
    return with_values(x, by_name("mul")(x._values, other))


def _multiply_common(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """Multiply the values at the indices that both tensors store."""
    if x.shape != y.shape:
        raise UseDense
    if x._pattern.has_same_indices(y._pattern):
        return with_values(x, by_name("mul")(x._values, y._values))
    both, one, two = x._pattern.space.xp.intersect1d(
        x._pattern.linear(), y._pattern.linear(), assume_unique=True, return_indices=True
    )
    products = by_name("mul")(take_values(x._values, one), take_values(y._values, two))
    return from_linear_index(x.layout, x.shape, both, products)


def div(self: Tensor, other: TensorLike) -> SparseTensor:
    """Divide a sparse tensor by a number."""
    if not isinstance(self, SparseTensor) or (is_tensor(other) and other.shape):
        raise UseDense
    return with_values(self, by_name("div")(self._values, other))


# -- shape -------------------------------------------------------------------------------------------------------------
def permute(self: SparseTensor, axes: tuple[int, ...]) -> SparseTensor:
    """Permute the axes; the layout stays the same."""
    by_name("permute").operator.decl.shape_rule(self, axes)
    order = [axis % len(self.shape) for axis in axes]
    shape = tuple(self.shape[axis] for axis in order)
    coordinates = self._pattern.coordinates()
    linear = linear_index(tuple(coordinates[axis] for axis in order), shape)
    return sum_duplicates(self.layout, shape, linear, self._values)


def reshape(self: SparseTensor, shape: Shape) -> SparseTensor:
    """Reshape a sparse tensor; the result has the layout COO unless it is a CSR matrix."""
    wanted = by_name("reshape").operator.decl.shape_rule(self, shape).shape
    if not wanted:
        raise UseDense
    x = self if self.layout == sparse_coo or len(wanted) == 2 else to_sparse(self, sparse_coo)
    return sum_duplicates(x.layout, wanted, x._pattern.linear(), x._values)


# -- sums --------------------------------------------------------------------------------------------------------------
def sum(
    self: SparseTensor,
    axis: Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The sum over axes, a dense tensor."""
    op = by_name("sum").operator
    spec: TensorSpec = op.decl.shape_rule(self, axis, keepdims=keepdims, dtype=dtype)
    axes = normalize_axes("sum", axis, len(self.shape))
    if len(axes) == len(self.shape):
        return by_name("reshape")(by_name("sum")(self._values, dtype=spec.dtype), spec.shape)
    kept = [axis for axis in range(len(self.shape)) if axis not in axes]
    coordinates = self._pattern.tensors()
    kept_coordinates = tuple(coordinates[axis] for axis in kept)
    wide = float32 if is_half(spec.dtype.np) else spec.dtype
    zeros = by_name("zeros")(tuple(self.shape[axis] for axis in kept), dtype=wide, device=self.device)
    result = by_name("index_put")(zeros, kept_coordinates, cast(self._values, wide), 0, accumulate=True)
    return by_name("reshape")(cast(result, spec.dtype), spec.shape)


# -- products ----------------------------------------------------------------------------------------------------------
def matmul(self: Any, other: Any) -> Tensor:
    """Matrix product: dense if an operand is dense, sparse if both are sparse."""
    spec: TensorSpec = by_name("matmul").operator.decl.shape_rule(self, other)
    if len(self.shape) > 2 or len(other.shape) > 2:
        raise UseDense
    left, right = isinstance(self, SparseTensor), isinstance(other, SparseTensor)
    if left and right:
        if len(self.shape) != 2 or len(other.shape) != 2:
            raise UseDense
        return _sparse_product(self, other, spec)
    if left:
        if len(self.shape) != 2:
            raise UseDense
        crow, col, values = to_csr_tensors(self)
        return parts.spmm(crow, col, cast(values, spec.dtype), cast(other, spec.dtype), self.shape[1])
    if len(other.shape) != 2:
        raise UseDense
    crow, col, values = to_csr_tensors(other)
    dense_one, swap = cast(self, spec.dtype), len(self.shape) == 2
    if swap:
        dense_one = by_name("permute")(dense_one, (1, 0))
    result = parts.spmm(crow, col, cast(values, spec.dtype), dense_one, other.shape[1], transpose=True)
    return by_name("permute")(result, (1, 0)) if swap else result


def _sparse_product(self: SparseTensor, other: SparseTensor, spec: TensorSpec) -> SparseTensor:
    layout = self.layout
    one, two = coalesce(self), coalesce(other)
    first, second = cast(one._values, spec.dtype), cast(two._values, spec.dtype)
    plain = all(type(v) is Tensor and not v.requires_grad for v in (first, second))
    if plain and not is_half(spec.dtype.np):
        return _multiply_by_scipy(
            sparse_tensor(one._pattern, first), sparse_tensor(two._pattern, second), spec
        )
    linear, left, right = _pairs(one, two)
    return sum_duplicates(
        layout, spec.shape, linear, by_name("mul")(take_values(first, left), take_values(second, right))
    )


def _multiply_by_scipy(one: SparseTensor, two: SparseTensor, spec: TensorSpec) -> SparseTensor:
    product = _to_scipy(one) @ _to_scipy(two)
    product.sort_indices()
    indices = HOST.own(product.indptr), HOST.own(product.indices)
    if one.layout == sparse_coo:
        indices = HOST.own(HOST.expand(np.diff(product.indptr))), indices[1]
    values = wrap(product.data.astype(spec.dtype.np, copy=False))
    return sparse_tensor(Pattern(one.layout, spec.shape, indices, True), values)


def _to_scipy(x: SparseTensor) -> Any:
    crow, col, values = to_csr_tensors(x)
    return scipy_sparse.csr_array((values._array, col._array, crow._array), shape=x.shape)


def _pairs(one: SparseTensor, two: SparseTensor) -> tuple[Array, Array, Array]:
    """For each product of entries that is summed: linear index in the result, entry of one, entry of two."""
    rows, inner = one._pattern.coordinates()
    crow, col, _ = to_csr(two)
    space = one._pattern.space
    counts = space.xp.diff(crow)[inner]
    left = space.expand(counts)
    offsets = space.xp.arange(len(left)) - (space.xp.cumsum(counts) - counts)[left]
    right = crow[inner][left] + offsets
    return linear_index((rows[left], col[right]), (one.shape[0], two.shape[1])), left, right


# -- the key's kernel --------------------------------------------------------------------------------------------------
def clone(self: SparseTensor) -> SparseTensor:
    """A copy that also copies the values."""
    return with_values(self, by_name("clone")(self._values))


def stop_gradient(self: SparseTensor) -> SparseTensor:
    """The same values as constants."""
    return with_values(self, by_name("stop_gradient")(self._values))


def to(self: SparseTensor, device: str, *, non_blocking: bool) -> SparseTensor:
    """Move indices and values to another device."""
    values = to_device(self._values, device, non_blocking=non_blocking)
    return sparse_tensor(self._pattern.to_device(values.device), values)


# eager/tensor/layouts.py:register registers these for the sparse dispatch keys.
KERNELS: dict[str, Kernel] = {
    "to": to,
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "permute": permute,
    "reshape": reshape,
    "sum": sum,
    "matmul": matmul,
    "clone": clone,
    "contiguous": clone,
    "stop_gradient": stop_gradient,
}


def run(op: Operator, args: Args, kwargs: Kwargs) -> object:
    """Run an operator that has a kernel for sparse tensors."""
    kernel = KERNELS.get(op.schema.name)
    if kernel is None:
        kernel = KERNELS[op.schema.name] = on_values(op.schema.name)
    space = _check_same_device(op, args)._pattern.space
    try:
        with space.on():
            return kernel(*args, **kwargs)
    except UseDense:
        return fall_back(op, args, kwargs)


def _check_same_device(op: Operator, args: Args) -> SparseTensor:
    """Check that all sparse arguments are on one device; return the first of them.

    Raises:
        DeviceError: one is on another device.
    """
    tensors = [value for value in args if isinstance(value, SparseTensor)]
    for other in tensors[1:]:
        if other.device != tensors[0].device:
            raise device_mismatch_error(op.schema.name, other, tensors[0])
    return tensors[0]


_warned: set[str] = set()
_PACKAGE = __name__.partition(".")[0]


def fall_back(op: Operator, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on dense copies of its sparse arguments, with a warning the first time.

    Raises:
        UnsupportedError: it writes into a sparse tensor.
    """
    for argument, value in zip(op.schema.positional, args):
        if argument.is_write and isinstance(value, SparseTensor):
            raise UnsupportedError(
                f"{op.name}: a sparse tensor cannot be written in place, {describe(value)} has no element to write at "
                "most places; make a new one: x = x + y, or write into x.to_dense()"
            )
    if op.name not in _warned:
        _warned.add(op.name)
        given = ", ".join(_describe(value) for value in (*args, *kwargs.values()))
        warnings.warn(
            f"{op.name}({given}) has no kernel for these sparse tensors and is computed on dense copies; x.to_dense() "
            "says so in the program",
            FallbackWarning,
            stacklevel=_package_frames(),
        )
    call = functions.get(op.name, op)
    with adjust_keys(exclude=state.include & SPARSE):  # else a key that the user includes leads here again
        return call(*map(_dense, args), **{name: _dense(value) for name, value in kwargs.items()})


def _package_frames() -> int:
    """The number of frames of the package between the caller's code and the function that warns."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, count = frame.f_back, count + 1
    return count


def _describe(value: object) -> str:
    return f"{value.layout} {describe(value)}" if isinstance(value, SparseTensor) else describe(value)


def _dense(value: object) -> object:
    return tuple(map(_dense, value)) if type(value) is tuple else dense(value)
