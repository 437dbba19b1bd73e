"""``torch.save`` and ``torch.load``: the files of ``td.save``, and pickles of other objects, such as whole modules."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ..eager.tensor.interop import files
from ..errors import ArgumentError, ValueArgumentError

if TYPE_CHECKING:
    from ..eager.tensor.interop.files import File


def save(obj: object, f: File, pickle_protocol: int = pickle.DEFAULT_PROTOCOL) -> None:
    """Write a tree of tensors as :func:`tandem.save` does, and any other object as a pickle.

    Args:
        obj: the object. The classes of what is pickled must be importable when the file is read.
        f: the file: a path, or an object open for writing bytes.
        pickle_protocol: the version of pickles.
    """
    try:
        files.save(obj, f)
    except ArgumentError:
        data = pickle.dumps(obj, pickle_protocol)
        with open(f, "wb") if isinstance(f, (str, os.PathLike)) else nullcontext(f) as file:
            file.write(data)


def load(
    f: File,
    map_location: str | Callable[..., object] | None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
) -> object:
    """Read what :func:`save` wrote.

    Args:
        f: the file: a path, or an object open for reading bytes at any position.
        map_location: the device of the tensors; None or a function: where they are.
        weights_only: False to read a pickle, which may run any code: only if the file is trusted.
        mmap: accepted; tensors are read into memory.

    Raises:
        ValueArgumentError: the file is a pickle, and ``weights_only`` is not False.

    >>> import io
    >>> import tandem.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save(torch.nn.Linear(2, 3), file)
    >>> _ = file.seek(0)
    >>> torch.load(file, weights_only=False)
    Linear(in_features=2, out_features=3, bias=True)
    """
    device = map_location if isinstance(map_location, str) else None
    with open(f, "rb") if isinstance(f, (str, os.PathLike)) else nullcontext(f) as file:
        start = file.tell()
        head = file.read(1)
        file.seek(start)
        if head != b"\x80":
            return files.load(file, device)
        if weights_only is not False:
            raise ValueArgumentError(
                f"load: {f} is a pickle, which may run any code; pass weights_only=False if you trust it"
            )
        return pickle.load(file)
