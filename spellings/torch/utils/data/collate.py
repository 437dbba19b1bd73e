"""default_collate: a batch from a list of examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....eager.tensor.construct import asarray
from ....errors import ArgumentError, ShapeError
from ....operators.shape.joining import stack
from ....registry.dtypes import float64
from ....registry.values import TensorBase, describe


def default_convert(data: Any) -> Any:
    """An example with tensors in place of arrays."""
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind not in "OSU":
        return asarray(data)
    if isinstance(data, Mapping):
        return {name: default_convert(value) for name, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    return [default_convert(value) for value in data] if isinstance(data, (list, tuple)) else data


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch from examples: tensors, arrays and numbers are stacked, in lists and dicts each by itself.

    Args:
        batch: the examples; all of one structure.

    Raises:
        ArgumentError: a type cannot be stacked.
        ShapeError: sequences have several lengths.

    >>> import tandem.torch as torch
    >>> x, y = torch.utils.data.default_collate([(torch.ones(2), 0), (torch.zeros(2), 1)])
    >>> x.shape, y.tolist()
    ((2, 2), [0, 1])
    """
    first = batch[0]
    if isinstance(first, TensorBase):
        return stack(list(batch), 0)
    if isinstance(first, (np.ndarray, np.generic)) and first.dtype.kind not in "OSU":
        return stack([asarray(item) for item in batch], 0)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, float):
        return asarray(list(batch), dtype=float64)
    if isinstance(first, (int, complex)):
        return asarray(list(batch))
    if isinstance(first, Mapping):
        return {name: default_collate([item[name] for item in batch]) for name in first}
    if isinstance(first, Sequence):
        return _collate_sequences(batch)
    raise ArgumentError(
        f"default_collate: examples hold tensors, arrays, numbers, strings, lists and dicts, not {describe(first)}; "
        "pass collate_fn"
    )


def _collate_sequences(batch: Sequence[Any]) -> Any:
    if len({len(item) for item in batch}) != 1:
        raise ShapeError("default_collate: the examples have several lengths; pass collate_fn")
    columns = [default_collate(column) for column in zip(*batch)]
    kind = type(batch[0])
    return kind(*columns) if hasattr(kind, "_fields") else columns
