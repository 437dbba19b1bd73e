"""The native entry of operators that declare a native kernel: plans of calls, results, errors, references."""

import gc
import itertools
import sys
import threading

import numpy as np
import optable
import pytest
import tandem as td
from helpers import smallest_block_growth
from hypothesis import given, settings
from hypothesis import strategies as st
from native_entries import fail_each_allocation
from tandem import config, errors
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.native_kernels import plans
from tandem.registry.library import Library

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")
rng = np.random.default_rng(3)
NATIVE = sorted(name for name, op in optable.table().items() if op.decl.native is not None)


@pytest.fixture(autouse=True)
def hot():
    fastpath.install()
    with config.override(hot_calls=1):
        yield


def stub_of(op):
    return fastpath.stubs().by_operator[op]


def bits(result):
    results = result if isinstance(result, tuple) else (result,)
    return [(type(x), x.shape, x.dtype, np.asarray(x.numpy()).tobytes()) for x in results]


def spd(*shape):
    a = rng.standard_normal(shape)
    return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])


def function_of(name):
    return getattr(td.ops.td, name).default


@pytest.mark.parametrize("name", NATIVE)
def test_hot_calls_return_the_bits_of_cold_ones(name):
    op = optable.table()[name]
    answered = 0
    for dtype in op.decl.dtypes:
        for sample in optable.samples_of(op, dtype):
            found = optable.arrays_of(sample, dtype, optable.generator(op, dtype))
            f, tensors = optable.as_function(op, *optable.to_tensors(found))
            with config.override(hot_calls=10**9):
                wanted = bits(f(*tensors))
            for _ in range(3):
                assert bits(f(*tensors)) == wanted
            before = stub_of(op).calls
            assert bits(f(*tensors)) == wanted, (dtype, sample)
            answered += stub_of(op).calls - before
    assert answered, "no call ran in the entry"


@pytest.mark.parametrize(
    "call",
    [
        lambda x: function_of("linalg_det")(x),
        lambda x: td.argsort(x, axis=0, descending=True),
        lambda x: td.linalg.svd(x, full_matrices=False)[1],
        lambda x: td.special.gammaln(td.abs(x)),
        lambda x: td.searchsorted(td.sort(x[0, 0]), x, "right"),
    ],
)
def test_any_layout_is_computed_natively(call):
    x = spd(3, 4, 4)
    for view in (x, x[::-1], np.swapaxes(x, -1, -2), x[:, ::2, ::2], x.astype(np.float32)[:, 1:, 1:]):
        tensor = td.asarray(view)
        with config.override(hot_calls=10**9):
            wanted = bits(call(td.asarray(view)))
        assert [bits(call(tensor)) for _ in range(4)] == [wanted] * 4


def test_failures_raise_the_error_of_the_declaration():
    for size in (3, 12):
        zero, eye = td.zeros((size, size)), td.eye(size)
        for name, text in (
            ("linalg_solve_stack", "Singular"),
            ("linalg_cholesky_lower", "positive definite"),
        ):
            f = function_of(name)
            rest = (eye,) if name == "linalg_solve_stack" else ()
            for x in (eye, eye, eye, zero, eye, zero):
                if x is eye:
                    assert f(x, *rest).tolist() == eye.tolist()
                else:
                    with pytest.raises(errors.LinearAlgebraError, match=text):
                        f(x, *rest)


def test_calls_with_history_are_recorded():
    a, b = td.asarray(spd(3, 3)).requires_grad_(), td.asarray(rng.standard_normal((3, 2))).requires_grad_()
    f = function_of("linalg_solve_stack")
    grads = []
    for _ in range(4):
        a.grad = b.grad = None
        f(a, b).sum().backward()
        grads.append((a.grad.numpy().tobytes(), b.grad.numpy().tobytes()))
    assert len(set(grads)) == 1
    values, vectors = td.linalg.eigh(a)
    (values * vectors[0]).sum().backward()
    with td.no_grad():
        assert not f(a, b).requires_grad


def test_replaced_kernel_runs_at_once():
    x = td.asarray(spd(3, 3))
    f = function_of("linalg_det")
    for _ in range(4):
        wanted = f(x).item()
    with Library("td", "IMPL") as library:
        library.impl("linalg_det", lambda self: td.asarray(7.0), "CPU")
        assert f(x).item() == 7.0
    assert f(x).item() == wanted


def test_many_layouts_share_the_slots():
    f = function_of("argsort")
    for size in itertools.chain(range(1, 200), range(199, 0, -1)):
        x = rng.integers(0, 9, size)
        for _ in range(size % 4):
            f(td.asarray(x))
        assert np.array_equal(f(td.asarray(x)).numpy(), np.argsort(x, kind="stable"))


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**66),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.integers(0, 2), max_size=3),
    st.sampled_from(
        [td.float32, object(), Ellipsis, slice(0, 2), b"left", td.ones(3), np.ones(3), td.eye(2)]
    ),
)


def copy_memory(x):
    """A copy, which a call with ``out`` may write to."""
    return x.copy() if isinstance(x, (td.Tensor, np.ndarray)) else x


@settings(max_examples=300)
@given(
    st.sampled_from(["argsort", "searchsorted", "linalg_svd", "linalg_solve_stack", "fft_c2r", "linalg_det"]),
    st.lists(ODD, max_size=4),
    st.dictionaries(
        st.sampled_from(["axis", "descending", "side", "other", "n", "full_matrices", "x"]), ODD, max_size=2
    ),
)
def test_wrong_arguments_raise_what_python_raises(name, args, kwargs):
    f = function_of(name)

    def outcome():
        try:
            return bits(f(*map(copy_memory, args), **{name: copy_memory(x) for name, x in kwargs.items()}))
        except (errors.TandemError, TypeError, ValueError, OverflowError) as error:
            return type(error), str(error)

    with config.override(hot_calls=10**9):
        wanted = outcome()
    assert [outcome() for _ in range(4)] == [wanted] * 4


def references(tensors):
    gc.collect()
    return [sys.getrefcount(x) for x in tensors] + [sys.getrefcount(x._array) for x in tensors]


def test_references_do_not_grow():
    x, zero, values = td.asarray(spd(4, 4)), td.zeros((4, 4)), td.asarray([1.0, 2.0, 3.0])
    narrow = x.astype(td.float32)
    svd, det, argsort = function_of("linalg_svd"), function_of("linalg_det"), function_of("argsort")
    search, solve = function_of("searchsorted"), function_of("linalg_solve_stack")

    def calls(count):
        for number in range(count):
            svd(narrow)
            det(x)
            argsort(values, descending=number % 2 == 0)
            search(values, values, "left" if number % 2 else "right")
            solve(x, narrow if number % 3 else x)
            if number % 100 == 0:
                for wrong in (lambda: solve(zero, x), lambda: argsort(values, axis=3), lambda: det(values)):
                    with pytest.raises(errors.TandemError):
                        wrong()

    calls(300)
    tensors = [x, zero, values, narrow]
    singles = (None, True, False, "left", "right")
    before = references(tensors)
    counts = [sys.getrefcount(value) for value in singles]
    assert smallest_block_growth(lambda: calls(5000)) < 50
    assert references(tensors) == before
    if sys.version_info < (3, 12):  # later they are immortal
        assert all(abs(sys.getrefcount(v) - n) < 100 for v, n in zip(singles, counts))


def test_threads_share_an_entry():
    x = td.asarray(spd(50, 12, 12))
    f = function_of("linalg_det")
    wanted = bits(f(x))
    found = []

    def work(seed):
        own = np.random.default_rng(seed)
        for _ in range(100):
            n = int(own.integers(2, 60))
            values = own.integers(0, 9, n)
            assert np.array_equal(td.argsort(td.asarray(values)).numpy(), np.argsort(values, kind="stable"))
            found.append(bits(f(x)) == wanted)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 400


def test_special_errstate_raises_from_the_entry():
    special = pytest.importorskip("scipy.special")
    x = td.asarray(np.array([-1.0, 2.0]))
    for _ in range(4):
        assert np.isinf(td.special.gammaln(x).numpy()[0])
    for _ in range(2):
        with special.errstate(all="raise"), pytest.raises(special.SpecialFunctionError):
            td.special.gammaln(x)
        assert np.isinf(td.special.gammaln(x).numpy()[0])


@pytest.mark.parametrize("name", ["svd", "det", "argsort", "searchsorted", "solve"])
def test_each_allocation_may_fail(name):
    hooks = pytest.importorskip("_testcapi")
    x = td.asarray(spd(12, 12))
    narrow, values = x.astype(td.float32), td.asarray([1.0, 2.0, 3.0])
    call = {
        "svd": lambda: function_of("linalg_svd")(narrow),
        "det": lambda: function_of("linalg_det")(narrow),
        "argsort": lambda: function_of("argsort")(x),
        "searchsorted": lambda: function_of("searchsorted")(values, 2),
        "solve": lambda: function_of("linalg_solve_stack")(x, x),
    }[name]
    fail_each_allocation(hooks, call)
    watched = [x, narrow, values]
    before = references(watched)
    assert fail_each_allocation(hooks, call)
    assert references(watched) == before
    call()


def test_the_entry_runs_in_the_interpreter():
    from tandem.backends.cpu.fastpath.glue import debug

    x = td.asarray([3.0, 1.0, 2.0])
    for _ in range(4):
        td.argsort(x)
    stub = stub_of(td.argsort.operator)
    before = stub.calls
    assert debug.run_entry(stub, x).tolist() == [1, 2, 0]
    assert stub.calls == before + 1


@pytest.mark.parametrize(
    "kwargs", [{"values": 7}, {"other": 7}, {"v": 7}, {"values": True}, {"other": 7, "side": "left"}]
)
def test_numbers_by_name_in_the_place_of_tensors(kwargs):
    bounds = td.arange(100)
    wanted = int(next(iter(kwargs.values())))
    for _ in range(40):
        assert td.searchsorted(bounds, **kwargs).item() == wanted


def swap_arrays(monkeypatch, name, tensor, other):
    """Let a function of `plans` find the array of another tensor, as if threads swapped it meanwhile."""
    function = getattr(plans, name)

    def swapped(*args):
        own, tensor._array = tensor._array, other._array
        try:
            return function(*args)
        finally:
            tensor._array = own

    monkeypatch.setattr(plans, name, swapped)


@pytest.mark.parametrize("name", ["_make_plan", "find_plan", "take_arrays"])
@pytest.mark.parametrize(
    "other", [td.asarray([3.0, 1.0]), td.asarray(np.arange(64.0)[::-7]), td.zeros(16, dtype=td.int64)]
)
def test_plan_is_of_the_arrays_in_its_key(monkeypatch, name, other):
    values = rng.standard_normal(16)
    x, wanted = td.asarray(values), np.argsort(values).tolist()
    swap_arrays(monkeypatch, name, x, other)
    assert [td.argsort(x).tolist() for _ in range(5)] == [wanted] * 5
    monkeypatch.undo()
    assert [td.argsort(x).tolist() for _ in range(5)] == [wanted] * 5


@pytest.mark.parametrize("other", [td.eye(3), td.eye(6), td.ones(2)])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", ["find_plan", "is_emitted"])
def test_kernel_computes_with_the_arrays_of_its_plan(monkeypatch, name, moment, other):
    values = spd(5, 5)
    x, function = td.asarray(values), getattr(plans, name)

    def swap(*args):  # as another thread could
        if moment == "before":
            x._array = other._array
        result = function(*args)
        x._array = other._array
        return result

    f = function_of("linalg_cholesky_lower").get_kernel("CPU")  # not the native entry
    wanted = bits(f(x))
    monkeypatch.setattr(plans, name, swap)
    assert bits(f(x)) == wanted


def test_plan_that_is_evicted_at_once(monkeypatch):
    class Forgetful(dict):
        def __setitem__(self, key, value):
            pass

    monkeypatch.setattr(plans, "_plans", Forgetful())
    x = td.asarray([3.0, 1.0, 2.0])
    assert [td.argsort(x).tolist() for _ in range(4)] == [[1, 2, 0]] * 4


def test_sizes_beyond_64_bits_raise_the_error_of_python():
    x = td.asarray(np.broadcast_to(np.float32(1), (1 << 30, 1 << 30)))
    for f in (function_of("linalg_det"), td.argsort, td.special.gammaln):
        with config.override(hot_calls=10**9), pytest.raises(Exception, match=r".") as wanted:
            f(x)
        for _ in range(4):
            with pytest.raises(wanted.type):
                f(x)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**63 - 1, 2**60 + 1, -3, True, 1.5, 1e300])
def test_numbers_alone_are_converted_as_in_python(number):
    def outcome():
        try:
            return bits(td.special.ndtr(number))
        except errors.ScalarOverflowError as error:
            return str(error)

    stub_of(td.special.ndtr.operator).uninstall()
    with config.override(hot_calls=10**9):
        wanted = outcome()
    for _ in range(3):
        td.special.ndtr(type(number)(1))
    assert [outcome() for _ in range(3)] == [wanted] * 3


@pytest.mark.parametrize("dtype", [td.float32, td.float64, td.complex64, td.complex128])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_matrices_that_must_be_finite(value, dtype):
    """LAPACK's eigenvalues of other matrices read outside of its memory (segmentation faults), or do not end."""
    f = function_of("linalg_eig")
    for size in range(1, 7):
        matrices = rng.standard_normal((3, 2, size, size))
        fine = td.asarray(matrices).astype(dtype)
        matrices[2, 1, -1, 0] = value
        wrong = td.asarray(matrices).astype(dtype)
        views = [(fine, wrong), (td.swapaxes(fine, -1, -2), td.swapaxes(wrong, -1, -2)), (fine[2], wrong[2])]
        for good, bad in views:
            for _ in range(3):
                f(good)
                with pytest.raises(errors.LinearAlgebraError, match="must not contain infs or NaNs"):
                    f(bad)
    jitted = td.jit(f)
    jitted(fine)
    with pytest.raises(errors.LinearAlgebraError, match="must not contain infs or NaNs"):
        jitted(wrong)
