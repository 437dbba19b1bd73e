"""Integer tensors as arguments of functions that take floats, as in ``linalg`` and ``fft`` of NumPy and JAX."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import DTypeError
from ..registry.dtypes import default_float

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..registry.dtypes import DType


def accept_integers(function: Any, choose: Callable[[], DType] = default_float) -> Any:  # noqa: ANN401
    """The function for arguments that may be tensors of integers or bools; what is not a function, unchanged.

    Args:
        function: a function that raises a DTypeError for tensors of integers.
        choose: returns the dtype to which such tensors are converted, after the error.

    >>> import tandem.jax.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[2, 1], [1, 3]]))
    tensor(5.)
    """
    if not callable(function) or isinstance(function, type):
        return function

    @wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return function(*args, **kwargs)
        except DTypeError:
            dtype = choose()
            given = [_to_float(value, dtype) for value in args]
            options = {name: _to_float(value, dtype) for name, value in kwargs.items()}
            if not any(
                one is not other for one, other in zip([*given, *options.values()], [*args, *kwargs.values()])
            ):
                raise
        return function(*given, **options)

    return call


def _to_float(value: object, dtype: DType) -> object:
    """A tensor or array of integers or bools in a dtype; other values as they are."""
    if isinstance(value, (Tensor, np.ndarray)) and value.dtype.kind in "biu":
        return asarray(value).astype(dtype)
    return value
