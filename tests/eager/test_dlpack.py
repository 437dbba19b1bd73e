"""DLPack in the host's memory: copies of negative strides, bfloat16, and the arguments of the standard."""

import numpy as np
import pytest
import tandem as td
from cuda_host import dlpack


class Exporter:
    """Another library's array: it shares a tensor's memory by DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)


def struct_of(capsule, kind):
    return kind.from_address(dlpack.pointer(capsule, dlpack.NAMES[kind])).tensor


def address_of(tensor):
    return tensor.storage().data_ptr + tensor.storage_offset * tensor.itemsize


@pytest.mark.parametrize("dtype", [td.bfloat16, td.float16, td.float32, td.int8, td.bool_, td.complex64])
@pytest.mark.parametrize(("version", "kind"), [(None, dlpack.Plain), ((1, 0), dlpack.Versioned)])
def test_capsule_describes_tensor(dtype, version, kind):
    x = td.ones((2, 3), dtype=dtype).T
    capsule = x.__dlpack__(max_version=version)
    struct = struct_of(capsule, kind)
    assert (struct.device_type, struct.device_id, struct.ndim, struct.lanes) == (1, 0, 2, 1)
    assert struct.code == (dlpack.BFLOAT if dtype is td.bfloat16 else dlpack.CODES[dtype.kind])
    assert struct.bits == 8 * x.itemsize
    assert ([*struct.shape[:2]], [*struct.strides[:2]]) == ([3, 2], [1, 3])
    assert struct.data + struct.byte_offset == address_of(x)


@pytest.mark.parametrize("dtype", [td.float32, td.bfloat16])
def test_negative_strides_are_copied(dtype):
    x = td.arange(12, dtype=dtype).reshape((3, 4))
    reverse = x[::-1, ::2]
    assert reverse.stride() == (-4, 2)
    capsule = reverse.__dlpack__(max_version=(1, 0))
    struct = struct_of(capsule, dlpack.Versioned)
    assert min(struct.strides[:2]) > 0
    result = td.from_dlpack(Exporter(reverse))
    assert result.dtype is dtype and result.tolist() == reverse.tolist() == [[8, 10], [4, 6], [0, 2]]
    result[0, 0] = 100
    assert x[2, 0].item() == 8


def test_copy_false_refuses_negative_strides():
    x = td.arange(4)
    with pytest.raises(BufferError, match="negative, and copy=False"):
        x[::-1].__dlpack__(copy=False)
    x.__dlpack__(copy=False)


def test_copy_true_copies():
    x = td.arange(4)
    capsule = x.__dlpack__(copy=True)
    assert struct_of(capsule, dlpack.Plain).data != address_of(x)


@pytest.mark.parametrize("function", [td.from_dlpack, td.asarray])
def test_bfloat16_is_shared_with_another_library(function):
    x = td.asarray([1.0, 2.0, 3.0], dtype=td.bfloat16)
    y = function(Exporter(x))
    assert y.dtype is td.bfloat16 and y.tolist() == [1.0, 2.0, 3.0]
    y[0] = 5.0
    assert x[0].item() == 5.0


def test_gradients_are_refused():
    with pytest.raises(td.errors.ArgumentError, match="detach"):
        td.ones(2).requires_grad_().__dlpack__()


def test_numpy_reads_tensors():
    x = td.arange(6.0).reshape((2, 3))
    y = np.from_dlpack(x)
    y[0, 0] = 7
    assert x[0, 0].item() == 7
    assert np.from_dlpack(x[::-1]).tolist() == x[::-1].tolist()
