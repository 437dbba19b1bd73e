"""Symbolic sizes compute as ints do, and raise where the answer depends on their numbers."""

import itertools
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem.errors import UndecidedError
from tandem.registry.dims import is_symbolic, select, substitute, symbol

N, M = symbol("n"), symbol("m", minimum=3, maximum=9)
NUMBERS = [{"n": n, "m": m} for n, m in itertools.product((2, 3, 7), (3, 4, 9))]
LEAVES = st.one_of(st.just(N), st.just(M), st.integers(-6, 6))
FORMS = st.recursive(
    LEAVES,
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner).map(lambda t: combine(*t)),
    max_leaves=6,
)
OPERATORS = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "floordiv", "mod")
}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def combine(sign, a, b):
    return ARITHMETIC[sign](a, b)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from("+-*"), FORMS, FORMS)
def test_arithmetic_commutes_with_substitution(sign, a, b):
    result = combine(sign, a, b)
    for numbers in NUMBERS:
        assert substitute(result, numbers) == combine(sign, substitute(a, numbers), substitute(b, numbers))


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(list(OPERATORS)), FORMS, FORMS)
def test_answers_hold_for_all_numbers(name, a, b):
    try:
        result = OPERATORS[name](a, b)
    except (UndecidedError, ZeroDivisionError):
        return
    for numbers in NUMBERS:
        one, two = substitute(a, numbers), substitute(b, numbers)
        if two or name not in ("floordiv", "mod"):
            assert substitute(result, numbers) == OPERATORS[name](one, two)


@settings(max_examples=200, deadline=None)
@given(FORMS.filter(is_symbolic), st.sampled_from([2, 6, 64]))
def test_rounding_up_commutes_with_substitution(form, multiple):
    rounded = form.round_up(multiple)
    assert rounded >= form
    assert rounded.round_up(multiple) == rounded
    for numbers in NUMBERS:
        number = substitute(form, numbers)
        assert substitute(rounded, numbers) == -(-number // multiple) * multiple


@given(FORMS, FORMS)
def test_equal_forms_have_equal_hashes(a, b):
    assert hash(a + b) == hash(b + a)
    assert a + b == b + a
    assert len({a * 3 - a, a + a}) == 1


@pytest.mark.parametrize(
    ("decide", "answer"),
    [
        (lambda: N == 1, False),
        (lambda: 2 * N == 5, False),
        (lambda: N * M > N, True),
        (lambda: M <= 9, True),
        (lambda: N + M >= 5, True),
        (lambda: bool(N), True),
        (lambda: 0 in (N, M), False),
        (lambda: (6 * N * M) // (2 * M) == 3 * N, True),
        (lambda: (2 * N + 3) // 2 == N + 1, True),
        (lambda: (N * M + M - N - 1) // (N + 1) == M - 1, True),
        (lambda: -1 % N == N - 1, True),
        (lambda: abs(1 - N) == N - 1, True),
        (lambda: N == "n", False),
    ],
)
def test_decided_questions(decide, answer):
    assert decide() is answer


@pytest.mark.parametrize(
    ("ask", "guard"),
    [
        (lambda: N == 5, "n == 5"),
        (lambda: N < M, "n < m"),
        (lambda: M >= 4, "m >= 4"),
        (lambda: N // 3, "n % 3 == 0"),
        (lambda: N * M % (N + 1), r"m\*n % n \+ 1 == 0"),
        (lambda: bool(N - 2), "n - 2 == 0"),
        (lambda: range(N), "n == a number"),
        (lambda: [0] * N, "n == a number"),
    ],
)
def test_undecided_questions_name_the_guard(ask, guard):
    with pytest.raises(UndecidedError, match=guard) as caught:
        ask()
    assert caught.value.guard in str(caught.value)


def test_results_without_symbols_are_ints():
    assert [type(value) for value in (N - N, (3 * N) // N, N * 0, 1 + N - N)] == [int] * 4
    assert not is_symbolic(N - N + 4)
    assert str(2 * N * M - 3 * N * N + 1 - M) == "2*m*n - 3*n*n - m + 1"


def test_other_objects_are_refused():
    for wrong in (1.5, "n", None):
        with pytest.raises(TypeError):
            N + wrong
        with pytest.raises(TypeError):
            operator.lt(N, wrong)
        with pytest.raises(TypeError):
            divmod(N, wrong)
    with pytest.raises(ZeroDivisionError):
        N // 0


@pytest.mark.parametrize(
    "item",
    [
        slice(None),
        slice(1, None),
        slice(None, -1),
        slice(1, -1),
        slice(None, None, -1),
        slice(-2, None, -1),
        slice(None, 0, -1),
        slice(3, 1),
        slice(0, 1),
        slice(-1, None),
    ],
)
def test_slices_select_what_python_selects(item):
    start, count, step = select(item, symbol("n", minimum=3))
    for n in (3, 4, 10):
        want = range(n)[item]
        found = [substitute(value, {"n": n}) for value in (start, count)]
        assert [found[0] + k * step for k in range(found[1])] == list(want)
