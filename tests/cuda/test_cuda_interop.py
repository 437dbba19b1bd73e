"""DLPack in both directions and the CUDA array interface, field by field, on the test double of the driver."""

import ctypes
import gc

import numpy as np
import pytest
import tandem as td
from cuda_host import dlpack
from tandem import errors

pytestmark = pytest.mark.usefixtures("cuda")


class Lender:
    """Another library's array: it lends a tensor's memory by DLPack, as the tensor's own would."""

    def __init__(self, tensor, versions=True):
        self.tensor, self.versions, self.asked = tensor, versions, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versions and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append(options)
        return self.tensor.__dlpack__(**options)


class Described:
    """Another library's array that has the interface only."""

    def __init__(self, **fields):
        self.__cuda_array_interface__ = fields


def struct_of(capsule, kind):
    return kind.from_address(dlpack.pointer(capsule, dlpack.NAMES[kind])).tensor


# -- giving ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "dtype", ["bool_", "int8", "uint16", "int64", "float16", "bfloat16", "float64", "complex64"]
)
def test_the_capsule_says_what_the_tensor_is(dtype):
    x = td.ones((2, 3), dtype=getattr(td, dtype), device="cuda:1").T
    assert x.__dlpack_device__() == (2, 1)
    for version, kind in ((None, dlpack.Plain), ((1, 0), dlpack.Versioned), ((0, 8), dlpack.Plain)):
        capsule = x.__dlpack__(max_version=version)
        found = struct_of(capsule, kind)
        assert (found.device_type, found.device_id, found.ndim, found.lanes) == (2, 1, 2, 1)
        assert (found.data, found.byte_offset) == (x.storage().data_ptr, 0)
        assert [found.shape[i] for i in range(2)] == [3, 2]
        assert [found.strides[i] for i in range(2)] == [1, 3]
        assert found.bits == 8 * x.itemsize
        codes = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}
        assert found.code == (4 if dtype == "bfloat16" else codes[x.dtype.kind])


def test_a_capsule_keeps_the_memory_until_it_goes(cuda):
    x = td.ones(1000, device="cuda")
    blocks = cuda.host_live_blocks()
    capsule = x.__dlpack__()
    del x
    assert cuda.host_live_blocks() == blocks
    del capsule
    assert cuda.host_live_blocks() == blocks - 1
    assert not dlpack.LENT


def test_what_export_refuses():
    x = td.ones(2, device="cuda")
    with pytest.raises(errors.DeviceError, match="dl_device is"):
        x.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="negative"):
        x.flip(0).__dlpack__(copy=False)
    for stream in (0, -2, "main"):
        with pytest.raises(errors.ValueArgumentError, match="stream"):
            x.__dlpack__(stream=stream)
    with pytest.raises(errors.ArgumentError, match="detach"):
        td.ones(2, device="cuda", dtype=td.float32).requires_grad_().__dlpack__()


def test_export_copies_as_asked():
    x = td.arange(6, device="cuda").reshape((2, 3))
    reverse = x[::-1, ::2]
    assert reverse.stride() == (-3, 2)
    for tensor, copy, strides in ((reverse, None, [2, 1]), (x.T, True, [2, 1]), (x.T, False, [1, 3])):
        capsule = tensor.__dlpack__(copy=copy)
        struct = struct_of(capsule, dlpack.Plain)
        assert [struct.strides[i] for i in range(2)] == strides
        assert (struct.data == x.storage().data_ptr) is (copy is False)
    assert td.from_dlpack(Lender(reverse)).tolist() == [[3, 5], [0, 2]]


def test_the_consumers_stream_waits(cuda):
    x, stream = td.ones(2, device="cuda"), td.cuda.Stream()
    waits = cuda.host_count(b"wait")
    for given in (None, 1, 2, -1):  # the tensor's own stream, or no wait wanted
        x.__dlpack__(stream=given)
    assert cuda.host_count(b"wait") == waits
    x.__dlpack__(stream=stream.handle)
    assert cuda.host_count(b"wait") == waits + 1


def test_the_array_interface():
    x = td.arange(6, device="cuda", dtype=td.float32).reshape((2, 3))
    found = x.__cuda_array_interface__
    assert found == {
        "shape": (2, 3),
        "typestr": "<f4",
        "data": (x.storage().data_ptr, False),
        "version": 3,
        "strides": None,
        "stream": 1,
    }
    assert x[:, 1:].__cuda_array_interface__["strides"] == (12, 4)
    assert x[:, 1:].__cuda_array_interface__["data"][0] == x.storage().data_ptr + 4
    with td.cuda.Stream() as stream:
        assert x.__cuda_array_interface__["stream"] == stream.handle
    assert td.zeros((0, 2), device="cuda").__cuda_array_interface__["data"][0] == 0
    with pytest.raises(errors.UnsupportedError, match="DLPack"):
        _ = td.ones(2, dtype=td.bfloat16, device="cuda").__cuda_array_interface__
    with pytest.raises(errors.ArgumentError, match="detach"):
        _ = td.ones(2, device="cuda").requires_grad_().__cuda_array_interface__
    assert not hasattr(td.ones(2), "__cuda_array_interface__")


# -- taking ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize("dtype", ["bool_", "int32", "bfloat16", "complex128"])
def test_memory_is_shared(dtype, versions):
    x = td.zeros((3, 4), dtype=getattr(td, dtype), device="cuda:1").T
    lender = Lender(x, versions)
    y = td.from_dlpack(lender)
    assert (y.device, y.shape, y.stride(), y.dtype) == ("cuda:1", (4, 3), (1, 4), x.dtype)
    assert lender.asked[-1]["stream"] == 1
    x[0, 0] = True
    assert y[0, 0].item() == 1
    assert td.asarray(lender).device == "cuda:1"
    assert td.asarray(lender, dtype=td.complex128).dtype is td.complex128
    assert td.from_dlpack(lender, copy=True).storage().data_ptr != x.storage().data_ptr
    assert td.from_dlpack(lender, device="cpu").tolist() == x.tolist()
    with pytest.raises(errors.ValueArgumentError, match="copy=False"):
        td.from_dlpack(lender, device="cpu", copy=False)


def test_producer_is_released_with_last_view(cuda):
    x = td.ones(1000, device="cuda")
    y = td.from_dlpack(Lender(x))
    assert len(dlpack.LENT) == 1
    blocks = cuda.host_live_blocks()
    del x
    assert cuda.host_live_blocks() == blocks
    part = y[10:]
    del y
    assert part.sum().item() == 990.0
    del part
    gc.collect()
    assert cuda.host_live_blocks() == blocks - 1
    assert not dlpack.LENT


def test_a_capsule_is_taken_once():
    x = td.ones(2, device="cuda")
    capsule = x.__dlpack__(max_version=(1, 0))

    class Twice:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **options):
            return capsule

    first = td.from_dlpack(Twice())
    with pytest.raises(errors.ArgumentError, match="used already"):
        td.from_dlpack(Twice())
    assert first.tolist() == [1.0, 1.0]


def test_arrays_that_have_the_interface_only():
    x = td.arange(6, device="cuda:1", dtype=td.int32)
    fields = x.__cuda_array_interface__
    y = td.asarray(Described(**fields))
    assert (y.device, y.tolist()) == ("cuda:1", [0, 1, 2, 3, 4, 5])
    y[0] = 7
    assert x[0].item() == 7
    every_second = Described(**{**fields, "shape": (3,), "strides": (8,)})
    assert td.asarray(every_second).tolist() == [7, 2, 4]
    assert td.asarray(Described(**{**fields, "shape": (0,), "data": (0, False)})).shape == (0,)
    with pytest.raises(errors.UnsupportedError, match="mask"):
        td.asarray(Described(**fields, mask=object()))
    with pytest.raises(errors.UnsupportedError, match="multiples"):
        td.asarray(Described(**{**fields, "shape": (3,), "strides": (6,)}))
    with pytest.raises(errors.DTypeError):
        td.asarray(Described(**{**fields, "typestr": "<M8[s]"}))


def test_streams_of_the_interface(cuda):
    x, stream = td.ones(2, device="cuda"), td.cuda.Stream()
    waits = cuda.host_count(b"wait")
    td.asarray(Described(**{**x.__cuda_array_interface__, "stream": stream.handle}))
    assert cuda.host_count(b"wait") == waits + 1
    td.asarray(Described(**{**x.__cuda_array_interface__, "stream": None}))
    assert cuda.host_count(b"wait") == waits + 1


def test_what_is_refused():
    with pytest.raises(errors.ArgumentError, match="from_dlpack"):
        td.from_dlpack([1, 2])
    assert td.from_dlpack(np.arange(3)).device == "cpu"
    assert td.from_dlpack(np.arange(3), device="cuda").device == "cuda:0"
    x = td.ones(2)
    assert td.from_dlpack(x) is x


def test_strange_elements():
    held = dlpack.Plain()
    shape = (ctypes.c_int64 * 1)(2)
    held.tensor = dlpack.Tensor(None, 2, 0, 1, 2, 8, 4, shape, None, 0)  # float8, four lanes

    class Strange:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **options):
            return dlpack.capsule_of(held)

    with pytest.raises(errors.UnsupportedError, match="lanes=4"):
        td.from_dlpack(Strange())


@pytest.mark.parametrize(("dtype", "code", "shift"), [("float32", "<f4", 2), ("complex128", "<c16", 8)])
def test_memory_that_is_not_aligned_is_refused(dtype, code, shift):
    x = td.zeros(8, dtype=getattr(td, dtype), device="cuda")
    address = x.storage().data_ptr + shift
    lent = Described(shape=(4,), typestr=code, data=(address, False), version=3, strides=None)
    with pytest.raises(errors.ArgumentError, match="not aligned"):
        td.asarray(lent)


def test_host_address_is_refused(cuda):
    class Array:
        def __init__(self, data):
            self.data = data
            self.__cuda_array_interface__ = {
                "shape": (4,),
                "typestr": "<f4",
                "data": (data.ctypes.data, False),
                "version": 3,
            }

    with pytest.raises(errors.ArgumentError, match="CUDA does not know the address"):
        td.asarray(Array(np.ones(4, np.float32)))
