"""The first, a hot, a traced, a profiled, a batched and a jitted call of a function return the same bits."""

import itertools
import os
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tandem as td
from optable import arrays_of, generator, make, replace, samples_of, table, to_tensors
from tandem import config
from tandem.backends.cpu import cache
from tandem.backends.cpu import fastpath as native_layer
from tandem.eager.tensor.tensor import Tensor
from tandem.errors import TandemError
from tandem.jit.api import jit
from tandem.operators.declare.declaration import TensorSample
from tandem.profiler import profile
from tandem.registry.function import functions

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
SHARE = 24  # of the rows are tried in one default run
SHAPES = [(), (1,), (3,), (7,), (8,), (17,), (1000,), (5, 3), (40, 2), (9, 21)]
LAYOUTS = ["transposed", "strided", "reversed"]
OPS = {
    name: op
    for name, op in table().items()
    if op.decl.samples and op.decl.kind != "random" and not op.decl.effects and not name.startswith("random_")
}
BY_ELEMENT = {name for name, op in OPS.items() if op.decl.is_elementwise or op.decl.kind in ("cast", "scan")}
ROWS = [
    (name, dtype)
    for name, op in OPS.items()
    for dtype in op.decl.dtypes or (td.float32,)
    if name in BY_ELEMENT or dtype in (td.float32, td.float64)
]

pytestmark = [
    pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=2):
        yield


def sampled(rows, share):
    """Rows as parameters; those that the seed does not choose are marked as full."""
    for name, dtype in rows:
        chosen = (zlib.crc32(f"{name} {dtype.name}".encode()) + SEED) % share == 0
        yield pytest.param(name, dtype, marks=() if chosen else pytest.mark.full, id=f"{name}-{dtype.name}")


def calls(op, dtype):
    """Arguments of calls: the declared samples, then tensors of many shapes and layouts."""
    rng, samples = generator(op, dtype), samples_of(op, dtype)
    yield from (arrays_of(sample, dtype, rng) for sample in samples)
    draws = [value for value in samples[0].args if isinstance(value, TensorSample)]
    if not op.decl.is_elementwise or len(draws) < len(samples[0].args):
        return
    for shape in SHAPES:
        yield [make(draw._replace(shape=shape, values=None), dtype, rng) for draw in draws], {}
    for layout in LAYOUTS:
        yield [make(d._replace(shape=(9, 21), values=None, layout=layout), dtype, rng) for d in draws], {}
    for shapes in [((9, 21), (9, 1), (21,)), ((21,), (9, 21), (9, 1))]:
        pairs = zip(draws, shapes, strict=False)
        yield [make(d._replace(shape=shape, values=None), dtype, rng) for d, shape in pairs], {}


def bits(result):
    """Bytes, shape and dtype of a tensor, or of each in a nest of tuples."""
    if isinstance(result, tuple | list):
        return [bits(item) for item in result]
    if not isinstance(result, Tensor):
        return result
    return result.dtype, result.shape, np.ascontiguousarray(result._array).tobytes()


def jitted(function, args, kwargs):
    """The function compiled for tensors in the place of the given ones."""
    tensors = []
    replace(tuple(args), Tensor, tensors.append)

    def program(*given):
        remaining = iter(given)
        return function(*replace(tuple(args), Tensor, lambda _: next(remaining)), **kwargs)

    return jit(program)(*tensors)


@pytest.mark.parametrize(("name", "dtype"), list(sampled(ROWS, SHARE)))
def test_bits_do_not_depend_on_the_path(name, dtype):
    op = OPS[name]
    function = functions[op.name]
    for number, given in enumerate(calls(op, dtype)):
        args, kwargs = to_tensors(given)
        try:
            first = bits(op(*args, **kwargs))
        except TandemError:
            continue
        for _ in range(4):
            last = function(*args, **kwargs)
        assert bits(last) == first, f"hot, call {number}"
        with td.show_dispatch_trace(lambda *_: None):
            assert bits(function(*args, **kwargs)) == first, f"traced, call {number}"
        with profile():
            assert bits(function(*args, **kwargs)) == first, f"profiled, call {number}"
        if number % 4 == 0 or not op.decl.is_elementwise:
            try:
                compiled = bits(jitted(function, args, kwargs))
            except TandemError:
                assert not op.decl.is_elementwise  # what depends on data, or returns no tensor
            else:
                assert compiled == first, f"jitted, call {number}"


ALL_ROWS = [(name, dtype) for name, op in OPS.items() for dtype in op.decl.dtypes or (td.float32,)]


@pytest.mark.parametrize(("name", "dtype"), list(sampled(ALL_ROWS, 4 * SHARE)))
def test_call_1000_has_the_bits_of_call_1(name, dtype):
    op = OPS[name]
    function = functions[op.name]
    rng = generator(op, dtype)
    for number, sample in enumerate(itertools.islice(samples_of(op, dtype), 3)):
        args, kwargs = to_tensors(arrays_of(sample, dtype, rng))
        try:
            first = bits(op(*args, **kwargs))
        except TandemError:
            continue
        for _ in range(999):
            last = function(*args, **kwargs)
        assert bits(last) == first, f"sample {number}"


FUNCTIONS = [
    (name, dtype)
    for name, dtype in ROWS
    if OPS[name].decl.kind == "unary" and dtype in (td.float16, td.float32, td.float64)
]


@pytest.mark.parametrize(("name", "dtype"), list(sampled(FUNCTIONS, SHARE // 4)))
def test_bits_do_not_depend_on_the_place(name, dtype):
    """Element 3 of 1,000 is element 0 of a slice, and a 0-d tensor; mapped as alone."""
    function, draw = functions[OPS[name].name], next(iter(samples_of(OPS[name], dtype))).args[0]
    x = to_tensors(make(draw._replace(shape=(100,), values=None), dtype, generator(OPS[name], dtype)))
    whole = function(x)
    for start, stop in [(0, 7), (3, 4), (5, 22), (90, 100)]:
        assert bits(function(x[start:stop])) == bits(whole[start:stop])
    assert bits(function(x[::7])) == bits(whole[::7])
    assert bits(function(x[3])) == bits(whole[3])
    assert bits(td.vmap(function)(x)) == bits(whole)


@pytest.mark.parametrize("dtype", [td.float32, td.float64], ids=str)
def test_fused_chains_have_the_bits_of_their_steps(dtype):
    def chain(x, y):
        a = td.sin(x) * td.exp(-y) + td.sqrt(td.abs(x))
        b = td.log1p(a * a) - td.tanh(a / (1 + y * y))
        return a, b, td.where(b > 0.5, td.atan2(a, b), td.sigmoid(b) ** 1.5)

    rng = np.random.default_rng(SEED)
    for shape in [(3,), (17,), (1000,), (6, 5), (300, 2)]:
        x, y = (td.asarray(rng.standard_normal(shape).astype(dtype.np)) for _ in range(2))
        assert bits(jit(chain)(x, y)) == bits(chain(x, y))


def test_gradients_have_the_same_bits_jitted():
    def loss(x):
        return td.tanh(td.exp(x) * td.erf(x)).max()

    x = td.asarray(np.random.default_rng(SEED).standard_normal(40).astype(np.float32))
    assert bits(jit(td.grad(loss))(x)) == bits(td.grad(loss)(x))


LOADS = """
import sys
import numpy as np
import tandem as td
assert "tandem.backends.cpu.kernels.node_functions" not in sys.modules
x = td.asarray(np.ones(3, np.float32))
x + x
from tandem.backends.cpu.kernels import node_functions
assert not node_functions._compile_loops.results
td.exp(x), td.sin(x)
assert len(node_functions._compile_loops.results) == 1
assert "llvmlite" not in sys.modules
"""


@pytest.mark.skipif(bool(cache.reason()), reason="no disk cache")
def test_functions_are_loaded_from_the_cache_when_called():
    td.exp.operator(td.asarray(np.ones(3, np.float32)))  # stores the object
    subprocess.run([sys.executable, "-c", LOADS], check=True, timeout=120)
