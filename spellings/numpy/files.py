"""Files of NumPy: ``save``, ``load``, ``savez`` and ``savez_compressed``; and text: ``savetxt``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..eager.tensor.interop.numpy_protocols import to_tensors
from ..errors import DTypeError
from ..registry.dtypes import bfloat16
from ..registry.types import TensorLike
from .memory import to_arrays


def save(file: Any, arr: TensorLike, allow_pickle: bool = True) -> None:  # noqa: ANN401
    """Write one tensor to an npy file, which NumPy reads too.

    Args:
        file: a path, to which ``.npy`` is added if it has another ending, or an object open for writing bytes.
        arr: a tensor, an array, or nested lists of numbers, of any shape and each dtype but bfloat16.
        allow_pickle: accepted for compatibility with NumPy; tensors of numbers need no pickle.

    Raises:
        DTypeError: the tensor is of bfloat16, which the format lacks.

    Source: ``numpy.save``.

    >>> import tempfile
    >>> import tandem.numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(3))
    ...     np.load(f"{folder}/x.npy").tolist()
    [0, 1, 2]
    """
    np.save(file, _to_array("save", arr), allow_pickle)


def savez(file: Any, *args: TensorLike, **kwds: TensorLike) -> None:  # noqa: ANN401
    """Write tensors to an npz file, which ``load`` and ``td.load`` read, under their names or arr_0, arr_1, ..."""
    _save_archive("savez", file, args, kwds)


def savez_compressed(file: Any, *args: TensorLike, **kwds: TensorLike) -> None:  # noqa: ANN401
    """As ``savez``, compressed."""
    _save_archive("savez_compressed", file, args, kwds)


def _save_archive(name: str, file: Any, args: tuple[TensorLike, ...], kwds: dict[str, TensorLike]) -> None:  # noqa: ANN401
    given = {key: _to_array(name, value) for key, value in kwds.items()}
    getattr(np, name)(file, *[_to_array(name, value) for value in args], **given)


def _to_array(name: str, value: TensorLike) -> Any:  # noqa: ANN401
    """An array of one of NumPy's own dtypes; lists and numbers unchanged."""
    array = to_arrays(value)
    if getattr(array, "dtype", None) == bfloat16.np:
        raise DTypeError(f"{name}: NumPy's files have no bfloat16; write x.astype('float32'), or use td.save")
    return array


def savetxt(fname: Any, X: TensorLike, **options: Any) -> None:  # noqa: ANN401
    """Write a tensor of one or two axes as text; options are those of ``numpy.savetxt``."""
    np.savetxt(fname, to_arrays(X), **options)


def load(file: Any, mmap_mode: Any = None, **options: Any) -> Any:  # noqa: ANN401
    """Read an npy file as a tensor, or an npz file as a mapping of tensors.

    Args:
        file: a path, or an object open for reading bytes that can seek.
        mmap_mode, options: as for ``numpy.load``.

    Returns:
        A tensor, or an :class:`NpzFile`; arrays of text stay arrays of NumPy.

    Raises:
        ValueError: the file has another format.

    Source: ``numpy.load``; ``td.load`` reads trees that ``td.save`` wrote.

    >>> import io
    >>> import tandem.numpy as np
    >>> file = io.BytesIO()
    >>> np.savez(file, x=np.ones(2), y=np.arange(3))
    >>> position = file.seek(0)
    >>> with np.load(file) as archive:
    ...     archive.files, archive["y"].tolist()
    (['x', 'y'], [0, 1, 2])
    """
    result = np.load(file, mmap_mode, **options)
    return NpzFile(result) if isinstance(result, np.lib.npyio.NpzFile) else to_tensors(result)


class NpzFile(Mapping[str, Any]):
    """An open npz file: a mapping from names to tensors, each of which is read when it is asked for.

    Args:
        archive: the open file of NumPy.

    Attributes:
        files: the names.

    Source: ``numpy.lib.npyio.NpzFile``.
    """

    def __init__(self, archive: Any) -> None:  # noqa: ANN401
        self._archive = archive
        self.files: list[str] = archive.files

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401
        """The tensor of a name, with or without ``.npy``."""
        return to_tensors(self._archive[key])

    def __contains__(self, key: object) -> bool:
        return key in self._archive

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._archive)

    def close(self) -> None:
        """Close the file; tensors that were read stay valid."""
        self._archive.close()
