"""``save`` and ``load``: trees of tensors in npz files; tensors by name in safetensors files.

An npz file holds each tensor under its key path, such as ``state/0/exp_avg``, and the containers as JSON, under
:data:`STRUCTURE`. There is no pickle in it, so loading a file runs no code. NumPy reads it, apart from the bits of
bfloat16, which are stored as uint16.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from .... import lazy
from ....errors import ArgumentError, BackendUnavailableError, ValueArgumentError
from ....pytree import tree_map
from ....registry.dtypes import as_dtype, bfloat16
from ....registry.values import describe
from ..tensor import Tensor, wrap

if TYPE_CHECKING:
    from ....registry.types import Array

STRUCTURE = "__structure__"
_RESERVED = (STRUCTURE, "file", "allow_pickle")  # the others are arguments of np.savez
Path = str | os.PathLike[str]
File = Path | BinaryIO
_INTEGERS = {"I": "int", "U": "uint"}
_DTYPES = {
    **{f"{letter}{bits}": f"{kind}{bits}" for letter, kind in _INTEGERS.items() for bits in (8, 16, 32, 64)},
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "BOOL": "bool",
}


def save(obj: object, f: File) -> None:
    """Write a tree of tensors to an npz file.

    Args:
        obj: nested dicts, lists and tuples with tensors, arrays, numbers, strings and None, such as the
            ``state_dict`` of a module or an optimizer. The keys of dicts are strings or ints.
        f: the file: a path, or an object open for writing bytes, such as ``io.BytesIO()``.

    Raises:
        ArgumentError: the tree holds something else.

    >>> import tempfile
    >>> import tandem as td
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     td.save({"weight": td.ones(2), "steps": [1, None]}, f"{folder}/state.npz")
    ...     td.load(f"{folder}/state.npz")
    {'weight': tensor([1., 1.]), 'steps': [1, None]}
    """
    arrays: dict[str, Array] = {}
    structure = json.dumps(_encode(obj, (), arrays))
    entries: dict[str, Any] = {STRUCTURE: np.array(structure), **arrays}
    with _open(f, "wb") as file:
        np.savez(file, **entries)


def load(f: File, map_location: str | None = None, *, weights_only: bool = True) -> Any:
    """Read what :func:`save` wrote, or an npz file of another program as a dict.

    Args:
        f: the file: a path, or an object open for reading bytes at any position.
        map_location: the device of the tensors; None: the CPU.
        weights_only: as in PyTorch; files hold no code, so both values read the same.

    Returns:
        The tree; tensors require no gradient.

    Raises:
        ValueArgumentError: the file is not an npz file, or its structure is damaged.
    """
    with _open(f, "rb") as file:
        start = file.tell()
        if file.read(2) != b"PK":
            raise ValueArgumentError(f"load: {f} is not an npz file")
        file.seek(start)
        with np.load(file, allow_pickle=False) as archive:
            if STRUCTURE in archive:
                tree = _decode(json.loads(str(archive[STRUCTURE])), archive)
            else:
                tree = {name: wrap(archive[name]) for name in archive.files}
    return tree if map_location is None else tree_map(lambda leaf: _move(leaf, map_location), tree)


def _open(f: File, mode: str) -> AbstractContextManager[BinaryIO]:
    """Open a path; an open file is returned unchanged, and is not closed at the end of the context."""
    return open(f, mode) if isinstance(f, (str, os.PathLike)) else nullcontext(f)  # type: ignore[return-value]


def _move(leaf: Any, device: str) -> Any:
    return leaf.to(device) if isinstance(leaf, Tensor) else leaf


def _encode(value: Any, path: tuple[str, ...], arrays: dict[str, Array]) -> Any:
    """The structure of a value as JSON: numbers and texts as they are, all else as a list that begins with its kind."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return ["float", value.hex()]
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        return _encode_array(value, path, arrays)
    if kind in (list, tuple):
        return [kind.__name__, [_encode(item, (*path, str(n)), arrays) for n, item in enumerate(value)]]
    if kind in (dict, OrderedDict) and all(type(key) in (str, int) for key in value):
        items = [[key, _encode(item, (*path, str(key)), arrays)] for key, item in value.items()]
        return [kind.__name__, items]
    hint = "; save its state_dict()" if hasattr(value, "state_dict") else ""
    raise ArgumentError(
        "save: takes dicts, lists and tuples of tensors, numbers, strings and None, not "
        f"{describe(value)} at {'/'.join(path) or 'the root'}{hint}"
    )


def _encode_array(value: Any, path: tuple[str, ...], arrays: dict[str, Array]) -> list[str]:
    array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    dtype = as_dtype(array.dtype)
    name = "/".join(path) or "value"
    while name in arrays or name in _RESERVED:
        name += "_"
    arrays[name] = array.view(np.uint16) if dtype is bfloat16 else array
    return ["tensor", name, str(dtype)]


def _decode(item: Any, archive: Mapping[str, Array]) -> Any:
    if not isinstance(item, list):
        return item
    kind, content, *rest = item
    if kind == "tensor":
        array = archive[content]
        return wrap(array.view(bfloat16.np) if rest == ["bfloat16"] else array)
    if kind == "float":
        return float.fromhex(content)
    if kind in ("list", "tuple"):
        values = [_decode(inner, archive) for inner in content]
        return tuple(values) if kind == "tuple" else values
    if kind in ("dict", "OrderedDict"):
        pairs = [(key, _decode(inner, archive)) for key, inner in content]
        return dict(pairs) if kind == "dict" else OrderedDict(pairs)
    raise ValueArgumentError(f"load: unknown kind {kind!r} in the structure of the file")


# -- safetensors -------------------------------------------------------------------------------------------------------
def save_safetensors(
    tensors: Mapping[str, Tensor], filename: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a safetensors file, by the library of that name.

    Args:
        tensors: the tensors by name, such as the ``state_dict`` of a module.
        filename: the file.
        metadata: texts by name that the file holds as well.

    Raises:
        BackendUnavailableError: the library is not installed.
        ArgumentError: a value is not a tensor.
    """
    library = _import_safetensors()
    arrays = {}
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            raise ArgumentError(f"save_safetensors: {name!r} must be a tensor, not {describe(value)}")
        arrays[name] = np.ascontiguousarray(value.detach().cpu().numpy()).reshape(value.shape)
    library.numpy.save_file(arrays, os.fspath(filename), dict(metadata) if metadata else None)


def load_safetensors(filename: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, by the library of that name.

    Args:
        filename: the file.

    Returns:
        The tensors by name, on the CPU.

    Raises:
        BackendUnavailableError: the library is not installed.
        DTypeError: a tensor has a dtype that tandem lacks.
    """
    with open(filename, "rb") as file:
        items = _import_safetensors().deserialize(file.read())
    result = {}
    for name, item in items:
        dtype = as_dtype(_DTYPES.get(item["dtype"], item["dtype"]))
        result[name] = wrap(np.frombuffer(bytearray(item["data"]), dtype.np).reshape(item["shape"]))
    return result


def _import_safetensors() -> Any:
    if not lazy.is_installed("safetensors"):
        raise BackendUnavailableError(
            "safetensors files need the library: pip install 'tandem-dispatch[safetensors]'"
        )
    lazy.module("safetensors.numpy")
    return lazy.module("safetensors")
