"""The loss of connectionist temporal classification: a sequence of labels whose alignment with the input is unknown.

Source: Graves et al., Connectionist Temporal Classification (2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...control.api import scan
from ...eager.compiled import compile_when_hot
from ...eager.tensor.construct import asarray
from ...errors import ShapeError
from ...operators.creation.creation import arange, full
from ...operators.creation.full import full_like
from ...operators.elementwise.arithmetic import logaddexp
from ...operators.elementwise.selection import maximum, where
from ...operators.indexing.take import take, take_along_axis
from ...operators.nn.losses import check_reduction, reduce_losses
from ...operators.shape.joining import concat, stack
from ...operators.shape.views import broadcast_to
from ...registry.dtypes import int64
from ...registry.values import TensorBase

if TYPE_CHECKING:
    from ...registry.types import Tensor

# The logarithm of the probability of what is impossible: finite, since infinities have no gradient.
IMPOSSIBLE = -1e30


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of sequences of labels, summed over their alignments with the input.

    Args:
        log_probs: the logarithms of probabilities ``(steps, batch, classes)`` or ``(steps, classes)``.
        targets: the labels ``(batch, longest)``, or those of all examples one after the other.
        input_lengths, target_lengths: the numbers of steps and of labels of each example.
        blank: the class that separates labels.
        reduction: ``"mean"``, of the losses divided by the numbers of labels; ``"sum"`` or ``"none"``.
        zero_infinity: whether the loss of an example that cannot be aligned is 0, not infinite.

    Raises:
        ShapeError: the numbers of examples differ.

    >>> import tandem as td
    >>> even = td.log(td.full((4, 1, 2), 0.5))
    >>> round(td.nn.functional.ctc_loss(even, td.asarray([[1, 1]]), [4], [2], reduction="sum").exp().item(), 4)
    3.2
    """
    check_reduction("ctc_loss", reduction)
    is_single = log_probs.ndim == 2
    if is_single:
        log_probs, targets = log_probs.unsqueeze(1), targets.reshape((1, -1))
    device = log_probs.device
    steps, labels = (
        asarray(lengths).to(device, int64).reshape(-1) for lengths in (input_lengths, target_lengths)
    )
    targets = targets.to(device)
    batch = log_probs.shape[1]
    if targets.ndim == 1:
        targets = _split_targets(targets, labels, target_lengths)
    if not (targets.shape[0] == steps.shape[0] == labels.shape[0] == batch):
        raise ShapeError(
            f"ctc_loss: log_probs has {batch} examples, targets {targets.shape[0]}, and the lengths "
            f"{steps.shape[0]} and {labels.shape[0]}"
        )
    losses = _ctc_losses(log_probs, targets, steps, labels, blank)
    losses = where(losses > -IMPOSSIBLE / 2, 0.0 if zero_infinity else math.inf, losses)
    if reduction == "mean":
        losses = losses / maximum(labels, 1)
    return losses[0] if is_single and reduction == "none" else reduce_losses(losses, reduction)


def _split_targets(targets: Tensor, counts: Tensor, given: Tensor | Sequence[int]) -> Tensor:
    """The labels ``(batch, longest)`` from those of all examples one after the other."""
    longest = targets.shape[0] if isinstance(given, TensorBase) else max([*given, 1])
    index = (counts.cumsum(0) - counts).unsqueeze(1) + arange(longest, device=counts.device)
    return take(targets, index.clip(0, max(targets.shape[0] - 1, 0)))


@compile_when_hot
def _ctc_losses(log_probs: Tensor, targets: Tensor, steps: Tensor, labels: Tensor, blank: int) -> Tensor:
    """The loss of each example; above ``-IMPOSSIBLE / 2`` for one that cannot be aligned."""
    batch, longest = targets.shape
    blanks = full_like(targets, blank)
    states = concat([stack([blanks, targets], -1).reshape((batch, 2 * longest)), blanks[:, :1]], 1)
    index = broadcast_to(states.to(int64), (log_probs.shape[0], *states.shape))
    emitted = take_along_axis(log_probs, index, -1)
    is_label = arange(states.shape[1], device=states.device) % 2 == 1
    can_skip = (
        is_label & (states != _shift(states, 2, blank)) & (arange(states.shape[1], device=states.device) >= 2)
    )
    first = where(arange(states.shape[1], device=states.device) < 2, emitted[0], IMPOSSIBLE)

    def advance(before: Tensor, x: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        step, emitted = x
        stay_or_move = logaddexp(before, _shift(before, 1, IMPOSSIBLE))
        skip = where(can_skip, _shift(before, 2, IMPOSSIBLE), IMPOSSIBLE)
        after = where(step < steps.unsqueeze(1), logaddexp(stay_or_move, skip) + emitted, before)
        return after, after[:, 0]

    last, _ = scan(advance, first, (arange(1, log_probs.shape[0], device=steps.device), emitted[1:]))
    end = (2 * labels).unsqueeze(1)
    on_blank = take_along_axis(last, end, 1)
    on_label = where(end > 0, take_along_axis(last, maximum(end - 1, 0), 1), IMPOSSIBLE)
    return -logaddexp(on_blank, on_label)[:, 0]


def _shift(x: Tensor, count: int, value: float) -> Tensor:
    """Move the elements of the last axis to the right; a value fills the start."""
    return concat([full((x.shape[0], count), value, dtype=x.dtype, device=x.device), x[:, :-count]], 1)
