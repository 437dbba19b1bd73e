"""Lowered graphs and executables: outputs, memory, callbacks, scalars, analyses."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from lowering_harness import agree, graph_of, lowered, run
from lowering_harness import given as parameters
from random_programs import COMMON, inputs, programs
from tandem import config
from tandem.lowering import lower
from tandem.lowering.buffer_assignment import Assigned, Interval
from tandem.lowering.thunks import reads_and_writes
from tandem.registry.values import ALIGNMENT, align_up

RNG = np.random.default_rng(1)
X = RNG.normal(size=(4, 6)).astype(np.float32)


# -- memory ------------------------------------------------------------------------------------------------------------
@settings(max_examples=60, **COMMON)
@given(program=programs(), arrays=inputs())
def test_live_intermediates_never_overlap(program, arrays):
    with np.errstate(all="ignore"):
        found = lower(graph_of(program, *arrays))
    live = {}
    for time, step in enumerate(found.steps):
        for value in (*reads_and_writes(step)[0], *reads_and_writes(step)[1]):
            live.setdefault(value, []).append(time)
    plan = found.memory.intervals
    for i, one in enumerate(plan):
        assert one.offset % ALIGNMENT == 0 and one.offset + one.nbytes <= found.memory.workspace
        assert (one.first, one.last) == (min(live[one.value]), max(live[one.value]))
        for two in plan[:i]:
            together = one.first <= two.last and two.first <= one.last
            apart = (
                one.offset + align_up(one.nbytes) <= two.offset
                or two.offset + align_up(two.nbytes) <= one.offset
            )
            assert apart or not together, (one, two)


def test_dead_intermediates_are_reused():
    def deep(x):
        for _ in range(10):
            x = td.cumsum(x, 0)
        return x

    plan = lowered(deep, X).memory
    assert len(plan.intervals) == 9 and plan.workspace == 2 * align_up(X.nbytes)


def test_memory_analysis():
    found = lowered(lambda x: td.cumsum(td.cumsum(x, 0), 0) + td.arange(6), X).memory_analysis()
    assert found["argument"] == found["output"] == X.nbytes and found["temp"] == 2 * align_up(X.nbytes)
    assert found["constant"] == 48 and found["peak"] == sum(v for k, v in found.items() if k != "peak")


def test_cost_analysis():
    w = RNG.normal(size=(6, 5)).astype("f4")
    found = lowered(lambda x, w: td.exp(x @ w), X, w).cost_analysis()
    assert found["flops"] == 2 * 4 * 5 * 6 + 20
    assert found["bytes"] == X.nbytes + w.nbytes + 4 * 5 * 4 * 3


# -- outputs -----------------------------------------------------------------------------------------------------------
def test_arguments_and_their_views_come_back_as_such():
    same, view, part = run(lambda x: (x, td.permute(x, (1, 0)), x[1:, ::2]), X)
    assert same is X and np.shares_memory(view, X) and np.shares_memory(part, X)
    np.testing.assert_array_equal(part, X[1:, ::2])


@pytest.mark.parametrize("source", [X.T, X[::-1], X[:, ::2], X[1:, 3:], np.asfortranarray(X)], ids=str)
def test_arguments_that_are_not_contiguous(source):
    agree(lambda x: (x + 1, td.permute(x, (1, 0)), td.flip(x, 0), td.sum(x, 0)), source)


def test_views_of_results_share_their_memory():
    whole, turned = run(lambda x: (lambda e: (e, td.permute(e, (1, 0))))(td.exp(x)), X)
    assert np.shares_memory(whole, turned)


def test_constants_are_copied_for_each_call():
    found = lowered(lambda x: td.arange(3) * 2, X)
    executable, given_ = found.compile(), parameters(found.graph, [X])
    first = executable.run(given_)[0]
    first += 1
    np.testing.assert_array_equal(executable.run(given_)[0], [0, 2, 4])


def test_untraced_values_are_returned_unchanged():
    kept = td.asarray([1.0])
    assert run(lambda x: (x + 1, kept, 7), X)[1:] == [kept, 7]


def test_captured_tensors_are_read_at_each_call():
    kept = td.asarray(np.ones(6, np.float32))
    found = lowered(lambda x: x + kept, X)
    executable = found.compile()
    kept._array += 1
    np.testing.assert_array_equal(executable.run(parameters(found.graph, [X]))[0], X + 2)


# -- scalars -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("number", [2, -3, 0.1, float("nan"), float("inf"), True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "bool"])
def test_scalars_keep_their_precision_and_stay_weak(number, dtype, native):
    x = RNG.normal(size=5).astype(dtype)
    found = run(
        lambda x, n: (x * n, n - x if dtype != "bool" else x * n, td.where(x > n, x, n)),
        x,
        number,
        native=native,
    )
    from lowering_harness import close, eager

    close(
        found,
        eager(lambda x, n: (x * n, n - x if dtype != "bool" else x * n, td.where(x > n, x, n)), x, number),
        0,
    )


def test_integer_overflow_raises_at_the_call():
    x = np.zeros(3, np.int8)
    found = lowered(lambda x, n: x + n, x, 2)
    with pytest.raises(OverflowError, match="300"):
        found.compile().run([x, 300])


def test_scalar_arithmetic_is_pythons():
    agree(lambda x, n: x + (1 / n) * 3, X.astype("f8"), 7)


def test_functions_of_complex_numbers():
    agree(lambda x: td.exp(x) * 2 + x, (RNG.normal(size=5) + 1j).astype("c8"))


# -- callbacks ---------------------------------------------------------------------------------------------------------
def test_products_of_complex_numbers_run_by_callback():
    agree(lambda x: td.prod(td.exp(x) * 2 + x), (RNG.normal(size=5) + 1j).astype("c16"))


@pytest.fixture
def library():
    with td.Library("lowering_test", "DEF") as found:
        yield found


def test_callback_error_propagates_unchanged(library):
    def fail(x):
        raise KeyError("nobody catches me")

    library.define("fail(Tensor self) -> Tensor")
    library.impl("fail", fail, "CPU")
    library.impl("fail", lambda self: self, "Meta")
    found = lowered(lambda x: td.ops.lowering_test.fail(x + 1) * 2, X)
    with pytest.raises(KeyError, match="nobody catches me"):
        found.compile().run([X])


def test_a_callbacks_results_are_checked_against_its_rule(library):
    library.define("lie(Tensor self) -> Tensor")
    library.impl("lie", lambda x: x.reshape((24,)), "CPU")
    library.impl("lie", lambda self: self, "Meta")
    for native in (True, False):
        found = lowered(lambda x: td.ops.lowering_test.lie(x) * 2, X, native=native)
        with pytest.raises(td.errors.LoweringError, match=r"promises float32\[4,6\].*returned float32\[24\]"):
            found.compile().run([X])


def test_operators_without_a_declaration_run_by_callback(library):
    library.define("double(Tensor self) -> Tensor")
    library.impl("double", lambda x: td.Tensor.__add__(x, x), "CPU")
    library.impl("double", lambda self: self, "Meta")
    found = lowered(lambda x: td.ops.lowering_test.double(x + 1) * 2, X)
    np.testing.assert_allclose(found.compile().run([X])[0], (X + 1) * 4, rtol=1e-6)
    assert "without a declaration" in repr(found.kernels())


# -- products ----------------------------------------------------------------------------------------------------------
SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((1, 4), (4, 1)),
    ((3, 1), (1, 5)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((1, 3, 4), (7, 4, 2)),
    ((33, 65), (65, 17)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products(shapes, dtype):
    a, b = ((RNG.normal(size=s) * 2).astype(dtype) for s in shapes)
    agree(lambda a, b: a @ b, a, b)


@pytest.mark.parametrize(
    "shapes", [s for s in SHAPES if len(s[0]) > 1 and len(s[1]) > 1 and 0 not in s[0]], ids=str
)
@pytest.mark.parametrize("left", range(4))
@pytest.mark.parametrize("right", range(4))
def test_products_of_views(shapes, left, right):
    a, b = (RNG.normal(size=s) for s in shapes)

    def turned(x, how):
        order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
        return (x, x.transpose(order), x[..., ::-1, :], np.repeat(x, 2, -1))[how]

    def seen(x, how):
        order = (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2)
        return (
            lambda: x,
            lambda: td.permute(x, order),
            lambda: td.flip(x, len(x.shape) - 2),
            lambda: x[..., ::2],
        )[how]()

    one, two = (np.ascontiguousarray(turned(x, how)) for x, how in ((a, left), (b, right)))
    agree(lambda a, b: seen(a, left) @ seen(b, right), one, two)


# -- everything else ---------------------------------------------------------------------------------------------------
def test_nothing_is_emitted_without_native_code():
    found = lowered(lambda x: x + 1, X, native=False)
    assert {row.choice for row in found.kernels()} == {"interpreted"}
    with (
        config.override(native=False),
        pytest.raises(td.errors.BackendUnavailableError, match="TANDEM_NATIVE"),
    ):
        found.llvm_ir()


def test_code_generation_is_deterministic():
    texts = {lowered(lambda x: td.softmax(x) + 1, X).llvm_ir() for _ in range(3)}
    assert len(texts) == 1 and "define i32 @tandem_main" in texts.pop()


def test_executables_are_freed_and_may_run_in_threads():
    from concurrent.futures import ThreadPoolExecutor

    executable = lowered(lambda x: td.cumsum(td.softmax(x), 1) * 2, X).compile()
    wanted = executable.run([X])[0]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: executable.run([X])[0], range(200)):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
def test_equal_kernels_are_written_once():
    def writes(x):
        for row in range(1, 20):
            x = x.at[row, 1:].set(x[row - 1, :-1] * 0.5 + 1)
        return x

    x = np.arange(20 * 50, dtype=np.float32).reshape(20, 50)
    lowered = td.jit(writes).lower(td.asarray(x))
    kernels = [
        line for line in lowered.llvm_ir().splitlines() if line.startswith("define") and "%scratch" in line
    ]
    assert len(lowered.kernels().steps) >= 19
    assert len(kernels) <= 4
    assert np.array_equal(td.jit(writes)(td.asarray(x)).numpy(), writes(td.asarray(x)).numpy())


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
@pytest.mark.parametrize("numbers", [(0.0, -0.0), (1.0, float("nan")), (2.0, 3.0)], ids=str)
def test_kernels_with_other_constants_differ(numbers):
    f = td.jit(lambda x: [td.sum(td.copysign(x, number), 0) for number in numbers])
    x = td.ones((3, 40))
    for one, number in zip(f(x), numbers, strict=True):
        assert np.array_equal(one.numpy(), np.copysign(x.numpy(), number).sum(0), equal_nan=True)


# -- long graphs -------------------------------------------------------------------------------------------------------
def _long_program(x, k):
    total, small = x[0], x[1] + k
    for n in range(520):
        x = x.at[n % 6 + 1].set(x[n % 7] * small + n)
        total = total + x[n % 8]
        if n % 100 == 50:
            small = td.fori_loop(0, 3, lambda i, s: s * 0.5 + i, small)
            x = td.jit(lambda v: td.scan(lambda c, row: (c + row, c), v[0], v)[1])(x)
            total = total + x[k]
    return total, x, small


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
def test_long_graphs_are_several_functions():
    x, k = td.asarray(np.linspace(0, 1, 8, dtype="f4")), td.asarray(2)
    lowered = td.jit(_long_program).lower(x, k)
    assert len(lowered._lowered.steps) > 512 and "_part3(" in lowered.llvm_ir()
    for found, wanted in zip(td.jit(_long_program)(x, k), _long_program(x, k), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
def test_failed_check_in_a_later_part_raises():
    with pytest.raises(td.errors.OutOfBoundsError, match="index 9"):
        td.jit(_long_program)(td.zeros(8), td.asarray(9))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 300)), max_size=30))
@settings(deadline=None)
def test_intervals_get_the_lowest_offset_that_fits(drawn):
    wanted = []
    intervals = [Interval(None, min(a, b), max(a, b), n) for a, b, n in drawn]
    assigned = Assigned(intervals)
    for one in intervals:
        offset = 0
        overlapping = [o for o in wanted if o.first <= one.last and one.first <= o.last]
        for other in sorted(overlapping, key=lambda o: o.offset):
            if offset + align_up(one.nbytes) <= other.offset:
                break
            offset = max(offset, other.offset + align_up(other.nbytes))
        wanted.append(one._replace(offset=offset))
        assigned.assign(one)
    assert assigned.intervals == wanted


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
def test_function_that_occurs_often_is_called():
    def chain(x, count):
        for _ in range(count):
            x = td.tanh(td.sin(x)) * 1.5 + td.log(td.exp(x) + 1)
        return x

    for dtype in ("float32", "float64"):
        x = td.asarray(np.linspace(-1, 1, 37, dtype=dtype))
        often = td.jit(lambda x: chain(x, 40)).lower(x).llvm_ir()
        assert "_shared(" in often and len(often) < 250_000
        assert "_shared(" not in td.jit(lambda x: chain(x, 2)).lower(x).llvm_ir()
        found, wanted = td.jit(lambda x: chain(x, 40))(x), chain(x, 40)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
