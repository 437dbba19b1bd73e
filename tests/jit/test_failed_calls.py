"""Jitted calls that raise leave their arguments as eager calls do; loops of zero iterations run nothing."""

import numpy as np
import pytest
import tandem as td

X, PLACE, MATRIX = td.asarray([1.0, 2.0]), td.asarray([5]), td.asarray([[-1.0, 0.0], [0.0, 1.0]])
SPEC = td.ShapeDtypeStruct((2,), td.float32)


def broken(x):
    raise ZeroDivisionError


# What raises, given X; and a value to go on with.
FAILURES = {
    "check": lambda x: td.check(x.sum() < 0, "bad") or x,
    "take": lambda x: td.take(x, PLACE),
    "index": lambda x: x[PLACE],
    "factor": lambda x: td.linalg.cholesky(MATRIX * x),
    "solve": lambda x: td.linalg.solve(MATRIX * 0.0, x),
    "pure callback": lambda x: td.pure_callback(broken, SPEC, x),
    "callback": lambda x: td.io_callback(broken, SPEC, x, ordered=True),
    "in a loop": lambda x: td.fori_loop(0, 3, lambda k, c: td.check(k < 2, "late") or c + 1.0, x),
    "in a branch": lambda x: td.cond(x.sum() > 0, lambda: td.take(x, PLACE)[0] + x, lambda: x),
}


def outcome(function, *arguments):
    """What a call raises, and what it leaves in its arguments."""
    given = [td.asarray(np.array(value, np.float32)) for value in arguments]
    with pytest.raises(Exception) as caught:
        function(*given, X)
    return type(caught.value), [x.tolist() for x in given], [x.storage().version > 0 for x in given]


def assert_same_outcome(function, *arguments):
    compiled = td.jit(function)
    wanted = outcome(function, *arguments)
    for _ in range(2):
        assert outcome(compiled, *arguments) == wanted
    return wanted


@pytest.mark.parametrize("failure", FAILURES)
def test_writes_before_a_failure_are_kept(failure):
    def program(y, z, x):
        y.add_(1.0)
        y[0] *= 3.0
        found = FAILURES[failure](x)
        z.add_(10.0)
        y.add_(found.sum())
        return y * z

    _, left, _ = assert_same_outcome(program, [0.0, 0.0], [1.0, 1.0])
    assert left == [[3.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("failure", FAILURES)
def test_failure_before_every_write(failure):
    def program(y, x):
        z = FAILURES[failure](x)
        y.add_(z.sum())

    _, left, written = assert_same_outcome(program, [1.0, 2.0])
    assert left == [[1.0, 2.0]] and written == [False]


@pytest.mark.parametrize("second", ["take", "check", "factor", "pure callback"])
@pytest.mark.parametrize("first", ["take", "check", "factor", "callback"])
def test_first_failure_of_the_program_counts(first, second):
    def program(y, x):
        y.add_(1.0)
        one = FAILURES[first](x)
        y.add_(1.0)
        two = FAILURES[second](x)
        y.add_(one.sum() + two.sum())

    assert_same_outcome(program, [0.0, 0.0])


def recorded(function):
    """The function with an argument that requires gradients."""
    return lambda *given: function(*given, td.asarray([2.0, 3.0], requires_grad=True))


def differentiated(function):
    """The gradient of the function by its last argument."""
    return lambda *given: td.grad(function, argnums=len(given))(*given, td.asarray([2.0, 3.0]))


def pulled(function):
    return lambda *given: td.vjp(lambda w: function(*given, w), td.asarray([2.0, 3.0]))


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("transform", [recorded, differentiated, pulled])
def test_differentiated_calls_keep_writes_before_a_failure(transform, failure):
    def program(y, z, x, w):
        y.add_(1.0)
        y[0] *= 3.0
        unused = y * 7.0  # noqa: F841 - which no result needs
        product = w * y.clone()
        found = FAILURES[failure](x)
        z.add_(10.0)
        y.add_(found.sum())
        return (product * w).sum() * z.sum()

    wanted = outcome(transform(program), [0.0, 0.0], [1.0, 1.0])
    assert wanted[1] == [[3.0, 1.0], [1.0, 1.0]]
    compiled = td.jit(program)
    for _ in range(3):
        assert outcome(transform(compiled), [0.0, 0.0], [1.0, 1.0]) == wanted


@pytest.mark.parametrize("transform", [recorded, differentiated])
def test_differentiated_calls_through_views_and_swaps(transform):
    def program(y, z, x, w):
        part = y[1:]
        part.mul_(5.0)
        kept = y.clone()
        y[:] = z
        z[:] = kept
        td.check(x.sum() < 0, "bad")
        y.add_(1.0)
        return (w * w).sum()

    compiled = td.jit(program)
    given = [1.0, 2.0, 3.0], [7.0, 8.0, 9.0]
    assert outcome(transform(compiled), *given) == outcome(transform(program), *given)


@pytest.mark.parametrize("transform", [recorded, differentiated])
def test_callbacks_of_differentiated_calls_run_once(transform):
    seen = []

    def note(x):
        seen.append(x.tolist())
        return np.asarray(x) * 2.0

    def program(y, x, w):
        y.add_(td.io_callback(note, SPEC, x, ordered=True))
        y.add_(td.io_callback(note, SPEC, y, ordered=True))
        td.check(x.sum() < 0, "bad")
        y.add_(1.0)
        return (w * w).sum()

    wanted = outcome(transform(program), [0.0, 0.0])
    calls, seen[:] = list(seen), []
    assert outcome(transform(td.jit(program)), [0.0, 0.0]) == wanted and seen == calls and len(calls) == 2


def test_writes_through_views_and_swaps():
    def program(y, z, x):
        part = y[1:]
        part.mul_(5.0)
        kept = y.clone()
        y[:] = z
        z[:] = kept
        td.check(x.sum() < 0, "bad")
        y.add_(1.0)

    _, left, _ = assert_same_outcome(program, [1.0, 2.0, 3.0], [7.0, 8.0, 9.0])
    assert left == [[7.0, 8.0, 9.0], [1.0, 10.0, 15.0]]


def test_callbacks_with_effects_run_once():
    seen = []

    def note(x):
        seen.append(x.tolist())
        return np.asarray(x) * 2.0

    def program(y, x):
        y.add_(td.io_callback(note, SPEC, x, ordered=True))
        y.add_(td.io_callback(note, SPEC, y, ordered=True))
        td.check(x.sum() < 0, "bad")
        y.add_(1.0)

    wanted = outcome(program, [0.0, 0.0])
    calls, seen[:] = list(seen), []
    assert outcome(td.jit(program), [0.0, 0.0]) == wanted and seen == calls and len(calls) == 2


def test_call_that_succeeds_writes_as_before():
    @td.jit
    def program(y, x):
        y.add_(1.0)
        td.check(x.sum() > 0, "bad")
        y.add_(x)
        return y * 2.0

    y = td.zeros(2)
    assert program(y, X).tolist() == [4.0, 6.0] and y.tolist() == [2.0, 3.0]


# -- loops without a step ----------------------------------------------------------------------------------------------
LOOPS = {
    "scan": lambda f, x: td.scan(lambda c, e: (c + f(x), None), td.zeros(2), td.zeros((0, 2)))[0],
    "map": lambda f, x: td.map(lambda e: e + f(x), td.zeros((0, 2))),
    "fori_loop": lambda f, x: td.fori_loop(0, 0, lambda k, c: c + f(x), td.zeros(2)),
    "fori_loop, given": lambda f, x: td.fori_loop(0, x[0].astype(td.int64) - 1, lambda k, c: c + f(x), x),
    "while_loop": lambda f, x: td.while_loop(lambda c: c.sum() < 0, lambda c: c + f(x), td.zeros(2)),
    "cond": lambda f, x: td.cond(x.sum() < 0, lambda: x + f(x), lambda: x),
    "inner scan": lambda f, x: td.fori_loop(0, 2, lambda k, c: LOOPS["scan"](f, x) + c, td.zeros(2)),
    "outer scan": lambda f, x: td.fori_loop(
        0, 0, lambda k, c: td.fori_loop(0, 2, lambda j, d: d + f(x), c), td.zeros(2)
    ),
}


@pytest.mark.parametrize("failure", [name for name in FAILURES if name not in ("callback",)])
@pytest.mark.parametrize("loop", LOOPS)
def test_body_that_never_runs_never_raises(loop, failure):
    def body(x):
        found = FAILURES[failure](x)
        return found if found.shape == (2,) else found.sum() + x

    def program(x):
        return LOOPS[loop](body, x)

    assert td.jit(program)(X).tolist() == program(X).tolist()


def test_invariants_still_leave_loops():
    def program(w, xs):
        return td.scan(lambda c, e: (c + w.T @ e, None), td.zeros(3), xs)[0]

    lowered = td.jit(program).lower(td.ones((3, 3)), td.ones((4, 3)))
    assert "permute" in str(lowered.kernels()) or "copy" in str(lowered.kernels())


def test_failures_inside_a_step_keep_their_order():
    def program(x, places, xs):
        def step(c, e):
            made = td.linalg.cholesky(-(e**2) * td.eye(2))
            return c + made[0] + td.take(x, places)[0], None

        return td.scan(step, x, xs)[0]

    arguments = X, td.asarray([0]), td.ones(3)
    for function in (program, td.jit(program)):
        with pytest.raises(td.errors.LinearAlgebraError):
            function(*arguments)
