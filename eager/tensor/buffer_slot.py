"""The buffer protocol on Python 3.11: ``memoryview(x)``, ``np.frombuffer(x)``, ``file.write(x)``.

From Python 3.12 on the protocol is the method ``__buffer__`` (PEP 688). On Python 3.11 it exists in C only, so the C slot
of the class holds a ctypes callback. A callback cannot raise: where ``__buffer__`` would raise, Python 3.11 raises a
SystemError without the reason. Classes without an ndarray have no buffer protocol there.
"""

from __future__ import annotations

import ctypes
from typing import Any

from ...registry import native_type
from .tensor import Tensor

_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)


def _fill_view(tensor: Tensor, view: int, flags: int) -> int:
    """Fill the struct ``Py_buffer`` at the address ``view``; -1 if the tensor has no such buffer."""
    try:
        _get_buffer(tensor.numpy(), view, flags)
    except Exception:
        return -1
    return 0


_callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(_fill_view)
_ADDRESS = ctypes.cast(_callback, ctypes.c_void_p).value or 0


def _init_subclass(cls: type[Tensor], **kwargs: Any) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    _set_slot(cls)


def _set_slot(cls: type[Tensor]) -> None:
    has_array = cls._array is Tensor._array
    native_type.set_buffer_slot(cls, _ADDRESS if has_array else 0)
    for subclass in cls.__subclasses__():
        _set_slot(subclass)


def install() -> None:
    """Set the slot of Tensor and of its subclasses, those to come included."""
    if not native_type.find_build_fault():
        Tensor.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[assignment]
        _set_slot(Tensor)
