"""`strides`, `flags` and the buffer protocol: a reader of NumPy's attributes stays inside the memory of a tensor."""

import hashlib
import io
import subprocess
import sys

import numpy as np
import pytest
import tandem as td
from tandem.errors import ArgumentError

ARRAYS = {
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
    "transposed": np.arange(12, dtype=np.int64).reshape(3, 4).T,
    "part": np.arange(40, dtype=np.float64).reshape(5, 8)[1::2, ::-3],
    "numbers": np.arange(5, dtype=np.uint8),
    "scalar": np.array(3.0),
    "empty": np.zeros((0, 3), np.int16),
    "booleans": np.array([True, False, True]),
    "complex": np.arange(6).astype(np.complex64).reshape(2, 3).T,
    "broadcast": np.broadcast_to(np.arange(3.0), (2, 3)),
    "packed": np.zeros(5, dtype=[("a", "i1"), ("b", "<f4")])[
        "b"
    ],  # strides are no multiples of the item size
}
each = pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
FLAGS = ("c_contiguous", "f_contiguous", "forc", "fnc", "writeable", "contiguous")


@each
def test_strides_count_bytes(array):
    x = td.asarray(array)
    assert x.strides == x._array.strides
    assert (x.itemsize, x.nbytes) == (array.itemsize, array.nbytes)
    if not any(step % array.itemsize for step in array.strides):
        assert x.stride() == tuple(step // array.itemsize for step in x.strides)
        assert all(x.stride(axis) == step for axis, step in enumerate(x.stride()))


KINDS = {
    "meta": lambda x: x.to("meta"),
    "quantized": lambda x: td.quantize_per_tensor(x, 0.5, 0),
    "parameter": td.nn.Parameter,
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_strides_of_other_classes_count_bytes(kind):
    x = kind(td.arange(12.0).reshape(3, 4))
    for part in (x, x.T, x[1:, ::2]):
        assert part.strides == tuple(step * part.itemsize for step in part.stride())
        assert part.flags.c_contiguous == part.is_contiguous()
        assert part.flags["F"] == part.T.is_contiguous()


def test_strides_inside_transforms_count_bytes():
    seen = []

    def f(x):
        seen.append((x.strides, x.stride(), x.flags.c_contiguous, x.flags.f_contiguous))
        return x.sum()

    x = td.arange(12.0).reshape(3, 4).T
    td.vmap(f)(x[None])
    td.grad(f)(x)
    td.functionalize(f)(x)
    assert seen == [((4, 16), (1, 4), False, True)] * 3


@each
def test_flags_are_numpys(array):
    x = td.asarray(array)
    for name in FLAGS:
        assert getattr(x.flags, name) == getattr(x._array.flags, name)
    assert x.flags["C_CONTIGUOUS"] == x.flags["C"] == x.is_contiguous()


def test_a_tensor_becomes_read_only():
    x = td.zeros(3)
    x.flags.writeable = False
    with pytest.raises(td.errors.UnsupportedError, match="read-only"):
        x += 1
    with pytest.raises(td.errors.UnsupportedError, match="read-only"):
        x[0] = 1
    assert x.tolist() == [0, 0, 0]


def test_unknown_flags_are_named():
    with pytest.raises(ArgumentError, match="C_CONTIGUOUS"):
        td.zeros(3, device="meta").flags["D"]
    assert "C_CONTIGUOUS : True" in repr(td.zeros(3, device="meta").flags)


@each
def test_memoryview_shares_memory(array):
    x = td.asarray(array)
    view = memoryview(x)
    assert (view.shape, view.itemsize, view.readonly) == (x.shape, x.itemsize, not x.flags.writeable)
    assert view.strides == x.strides or not x.size
    np.testing.assert_array_equal(np.asarray(view), x.numpy())
    assert not x.size or np.shares_memory(np.asarray(view), x.numpy())


def test_writes_through_a_buffer():
    x = td.zeros((2, 3), dtype=td.int32)
    memoryview(x)[1, 2] = 7
    np.frombuffer(x, np.int32)[0] = 5
    io.BytesIO(np.arange(2, dtype=np.int32).tobytes()).readinto(x[1, :2])
    assert x.tolist() == [[5, 0, 0], [0, 1, 7]]


def test_buffers_outlive_tensors():
    views = [memoryview(td.arange(100000.0) + k) for k in range(4)]
    others = [td.arange(100000.0) * 0 - 1 for _ in range(4)]
    assert [(view[0], view[99999]) for view in views] == [(k, 99999.0 + k) for k in range(4)]
    assert len(others) == 4


def test_files_and_hashes_read_tensors():
    x, file = td.arange(6.0).reshape(2, 3), io.BytesIO()
    file.write(x)
    assert file.getvalue() == bytes(x) == x.numpy().tobytes()
    assert hashlib.sha256(x).digest() == hashlib.sha256(x.numpy()).digest()


REFUSED = {
    "requires_grad": lambda: td.ones(3).requires_grad_(),
    "bfloat16": lambda: td.ones(3, dtype=td.bfloat16),
    "meta": lambda: td.ones(3, device="meta"),
    "sparse": lambda: td.eye(3).to_sparse(),
    "quantized": lambda: td.quantize_per_tensor(td.ones(3), 0.5, 0),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_buffers_that_do_not_exist(make):
    x = make()
    kinds = (TypeError, ValueError, SystemError) if sys.version_info < (3, 12) else (TypeError, ValueError)
    with pytest.raises((*kinds, td.errors.UnsupportedError)):
        memoryview(x)


def test_traced_values_have_no_buffer():
    kinds = (TypeError, td.errors.TandemError, *([SystemError] if sys.version_info < (3, 12) else []))
    for transform in (td.jit, td.vmap, td.grad):
        with pytest.raises(kinds):
            transform(lambda x: memoryview(x))(td.ones(3))
        with pytest.raises(td.errors.ConcretizationError):
            transform(lambda x: np.asarray(x))(td.ones(3))


SCIPY = """
import numpy as np, scipy.linalg as la, tandem as td
x = td.arange(5.0)
for f in (la.toeplitz, la.circulant, la.hankel):
    np.testing.assert_array_equal(np.asarray(f(x)), f(x.numpy()))
    np.testing.assert_array_equal(np.asarray(f(x[::2])), f(x.numpy()[::2]))
np.testing.assert_array_equal(
    np.lib.stride_tricks.as_strided(x, (3, 2), (x.strides[0], x.strides[0])), [[0, 1], [1, 2], [2, 3]]
)
"""


def test_scipy_strides_stay_in_the_memory():
    subprocess.run([sys.executable, "-c", SCIPY], check=True, timeout=120)
