"""DataLoader: batches of a data set."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from ....eager.tensor.generator import Generator
from ....errors import ArgumentError, ValueArgumentError
from .collate import default_collate, default_convert
from .datasets import IterableDataset
from .samplers import BatchSampler, RandomSampler, SequentialSampler


def get_worker_info() -> None:
    """None: examples are loaded by threads of this process."""
    return


class DataLoader:
    """Iterate over the batches of a data set.

    Args:
        dataset: a data set, any sequence, or a stream.
        batch_size: the number of examples of a batch; None: single examples.
        shuffle: whether each epoch has another random order.
        sampler: yields the indices in place of ``shuffle``.
        batch_sampler: yields lists of indices in place of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: the number of threads that load batches in advance; 0: the calling thread loads them.
        collate_fn: makes a batch from a list of examples; None: :func:`default_collate`.
        pin_memory, timeout, worker_init_fn, multiprocessing_context, persistent_workers, pin_memory_device, in_order:
            PyTorch's options of processes and memory, which change nothing.
        drop_last: whether the last batch is left out if it is smaller.
        generator: where the random order comes from; None: the global generator.
        prefetch_factor: the number of batches that each thread loads in advance.

    Raises:
        ArgumentError, ValueArgumentError: options exclude each other.

    >>> import tandem.torch as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> [batch.tolist() for (batch,) in torch.utils.data.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: object = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        self._is_stream = isinstance(dataset, IterableDataset)
        if num_workers < 0:
            raise ValueArgumentError(f"DataLoader: num_workers must not be negative, not {num_workers}")
        if self._is_stream and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError("DataLoader: the order of an IterableDataset is its own; pass no sampler")
        if sampler is not None and shuffle:
            raise ArgumentError("DataLoader: pass sampler or shuffle, not both")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ArgumentError(
                    "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ArgumentError("DataLoader: drop_last needs a batch_size")
        if sampler is None and not self._is_stream:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and not self._is_stream:
            batch_sampler = BatchSampler(sampler or (), batch_size, drop_last)
        self.dataset, self.batch_size, self.sampler, self.batch_sampler = (
            dataset,
            batch_size,
            sampler,
            batch_sampler,
        )
        self.drop_last, self.num_workers, self.generator = drop_last, num_workers, generator
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        is_batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if is_batched else default_convert)

    # -- iteration -----------------------------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Any]:
        if self._is_stream:
            return self._stream()
        keys: Iterable[Any] = self.sampler or () if self.batch_sampler is None else self.batch_sampler
        return self._load_in_threads(keys) if self.num_workers else map(self._load, keys)

    def _load(self, key: Any) -> Any:
        """The batch of a list of indices, or the example of one."""
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[key])
        load_all = getattr(self.dataset, "__getitems__", None)
        examples = load_all(key) if load_all is not None else [self.dataset[index] for index in key]
        return self.collate_fn(examples)

    def _load_in_threads(self, keys: Iterable[Any]) -> Iterator[Any]:
        with ThreadPoolExecutor(self.num_workers) as pool:
            pending: deque[Future[Any]] = deque()
            remaining = iter(keys)
            try:
                for key in islice(remaining, self.num_workers * self.prefetch_factor):
                    pending.append(pool.submit(self._load, key))
                while pending:
                    result = pending.popleft().result()
                    for key in islice(remaining, 1):
                        pending.append(pool.submit(self._load, key))
                    yield result
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _stream(self) -> Iterator[Any]:
        examples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, examples)
            return
        while batch := list(islice(examples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        if self._is_stream:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
