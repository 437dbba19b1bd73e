"""Matrix products on CUDA tensors: the cuBLAS calls and their results, on the test double of the driver."""

import os
import sys

import numpy as np
import pytest
import tandem as td
from cuda_host.host import host_blas
from cuda_jit_harness import linked, native, on_cpu, random
from tandem import errors
from tandem.backends.cuda.blas import cublas
from tandem.backends.cuda.blas.gemm_plan import Side, choose_calls
from tandem.backends.cuda.fastpath.eager import entries_by_operator
from tandem.lowering.layout import Layout, contiguous
from tandem.registry.operator import find_operator

pytestmark = pytest.mark.usefixtures("cuda")
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
TOLERANCES = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5, "float64": 1e-12} | {
    "complex64": 1e-5,
    "complex128": 1e-12,
}


@pytest.fixture
def blas():
    """The double of cuBLAS; at the end it refuses nothing."""
    found = host_blas()
    yield found
    found.blas_noop(0)
    found.blas_refuse(0, 0)


# -- plans -------------------------------------------------------------------------------------------------------------
def heads(n=8, t=128, h=8, d=64):
    """Where heads of attention lie: (n, t, h, d) seen as (n, h, t, d)."""
    return Layout((n, h, t, d), (t * h * d, d, h * d, 1))


def turned(layout):
    (*batch, m, n), (*steps, s, t) = layout.shape, layout.strides
    return Layout((*batch, n, m), (*steps, t, s), layout.offset)


def test_operands_are_read_where_they_lie():
    one = choose_calls(turned(contiguous((5, 3))), Layout((5, 2), (9, 1), 4), 4)
    assert one.copies == (False, False)
    (call,) = one.calls
    assert call[:3] == (2, 3, 5)
    assert call.a == Side(4, False, 9, 0)
    assert call.b == Side(0, True, 3, 0)
    assert call.c == Side(0, False, 2, 0)


def test_batch_rows_are_multiplied_as_one_matrix():
    plan = choose_calls(contiguous((4, 6, 5)), contiguous((5, 7)), 4)
    assert [call[:3] + call[6:] for call in plan.calls] == [(7, 24, 5, 1)]
    apart = choose_calls(Layout((4, 6, 5), (60, 5, 1)), contiguous((5, 7)), 4)
    assert [(call.matrices, call.a.step, call.b.step) for call in apart.calls] == [(4, 0, 60)]


def test_copies_where_they_save_calls():
    small = choose_calls(heads(), turned(heads()), 4)
    assert (small.copies, len(small.calls), small.calls[0].matrices) == ((True, True), 1, 64)
    large = choose_calls(heads(2, 8192, 2, 1024), turned(heads(2, 8192, 2, 1024)), 4)
    assert (large.copies, len(large.calls)) == ((False, False), 2)
    repeated = choose_calls(Layout((3, 5, 4, 4), (16, 0, 4, 1)), contiguous((5, 4, 4)), 4)
    assert (repeated.copies, [call.matrices for call in repeated.calls]) == ((False, False), [5, 5, 5])


@pytest.mark.parametrize(
    "layout",
    [Layout((4, 3), (-3, 1), 9), Layout((4, 3), (6, 2)), Layout((4, 3), (0, 1)), Layout((3,), (-1,), 2)],
)
def test_what_cublas_cannot_read_is_copied(layout):
    assert choose_calls(layout, contiguous((3, 2)), 4).copies == (True, False)


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((4, 0), (0, 2)), ((2, 0, 3, 3), (3, 3)), ((0,), (0,))])
def test_nothing_to_multiply(shapes):
    assert choose_calls(*map(contiguous, shapes), 4) is None


# -- numbers -----------------------------------------------------------------------------------------------------------
def drawn(rng, shape, dtype):
    """A tensor of a shape in one of many layouts, on both devices."""
    kind, axes = rng.integers(0, 5), rng.permutation(len(shape))
    last = len(shape) - 1
    sizes = [shape[a] * (2 if kind == 1 and i == last else 1) for i, a in enumerate(axes)]
    sizes = [size + (3 if kind == 2 and i == last else 0) for i, size in enumerate(sizes)]
    array = rng.standard_normal(sizes) + (1j * rng.standard_normal(sizes) if dtype.startswith("c") else 0)
    both = []
    for device in ("cpu", "cuda"):
        x = td.asarray(array, dtype=getattr(td, dtype)).to(device)
        x = x[..., ::2] if kind == 1 else x[..., 1:-2] if kind == 2 else x
        x = td.permute(x, tuple(map(int, np.argsort(axes))))
        both.append(td.broadcast_to(x[:1], x.shape) if kind == 3 and len(shape) > 2 else x)
    return both


def case(rng):
    """Two operands on both devices, with the tolerance of their dtype."""
    dtype = str(rng.choice(list(TOLERANCES)))
    m, k, n = (int(rng.choice([1, 1, 2, 3, 5, 8, 17, 0], p=[0.14] * 7 + [0.02])) for _ in range(3))
    batch = tuple(int(size) for size in rng.choice([1, 2, 3, 4], rng.integers(0, 4)))
    one, two = (*batch, m, k), (*batch, k, n)
    one, two = [
        ((k,), two),
        (one, (k,)),
        (one, (k, n)),
        ((m, k), two),
        (one, (*(1 if rng.random() < 0.5 else size for size in batch), k, n)),
    ][rng.integers(0, 5)]
    return drawn(rng, one, dtype), drawn(rng, two, dtype), TOLERANCES[dtype]


def wide(x):
    return x.numpy().astype("c16" if x.dtype.kind == "c" else "f8")


@pytest.mark.parametrize("seed", range(4))
def test_products_of_any_layout(seed):
    rng = np.random.default_rng(100 * SEED + seed)
    for _ in range(30):
        (a, there_a), (b, there_b), tolerance = case(rng)
        want = np.matmul(wide(a), wide(b))
        for _ in range(3):  # the last time by machine code, where it can
            got = on_cpu(there_a @ there_b)
            assert got.dtype is a.dtype
            np.testing.assert_allclose(wide(got), want, rtol=tolerance, atol=tolerance * 4)


LAYOUTS = {
    "transposed": lambda x, y: x.T @ y,
    "both transposed": lambda x, y: x.T @ y.T,
    "leading dimension": lambda x, y: x[:, 1:5] @ y[:4, 2:],
    "every other": lambda x, y: x[:, ::2] @ y[::2, ::2],
    "backwards": lambda x, y: td.flip(x, axis=0) @ y[:, ::-1],
    "vector": lambda x, y: x[:, 2] @ y,
    "two vectors": lambda x, y: x[1, ::2] @ y[::2, 3],
    "stacks": lambda x, y: (
        td.reshape(x, (2, 2, 2, 8)) @ td.permute(td.reshape(y, (2, 2, 2, 8)), (1, 0, 3, 2))
    ),
    "repeated": lambda x, y: td.broadcast_to(x, (3, 8, 8)) @ td.reshape(y, (1, 8, 8)),
    "nothing": lambda x, y: x[:, :0] @ y[:0],
    "once more": lambda x, y: (x[::2] @ y, x[::2].T @ x[::2]),
}


@native
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_jitted_products(blas, dtype):
    x, y = (random(8, 8, seed=seed).astype(getattr(td, dtype)) for seed in range(2))
    for name, f in LAYOUTS.items():
        jitted = td.jit(f)
        got, want = jitted(x, y), f(x.cpu(), y.cpu())
        for ours, theirs in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
            tolerance = TOLERANCES[dtype] * 10
            np.testing.assert_allclose(wide(on_cpu(ours)), wide(theirs), tolerance, tolerance, err_msg=name)
        steps = list(jitted.lower(x, y).kernels().steps)
        assert sum(step.startswith("blas") for step in steps) == (2 if name == "once more" else 1)
        assert sum("copy" in step for step in steps) <= (
            2 if name in ("every other", "backwards", "stacks") else 1
        )


@native
def test_machine_code_calls_cublas_without_python(blas, monkeypatch):
    x, w = random(6, 6), random(6, 6, seed=1)
    f = td.jit(lambda x, w: td.tanh(x @ w) @ w.T)
    record = linked(f, x, w)
    executable = f._specializations[0].executable
    assert not any(callable(one) for one in executable._keep[1]._callables)
    calls, hits = blas.blas_calls(), record.hits
    for _ in range(10):
        f(x, w)
    assert (blas.blas_calls(), record.hits) == (calls + 20, hits + 10)


@native
def test_hot_eager_products_are_answered_by_machine_code(blas):
    x, w = random(6, 5), random(7, 5, seed=1)
    entries = entries_by_operator[find_operator("td::matmul")]
    stacks = random(3, 4, 5)

    def results():
        return [x @ w.T, td.matmul(stacks, w.T), x[1] @ w[2], td.permute(stacks, (0, 2, 1)) @ stacks]

    want = [r.tolist() for r in results()]
    for _ in range(5):
        results()
    before, calls = entries.calls, blas.blas_calls()
    assert [r.tolist() for r in results()] == want
    assert (entries.calls, blas.blas_calls()) == (before + 4, calls + 4)
    slopes = td.grad(lambda x: td.sum(x @ w.T))(x)  # recorded: not by that entry
    np.testing.assert_allclose(on_cpu(slopes).numpy(), np.tile(w.cpu().numpy().sum(0), (6, 1)), rtol=1e-5)
    with td.cuda.Stream():  # memory of another stream: by Python
        assert (x @ w.T).tolist() == want[0]
    with pytest.raises(errors.ShapeError):
        x @ w


@native
def test_a_copy_is_shared():
    q = random(5, 6, 7, 4)

    @td.jit
    def f(q):
        h = td.permute(q, (0, 2, 1, 3))
        return h @ td.permute(h, (0, 1, 3, 2)), td.permute(h, (0, 1, 3, 2)) @ h

    assert sum("copy" in step for step in f.lower(q).kernels().steps) == 1
    for got, want in zip(f(q), f(q.cpu()), strict=True):
        np.testing.assert_allclose(on_cpu(got).numpy(), want.numpy(), rtol=1e-5, atol=1e-5)


# -- streams, faults, memory -------------------------------------------------------------------------------------------
def test_products_go_into_the_current_stream(blas):
    x = random(4, 4)
    f = td.jit(lambda x: x @ x)
    for run in (lambda: x @ x, lambda: f(x)):
        with td.cuda.Stream() as stream:
            run()
            assert blas.blas_last_stream() == stream.handle
        run()
        assert not blas.blas_last_stream()


@pytest.mark.parametrize("jitted", [False, True])
def test_a_refused_product_raises(blas, jitted):
    x = random(4, 4)
    f = td.jit(lambda x: x @ x) if jitted else lambda x: x @ x
    for _ in range(40):
        want = f(x).tolist()
    blas.blas_refuse(13, 100)
    with pytest.raises(errors.CudaError, match="cublasGemmEx: CUBLAS_STATUS_EXECUTION_FAILED"):
        f(x)
    blas.blas_refuse(3, 100)
    with pytest.raises(errors.OutOfMemoryError, match="CUBLAS_STATUS_ALLOC_FAILED"):
        f(x)
    blas.blas_refuse(3, 1)  # memory is given back, then there is enough
    assert f(x).tolist() == want
    blas.blas_refuse(0, 0)
    assert f(x).tolist() == want


def test_cublas_is_asked_for_ieee_products(cuda):
    """No TF32 for float32; sums of 16-bit floats in float32: the defaults of PyTorch."""
    compute_32f, compute_64f = 68, 70  # cublasComputeType_t
    kinds = {name: (kind.kind, kind.compute) for name, kind in cublas.GEMM_TYPES.items()}
    assert kinds == {
        "float16": (2, compute_32f),
        "bfloat16": (14, compute_32f),
        "float32": (0, compute_32f),
        "float64": (1, compute_64f),
        "complex64": (4, compute_32f),
        "complex128": (5, compute_64f),
    }


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("calls", [3000, pytest.param(100000, marks=pytest.mark.full)])
def test_nothing_grows(cuda, blas, calls, jitted):
    x, w = random(8, 8), random(8, 8, seed=1)
    f = td.jit(lambda x, w: (x @ w).T @ x) if jitted else lambda x, w: (x @ w).T @ x
    for _ in range(40):
        f(x, w)
    cuda.host_noop(1)
    blas.blas_noop(1)

    def counted():
        objects = (x, w, x._data, w._data, x._data.buffer, f)
        return (
            cuda.host_live_blocks(),
            td.cuda.memory_stats()["blocks"],
            [sys.getrefcount(one) for one in objects],
        )

    try:
        before = counted()
        for _ in range(calls):
            f(x, w)
        assert counted() == before
    finally:
        cuda.host_noop(0)
