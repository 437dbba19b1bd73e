"""Functions of PyTorch that are not about elements: printing, control flow, questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..control import api as _control
from ..eager.tensor.storage import Storage
from ..errors import ArgumentError
from ..registry import dtype_functions
from ..registry.dtypes import default_float

if TYPE_CHECKING:
    from ..registry.dtype_functions import FInfo
    from ..registry.types import DTypeLike, Pytree, Tensor, TensorLike

_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors, and NumPy's arrays, are printed.

    Args:
        precision: digits after the point.
        threshold: the number of elements from which only those at the edges are printed.
        edgeitems: how many are printed at each edge.
        linewidth: the characters of a line.
        profile: ``"default"``, ``"short"`` or ``"full"``: values of these options.
        sci_mode: False: never with exponents; else where needed.

    Raises:
        ArgumentError: another profile, or ``sci_mode=True``.
    """
    if profile is not None and profile not in _PROFILES:
        raise ArgumentError(f"set_printoptions: profile is one of {', '.join(_PROFILES)}, not {profile!r}")
    if sci_mode:
        raise ArgumentError(
            "set_printoptions: sci_mode is False or None; NumPy chooses exponents where needed"
        )
    options: dict[str, float] = dict(_PROFILES.get(profile or "", {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update({name: value for name, value in given.items() if value is not None})
    np.set_printoptions(**options, suppress=None if sci_mode is None else True)  # type: ignore[arg-type]


def is_storage(obj: object) -> bool:
    """Whether an object is the memory of tensors, as ``x.storage()`` returns it.

    >>> import tandem.torch as torch
    >>> torch.is_storage(torch.zeros(2).storage())
    True
    """
    return isinstance(obj, Storage)


def cond(
    pred: Tensor | bool,
    true_fn: Callable[..., Pytree],
    false_fn: Callable[..., Pytree],
    operands: Sequence[Pytree] = (),
) -> Pytree:
    """Call one of two functions with the operands: :func:`tandem.cond`.

    >>> import tandem.torch as torch
    >>> torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.tensor(1),)).item()
    2
    """
    return _control.cond(pred, true_fn, false_fn, *operands)


def finfo(type: DTypeLike | TensorLike | None = None) -> FInfo:
    """The limits of a floating-point type: :func:`tandem.finfo`; by default of the default dtype.

    >>> import tandem.torch as torch
    >>> torch.finfo().eps == torch.finfo(torch.float32).eps
    True
    """
    return dtype_functions.finfo(default_float() if type is None else type)
