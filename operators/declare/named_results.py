"""Functions that return the results of an operator as a named tuple.

Operators return plain tuples, which the layers take apart; only the public function adds the names.
"""

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...named_tuple import NamedTuple
from ...registry.function import functions
from ...registry.operator import Operator

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

T = TypeVar("T", bound=tuple[Any, ...])


class NamedResults(Generic[T]):
    """The function of an operator with several results, which returns them as a named tuple.

    Attributes:
        function: the operator's function.
        result: the class of the named tuple; its fields are the results in the operator's schema.
    """

    def __init__(self, function: OperatorFunction[Any], result: type[T]):
        self.function, self.result = function, result
        self.__name__ = self.__qualname__ = function.__name__.removeprefix("linalg_")
        self.__module__, self.__doc__ = function.__module__, function.__doc__

    @property
    def __signature__(self) -> object:
        return self.function.__signature__

    def __call__(self, /, *args: Any, **kwargs: Any) -> T:
        """Call the operator."""
        return self.result(*self.function(*args, **kwargs))

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("function", "result"):
            raise AttributeError(name)
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return repr(self.function)


class ValuesAndIndices(NamedTuple):
    """Elements of a tensor, and their positions along an axis."""

    values: Tensor
    indices: Tensor


class MinAndMax(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor


class Histogram(NamedTuple):
    """Counts, and the bounds of the intervals."""

    hist: Tensor
    bin_edges: Tensor


class SingularVectors(NamedTuple):
    """Singular values, and the vectors as columns: PyTorch's ``torch.svd``."""

    U: Tensor
    S: Tensor
    V: Tensor


class TriangularSolution(NamedTuple):
    """The solution of a system of equations, and its matrix: PyTorch's ``torch.triangular_solve``."""

    solution: Tensor
    cloned_coefficient: Tensor


_named: dict[str, NamedResults[Any]] = {}


def name_results(operator: Operator) -> NamedResults[Any]:
    """The function of an operator whose declaration has a ``result_type``; the same object for each call."""
    function = functions[operator.name]
    result = _named.get(operator.name)
    if result is None or result.function is not function:
        result = _named[operator.name] = NamedResults(function, operator.decl.result_type)
    return result
