"""Folds of short rows whose elements the loop around them writes one by one."""

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath

NATIVE = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")
FOLDS = ("argmax", "argmin", "amax", "amin", "sum", "prod", "any", "all", "mean")
DTYPES = ("float64", "float32", "float16", "int64", "int32", "uint8", "bool")
STEPS = 40


def draw(dtype, size, rng):
    if dtype.startswith("float"):
        return rng.choice([np.nan, -np.inf, np.inf, 0.0, -0.0, *np.arange(-3.0, 4.0)], size).astype(dtype)
    return rng.integers(0, 2 if dtype == "bool" else 5, size).astype(dtype)


def check(body, carry, items, is_exact=True):
    """A compiled loop has the carries and results of the body called step by step; zeros may differ in sign."""
    step, results = td.jit(body), []
    expected = carry
    for number in range(len(items)):
        expected, result = step(expected, items[number])
        results.append(result.numpy())
    final, stacked = td.jit(lambda carry, items: td.scan(body, carry, items))(carry, items)
    if is_exact:
        assert stacked.numpy().tobytes() == np.stack(results).tobytes()
    np.testing.assert_array_equal(stacked.numpy(), np.stack(results))
    for one, two in zip(final, expected, strict=True):
        assert one.numpy().tobytes() == two.numpy().tobytes()


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_in_place_fold_as_copies(dtype, fold):
    rng = np.random.default_rng(0)
    for size in (2, 3, 8, 16, 17):
        positions = td.asarray(rng.integers(0, size, STEPS))

        def body(carry, x, positions=positions):
            row, number = carry
            result = getattr(td, fold)(row)
            return (row.at[positions[number]].set(x), number + 1), result

        row, items = td.asarray(draw(dtype, size, rng)), td.asarray(draw(dtype, STEPS, rng))
        check(body, (row, td.asarray(0)), items, fold not in ("amax", "amin"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_of_extrema_choose_what_is_written(dtype):
    rng = np.random.default_rng(1)
    for size in (2, 5, 16):

        def body(carry, x):
            (row,) = carry
            worst, is_known = td.argmin(row), (row == x).any()
            chosen = td.where(is_known, td.argmax(row == x), worst)
            return (row.at[chosen].set(x),), chosen

        check(body, (td.asarray(draw(dtype, size, rng)),), td.asarray(draw(dtype, STEPS, rng)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_rows_of_tables_are_updated(dtype):
    rng = np.random.default_rng(2)

    def body(carry, x):
        table, state = carry
        best = td.argmax(table[state])
        following = (3 * state + best + 1) % 6
        value = table[following].max() + x
        return (table.at[state, best].set(value), following), best

    check(body, (td.asarray(draw(dtype, (6, 4), rng)), td.asarray(2)), td.asarray(draw(dtype, STEPS, rng)))


def test_programs_read_no_row_before_its_update():
    rng = np.random.default_rng(3)

    def body(carry, x):
        row, counts = carry
        chosen = td.argmax(row)
        counts = counts.at[chosen].add(1)
        row = row.at[chosen].add((x - row[chosen]) / counts[chosen])
        return (row, counts), td.argmin(row) + 10 * td.argmax(counts)

    check(body, (td.zeros(10), td.zeros(10)), td.asarray(rng.normal(size=200).astype(np.float32)))


@pytest.mark.parametrize("fold", ("amax", "amin", "sum", "argmax"))
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_few_elements_at_positions_that_are_data(dtype, fold):
    rng = np.random.default_rng(4)
    for count in (2, 3, 5, 8, 16):
        before = td.asarray(rng.integers(1, 20, (STEPS, count)))

        def body(carry, x, before=before):
            row, number = carry
            result = getattr(td, fold)(row[td.clip(number - before[number], min=0)])
            return (row.at[number].set(x + result.astype(row.dtype)), number + 1), result

        row, items = td.asarray(rng.integers(1, 9, (2, STEPS)).astype(dtype))
        check(body, (row, td.asarray(0)), items)


def make_recurrence(before):
    def recur(x):
        return td.fori_loop(0, 40, lambda i, y: y.at[i].set(y[i - before].min() + 1), x)

    return recur


@NATIVE
def test_few_elements_are_read_one_by_one():
    text = td.jit(make_recurrence(td.asarray([1, 5, 7, 23, 50]))).lower(td.zeros(100)).llvm_ir()
    assert "masked.gather.v8" not in text and "masked.gather.v4" not in text


def test_each_of_few_positions_is_checked():
    for wrong in (-61, 101):
        recur = make_recurrence(td.asarray([1, wrong, 3]))
        with pytest.raises(IndexError, match=r"index -?\d+"):
            td.jit(recur)(td.zeros(100))
        with pytest.raises(IndexError, match=r"index -?\d+"):
            recur(td.zeros(100))
