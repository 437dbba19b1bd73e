"""``td.nn.utils.rnn``: sequences of different lengths, padded to one tensor or packed without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...eager.tensor.construct import asarray
from ...errors import ArgumentError, ShapeError, ValueArgumentError
from ...named_tuple import NamedTuple
from ...operators.creation.creation import arange, full
from ...operators.elementwise.selection import where
from ...operators.indexing.take import take
from ...operators.reductions.folds import sum
from ...operators.shape.joining import concat, stack
from ...registry.dtypes import int64

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Tensor


class PackedSequence(NamedTuple):
    """The elements of sequences of different lengths, step by step, the longest sequence first.

    Attributes:
        data: the elements ``(sum of lengths, ...)``: the first of all sequences, then the second of those that have
            one, and so on.
        batch_sizes: for each step the number of sequences that have an element there; on the CPU.
        sorted_indices: for each sequence, the longest first, its position in the batch; None: as they are.
        unsorted_indices: for each sequence of the batch, its position among the sorted ones.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(
        self, *target: DTypeLike | Tensor, dtype: DTypeLike | None = None, device: str | None = None
    ) -> PackedSequence:
        """The sequences with elements of another dtype or on another device."""
        return self._replace(data=self.data.to(*target, dtype=dtype, device=device))

    @property
    def batch_size(self) -> int:
        """The number of sequences."""
        return int(self.batch_sizes[0]) if self.sorted_indices is None else self.sorted_indices.shape[0]

    @property
    def lengths(self) -> Tensor:
        """The lengths of the sequences, the longest first."""
        return sum(self.batch_sizes.unsqueeze(1) > arange(self.batch_size), 0)

    def pad(self) -> Tensor:
        """The elements ``(steps, sequences, ...)``, the longest sequence first; others follow the end of a sequence."""
        first = (self.batch_sizes.cumsum(0) - self.batch_sizes).unsqueeze(1)
        index = (first + arange(self.batch_size)).clip(0, self.data.shape[0] - 1)
        return take(self.data, index.to(self.data.device), 0)

    def pack(self, padded: Tensor) -> PackedSequence:
        """The sequences of the same lengths whose elements are ``(steps, sequences, ...)``, the longest first."""
        ends = self.batch_sizes.cumsum(0)
        position = arange(self.data.shape[0])
        step = sum(position.unsqueeze(1) >= ends, 1)
        column = position - take(ends - self.batch_sizes, step)
        flat, index = padded.reshape((-1, *padded.shape[2:])), step * padded.shape[1] + column
        return self._replace(data=take(flat, index.to(padded.device), 0))


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences of different lengths, padded to the longest.

    Args:
        sequences: tensors ``(length, ...)``.
        batch_first: whether the result is ``(batch, longest, ...)``, not ``(longest, batch, ...)``.
        padding_value: the value of the other elements.
        padding_side: ``"right"``, behind the sequences, or ``"left"``.

    Raises:
        ArgumentError: there are no sequences.

    >>> import tandem as td
    >>> td.nn.utils.rnn.pad_sequence([td.asarray([1, 2]), td.asarray([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    given = list(sequences)
    if not given:
        raise ArgumentError("pad_sequence: needs at least one sequence")
    if padding_side not in ("left", "right"):
        raise ValueArgumentError(
            f"pad_sequence: padding_side must be 'left' or 'right', not {padding_side!r}"
        )
    longest = max(sequence.shape[0] for sequence in given)
    padded = []
    for sequence in given:
        shape = (longest - sequence.shape[0], *sequence.shape[1:])
        padding = full(shape, padding_value, dtype=sequence.dtype, device=sequence.device)
        parts = [sequence, padding] if padding_side == "right" else [padding, sequence]
        padded.append(concat(parts, 0) if shape[0] else sequence)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences in a padded tensor; the opposite of :func:`pad_sequence`."""
    batch = padded_sequences if batch_first else padded_sequences.swapaxes(0, 1)
    return [sequence[: int(length)] for sequence, length in zip(batch, asarray(lengths).tolist())]


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences, so that recurrent layers stop at the end of each.

    Args:
        input: ``(longest, batch, ...)``, or with ``batch_first`` ``(batch, longest, ...)``.
        lengths: the length of each sequence.
        batch_first: as above.
        enforce_sorted: whether the sequences must be sorted, the longest first; else they are sorted here.

    Raises:
        ShapeError: the number of lengths is not that of the sequences.
        ValueArgumentError: a length is not between 1 and the longest, or they are not sorted.

    >>> import tandem as td
    >>> packed = td.nn.utils.rnn.pack_padded_sequence(td.asarray([[1, 2, 3], [4, 5, 0]]), [3, 2], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 5, 3], [2, 2, 1])
    """
    steps = input.swapaxes(0, 1) if batch_first else input
    counts = [int(length) for length in asarray(lengths).tolist()]
    if len(counts) != steps.shape[1]:
        raise ShapeError(f"pack_padded_sequence: {len(counts)} lengths for {steps.shape[1]} sequences")
    if min(counts) < 1 or max(counts) > steps.shape[0]:
        raise ValueArgumentError(
            f"pack_padded_sequence: lengths must be from 1 to {steps.shape[0]}, not {counts}"
        )
    order = sorted(range(len(counts)), key=lambda at: -counts[at])
    if enforce_sorted and order != list(range(len(counts))):
        raise ValueArgumentError(
            f"pack_padded_sequence: the lengths {counts} are not in decreasing order; pass enforce_sorted=False"
        )
    sizes = [len([count for count in counts if count > step]) for step in range(max(counts))]
    index = [step * len(counts) + order[at] for step, size in enumerate(sizes) for at in range(size)]
    device = input.device
    data = take(steps.reshape((-1, *steps.shape[2:])), asarray(index).to(device), 0)
    inverse = sorted(range(len(order)), key=order.__getitem__)
    indices = (None, None) if enforce_sorted else (asarray(order).to(device), asarray(inverse).to(device))
    return PackedSequence(data, asarray(sizes, dtype=int64), *indices)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Pad packed sequences; the opposite of :func:`pack_padded_sequence`.

    Args:
        sequence: the packed sequences.
        batch_first: whether the result is ``(batch, longest, ...)``, not ``(longest, batch, ...)``.
        padding_value: the value of the other elements.
        total_length: the length to pad to; None: the longest.

    Returns:
        The padded sequences in the order of the batch, and their lengths.

    Raises:
        ValueArgumentError: a sequence is longer than ``total_length``.
    """
    padded, lengths = sequence.pad(), sequence.lengths
    count = padded.shape[0]
    if total_length is not None and total_length < count:
        raise ValueArgumentError(
            f"pad_packed_sequence: total_length {total_length} is below the longest, {count}"
        )
    is_element = (arange(count).unsqueeze(1) < lengths).reshape((count, -1, *(1,) * (padded.ndim - 2)))
    is_element = is_element.to(padded.device)
    padded = where(is_element, padded, full((), padding_value, dtype=padded.dtype, device=padded.device))
    if total_length is not None and total_length > count:
        more = (total_length - count, *padded.shape[1:])
        padded = concat([padded, full(more, padding_value, dtype=padded.dtype, device=padded.device)], 0)
    if sequence.unsorted_indices is not None:
        padded = take(padded, sequence.unsorted_indices, 1)
        lengths = take(lengths, sequence.unsorted_indices.to(lengths.device))
    return padded.swapaxes(0, 1) if batch_first else padded, lengths


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths, tensors ``(length, ...)``; see :func:`pack_padded_sequence`."""
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed tensor, in the order of the batch."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
