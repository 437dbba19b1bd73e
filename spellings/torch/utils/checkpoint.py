"""``tandem.torch.utils.checkpoint``: intermediate results that are computed again for the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...transforms.checkpoint import checkpoint as _checkpoint

if TYPE_CHECKING:
    from ...registry.types import Function


def checkpoint(
    function: Function,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function; what its backward pass needs is computed again then.

    Args:
        function: the function.
        args, kwargs: its arguments.
        use_reentrant: accepted; there is one implementation.
        preserve_rng_state: accepted; random numbers are the same again.

    >>> import tandem.torch as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
    >>> x.grad.shape
    (2,)
    """
    return _checkpoint(function)(*args, **kwargs)


def checkpoint_sequential(
    functions: Sequence[Function],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Call functions one after the other, of which all segments but the last are computed again.

    Args:
        functions: the functions, or a ``Sequential``.
        segments: the number of segments.
        input: the argument of the first function.
        use_reentrant, preserve_rng_state: as for :func:`checkpoint`.
    """
    listed = list(functions.children()) if hasattr(functions, "children") else list(functions)
    length = len(listed) // segments

    def run(part: Sequence[Function], value: Any) -> Any:
        for function in part:
            value = function(value)
        return value

    for start in range(0, length * (segments - 1), length) if length else ():
        input = checkpoint(run, listed[start : start + length], input)
    return run(listed[length * (segments - 1) :], input)
