"""Random bits by machine code for eager calls; compiled at the first large draw, and stored in the disk cache."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .... import lazy
from ..fastpath.compiler import engine
from ..random_bits import bits_function_ir

fastpath = lazy.Module(".backends.cpu.fastpath")

_SIGNATURE: Any = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_void_p
)


@engine.KeepFirst
def _compile() -> tuple[Any, Any]:
    """Return the compiled code and a function that calls it; None for both if machine code is off in this process."""
    if fastpath.why_off():
        return None, None
    code = engine.compile_ir(bits_function_ir(""), ["philox_words"], {}, passes=engine.Passes.FUNCTIONS)
    return code, _SIGNATURE(code["philox_words"])


def fill(out: Any, keys: Any, use: int) -> bool:
    """Write the first bits of each key's stream.

    Args:
        out: C-contiguous uint32 array of shape ``(*lead, count)``.
        keys: uint32 array of shape ``(*lead, 4)``.
        use: the use number of the blocks, see ``philox``.

    Returns:
        False if machine code is off; `out` is then unchanged.
    """
    _, call = _compile()
    if call is None:
        return False
    words = np.ascontiguousarray(keys)
    call(words.ctypes.data, words.size // 4, out.shape[-1], use << 30, out.ctypes.data)
    return True
