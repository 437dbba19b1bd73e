"""The parameters of a module as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...eager.autograd.grad_modes import no_grad
from ...errors import ShapeError
from ...operators.shape.joining import concat

if TYPE_CHECKING:
    from ...registry.types import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters as one vector."""
    return concat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector into the parameters.

    Raises:
        ShapeError: the vector has another number of elements; nothing is written then.
    """
    targets = list(parameters)
    count = 0
    for target in targets:
        count += target.size
    if vec.shape != (count,):
        raise ShapeError(f"vector_to_parameters: the parameters have {count} elements, not {vec.shape}")
    start = 0
    with no_grad():
        for target in targets:
            target[...] = vec[start : start + target.size].reshape(target.shape)
            start += target.size
