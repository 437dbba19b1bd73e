"""Updates at one position whose kernels compute the values that they write, in place."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st

STEPS = 12


def draw(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def kernels_with_stores(function, *args):
    """The kernels of the body of a function's loop, without those of its counter and copies."""
    text = td.jit(function).lower(*args).llvm_ir()
    return [line for line in text.splitlines() if "call i64 @b0_k" in line]


def in_loop(step, *carry, first=1, last=STEPS):
    """Run a step in a compiled loop and in Python; return both results."""
    jitted = td.jit(lambda *carry: td.fori_loop(first, last, lambda i, c: step(i, *c), carry))
    expected = carry
    for i in range(first, last):
        expected = step(i, *expected)
    return jitted(*carry), expected


def assert_equal_bits(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        assert result.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "step",
    [
        lambda i, a: a.at[i].set(a[i - 1] * 0.5 + 1),
        lambda i, a: a.at[:, i].set(a[:, i - 1] * 0.5 + 1),
        lambda i, a: a.at[i].add(a[0] * (a[i, 3] - a[i - 1, 2])),
        lambda i, a: a.at[i, i - 1].set(a[i - 1, i] + a[i, i]),
        lambda i, a: a.at[-i].multiply(a[i] + 1),
    ],
    ids=["row", "column", "two rows", "element", "negative"],
)
def test_one_kernel_computes_and_writes(step):
    a = td.asarray(draw(STEPS, STEPS))
    if td.config.flags.native:
        assert len(kernels_with_stores(lambda a: td.fori_loop(1, STEPS, step, a), a)) <= 2
    assert_equal_bits(*in_loop(lambda i, a: (step(i, a),), a))


@pytest.mark.parametrize(
    "step",
    [
        lambda i, a: a.at[i].set(a[:, i - 1] * 0.5 + 1),  # the row crosses the column that is read
        lambda i, a: a.at[:, i].set(a[i]),
        lambda i, a: a.at[i].set(a[i - 1][::-1] - a[i]),
        lambda i, a: a.at[i, 1:].set(a[i, :-1] + 1),
        lambda i, a: a.at[i].set(td.cumsum(a[i - 1])),
        lambda i, a: a.at[i].set(a[i - 1] / a[i - 1].sum()),
        lambda i, a: a.at[i].set(a[3] + a[td.asarray([0, 2, 1] * (STEPS // 3)), i]),
    ],
    ids=["crossed", "transposed", "reversed", "shifted", "scanned", "reduced", "gathered"],
)
def test_elements_of_other_points_are_read_before_they_are_written(step):
    assert_equal_bits(*in_loop(lambda i, a: (step(i, a),), td.asarray(draw(STEPS, STEPS))))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int64", "complex64", "bool_", "bfloat16"])
def test_dtypes(dtype):
    a = td.asarray(draw(STEPS, 5) * 3).to(getattr(td, dtype))
    change = td.logical_not if dtype == "bool_" else (lambda x: x * 2 + 1)
    assert_equal_bits(*in_loop(lambda i, a: (a.at[i].set(change(a[i - 1])),), a))


def test_value_that_others_read_is_stored():
    def step(i, a, sums):
        value = a[i - 1] * 0.5 + 1
        return a.at[i].set(value), sums + value

    assert_equal_bits(*in_loop(step, td.asarray(draw(STEPS, 5)), td.zeros(5)))


def test_old_contents_that_are_read_later_are_kept():
    def step(i, a, b):
        new = a.at[i].set(a[i - 1] * 2)
        return new, b.at[i].set(a[i] + new[i])

    assert_equal_bits(*in_loop(step, td.asarray(draw(STEPS, 5)), td.zeros((STEPS, 5))))


def test_exchanged_rows():
    def step(i, a):
        first, second = a[i - 1], a[i]
        return (a.at[i].set(first).at[i - 1].set(second * 2),)

    assert_equal_bits(*in_loop(step, td.asarray(draw(STEPS, 5))))


SLICES = {
    "part of a row": lambda a, i, v: a.at[i, 1:4].set(v[:3]),
    "part of a column": lambda a, i, v: a.at[1:4, i].set(v[:3]),
    "steps": lambda a, i, v: a.at[i, ::2].add(v[:3]),
    "backwards": lambda a, i, v: a.at[i, ::-1].set(v),
    "new axis": lambda a, i, v: a.at[:, None, i].multiply(v[:, None]),
    "rows": lambda a, i, v: a.at[td.stack([i, i + 1, i]), 2:4].add(v[:3, None] * v[1:3]),
    "one column": lambda a, i, v: a.at[td.stack([i, i]), 3].set(v[1]),
    "slice of a slice": lambda a, i, v: a.at[1:].set(a[1:].at[i, 1:4].add(v[:3])),
    "read twice": lambda a, i, v: (lambda s: a.at[1:5].set(s) + s.sum())(a[1:5].at[i].set(v)),
    "elsewhere": lambda a, i, v: a.at[1:5].set(a[:4].at[i].set(v)),
    "added": lambda a, i, v: a.at[1:5].add(a[1:5].at[i].set(v)),
}


@pytest.mark.parametrize("name", SLICES)
def test_updates_of_slices(name):
    write = SLICES[name]
    a, v = td.asarray(draw(6, 6)), td.asarray(draw(6)[::-1].copy())
    looped = td.jit(lambda a, v: td.fori_loop(-2, 3, lambda i, a: write(a, i, v), a))
    once, expected = td.jit(write), a
    for i in range(-2, 3):
        expected = write(expected, td.asarray(i), v)
        assert once(a, td.asarray(i), v).tobytes() == write(a, td.asarray(i), v).tobytes()
    assert looped(a, v).tobytes() == expected.tobytes()


@pytest.mark.skipif(not td.config.flags.native, reason="native code is off")
@pytest.mark.parametrize("name", ["part of a row", "part of a column", "steps", "backwards", "new axis"])
def test_update_of_a_slice_in_a_loop_copies_nothing(name):
    a, v = td.asarray(draw(6, 6)), td.asarray(draw(6))
    step = SLICES[name]
    text = td.jit(lambda a, v: td.fori_loop(0, 3, lambda i, a: step(a, i, v), a)).lower(a, v).llvm_ir()
    assert "_copy" not in text


def test_gradient_of_an_update_of_a_slice():
    a, v = td.asarray(draw(6, 6)), td.asarray(draw(6))

    def loss(a, v):
        return (td.fori_loop(0, 3, lambda i, a: a.at[i, 1:4].set(a[i - 1, :3] * v[:3]), a) ** 2).sum()

    for argnums in (0, 1):
        expected = td.grad(loss, argnums)(a, v)
        assert np.allclose(td.jit(td.grad(loss, argnums))(a, v), expected, rtol=1e-5)


def test_write_into_a_view_of_a_written_argument():
    @td.jit
    def write(a, i):
        view = a[1:, ::2]
        view[i] = view[i - 1] * 2
        return a

    a, b = td.asarray(draw(6, 6)), td.asarray(draw(6, 6))
    for i in (1, 2, -1):
        write(a, i)
        view = b[1:, ::2]
        view[i] = view[i - 1] * 2
    assert a.tobytes() == b.tobytes()
    with pytest.raises(td.errors.OutOfBoundsError, match="5"):
        write(a, 5)
    assert a.tobytes() == b.tobytes()


def test_position_out_of_bounds_leaves_a_written_argument():
    a = td.asarray(draw(4, 3))
    before = a.tolist()

    @td.jit
    def write(a, i, j):
        a[i] = a[j] * 2

    for positions in (4, 0), (0, 4), (-5, 1), (1, -5):
        with pytest.raises(td.errors.OutOfBoundsError):
            write(a, *positions)
        assert a.tolist() == before
    write(a, -1, 1)
    assert a[3].tolist() == [2 * x for x in before[1]]


READS = [
    lambda a, i, j: a[i],
    lambda a, i, j: a[j],
    lambda a, i, j: a[:, j],
    lambda a, i, j: a[:, i] * a[i],
    lambda a, i, j: a[i] + a[j, 2],
    lambda a, i, j: a[j][::-1],
    lambda a, i, j: td.tanh(a[2]) - a[j],
]
WRITES = [
    lambda a, i, j, value: a.at[i].set(value),
    lambda a, i, j, value: a.at[:, i].set(value),
    lambda a, i, j, value: a.at[j].add(value),
    lambda a, i, j, value: a.at[:, j].max(value),
    lambda a, i, j, value: a.at[i, 1:4].set(value[:3]),
]


@settings(deadline=None, max_examples=40)
@given(
    program=st.lists(st.tuples(st.sampled_from(READS), st.sampled_from(WRITES)), min_size=1, max_size=3),
    positions=st.lists(st.tuples(st.integers(-6, 5), st.integers(-6, 5)), min_size=3, max_size=3),
    steps=st.integers(1, 4),
)
def test_random_updates(program, positions, steps):
    def run(a, *numbers):
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        for (read, write), (i, j) in zip(program, pairs, strict=False):
            a = write(a, i, j, read(a, i, j) * 0.5 + 1)
        return a

    a, numbers = td.asarray(draw(6, 6)), [n for pair in positions for n in pair]
    expected = a
    for _ in range(steps):
        expected = run(expected, *numbers)
    looped = td.jit(lambda a, *numbers: td.fori_loop(0, steps, lambda _, a: run(a, *numbers), a))
    assert looped(a, *numbers).tobytes() == expected.tobytes()
