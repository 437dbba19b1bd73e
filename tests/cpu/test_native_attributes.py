"""Native entries of attributes and conversions: what the Python functions of the same names return."""

import contextlib
import gc
import subprocess
import sys

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth
from kernel_harness import needs_native
from python_calls import python_calls
from tandem import config
from tandem.errors import TandemError
from tandem.registry.native_type import NativeFunction

pytestmark = needs_native

ATTRIBUTES = "shape strides ndim size itemsize nbytes dtype T mT real imag".split()
METHODS = """__len__ __float__ __complex__ __int__ __index__ __bool__ item tolist numpy tobytes numel dim ndimension
    nelement element_size""".split()
FUNCTIONS = """shape ndim size iscomplexobj isrealobj iterable result_type
    atleast_1d atleast_2d atleast_3d""".split()
DTYPES = [
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1, hot_composites=1):
        yield


def native_functions():
    """The names of functions of one tensor, and the objects with their entries."""
    td.ones(2) * 2  # installs the native layer
    for name in ATTRIBUTES:
        getattr(td.Tensor, name)  # loads its module
        function = vars(td.Tensor)[name].fget
        yield f".{name}", function
    for name in METHODS:
        getattr(td.Tensor, name)  # loads its module
        yield name, vars(td.Tensor)[name]
    for name in FUNCTIONS:
        yield f"td.{name}", getattr(td, name)


ATLEAST = [f"td.atleast_{n}d" for n in (1, 2, 3)]
NATIVE = {
    name: (function, getattr(function, "__wrapped__", function)) for name, function in native_functions()
}


def outcome(function, x, *args):
    """What a call returns, with the layout and the memory of a tensor, or the exception with its text."""
    with np.errstate(all="ignore"):
        try:
            result = function(x, *args)
        except Exception as error:
            return type(error), str(error)
    if isinstance(result, td.Tensor):
        own = result is x, result._storage is x._storage
        array = result.detach().numpy()
        return own, result.dtype, result.shape, result.strides, result.requires_grad, array.tobytes()
    if isinstance(result, np.ndarray):
        return np.shares_memory(result, x._array), result.flags.writeable, result.tobytes()
    return type(result), repr(result)


def arrays(dtype):
    base = np.arange(-6, 18).reshape(4, 6).astype(dtype)
    unaligned = np.frombuffer(b"\0" + base[1:2].tobytes(), np.uint8)[1:].view(dtype)
    yield from (
        base,
        base[::2, ::-3],
        base.T,
        base[0],
        base[:0],
        base[2, 3:4],
        base[0, 0],
        base[3, 2:3, None],
    )
    yield from (unaligned, unaligned[:1], base.reshape(2, 2, 6), np.broadcast_to(base[0], (3, 6)))
    yield np.asarray(base[2, 1].reshape(()))


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_entries_return_what_python_returns(name, dtype):
    function, python = NATIVE[name]
    for array in arrays(dtype):
        x = td.asarray(array)
        wanted = outcome(python, x)
        for _ in range(3):
            assert outcome(function, x) == wanted, (array.shape, array.strides)


@pytest.mark.parametrize("name", NATIVE)
def test_entries_on_other_tensors(name):
    function, python = NATIVE[name]
    outcome(function, td.ones((2, 2)))
    nan = td.asarray(float("nan"))
    huge = td.asarray(float("inf"), dtype=td.float64)
    tracked = td.ones((2, 3)).requires_grad_()
    tensors = [
        td.sin(0.3),
        nan,
        huge,
        tracked,
        tracked * 2,
        tracked.detach(),
        tracked.sum(),
        td.ones(3, device="meta"),
    ]
    tensors += [
        td.ones(3, dtype=td.bfloat16),
        td.asarray(2.5, dtype=td.bfloat16),
        td.asarray(2**63, dtype=td.uint64),
    ]
    for x in tensors:
        if x.device == "meta" and name in (".T", ".mT", ".real", ".imag", *ATLEAST):
            continue
        assert outcome(function, x) == outcome(python, x), x
        with td.no_grad():
            assert outcome(function, x) == outcome(python, x), x


@pytest.mark.parametrize("name", NATIVE)
def test_hot_calls_run_no_python_code(name):
    function, _ = NATIVE[name]
    x = td.asarray([[3]]) if name not in (".real", ".imag") else td.asarray([[3j]])
    for _ in range(5):
        function(x)
    assert python_calls(function, x) == []


@pytest.mark.parametrize(
    "index", [(3,), (-1,), (1, 2), (-4, -6), (4, 0), (0, -7), (2**70, 0), (1.0, 2), (True, 1), ()]
)
def test_items_at_an_index(index):
    item, python = NATIVE["item"]
    for x in (td.arange(24).reshape(4, 6), td.arange(48).reshape(6, 8)[:4, ::-1][:, 1:7], td.arange(24)[::2]):
        for _ in range(3):
            assert outcome(item, x, *index) == outcome(python, x, *index)


def test_transposes_are_recorded_as_in_python():
    for name in (".T", ".mT"):
        function, python = NATIVE[name]
        gradients = []
        for call in (function, function, function, python):
            x = td.asarray(np.arange(6.0).reshape(1, 2, 3)).requires_grad_()
            y = call(x)
            (y * td.asarray(np.arange(6.0).reshape(y.shape))).sum().backward()
            gradients.append(x.grad.tolist())
            assert y.grad_fn.name() == python(x).grad_fn.name()
        assert gradients == [gradients[-1]] * 4


def test_transposes_follow_the_kernel_of_permute():
    x = td.ones((2, 3))
    for _ in range(3):
        assert x.T.shape == (3, 2)
    with td.Library("td", "IMPL") as library:
        library.impl("permute", lambda x, dims: td.asarray([7.0]), "CPU")
        assert x.T.tolist() == x.mT.tolist() == [7.0]
    assert x.T.shape == x.mT.shape == (3, 2)


def test_levels_and_traces_see_their_own_values():
    for name in ("shape", "ndim", "size", "T", "mT", "real", "dtype"):
        x = td.asarray(np.ones((2, 3, 4), np.float32))

        def f(v, name=name):
            got = getattr(v, name)
            return got * 1.0 if isinstance(got, td.Tensor) else v * (got[0] if name == "shape" else 1)

        for _ in range(3):
            wanted = [f(row).tolist() for row in x]
            assert td.vmap(f)(x).tolist() == wanted
            assert td.jit(f)(x[0]).tolist() == wanted[0]


def test_sizes_are_callable_and_bounded():
    for count in range(3000):
        x = td.ones(count)
        assert x.size == count and x.size() == (count,) and x.size(0) == count
    assert len(type(x.size).known) <= type(x.size).MOST_KNOWN
    assert type(x.size + 0) is int


def test_views_that_are_the_source_itself():
    x, y = td.ones(3), td.ones((2, 2))
    for _ in range(4):
        assert td.atleast_1d(x) is x and td.atleast_2d(y) is y
        assert td.atleast_1d(td.asarray(1.0)).shape == (1,) and td.atleast_2d(x).shape == (1, 3)
    leaf = td.ones(3).requires_grad_()
    for _ in range(4):
        assert td.atleast_1d(leaf) is leaf


def test_references_do_not_grow():
    x, z = td.asarray(np.ones((1, 1), np.float32)), td.asarray([[1j]])
    calls = [(function, z if name in (".real", ".imag") else x) for name, (function, _) in NATIVE.items()]
    for function, value in calls * 20:
        outcome(function, value)
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(x._array), sys.getrefcount(None)

    def run():
        for function, value in calls * 500:
            with contextlib.suppress(TandemError):
                function(value)

    growth = smallest_block_growth(run)
    after = sys.getrefcount(x), sys.getrefcount(x._array), sys.getrefcount(None)
    assert before[:2] == after[:2] and abs(after[2] - before[2]) < 100 and growth < 100


def test_functions_keep_their_documentation():
    for name, (function, python) in NATIVE.items():
        assert isinstance(function, NativeFunction) or name in (".T", ".mT")
        assert function.__doc__ == python.__doc__


OF_SEVERAL = {
    "broadcast_arrays": [
        ("x", "m"),
        ("x", "o"),
        ("o", "o"),
        ("x", 2.5),
        (2, 3),
        ("m", "m4", "x"),
        ("x", "m3"),
    ],
    "atleast_2d": [("x", "m"), ("x", 2), (2.5, True), ("o", "x", "t")],
    "result_type": [("x", "m"), ("x", "i"), ("x", 2.5), ("i", 2.5), ("x", td.int8), (2, 2.5), ("t", "x"), ()],
}


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_functions_of_several_tensors(name):
    function, x = getattr(td, name), td.arange(4.0)
    tensors = {"x": x, "m": td.ones((3, 1)), "o": td.asarray(2.0), "i": td.arange(4), "m4": td.ones((1, 4))}
    tensors |= {"m3": td.ones((2, 3)), "t": td.ones(4).requires_grad_()}

    def run(call, args):
        try:
            results = call(*args)
        except TandemError as error:
            return type(error), str(error)
        return type(results), [
            outcome(lambda one: one, one) for one in results
        ] if name != "result_type" else results

    for names in OF_SEVERAL[name]:
        args = [tensors.get(one, one) if isinstance(one, str) else one for one in names]
        wanted = run(function.__wrapped__, args)
        for _ in range(3):
            assert run(function, args) == wanted, names
    before = sys.getrefcount(x), sys.getrefcount(x._array)
    for _ in range(10_000):
        function(x, x)
    assert (sys.getrefcount(x), sys.getrefcount(x._array)) == before


EARLY = """
import numpy as np, tandem as td
from tandem.backends.cpu import fastpath
x = td.Tensor([1.0, 2.0])
before = fastpath.stubs()
for _ in range(1000):
    np.asarray(x)
print(before is None, fastpath.stubs() is not None)
"""


def test_exports_alone_make_native_code_hot():
    done = subprocess.run(
        [sys.executable, "-c", EARLY], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["True", "True"]
