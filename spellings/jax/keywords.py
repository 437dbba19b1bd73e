"""The base of functions that take JAX's keywords and share the native entry of an operator's function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeGuard

from ..eager.tensor.construct import asarray
from ..numpy.wrappers import OperatorWrapper
from ..operators.elementwise.casting import astype
from ..registry.function import add_wrapper
from ..registry.native_type import accept_entries
from ..registry.values import traced_number_types

if TYPE_CHECKING:
    from ..registry.dtypes import DType
    from ..registry.types import Function, Number, Tensor, TensorLike


@accept_entries
class KeywordFunction(OperatorWrapper):
    """A Python function with more keywords than an operator; native code runs the calls that the operator takes.

    Args:
        function: the Python function, which is called where the native entry is not.
        operator_function: the function of the operator, whose results are those of ``function`` without keywords.

    Attributes:
        own_names: the keywords that the operator does not take; native code leaves calls with them to Python.
    """

    passing_rules: Mapping[str, int] = {"values_start": 0, "takes_none": 0, "most": 0}
    single_tensors: Sequence[bool] = ()
    least = 1

    def __init__(self, function: Function, operator_function: Any) -> None:  # noqa: ANN401
        update_wrapper(self, function)
        self.function = function
        own = inspect.signature(operator_function).parameters
        self.own_names = tuple(name for name in inspect.signature(function).parameters if name not in own)
        add_wrapper(self, operator_function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call the function."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<function {self.__module__}.{self.__qualname__}>"


def extend_operator(operator_function: Any) -> Callable[[Function], Any]:  # noqa: ANN401
    """A decorator: the Python function shares the native entry of an operator's function.

    >>> import tandem.jax.numpy as jnp
    >>> jnp.matmul(jnp.ones((1, 2)), jnp.ones(2), precision="highest").tolist()
    [2.0]
    """
    return lambda function: KeywordFunction(function, operator_function)


def is_number(x: object) -> TypeGuard[Number]:
    """Whether an argument is a Python number, or one of a traced function, whose dtype is weak."""
    return isinstance(x, (bool, int, float, complex)) or type(x) in traced_number_types


def to_dtype(x: TensorLike, dtype: DType, device: str | None = None) -> Tensor:
    """A tensor of a dtype; numbers are converted at once, with all their digits."""
    return asarray(x, dtype, device=device) if is_number(x) else astype(asarray(x, device=device), dtype)
