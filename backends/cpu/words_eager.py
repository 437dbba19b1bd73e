"""Random words in machine code for eager calls; compiled at the first large draw, and kept on disk."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from ... import lazy
from .native import engine
from .words import function

_SIGNATURE: Any = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_void_p
)


@functools.cache
def _compiled() -> tuple[Any, Any]:
    """The code and a function that calls it; None for both where machine code is off in this process."""
    if lazy.native_layer().why_off():
        return None, None
    code = engine.compile_ir(function(""), ["philox_words"], {}, level=1)
    return code, _SIGNATURE(code["philox_words"])


def fill(out: Any, keys: Any, use: int) -> bool:
    """Write the first words of each key's stream.

    Args:
        out: C-contiguous uint32 array of shape ``(*lead, count)``.
        keys: uint32 array of shape ``(*lead, 4)``.
        use: what the blocks are for.

    Returns:
        Whether it was done; machine code may be off.
    """
    _, call = _compiled()
    if call is None:
        return False
    words = np.ascontiguousarray(keys)
    call(words.ctypes.data, words.size // 4, out.shape[-1], use << 30, out.ctypes.data)
    return True
