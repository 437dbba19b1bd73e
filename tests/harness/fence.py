"""pytest plugin that puts guard pages around the memory of every NumPy array, and so of every CPU tensor.

    PYTHONPATH=tests/harness python -m pytest -p fence --capture=sys

A write behind an array (or before it) ends the process; faulthandler then prints which test it was. The whole suite
takes about twice its time.
"""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy._core import _multiarray_umath

SET_HANDLER = 304  # the place of PyDataMem_SetHandler in NumPy's C API
SOURCE = Path(__file__).with_suffix(".c")


@functools.cache
def library():
    """The allocator, compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise RuntimeError("the fence needs a C compiler")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fence.so")
        subprocess.run([compiler, "-O2", "-fPIC", "-shared", str(SOURCE), "-o", str(path)], check=True)
        return ctypes.CDLL(str(path))


def raise_fence():
    """Let NumPy take the memory of new arrays behind a fence from here on."""
    pointer, capsule = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    functions = ctypes.cast(pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions[SET_HANDLER])
    handler = ctypes.c_char.in_dll(library(), "handler")
    set_handler(capsule(ctypes.addressof(handler), ctypes.addressof(NAME), None))


def is_raised():
    """Whether new arrays lie behind the fence."""
    return np._core.multiarray.get_handler_name(np.empty(3)) == "fence"


NAME = ctypes.create_string_buffer(b"mem_handler")  # of the capsule, which keeps the address only


def pytest_configure(config):
    raise_fence()
