"""DLPack capsules like cupy's, for machines without a GPU."""

import ctypes
import itertools

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # kDLInt, kDLUInt, kDLFloat, kDLComplex, kDLBool
BFLOAT = 4


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Plain(ctypes.Structure):
    """DLManagedTensor, of DLPack before 1.0."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


NAMES = {Plain: b"dltensor", Versioned: b"dltensor_versioned"}
LENT = {}  # what consumers hold, by number: the struct, its sizes, and what keeps the memory
_serial = itertools.count(1)
_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes, _new.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _deleter(kind):
    def delete(address):
        LENT.pop(kind.from_address(address).context or 0, None)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(delete)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _unused(capsule):
    for kind, name in NAMES.items():
        if _valid(capsule, name):
            LENT.pop(kind.from_address(_dying(capsule, name)).context or 0, None)


DELETERS = {kind: _deleter(kind) for kind in NAMES}


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def capsule_of(held, keeper=None):
    """The capsule of a filled struct."""
    number = next(_serial)
    held.context, held.deleter = number, address(DELETERS[type(held)])
    LENT[number] = held, keeper
    return _new(ctypes.addressof(held), NAMES[type(held)], address(_unused))


def capsule(array, version):
    """The capsule of an array of tandem's, as its cupy array would give it."""
    layout = array.layout
    rank = len(layout.shape)
    sizes, steps = (ctypes.c_int64 * rank)(*layout.shape), (ctypes.c_int64 * rank)(*layout.strides)
    code = BFLOAT if layout.dtype.name == "bfloat16" else CODES[layout.dtype.kind]
    held = Versioned() if version is not None and tuple(version) >= (1, 0) else Plain()
    if isinstance(held, Versioned):
        held.major, held.minor = 1, 0
    data = array.ptr if layout.size else None
    bits = 8 * layout.dtype.itemsize
    held.tensor = Tensor(data, 2, layout.index, rank, code, bits, 1, sizes, steps, 0)
    return capsule_of(held, (sizes, steps, array.buffer))
