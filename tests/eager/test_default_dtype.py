"""``td.set_default_dtype``: the dtype that creation functions give to Python floats."""

import contextlib
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
import tandem as td
from tandem import config

CREATED = {
    "zeros": lambda: td.zeros((2,)),
    "ones": lambda: td.ones(2, 3),
    "empty": lambda: td.empty(2),
    "full": lambda: td.full((2,), 1.5),
    "eye": lambda: td.eye(2),
    "identity": lambda: td.identity(2),
    "tri": lambda: td.tri(2),
    "linspace": lambda: td.linspace(0, 1, 3),
    "arange": lambda: td.arange(0.0, 1, 0.5),
    "asarray": lambda: td.asarray([1.0, 2.0]),
    "scalar": lambda: td.asarray(1.5),
    "logspace": lambda: td.logspace(0, 1, 3),
    "hanning": lambda: td.hanning(3),
    "fftfreq": lambda: td.fft.fftfreq(3),
    "normal": lambda: td.random.normal(td.random.key(0), (2,)),
    "uniform": lambda: td.random.uniform(td.random.key(0), (2,)),
}


@pytest.fixture
def default():
    """Set the default dtype; it is float32 again after the test."""
    yield td.set_default_dtype
    td.set_default_dtype(td.float32)


@pytest.mark.parametrize("name", CREATED)
@pytest.mark.parametrize("dtype", [td.float64, td.bfloat16])
def test_creation_follows_the_default(name, dtype, default):
    call = CREATED[name]
    for _ in range(30):  # hot
        assert call().dtype is td.float32
    default(dtype)
    assert td.get_default_dtype() is dtype
    for _ in range(30):
        assert call().dtype is dtype
    default("float32")
    for _ in range(30):
        assert call().dtype is td.float32


def test_other_values_keep_their_dtypes(default):
    default(td.float64)
    assert td.asarray(np.ones(2, np.float32)).dtype is td.float32 and td.asarray([1, 2]).dtype is td.int64
    assert td.full((2,), 1).dtype is td.int64 and td.arange(3).dtype is td.int64
    assert td.zeros_like(td.asarray(np.ones(2, np.float32))).dtype is td.float32
    assert (
        td.asarray([1j]).dtype is td.full(2, 1j).dtype is td.complex128
        and td.linspace(0, 1j, 3).dtype is td.complex128
    )
    assert td.zeros(2, dtype=td.float16).dtype is td.float16
    assert td.__array_namespace_info__().default_dtypes()["real floating"] is td.float64
    default(td.float16)
    assert td.asarray([1j]).dtype is td.complex64


def test_jitted_functions_are_traced_again(default):
    function = td.jit(lambda x: (td.zeros(3) + x, td.full((2,), 0.5), td.asarray([1.0])))
    x = td.asarray(np.ones(3, np.float16))
    for dtype in (td.float32, td.float64, td.float32, td.float64):
        default(dtype)
        for _ in range(30):
            assert [result.dtype for result in function(x)] == [dtype] * 3
    assert function.cache_info().misses == 2
    default(td.bfloat16)
    assert "the default dtype was" in function.explain(x) and "bfloat16" in function.explain(x)


def test_gradients_under_jit_follow_the_default(default):
    function = td.jit(lambda x: (td.full((), 0.5) * x).sum())
    for dtype in (td.float64, td.float32):
        default(dtype)
        leaf = td.ones(3, dtype=td.float32)
        assert function(leaf).dtype is dtype and td.grad(function)(leaf).dtype is td.float32


def test_wrong_dtypes_raise():
    for wrong in (td.int64, td.complex64, bool):
        with pytest.raises(TypeError, match="real floating"):
            td.set_default_dtype(wrong)
    assert td.get_default_dtype() is td.float32


COMPUTED = {
    "add": lambda x: x + 0.5,
    "radd": lambda x: 0.5 + x,
    "multiply": lambda x: x * 2.0,
    "power": lambda x: x**0.5,
    "divide": lambda x: x / 2,
    "divide integers": lambda x: x / x,
    "sqrt": td.sqrt,
    "hypot": lambda x: td.hypot(x, 2),
    "maximum": lambda x: td.maximum(x, 1.5),
    "where": lambda x: td.where(x > 1, 1.0, 0.0),
    "bool": lambda x: (x > 1) * 0.5,
    "mean": lambda x: x.mean(),
    "mean of rows": lambda x: td.mean(x, 0),
    "std": lambda x: x.std(),
    "median": td.median,
    "softmax": lambda x: td.softmax(x, axis=-1),
    "astype": lambda x: x.astype(float),
    "sum": lambda x: td.sum(x, dtype=float),
    "linspace": lambda x: td.linspace(0, 1, 3) * x,
    "histogram": lambda x: td.histogram(x, 2)[1],
    "variance": lambda x: td.var(x, axis=0),
    "nanmean": lambda x: td.nanmean(x),
    "quantile": lambda x: td.quantile(x, 0.5),
    "in place": lambda x: td.zeros(3) + x,
    "scalars": lambda x: td.sqrt(2.0) + td.exp(td.add(1, 0.5)),
    "scalar and tensor": lambda x: td.sqrt(2.0) * x,
}


@pytest.mark.parametrize("name", COMPUTED)
def test_floats_computed_from_integers_follow_the_default(name, default):
    """Also hot calls: by native entries, compiled composites and jitted functions."""
    call, x = COMPUTED[name], td.asarray(np.arange(1, 4))
    jitted = td.jit(call)
    values = {}
    for dtype in (td.float32, td.float64, td.bfloat16, td.float32, td.float64):
        default(dtype)
        for function in (call, jitted):
            for _ in range(70):
                result = function(x)
                assert result.dtype is dtype
            assert td.asarray(result.numpy()).dtype is dtype
        values[dtype] = call(x).numpy()
    want = values[td.float64]
    np.testing.assert_allclose(values[td.float32], want, rtol=1e-6)
    np.testing.assert_allclose(values[td.bfloat16].astype(float), want, rtol=2e-2)


def test_special_functions_of_integers_follow_the_default(default):
    x = td.asarray(np.arange(1, 4))
    for dtype in (td.float32, td.float64, td.float32):
        default(dtype)
        for _ in range(70):
            assert td.special.gammaln(x).dtype is td.special.j0(x).dtype is td.fft.fft(x).real.dtype is dtype


def test_complex_results_of_integers_follow_the_default(default):
    x = td.asarray(np.arange(4))
    for dtype, name in ((td.float32, "complex64"), (td.float64, "complex128"), (td.float32, "complex64")):
        default(dtype)
        for _ in range(70):
            assert (x * 1j).dtype.name == td.fft.fft(x).dtype.name == x.astype(complex).dtype.name == name
        assert td.exp(1j).dtype.name == name


def test_repr_names_dtypes_other_than_the_default(default):
    assert repr(td.ones(1)) == "tensor([1.])"
    default(td.float64)
    assert repr(td.ones(1)) == "tensor([1.])"
    assert repr(td.ones(1, dtype=td.float32)) == "tensor([1.], dtype=float32)"


NUMPY_PROGRAM = """
import tandem.numpy as np

x = np.arange(1, 4)
floats = [x / 2, x * 0.5, 2.0**x, x**-1.0, np.sqrt(x), x.mean(), np.std(x), (x > 1) * 0.1, x.astype(float)]
floats += [np.where(x > 1, 1.0, 0), np.maximum(x, 1.5), np.true_divide(x, x), np.indices((2, 2)) * 0.5]
floats += [np.median(x), np.fft.fftfreq(4)]
assert {y.dtype.name for y in floats} == {"float64"}, [y.dtype for y in floats]
assert {y.dtype.name for y in (x * 1j, np.exp(-2j * np.pi * x), np.fft.fft(x))} == {"complex128"}
"""


def test_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("TANDEM_DEFAULT_DTYPE", "float64")
    subprocess.run([sys.executable, "-c", NUMPY_PROGRAM], check=True)
    monkeypatch.setenv("TANDEM_DEFAULT_DTYPE", "int64")
    run = subprocess.run([sys.executable, "-c", "import tandem"], capture_output=True, text=True)
    assert "expected float16, bfloat16, float32 or float64" in run.stderr


def test_changes_while_threads_call_leave_nothing_behind(default):
    calls = {
        "gammaln": td.special.gammaln,
        "i0": td.special.i0,
        "std": td.std,
        "fft": td.fft.fft,
        "arange": lambda x: td.arange(0.0, x.shape[0]),
        "jitted": td.jit(td.sqrt),
    }
    tensors = [td.asarray(np.arange(1, 4).astype(kind)) for kind in (np.int64, np.int32)]
    wanted = {}
    for dtype in (td.float32, td.float64):
        default(dtype)
        wanted[dtype] = [call(x).dtype for call in calls.values() for x in tensors[:1]]
    done, errors = threading.Event(), []

    def change():
        while not done.is_set():
            default(td.float64)
            default(td.float32)

    def work():
        try:
            for x in tensors:
                for call in calls.values():
                    # a graph of one default fails where Python computes a node with the other one
                    with contextlib.suppress(td.errors.LoweringError):
                        call(x), call(x), call(x)
        except Exception as error:
            errors.append(error)

    workers, changer = [threading.Thread(target=work) for _ in range(2)], threading.Thread(target=change)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with config.override(hot_calls=2, hot_composites=3):
            for thread in (changer, *workers):
                thread.start()
            for thread in workers:
                thread.join()
    finally:
        done.set()
        changer.join()
        sys.setswitchinterval(before)
    assert not errors
    for dtype in (td.float32, td.float64):
        default(dtype)
        for x in tensors:
            assert [call(x).dtype for call in calls.values()] == wanted[dtype]


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
def test_changes_keep_no_memory(default):
    x = td.arange(1, 4)
    for dtype in (td.float64, td.float32) * 40:
        default(dtype)
        td.special.gammaln(x)
    tracemalloc.start()
    kept = []
    for _ in range(2):  # other work that the process has begun may end in the first turn
        for dtype in (td.float64, td.float32) * 100:
            default(dtype)
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert kept[1] - kept[0] < 1 << 14
