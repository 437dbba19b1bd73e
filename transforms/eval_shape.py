"""``eval_shape``: the shapes and dtypes of a function's results, without computing them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import lazy, pytree
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError
from ..registry.dispatch.unwinding import restore_state_on_error
from ..registry.dtypes import DType, as_dtype
from ..registry.values import SCALARS, TensorSpec, describe
from .arguments import check_callable, name_of

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Function, Pytree

subgraph = lazy.Module(".control.subgraph")


class ShapeDtypeStruct:
    """The shape and the dtype of a tensor, without its data.

    It replaces a tensor in the arguments of :func:`eval_shape`, :func:`linear_transpose`, and of ``trace()`` and
    ``lower()`` of a jitted function; any object with ``shape`` and ``dtype`` does.

    Args:
        shape: a sequence of non-negative ints.
        dtype: a tandem dtype, or a NumPy dtype or its name.

    Raises:
        ArgumentError: ``shape`` is not a sequence of non-negative ints.
        DTypeError: ``dtype`` is not a dtype.

    Source: ``jax.ShapeDtypeStruct``.

    >>> import tandem as td
    >>> x = td.ShapeDtypeStruct((2, 3), td.float32)
    >>> x.ndim, x.size, x == td.ShapeDtypeStruct([2, 3], "float32")
    (2, 6, True)
    """

    __slots__ = ("dtype", "shape")
    shape: tuple[int, ...]
    dtype: DType

    def __init__(self, shape: Iterable[int], dtype: DTypeLike):
        sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise ArgumentError(f"ShapeDtypeStruct: shape is a sequence of ints from 0, not {shape!r}")
        object.__setattr__(self, "shape", sizes)
        object.__setattr__(self, "dtype", as_dtype(dtype))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a ShapeDtypeStruct does not change; {name!r} is given when it is made")

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return TensorSpec(self.shape, self.dtype).size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct without axes")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __reduce__(self) -> tuple[type[ShapeDtypeStruct], tuple[tuple[int, ...], DType]]:
        return ShapeDtypeStruct, (self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name})"


@restore_state_on_error
def eval_shape(fun: Function, *args: Pytree, **kwargs: Pytree) -> Any:
    """Compute the shapes and dtypes of a function's results by tracing it, without computing data.

    Args:
        fun: a function that ``jit`` could compile.
        args, kwargs: its arguments: pytrees of tensors, numbers and objects with ``shape`` and ``dtype``. Other leaves
            (strings, functions, ...) are passed unchanged.

    Returns:
        A pytree with the structure of the result and a :class:`ShapeDtypeStruct` for each tensor and number.

    Raises:
        ConcretizationError: the control flow of the function depends on the data of its arguments.
        TandemError: the function raises it for arguments of these shapes and dtypes.

    Source: ``jax.eval_shape``.

    >>> import tandem as td
    >>> td.eval_shape(lambda a, b: {"product": a @ b}, td.zeros((500, 2)), td.ShapeDtypeStruct((2, 800), td.float32))
    {'product': ShapeDtypeStruct(shape=(500, 800), dtype=float32)}
    """
    check_callable("eval_shape", fun)
    name = name_of("eval_shape", fun)
    leaves, treedef = pytree.flatten((args, kwargs))
    with subgraph.body_trace(name) as trace:
        given = [_stand_in(trace, leaf) for leaf in leaves]
        traced_args, traced_kwargs = treedef.unflatten(given)
        result, outdef = pytree.flatten(fun(*traced_args, **traced_kwargs))
        return outdef.unflatten([_struct(name, leaf) for leaf in result])


def _stand_in(trace: Any, leaf: object) -> object:
    if type(leaf) in SCALARS:
        return subgraph.new_number(trace, leaf)
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return subgraph.new_input(trace, TensorSpec(tuple(leaf.shape), as_dtype(leaf.dtype)))
    return leaf


def _struct(name: str, leaf: object) -> ShapeDtypeStruct:
    try:
        tensor = leaf if isinstance(leaf, Tensor) else asarray(getattr(leaf, "_example", leaf))
    except ArgumentError as fault:
        raise ArgumentError(f"{name}: the result holds {describe(leaf)}: {fault}") from None
    return ShapeDtypeStruct(tensor.shape, tensor.dtype)
