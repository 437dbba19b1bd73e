"""The call under test in opcheck: copies of its arguments, and comparison of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..eager.tensor.tensor import Tensor, wrap
from ..named_tuple import NamedTuple
from ..registry.operator import Operator
from ..registry.schemas.schema import Argument
from ..registry.values import describe

if TYPE_CHECKING:
    from ..registry.types import Args, Array, Kwargs

# relative tolerance of results that are computed in another way
TOLERANCE = {
    "float16": 1e-2,
    "bfloat16": 8e-2,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
}


Bound = tuple[tuple[object, ...], dict[str, object]]  # the bound arguments of a call


class CheckFailure(Exception):
    """A test failed; the message says what is wrong and how to fix it."""


class CheckSkipped(Exception):
    """A test does not apply; the message is the reason."""


class Leaf(NamedTuple):
    """A tensor among the arguments, with its schema argument and its name in messages."""

    argument: Argument
    name: str
    tensor: Tensor


class Subject:
    """A bound call of the operator under test.

    Attributes:
        op: the operator.
        args, kwargs: its bound arguments.
        rtol, atol: the requested tolerances, or None.
    """

    def __init__(
        self,
        op: Operator,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        rtol: float | None,
        atol: float | None,
    ):
        self.op, self.rtol, self.atol = op, rtol, atol
        self.args, self.kwargs = op.binder.bind(tuple(args), dict(kwargs))
        self._sizes = [
            _largest_magnitude(leaf.tensor.detach()._array)
            for leaf in self.leaves()
            if leaf.tensor.dtype.is_inexact
        ]

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.op.name

    @property
    def stem(self) -> str:
        """The name of the operator without namespace and overload."""
        return self.op.schema.name

    @property
    def is_custom(self) -> bool:
        """Whether the operator was made by ``custom_op``."""
        return getattr(self.op.decl, "kind", "") == "custom"

    @property
    def effects(self) -> frozenset[str]:
        """The declared effects of the operator."""
        return getattr(self.op.decl, "effects", frozenset())

    # -- arguments -------------------------------------------------------------------------------------------------
    def leaves(self, args: Args | None = None, kwargs: Kwargs | None = None) -> list[Leaf]:
        """Return the tensors among the arguments, including those in lists."""
        args, kwargs = self.args if args is None else args, self.kwargs if kwargs is None else kwargs
        values = [*zip(self.op.schema.positional, args)]
        values += [(a, kwargs[a.name]) for a in self.op.schema.arguments if a.kwarg_only]
        result = []
        for argument, value in values:
            if isinstance(value, Tensor):
                result.append(Leaf(argument, argument.name, value))
            elif isinstance(value, tuple):
                names = ((f"{argument.name}[{i}]", item) for i, item in enumerate(value))
                result += [Leaf(argument, name, item) for name, item in names if isinstance(item, Tensor)]
        return result

    def replace_tensors(self, change: Callable[[Tensor], Tensor]) -> Bound:
        """Return the arguments with each tensor replaced; a tensor that occurs twice is replaced by one tensor."""
        made: dict[int, Tensor] = {}

        def visit(value: object) -> object:
            if isinstance(value, Tensor):
                return made.setdefault(id(value), change(value))
            return tuple(map(visit, value)) if isinstance(value, tuple) else value

        return tuple(map(visit, self.args)), {name: visit(value) for name, value in self.kwargs.items()}

    def copied(self) -> Bound:
        """Return the arguments with copies of the tensors."""
        return self.replace_tensors(copy_tensor)

    def with_tensors(self, tensors: Iterable[Tensor]) -> Bound:
        """Return the arguments with other tensors, which are in the order of :meth:`leaves`."""
        following = iter(tensors)

        def visit(value: object) -> object:
            if isinstance(value, Tensor):
                return next(following)
            return tuple(map(visit, value)) if isinstance(value, tuple) else value

        return tuple(map(visit, self.args)), {name: visit(value) for name, value in self.kwargs.items()}

    def call(self, args: Args, kwargs: Kwargs) -> Args:
        """Call the operator; return a tuple of the results and the written arguments."""
        result = self.op(*args, **kwargs)
        results = result if isinstance(result, tuple) else () if result is None else (result,)
        return (*results, *(leaf.tensor for leaf in self.leaves(args, kwargs) if leaf.argument.is_write))

    def fresh(self) -> Args:
        """Call the operator on copies of the arguments; return the same as :meth:`call`."""
        return self.call(*self.copied())

    # -- comparing -------------------------------------------------------------------------------------------------
    def differ(self, results: Args, wanted: Args) -> str:
        """Describe the first difference between two tuples of results; return an empty string if they are equal."""
        if len(results) != len(wanted):
            return f"{len(results)} results instead of {len(wanted)}"
        for index, (one, other) in enumerate(zip(results, wanted)):
            where = f"result {index}: " if len(wanted) > 1 else ""
            if not isinstance(one, Tensor) or not isinstance(other, Tensor):
                if one != other:
                    return f"{where}{describe(one)} instead of {describe(other)}"
            elif one.spec != other.spec:
                return f"{where}{one.spec} instead of {other.spec}"
            else:
                fault = self._unequal(one, other)
                if fault:
                    return where + fault
        return ""

    def _unequal(self, one: Tensor, other: Tensor) -> str:
        a, b = one.detach().numpy(), other.detach().numpy()
        rtol = TOLERANCE.get(other.dtype.name, 0.0) if self.rtol is None else self.rtol
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        if not other.dtype.is_inexact:
            same = a == b
        else:
            with np.errstate(all="ignore"):
                left, right = a.astype(wide), b.astype(wide)
                largest = max(
                    _largest_magnitude(right), *(self._sizes or (0.0,))
                )  # what sums loses what cancels
                atol = rtol * largest if self.atol is None else self.atol
                same = np.isclose(left, right, rtol, atol, equal_nan=True)
        if np.all(same):
            return ""
        index = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
        return f"at {list(index)}: {a[index]} instead of {b[index]}"


def _largest_magnitude(array: Array) -> float:
    """Return the largest magnitude in an array of inexact numbers."""
    sizes = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(sizes[np.isfinite(sizes)], initial=0.0))


def copy_tensor(x: Tensor) -> Tensor:
    """Return a copy of a tensor, detached from autograd."""
    return wrap(np.array(x.detach()._array, order="K", copy=True))


def make_strided_copies() -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    """Yield pairs of the name of a non-contiguous layout and a function that copies a tensor to it."""

    def every_second(x: Tensor) -> Tensor:
        array = x.detach()._array
        if not array.ndim:
            return wrap(array.copy())
        view = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)[..., ::2]
        view[...] = array
        return wrap(view)

    def transposed(x: Tensor) -> Tensor:
        return wrap(np.array(x.detach()._array, order="F"))

    def backwards(x: Tensor) -> Tensor:
        array = x.detach()._array
        return wrap(np.flip(np.array(np.flip(array), order="C")))

    yield "every second element of a buffer", every_second
    yield "column-major order", transposed
    yield "negative strides", backwards
