"""Updates of scalars on a condition: the number that is added is chosen, and not the sum."""

import itertools

import numpy as np
import pytest
import tandem as td
from lowering_harness import graph_of
from tandem import config
from tandem.lowering.passes.pipeline import optimize

SPECIAL = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 1e-310]
UPDATES = {
    "add": lambda c, s, x: td.where(c, s + x, s),
    "add from the left": lambda c, s, x: td.where(c, x + s, s),
    "sub": lambda c, s, x: td.where(c, s - x, s),
    "mul": lambda c, s, x: td.where(c, s * x, s),
    "else": lambda c, s, x: td.where(c, s, s - x),
    "else mul": lambda c, s, x: td.where(c, s, x * s),
}
OTHERS = {
    "sub from the left": lambda c, s, x: td.where(c, x - s, s),
    "div": lambda c, s, x: td.where(c, s / x, s),
    "number": lambda c, s, x: td.where(c, s + 2.0, s),
    "another": lambda c, s, x: td.where(c, s + x, x * 2),
}


def names(function, *arrays):
    with config.override(verify=True):
        return [node.op.schema.name for node in optimize(graph_of(function, *arrays)).nodes]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", [*UPDATES, *OTHERS])
def test_values_are_those_of_the_select(name, dtype):
    update = (UPDATES | OTHERS)[name]
    compiled = td.jit(update)
    with np.errstate(all="ignore"):
        for c, s, x in itertools.product((False, True), SPECIAL, SPECIAL):
            given = td.asarray(c), td.asarray(dtype(s)), td.asarray(dtype(x))
            result, expected = compiled(*given), update(*given)
            np.testing.assert_array_equal(result.numpy(), expected.numpy(), strict=True)
            if not np.isnan(expected.numpy()):
                assert result.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize("name", UPDATES)
def test_number_is_chosen_before_the_update(name):
    found = names(UPDATES[name], np.bool_(True), np.float64(1), np.float64(2))
    assert found[0] == "where"
    assert found[1:] in (["add"], ["sub"], ["mul"])


@pytest.mark.parametrize("name", OTHERS)
def test_other_selects_stay(name):
    assert names(OTHERS[name], np.bool_(True), np.float64(1), np.float64(2))[-1] == "where"


EXTREMA = {
    "larger": lambda c, s, x: td.where(x > s, x, s),
    "larger on a condition": lambda c, s, x: td.where(c & (x > s), x, s),
    "not smaller on a condition": lambda c, s, x: td.where((s <= x) & c, x, s),
    "smaller on a condition": lambda c, s, x: td.where(td.logical_and(c, x < s), x, s),
    "not larger on a condition": lambda c, s, x: td.where(c & (s >= x), x, s),
    "the other way round": lambda c, s, x: td.where(c & (x > s), s, x),
    "a maximum on a condition": lambda c, s, x: td.where(c, td.maximum(s, x), s),
    "a minimum on a condition": lambda c, s, x: td.where(c, td.minimum(x, s), s),
}
NO_EXTREMA = {
    "either": lambda c, s, x: td.where(c | (x > s), x, s),
    "another": lambda c, s, x: td.where(c & (x > s), x + 1, s),
    "equal": lambda c, s, x: td.where(c & (x == s), x, s),
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
@pytest.mark.parametrize("name", [*EXTREMA, *NO_EXTREMA])
def test_extrema_of_integers(name, dtype):
    update = (EXTREMA | NO_EXTREMA)[name]
    compiled, limits = td.jit(update), np.iinfo(dtype)
    for c, s, x in itertools.product((False, True), *2 * [(limits.min, limits.min + 1, 3, limits.max)]):
        given = td.asarray(c), td.asarray(dtype(s)), td.asarray(dtype(x))
        assert compiled(*given).item() == update(*given).item()


ODD_CONDITIONS = {
    "a number": (np.float32(1), lambda c, s, x: td.where(td.logical_and(c, x > s), x, s)),
    "a complex number": (np.complex64(0), lambda c, s, x: td.where(td.logical_and(x > s, c), x, s)),
    "a Python bool": (np.bool_(True), lambda c, s, x: td.where((x > s) & True, x, s)),
    "a Python bool first": (np.bool_(True), lambda c, s, x: td.where(td.logical_and(True, x > s), x, s)),
}


@pytest.mark.parametrize("name", ODD_CONDITIONS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
def test_conditions_that_are_no_tensors_of_bools(name, dtype):
    c, update = ODD_CONDITIONS[name]
    limits = np.iinfo(dtype)
    for s, x in itertools.product((limits.min, 0, 16_777_217, limits.max - 1, limits.max), repeat=2):
        given = td.asarray(c), td.asarray(dtype(s)), td.asarray(dtype(x))
        assert td.jit(update)(*given).item() == update(*given).item()


@pytest.mark.parametrize("name", EXTREMA)
def test_selects_become_extrema(name):
    found = names(EXTREMA[name], np.bool_(True), np.int32(1), np.int32(2))
    assert found[-1] in ("maximum", "minimum")


@pytest.mark.parametrize("name", NO_EXTREMA)
def test_selects_that_are_no_extrema_stay(name):
    assert names(NO_EXTREMA[name], np.bool_(True), np.int32(1), np.int32(2))[-1] == "where"


@pytest.mark.parametrize("name", EXTREMA)
def test_selects_of_floats_are_no_extrema(name):
    assert names(EXTREMA[name], np.bool_(True), np.float32(1), np.float32(2))[-1] == "where"


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint16])
@pytest.mark.parametrize("name", EXTREMA)
def test_loops_that_find_extrema_on_a_condition(name, dtype):
    a = np.random.default_rng(1).integers(0, 1000, 203).astype(dtype)
    update = EXTREMA[name]

    def extremum(x):
        return td.fori_loop(1, x.shape[0], lambda i, s: update(x[i] % 3 == 0, s, x[i]), x[0])

    x = td.asarray(a)
    assert td.jit(extremum)(x).item() == extremum(x).item()


@pytest.mark.parametrize(("dtype", "shape"), [(np.int64, ()), (np.complex128, ()), (np.float64, (3,))])
def test_other_values_stay(dtype, shape):
    arrays = np.bool_(True), np.ones(shape, dtype), np.ones(shape, dtype)
    assert names(UPDATES["add"], *arrays)[-1] == "where"


def test_loops_that_update_on_a_condition():
    a = np.random.default_rng(0).standard_normal(100)

    def total(a):
        return td.fori_loop(0, 100, lambda i, s: td.where(a[i] > 0, s + a[i], s), a[0] * 0)

    x = td.asarray(a)
    expected = a[0] * 0
    for value in a:
        expected = expected + value if value > 0 else expected
    assert td.jit(total)(x).item() == expected
    np.testing.assert_array_equal(td.jit(td.grad(total))(x).numpy(), (a > 0) * 1.0)
