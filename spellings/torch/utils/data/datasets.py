"""Data sets: Dataset, TensorDataset, ConcatDataset, StackDataset, Subset, random_split; of streams IterableDataset."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ....eager.tensor.generator import Generator, default_generator
from ....errors import ShapeError, ValueArgumentError

if TYPE_CHECKING:
    from ....registry.types import Tensor

T = TypeVar("T")


class Dataset(Generic[T]):
    """The base class of data sets: a subclass defines ``__getitem__``, and ``__len__`` for most samplers."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """The base class of streams of examples: a subclass defines ``__iter__``."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")

    def __add__(self, other: Dataset[T]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple["Tensor", ...]]):
    """The examples along the first axis of tensors.

    Args:
        tensors: tensors of the same length.

    Raises:
        ShapeError: the lengths differ.

    >>> import tandem.torch as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(3), torch.ones(3, 2))
    >>> len(data), data[1][0].item()
    (3, 1)
    """

    def __init__(self, *tensors: Tensor):
        lengths = {tensor.shape[0] for tensor in tensors}
        if len(lengths) != 1:
            raise ShapeError(f"TensorDataset takes tensors of one length, not of {sorted(lengths)}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Data sets of one length side by side: an example is a tuple, or a dict by their names."""

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]):
        if bool(args) == bool(kwargs):
            raise ValueArgumentError("StackDataset takes data sets by position or by name")
        self.datasets: Any = args or kwargs
        listed: list[Any] = list(kwargs.values() or args)
        if len({len(one) for one in listed}) != 1:
            raise ValueArgumentError("StackDataset: the data sets have several lengths")
        self._length = len(listed[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: one[index] for name, one in self.datasets.items()}
        return tuple(one[index] for one in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """Data sets one after the other.

    Args:
        datasets: the data sets, each with a length.

    Raises:
        ValueArgumentError: there is none, or one is a stream.
    """

    def __init__(self, datasets: Iterable[Dataset[T]]):
        self.datasets: list[Any] = list(datasets)
        if not self.datasets or any(isinstance(one, IterableDataset) for one in self.datasets):
            raise ValueArgumentError(
                "ConcatDataset takes data sets with a length; ChainDataset takes streams"
            )
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __getitem__(self, index: int) -> T:
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"example {index} of {len(self)}")
        number = bisect_right(self.cumulative_sizes, position)
        result: T = self.datasets[number][position - (self.cumulative_sizes[number - 1] if number else 0)]
        return result

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[T]):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class Subset(Dataset[T]):
    """Some examples of a data set.

    Args:
        dataset: the data set.
        indices: the indices of the examples.
    """

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[one] for one in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T], lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Split a data set at random.

    Args:
        dataset: the data set.
        lengths: the number of examples of each part, or shares whose sum is 1.
        generator: where random numbers come from; None: the global generator.

    Raises:
        ValueArgumentError: the sum of the lengths is not the length of the data set.

    >>> import tandem.torch as torch
    >>> parts = torch.utils.data.random_split(range(10), [0.7, 0.3], torch.Generator().manual_seed(1))
    >>> [len(part) for part in parts], sorted(parts[0].indices + parts[1].indices) == list(range(10))
    ([7, 3], True)
    """
    count = len(dataset)  # type: ignore[arg-type]
    if any(isinstance(length, float) for length in lengths) and math.isclose(sum(lengths), 1.0):
        sizes = [math.floor(count * share) for share in lengths]
        for number in range(count - sum(sizes)):
            sizes[number % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != count:
        raise ValueArgumentError(f"random_split: lengths {list(lengths)} for {count} examples")
    order = (generator or default_generator).permutation(count).tolist()
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends)]
