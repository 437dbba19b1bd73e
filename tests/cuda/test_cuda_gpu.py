"""Eager CUDA on a real GPU: the op table, memory, streams, interoperability with cupy and PyTorch. Skipped without one.

The same things run on a double of the driver in the other ``test_cuda_*`` files; what only a device can show is here.
"""

import zlib

import numpy as np
import pytest
import tandem as td
from cuda_host.rows import run_row
from optable import rows, table
from sparse_programs import drawn, everything, same
from tandem import errors
from tandem.backends.cuda.runtime import toolkit

WHY = "; ".join(toolkit.missing_requirements())
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(WHY), reason=f"no GPU that tandem can use: {WHY}")]
OPS = table()
CHECKED = [name for name, op in OPS.items() if op.decl.reference and op.decl.samples]


@pytest.mark.parametrize("name", CHECKED)
def test_operators_agree_with_their_references(name):
    """Two rows of each dtype; every row with ``-m full``."""
    by_dtype = {}
    for dtype, sample in rows(OPS[name]):
        by_dtype.setdefault(dtype, []).append(sample)
    for dtype, samples in by_dtype.items():
        start = zlib.crc32(f"{name} {dtype}".encode())
        for place in {start % len(samples), len(samples) - 1}:
            run_row(OPS[name], dtype, samples[place])


@pytest.mark.full
@pytest.mark.parametrize("name", CHECKED)
def test_every_row(name):
    for dtype, sample in rows(OPS[name]):
        run_row(OPS[name], dtype, sample)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("size", [(), (1,), (257,), (1 << 20) + 3])
def test_sizes(dtype, size):
    shape = (size,) if isinstance(size, int) else size
    x = td.ones(shape, dtype=getattr(td, dtype), device="cuda")
    assert bool(((x + x) == 2).all())
    if x.ndim:
        assert bool(((x[::2] * 3)[::-1] == 3).all())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int32"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [(((1 << 22) + 5,), 0), ((3, 1 << 20), 1), ((1 << 20, 3), 0), ((1 << 16, 64), 0), ((500, 4097), 1)],
)
def test_scans_and_reductions_that_blocks_share(dtype, shape, axis):
    """The whole device works on few lines, and leaves the same bits in every run."""
    x = np.random.default_rng(0).integers(-8, 8, shape).astype(dtype)
    given = td.asarray(x).to("cuda")
    for function, want in ((td.cumsum, np.cumsum(x, axis)), (td.sum, np.sum(x, axis))):
        got = function(given, axis).to("cpu").numpy()
        np.testing.assert_array_equal(got, want)  # whole numbers that every float here holds
        noisy = td.asarray((x * 0.1).astype(got.dtype)).to("cuda")
        once, again = (function(noisy, axis).to("cpu").numpy().tobytes() for _ in range(2))
        assert once == again


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_products(dtype):
    dtype = getattr(td, dtype)
    rng = np.random.default_rng(0)
    for one, two in [((129, 65), (65, 33)), ((3, 17, 9), (9, 5)), ((2, 3, 8, 4), (3, 4, 6)), ((7,), (7, 3))]:
        a, b = (td.asarray(rng.normal(size=s)).astype(dtype) for s in (one, two))
        wide = td.complex128 if dtype.kind == "c" else td.float64
        want = (a.astype(wide) @ b.astype(wide)).numpy()
        got = (a.to("cuda") @ b.to("cuda")).to("cpu").astype(wide).numpy()
        loose = dtype.itemsize == 2
        np.testing.assert_allclose(got, want, rtol=3e-2 if loose else 1e-4, atol=0.3 if loose else 1e-3)


def test_gradients():
    x = td.asarray(np.linspace(-2, 2, 24).reshape(4, 6).astype(np.float32))
    f = lambda v: (td.softmax(v @ v.T, -1) * td.gelu(v).sum()).sum()  # noqa: E731
    want, got = td.grad(f)(x), td.grad(f)(x.to("cuda"))
    np.testing.assert_allclose(got.to("cpu").numpy(), want.numpy(), rtol=1e-3, atol=1e-4)


def test_streams_run_in_order():
    stream = td.cuda.Stream()
    x = td.ones(1 << 22, device="cuda")
    with stream:
        stream.wait_stream(td.cuda.default_stream())
        for _ in range(20):
            x = x * 1.0 + 1.0
    td.cuda.current_stream().wait_stream(stream)
    assert x.sum().item() == 21.0 * (1 << 22)
    start, end = td.cuda.Event(enable_timing=True), td.cuda.Event(enable_timing=True)
    start.record()
    x + 1
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0


def test_memory_in_use_by_another_stream_is_held():
    for _ in range(50):
        x = td.full((1 << 20,), 3.0, device="cuda")
        td.synchronize()
        stream = td.cuda.Stream()
        with stream:
            y = x * 2
        del x
        td.full((1 << 20,), -1.0, device="cuda")
        stream.synchronize()
        assert bool((y == 6).all())


def test_out_of_memory():
    _, total = td.cuda.mem_get_info()
    with pytest.raises(errors.OutOfMemoryError, match="cuda:0"):
        td.empty(2 * total, dtype=td.uint8, device="cuda")
    assert (td.ones(10, device="cuda") + 1).tolist() == [2.0] * 10


def test_positions_out_of_bounds():
    x = td.arange(5, device="cuda")
    with pytest.raises(errors.OutOfBoundsError, match="index 5"):
        x[td.asarray([1, 5])].tolist()
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_pinned_transfers():
    x = td.arange(1 << 20).pin_memory()
    y = x.to("cuda", non_blocking=True)
    z = (y + 1).to("cpu", non_blocking=True)
    td.synchronize()
    assert bool((z == x + 1).all())


def test_cupy_shares_memory():
    cupy = pytest.importorskip("cupy")
    x = td.arange(12, device="cuda", dtype=td.float32).reshape((3, 4))
    for there in (cupy.asarray(x), cupy.from_dlpack(x)):
        there += 1
        assert there.data.ptr == x.storage().data_ptr
    assert x[0, 0].item() == 2.0
    a = cupy.arange(6, dtype=cupy.float32).reshape(2, 3).T
    y = td.asarray(a)
    y.add_(1)
    cupy.cuda.Device().synchronize()
    assert a[0, 0].item() == 1.0
    assert y.stride() == (1, 3)
    with cupy.cuda.Stream() as stream, td.cuda.Stream(handle=stream.ptr):
        assert (td.asarray(a) + 1).sum().item() == float(a.sum() + 6)


def test_pytorch_shares_memory():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA here")
    x = td.ones((2, 3), device="cuda", dtype=td.bfloat16)
    there = torch.from_dlpack(x)
    there += 1
    torch.cuda.synchronize()
    assert x.tolist() == [[2.0] * 3] * 2
    y = td.from_dlpack(torch.arange(4, device="cuda"))
    assert (y + 1).tolist() == [1, 2, 3, 4]


def test_jax_shares_memory():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    x = td.from_dlpack(jax.numpy.arange(4.0))
    assert (x + 1).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert jax.numpy.from_dlpack(td.ones(3, device="cuda")).sum() == 3


def test_linear_algebra_and_transforms():
    x = td.asarray(np.random.default_rng(1).normal(size=(6, 6)))
    there = x.to("cuda")
    np.testing.assert_allclose(td.linalg.inv(there).to("cpu").numpy(), np.linalg.inv(x.numpy()), rtol=1e-8)
    np.testing.assert_allclose(td.fft.fft(there).to("cpu").numpy(), np.fft.fft(x.numpy()), atol=1e-10)
    assert td.sort(there).to("cpu").tolist() == td.sort(x).tolist()


@pytest.mark.parametrize("layout", [td.sparse_coo, td.sparse_csr], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "int8", "int64"])
def test_sparse_tensors(layout, dtype):
    x, y = drawn(0, 5, 7, dtype=dtype), drawn(1, 7, 4, dtype=dtype)
    want = everything(x, y, layout)
    for name, found in everything(x.to("cuda"), y.to("cuda"), layout).items():
        same(found, want[name])
    large, vectors = drawn(2, 3000, 2000, dtype=dtype, density=0.01), drawn(3, 2000, 40, dtype=dtype)
    a = large.to("cuda").to_sparse(layout)
    same(a @ vectors.to("cuda"), large @ vectors)
    same(a @ vectors[:, 0].to("cuda"), large @ vectors[:, 0])
    same(vectors[:, :3].to("cuda").T @ a.T, vectors[:, :3].T @ large.T)
