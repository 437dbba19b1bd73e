"""Operators that call cupy: the functions exist and accept these arguments and dtypes; no GPU is used.

The double of cupy is NumPy, as strict as cupy (`cuda_host/strict.py`); arrays of cupy itself lie on the host's memory.
"""

import os
import types
import zlib

import numpy as np
import pytest
import tandem as td
from cuda_host.rows import back, run_row, to_cuda
from optable import arrays_of, check, expected, generator, rows, samples_of, table
from tandem import errors
from tandem.backends.cuda import load
from tandem.backends.cuda.kernels import library, library_ops

cupy = pytest.importorskip("cupy", reason="cupy: pip install 'tandem-dispatch[cuda]'")
cupyx = pytest.importorskip("cupyx")
strict = pytest.importorskip("cuda_host.strict")
pytestmark = pytest.mark.usefixtures("cuda")
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
OPS = {name: op for name, op in table().items() if op.decl.reference and op.decl.samples}
SERVED = [name for name, op in OPS.items() if load.strategy_of(op) == "library"]
ELEMENTWISE = [name for name, op in OPS.items() if op.decl.is_elementwise]


# -- every operator ----------------------------------------------------------------------------------------------------
def _check(name, share):
    for at, (dtype, sample) in enumerate(rows(OPS[name])):
        if zlib.crc32(f"{SEED} {name} {at}".encode()) % share == 0:
            run_row(OPS[name], dtype, sample)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.full)])
def test_cupy_takes_what_operators_call(part, share):
    for name in SERVED[part::4]:
        _check(name, share)


def test_cupy_takes_the_nodes_of_every_body():
    """Elementwise operators that no kernel serves, as those of more than eight axes, are computed node by node."""
    for name in ELEMENTWISE:
        op = OPS[name]
        for dtype in op.decl.dtypes:
            if dtype.name in ("complex64", "float32", "float16", "int8", "uint32", "bool"):
                sample = next(iter(samples_of(op, dtype)))
                args, kwargs = arrays_of(sample, dtype, generator(op, dtype))
                got = library_ops.evaluate(op, to_cuda(args))
                check(op, back(got), expected(op, args, kwargs), args, f"cupy {name} {dtype} {sample}")


def test_only_these_operators_ask_the_host():
    """Rejection samplers ask whether they are done, and a quadrature which rule it needs; nothing else waits."""
    before = strict.TRANSFERS["item"]
    for name in SERVED:
        if name not in (
            "random_draw_poisson",
            "random_draw_binomial",
            "random_draw_loggamma",
            "random_gamma_slope",
        ):
            _check(name, 9)
    assert strict.TRANSFERS["item"] == before


# -- the double refuses what cupy refuses ------------------------------------------------------------------------------
def test_the_double_is_as_strict_as_cupy():
    xp, here = strict.MODULE, np.arange(3.0)
    x = xp.asarray(here)
    for call in (
        lambda: x + here,
        lambda: xp.add(x, here),
        lambda: x[np.array([0])],
        lambda: x.__setitem__(0, here[:1]),
        lambda: xp.where(True, x, x),
        lambda: xp.argsort(x, kind="quicksort"),
        lambda: x.min(initial=0),
        lambda: xp.take(x, xp.asarray([0]), mode="clip"),
        lambda: xp.asarray(np.zeros(2, bool)) - xp.asarray(np.zeros(2, bool)),
        lambda: xp.linalg.cholesky(xp.eye(2).astype(np.float16)),
        lambda: xp.lexsort_of_nobody,
        lambda: xp.tril(here),
    ):
        with pytest.raises((strict.Refused, TypeError)):
            call()
    with pytest.raises(AttributeError, match="no 'newbyteorder'"):
        _ = x.newbyteorder
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(x)
    assert strict.bare(np.exp(x) + 1 > 2).tolist() == [False, True, True]
    assert isinstance(x[0], strict.Array)
    assert isinstance(x.sum(), strict.Array)


# -- arrays of cupy itself ---------------------------------------------------------------------------------------------
def test_cupy_arrays_share_memory():
    made = library.CupyLibrary()
    x = td.arange(12, dtype=td.float32, device="cuda").reshape((3, 4))
    for one in (x, x.T, x[::-1, ::2], x[1:1], x[:, 1], td.zeros(3, dtype=td.bfloat16, device="cuda")):
        array = one._data
        theirs = made.view(array)
        assert isinstance(theirs, cupy.ndarray)
        assert (theirs.shape, theirs.dtype, theirs.data.ptr) == (array.shape, array.dtype.np, array.ptr)
        assert theirs.strides == tuple(step * array.dtype.itemsize for step in array.strides)
        again = made.adopt(theirs, 0)
        assert (again.ptr, again.shape, again.strides) == (array.ptr, array.shape, array.strides)
        assert again.dtype is array.dtype


def test_failures_of_cusolver_are_noticed():
    seen = []

    def failing(x):
        seen.append(cupyx.geterr()["linalg"])
        raise RuntimeError("geev is not available")

    functions = library._Linalg(types.SimpleNamespace(eig=failing))
    with pytest.raises(errors.UnsupportedError, match=r"x\.to\('cpu'\)"):
        functions.eig(None)
    assert seen == ["raise"]
    assert cupyx.geterr()["linalg"] != "raise"


def test_matrices_without_an_answer():
    singular = td.zeros((2, 2), device="cuda")
    for call in (
        lambda: td.linalg.solve(singular, td.ones((2, 1), device="cuda")),
        lambda: td.linalg.inv(singular),
        lambda: td.linalg.cholesky(-td.eye(2, device="cuda")),
    ):
        with pytest.raises(errors.LinearAlgebraError):
            call()
    assert td.linalg.det(singular).item() == 0


def test_right_sides_broadcast():
    a = td.asarray([[3.0, 1.0], [-1.0, 2.0]], device="cuda")
    b = td.ones((4, 2, 3), device="cuda")
    for one, two in ((a, b), (td.stack([a] * 4), b[0])):
        np.testing.assert_allclose((one @ td.linalg.solve(one, two)).to("cpu").numpy(), 1, rtol=1e-6)


def test_empty_results_need_no_library(monkeypatch):
    monkeypatch.setattr(type(library.library()), "on", lambda self, index: pytest.fail("asked the library"))
    assert td.fft.fft(td.zeros((0, 4), dtype=td.complex64, device="cuda")).shape == (0, 4)
    assert td.argsort(td.zeros((3, 0), device="cuda")).shape == (3, 0)
    values, vectors = td.linalg.eigh(td.zeros((0, 2, 2), device="cuda"))
    assert (values.shape, vectors.shape, values.device) == ((0, 2), (0, 2, 2), "cuda:0")


# -- by name -----------------------------------------------------------------------------------------------------------
def test_eigenvalues_of_any_matrix():
    x = td.asarray([[0.0, 1.0], [-1.0, 0.0]], device="cuda")
    values, vectors = td.linalg.eig(x)
    assert (values.device, values.dtype) == ("cuda:0", td.complex64)
    assert values.tolist() == td.linalg.eigvals(x).tolist() == [1j, -1j]
    np.testing.assert_allclose(
        (x.astype(td.complex64) @ vectors).to("cpu").numpy(), (vectors * values).to("cpu").numpy(), atol=1e-6
    )


def _loss(x, w, b, **how):
    return (td.max_pool2d(td.relu(td.conv2d(x, w, b, **how)), 2) ** 2).mean()


@pytest.mark.parametrize(
    "how", [{}, {"stride": 2, "padding": 1}, {"groups": 2, "dilation": 2}], ids=["plain", "strided", "groups"]
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_convolution_and_its_gradients(how, dtype):
    rng = np.random.default_rng(0)
    groups = how.get("groups", 1)
    shapes = (2, 4, 9, 8), (6, 4 // groups, 3, 3), (6,)
    given = [td.asarray(rng.standard_normal(shape)).astype(dtype) for shape in shapes]
    want = td.value_and_grad(lambda *a: _loss(*a, **how), argnums=(0, 1, 2))(*given)
    got = td.value_and_grad(lambda *a: _loss(*a, **how), argnums=(0, 1, 2))(*(x.to("cuda") for x in given))
    limit = 1e-5 if dtype == "float32" else 2e-2
    for one, two in zip((got[0], *got[1]), (want[0], *want[1]), strict=True):
        assert one.device == "cuda:0"
        one, two = (x.to("cpu").astype(td.float64).numpy() for x in (one, two))
        np.testing.assert_allclose(one, two, rtol=limit, atol=limit)


def test_quantized_tensors():
    x, w = td.asarray([[0.24, 1.0, 2.5]]), td.asarray([[1.0, 2.0, 3.0], [1.0, -1.0, 0.5]])

    def both(x, w):
        q = td.quantize_per_tensor(x, 0.5, 10)
        v = td.quantize_per_channel(w, [0.1, 0.2], [0, 3], 0)
        bias = td.asarray([0.0, 1.0]).to(x.device)
        return [
            q,
            v,
            td.relu(q),
            q.T,
            td.ops.quantized.linear(q, v, bias, 0.25, 0),
            td.ops.quantized.add(q, q, 0.25, 0),
            td.ops.quantized.matmul(q, q.T, 0.25, 0),
        ]

    for here, there in zip(both(x, w), both(x.to("cuda"), w.to("cuda")), strict=True):
        assert there.device == there.int_repr().device == "cuda:0"
        assert there.int_repr().tolist() == here.int_repr().tolist()
        assert there.dequantize().tolist() == here.dequantize().tolist()
        assert (
            there.to("cpu").int_repr().tolist()
            == here.to("cuda").int_repr().tolist()
            == here.int_repr().tolist()
        )
    with pytest.raises(errors.NoKernelError, match="QuantizedCUDA"):
        td.exp(td.quantize_per_tensor(x.to("cuda"), 0.5, 10))
