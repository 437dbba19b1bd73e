"""SparseTensor: a sparsity pattern and a dense tensor of the stored values.

All computation is by operators on the values, so gradients, transforms and traces need no code for sparse tensors: a
sparse tensor requires a gradient if its values do, and its gradient is a sparse tensor of the same pattern whose values
are the gradient of the values. It is a pytree with one leaf, the values.
"""

from __future__ import annotations

import copy as copying
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from ... import lazy, pytree
from ...errors import ArgumentError, UnsupportedAttributeError, UnsupportedError
from ...registry.dtypes import DType
from ...registry.layouts import Layout, as_layout, sparse_coo, sparse_csr
from ...registry.values import Device, TensorSpec
from ..autograd.autograd_meta import make_leaf
from ..tensor.dunders import by_name
from ..tensor.tensor import EAGER, Tensor
from .indices import HOST, IndexSpace, Indices, index_space_of, linear_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...registry.types import Args, Array, Function

lazy.module(".backends.cpu.kernels.sparse_quantized")  # registers the kernels of operators on the components


class Pattern:
    """The sparsity pattern of a tensor.

    Attributes:
        layout: ``sparse_coo`` or ``sparse_csr``.
        shape: the shape of the tensor.
        indices: in the layout COO one array per axis; in CSR the row starts and the columns.
        is_coalesced: whether the indices are sorted and none occurs twice.
        space: the index space, of the device of the values.
        rows: cached at first use: for CSR the row of each element, for COO the compressed rows.
    """

    __slots__ = ("__weakref__", "indices", "is_coalesced", "layout", "rows", "shape", "space")

    def __init__(
        self,
        layout: Layout,
        shape: tuple[int, ...],
        indices: tuple[Indices, ...],
        is_coalesced: bool,
        space: IndexSpace = HOST,
    ):
        self.layout, self.shape, self.indices, self.is_coalesced = layout, shape, indices, is_coalesced
        self.space = space
        self.rows: Any = None

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return len(self.indices[-1])

    def coordinates(self) -> tuple[Indices, ...]:
        """For each axis the positions of the stored elements."""
        if self.layout == sparse_coo:
            return self.indices
        if self.rows is None:
            self.rows = self.space.own(self.space.expand(self.space.xp.diff(self.indices[0])))
        return self.rows, self.indices[1]

    def tensors(self) -> tuple[Tensor, ...]:
        """The coordinates as tensors."""
        return tuple(map(self.space.tensor, self.coordinates()))

    def linear(self) -> Indices:
        """The linear (row-major) indices of the stored elements."""
        return linear_index(self.coordinates(), self.shape)

    def has_same_indices(self, other: Pattern) -> bool:
        """Whether another pattern has the same indices in the same order."""
        if self is other:
            return True
        if (self.layout, self.shape, self.space) != (other.layout, other.shape, other.space):
            return False
        with self.space.on():
            return all(map(bool, map(self.space.xp.array_equal, self.indices, other.indices)))

    def to_device(self, device: str) -> Pattern:
        """The same pattern on another device."""
        space = index_space_of(device)
        with self.space.on():
            arrays = tuple(map(self.space.host, self.indices))
        with space.on():
            return Pattern(self.layout, self.shape, tuple(map(space.own, arrays)), self.is_coalesced, space)


class SparseTensor(Tensor):
    """A tensor of which only some elements are stored; the others are zero.

    Made by :func:`tandem.sparse_coo_tensor`, :func:`tandem.sparse_csr_tensor` and ``x.to_sparse()``.
    """

    __slots__ = ("_pattern", "_values")
    _pattern: Pattern
    _values: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return self._pattern.shape

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def device(self) -> Device:
        return self._values.device

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.shape, self.dtype, self.device)

    @property
    def layout(self) -> Layout:
        return self._pattern.layout

    # -- parts -----------------------------------------------------------------------------------------------------
    @property
    def nnz(self) -> int:
        """The number of stored elements; stored zeros count, and indices that occur twice count twice."""
        return self._pattern.nnz

    @property
    def nbytes(self) -> int:
        """Bytes that indices and values take."""
        return int(sum(array.nbytes for array in self._pattern.indices) + self._values.nbytes)

    @property
    def is_coalesced(self) -> bool:
        """Whether the indices are sorted and none occurs twice."""
        return self._pattern.is_coalesced

    def values(self) -> Tensor:
        """The stored elements, a 1-d tensor; gradients flow through it."""
        return self._values

    def indices(self) -> Tensor:
        """The indices of the elements of a COO tensor: int64 of shape ``(ndim, nnz)``."""
        self._needs(sparse_coo, "indices()")
        space = self._pattern.space
        with space.on():
            return space.tensor(space.own(space.xp.stack(self._pattern.indices)))

    def crow_indices(self) -> Tensor:
        """The start of each row of a CSR tensor among the values: int64 of shape ``(rows + 1,)``."""
        self._needs(sparse_csr, "crow_indices()")
        return self._pattern.space.tensor(self._pattern.indices[0])

    def col_indices(self) -> Tensor:
        """The column of each value of a CSR tensor."""
        self._needs(sparse_csr, "col_indices()")
        return self._pattern.space.tensor(self._pattern.indices[1])

    def _needs(self, layout: Layout, what: str) -> None:
        if self.layout != layout:
            raise UnsupportedError(
                f"{what}: the tensor has the layout {self.layout}; to_sparse(layout=td.{layout}) makes one that has it"
            )

    # -- autograd --------------------------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        return self._values.is_leaf

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient, a sparse tensor of the same pattern, or None."""
        value = self._values.grad
        return None if value is None else with_values(self, value)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, SparseTensor) or not self._pattern.has_same_indices(value._pattern):
                raise ArgumentError(
                    "the gradient of a sparse tensor is None or a sparse tensor of the same layout, shape and positions"
                )
            value = value._values
        self._values.grad = value

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Record operations on the values from now on, or stop recording; returns the tensor."""
        if requires_grad and not self.requires_grad:
            self._values = make_leaf(self._values.detach())
        elif not requires_grad:
            self._values = self._values.requires_grad_(False)
        return self

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Run ``backward`` from the values; ``gradient`` is a sparse tensor of the same pattern."""
        if gradient is not None:
            if not isinstance(gradient, SparseTensor) or not self._pattern.has_same_indices(
                gradient._pattern
            ):
                raise ArgumentError("backward: gradient must be a sparse tensor of the same positions")
            gradient = gradient._values
        self._values.backward(gradient, retain_graph, create_graph, inputs)

    def _without_history(self) -> SparseTensor:
        return with_values(self, self._values.detach())

    # -- no dense memory -------------------------------------------------------------------------------------------
    @property
    def _array(self) -> NoReturn:
        self._host("reading its memory")

    def _host(self, what: str) -> NoReturn:
        raise UnsupportedError(self._no_memory(what))

    def _no_memory(self, what: str) -> str:
        return f"{what}: a {self.layout} tensor has no dense memory; use x.to_dense(), or x.values()"

    @property
    def _strides(self) -> tuple[int, ...]:
        raise UnsupportedAttributeError(self._no_memory("strides"))

    @property
    def storage_offset(self) -> int:
        raise UnsupportedAttributeError(self._no_memory("storage_offset"))

    def storage(self) -> NoReturn:
        self._host("storage()")

    def is_contiguous(self) -> bool:
        return False

    def __dlpack_device__(self) -> NoReturn:
        self._host("DLPack export")

    # -- copies and text -------------------------------------------------------------------------------------------
    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Function, Args]:
        pattern = self._pattern.to_device("cpu")
        arguments = (str(pattern.layout), pattern.shape, pattern.indices, pattern.is_coalesced)
        return _rebuild, (*arguments, self._values)

    def __deepcopy__(self, memo: dict[int, object]) -> SparseTensor:
        memo[id(self)] = made = with_values(self, copying.deepcopy(self._values, memo))
        return made

    def __copy__(self) -> SparseTensor:
        return self.__deepcopy__({})

    def __repr__(self) -> str:
        names = {sparse_coo: ("indices",), sparse_csr: ("crow_indices", "col_indices")}[self.layout]
        parts = [f"{name}={_short(getattr(self, name)())}" for name in names]
        parts += [f"values={_short(self._values)}", f"shape={self.shape}", f"nnz={self.nnz}"]
        if str(self.dtype) != "float32":
            parts.append(f"dtype={self.dtype}")
        if self.device != "cpu":
            parts.append(f"device={self.device!r}")
        parts.append(f"layout={self.layout}")
        if self.requires_grad:
            parts.append("requires_grad=True")
        return f"tensor({', '.join(parts)})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def _short(x: Tensor) -> str:
    """The elements of a part, on one line, the middle left out where there are many."""
    if type(x) not in EAGER or x.device == "meta":
        return repr(x)
    array: Any = x.to("cpu")._array
    if x.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    return np.array2string(array, separator=", ", threshold=12, edgeitems=3).replace("\n", "")


def _rebuild(
    layout: str, shape: tuple[int, ...], indices: tuple[Array, ...], is_coalesced: bool, values: Tensor
) -> Tensor:
    pattern = Pattern(as_layout(layout), shape, tuple(map(HOST.own, indices)), is_coalesced)
    return sparse_tensor(pattern.to_device(values.device), values)


def sparse_tensor(pattern: Pattern, values: Tensor) -> SparseTensor:
    """Create a sparse tensor from parts that have been checked."""
    tensor = SparseTensor.__new__(SparseTensor)
    tensor._pattern, tensor._values = pattern, values
    tensor._keys, tensor._meta, tensor._storage = pattern.space.keys, None, None
    return tensor


def with_values(x: SparseTensor, values: Tensor) -> SparseTensor:
    """A sparse tensor with the same pattern and other values."""
    return sparse_tensor(x._pattern, values)


def dense(x: object) -> Any:
    """Convert a sparse tensor to a dense one; return any other value unchanged."""
    if not isinstance(x, SparseTensor):
        return x
    pattern, values = x._pattern, x._values
    zeros = by_name("zeros")(pattern.shape, dtype=values.dtype, device=values.device)
    adds = not pattern.is_coalesced or values.requires_grad
    with pattern.space.on():
        return by_name("index_put")(zeros, pattern.tensors(), values, 0, accumulate=adds)


def _with_leaf(pattern: Pattern, children: tuple[Tensor]) -> SparseTensor:
    """A sparse tensor of a pytree's leaf, which need not be a tensor."""
    (values,) = children
    if isinstance(values, Tensor) and len(values.shape) != 1:
        raise UnsupportedError(
            f"a sparse tensor has a 1-d tensor of values, not {values.spec}; td.vmap cannot map over its positions: "
            "give it in_axes=None"
        )
    return sparse_tensor(pattern, values)


pytree.register_pytree_node(SparseTensor, lambda x: ((x._values,), x._pattern), _with_leaf)
