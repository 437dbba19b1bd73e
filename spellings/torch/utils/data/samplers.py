"""Samplers: the order in which a loader takes examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from ....eager.tensor.construct import asarray
from ....eager.tensor.generator import Generator, default_generator
from ....errors import ValueArgumentError
from ....operators.elementwise.exponential import log
from ....registry.dtypes import float64

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """The base class of samplers: a subclass defines ``__iter__``, which yields indices."""

    def __init__(self, data_source: Sized | None = None):
        pass

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler[int]):
    """All indices in their order."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Args:
        data_source: the data set.
        replacement: whether an index may be drawn again.
        num_samples: the number of indices; None: the length of the data set.
        generator: where random numbers come from; None: the global generator.

    Raises:
        ValueArgumentError: the number of indices is not positive.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples
        if self.num_samples <= 0:
            raise ValueArgumentError(f"RandomSampler: num_samples must be positive, not {self.num_samples}")

    def __iter__(self) -> Iterator[int]:
        generator, count = self.generator or default_generator, len(self.data_source)
        if self.replacement:
            yield from generator.integers((self.num_samples,), 0, count).tolist()
            return
        for start in range(0, self.num_samples, count):
            yield from generator.permutation(count).tolist()[: self.num_samples - start]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        order = (self.generator or default_generator).permutation(len(self.indices)).tolist()
        return (self.indices[position] for position in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices that are drawn with weights.

    Args:
        weights: the weight of each index.
        num_samples: the number of indices.
        replacement: whether an index may be drawn again.
        generator: where random numbers come from; None: the global generator.

    >>> import tandem.torch as torch
    >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        self.weights = asarray(weights, dtype=float64)
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator
        if not replacement and num_samples > len(self.weights):
            raise ValueArgumentError(
                f"WeightedRandomSampler: {num_samples} of {len(self.weights)} indices cannot be drawn without "
                "replacement"
            )

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or default_generator
        drawn = generator.categorical(log(self.weights), -1, (self.num_samples,), self.replacement)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of indices.

    Args:
        sampler: yields the indices.
        batch_size: the number of indices of a list.
        drop_last: whether the last list is left out if it is shorter.

    Raises:
        ValueArgumentError: the size is not a positive integer.

    >>> import tandem.torch as torch
    >>> list(torch.utils.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueArgumentError(f"BatchSampler: batch_size is a positive integer, not {batch_size!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
