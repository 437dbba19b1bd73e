"""Loops and branches as JAX and PyTorch programs use them, with predicates that differ within a batch."""

import numpy as np
import pytest
import tandem as td


def safe_root(x):
    return td.cond(x < 1e-3, lambda _: 1e-3, lambda _: td.sqrt(x), ())


def safe_root_of_operand(x):
    return td.cond(x < 1e-3, lambda x: 0.0 * x, td.sqrt, x)


X = td.asarray([0.0, 4.0, 0.0])
SLOPES = [0.0, 0.25, 0.0]


@pytest.mark.parametrize("f", [safe_root, safe_root_of_operand], ids=["closure", "operand"])
def test_a_branch_not_taken_gives_no_nan(f):
    """All branches are computed for all examples; the infinite slope of one at 0 must not reach those of the other."""

    def loss(x):
        return td.vmap(f)(x).sum()

    for gradient in (td.grad(loss), td.jit(td.grad(loss)), td.grad(td.jit(loss)), td.vmap(td.grad(f))):
        assert gradient(X).tolist() == SLOPES
    assert td.jvp(loss, (X,), (td.ones(3),))[1].item() == 0.25
    assert td.jit(td.vmap(td.grad(td.grad(f))))(td.asarray([0.0, 4.0])).tolist() == [0.0, -0.03125]


def test_switch_index_out_of_range_for_some_examples():
    branches = [lambda x: x, lambda x: 2.0 * x, lambda x: x * x]

    def f(i, x):
        return td.switch(i, branches, x)

    i, x = td.asarray([-7, 0, 1, 2, 99]), td.asarray([3.0, 3.0, 3.0, 3.0, 3.0])
    want = [3.0, 3.0, 6.0, 9.0, 9.0]
    assert td.vmap(f)(i, x).tolist() == want
    assert td.jit(td.vmap(f))(i, x).tolist() == want
    slopes = [1.0, 1.0, 2.0, 6.0, 6.0]
    for gradient in (td.vmap(td.grad(f, 1)), td.grad(lambda i, x: td.vmap(f)(i, x).sum(), 1)):
        assert gradient(i, x).tolist() == slopes
        assert td.jit(gradient)(i, x).tolist() == slopes


def test_two_batches_of_choices():
    def f(p, x, y):
        return td.cond(p, lambda x, y: x * y, lambda x, y: x - y, x, y)

    p, x, y = td.asarray([True, False]), td.asarray([2.0, 3.0]), td.asarray([5.0, 7.0, 11.0])
    both = td.vmap(td.vmap(f, (None, None, 0)), (0, 0, None))
    want = [[10.0, 14.0, 22.0], [-2.0, -4.0, -8.0]]
    assert both(p, x, y).tolist() == want
    assert td.jit(both)(p, x, y).tolist() == want
    for which, slopes in ((1, [23.0, 3.0]), (2, [1.0, 1.0, 1.0])):
        for gradient in (
            td.grad(lambda p, x, y: both(p, x, y).sum(), which),
            td.jit(td.grad(lambda p, x, y: both(p, x, y).sum(), which)),
        ):
            np.testing.assert_array_equal(np.asarray(gradient(p, x, y)), slopes)


def test_axis_index_in_a_loop():
    def f(x):
        return td.while_loop(lambda x: x < td.axis_index("i"), lambda x: x + 2, x)

    def g(x):
        return td.scan(lambda c, _: (c + td.axis_index("i"), td.psum(c, "i")), x, None, 3)

    x, want = td.asarray([0, 0, 0, 0]), [0, 2, 2, 4]
    for way in (
        td.vmap(f, axis_name="i"),
        td.jit(td.vmap(f, axis_name="i")),
        td.vmap(td.jit(f), axis_name="i"),
        td.jit(td.vmap(td.jit(f), axis_name="i")),
    ):
        assert way(x).tolist() == want
    alone = td.jit(f)
    assert td.vmap(lambda _, x: alone(x), in_axes=(0, None), axis_name="i")(x, 0).tolist() == want
    for way in (
        td.vmap(g, axis_name="i"),
        td.jit(td.vmap(g, axis_name="i")),
        td.vmap(td.jit(g), axis_name="i"),
    ):
        last, sums = way(x)
        assert last.tolist() == [0, 3, 6, 9] and sums[0].tolist() == [0, 6, 12]


# -- carries, conditions and options that do not fit -------------------------------------------------------------------
MISFITS = {
    "a bool for a float": (lambda c: True, 0.0),
    "a float for a bool": (lambda c: 1.5, True),
    "a bool for an int": (lambda c: c < 1, 0),
    "another structure": (lambda c: (c, c), 0.0),
}


@pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", MISFITS)
def test_mismatched_carry_raises_in_first_step(name, way):
    body, init = MISFITS[name]
    with pytest.raises(TypeError, match=r"the carry that the body takes"):
        way(lambda: td.while_loop(lambda c: True, body, init))()
    with pytest.raises(TypeError, match=r"the carry that the body takes"):
        way(lambda: td.scan(lambda c, _: (body(c), None), init, None, 3))()


@pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("given", [1.0, (True,), None])
def test_condition_that_is_not_a_bool(given, way):
    with pytest.raises(TypeError, match="the condition must be a bool"):
        way(lambda x: td.while_loop(lambda c: given, lambda c: c, x))(td.asarray(0.0))


def test_unroll_of_fori_loop():
    for unroll in (None, 0, 2, True, False):
        assert td.fori_loop(0, 5, lambda i, c: c + i, 0, unroll=unroll).item() == 10
    assert td.fori_loop(0, td.asarray(5), lambda i, c: c + i, 0, unroll=False).item() == 10
    assert td.fori_loop(np.int16(0), np.int64(5), lambda i, c: c + i, 0, unroll=2).item() == 10
    for upper, unroll in ((5, -1), (5, 1.5), (td.asarray(5), 2)):
        with pytest.raises(ValueError, match="unroll"):
            td.fori_loop(0, upper, lambda i, c: c + i, 0, unroll=unroll)


# -- examples that go different ways -----------------------------------------------------------------------------------
WAYS = pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])


@WAYS
def test_value_unchanged_by_branches_is_not_batched(way):
    def f(p, x):
        return td.cond(p, lambda a: (a, 3.0 * a), lambda a: (a, 2.0 * a), x)

    found = way(td.vmap(f, in_axes=(0, None), out_axes=(None, 0)))(td.asarray([True, False]), td.asarray(2.0))
    assert td.tree.map(lambda x: x.tolist(), found) == (2.0, [6.0, 4.0])

    def g(p, x):
        return td.cond(p, *[lambda a: td.scan(lambda c, _: (c, None), a, None, 1)[0]] * 2, x)

    assert (
        way(td.vmap(g, in_axes=(0, None), out_axes=None))(td.asarray([True, False]), td.asarray(2.0)).item()
        == 2
    )


@WAYS
def test_value_unchanged_by_steps_is_not_batched(way):
    def f(n, x):
        return td.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1]), (td.asarray(0), x))

    found = way(td.vmap(f, in_axes=(0, None), out_axes=(0, None)))(td.asarray([1, 2]), td.asarray(2.0))
    assert td.tree.map(lambda x: x.tolist(), found) == ([1, 2], 2.0)


@WAYS
def test_callback_is_skipped_for_examples_not_reaching_it(way):
    calls = []

    def seen(x):
        return td.io_callback(lambda a: (calls.append(a), a)[1], td.TensorSpec((), td.float32), x)

    programs = [
        lambda x: td.cond(x > 1, seen, lambda a: a, x),
        lambda x: td.while_loop(lambda c: c < 2, lambda c: seen(c) + 1, x),
    ]
    for program in programs:
        with pytest.raises(td.errors.UnsupportedError, match="io_callback inside would also be called"):
            way(td.vmap(program))(td.asarray([1.0, 2.0]))
    assert calls == []


@pytest.mark.parametrize("name", ["cond", "while_loop"])
def test_gradients_come_from_what_an_example_runs(name):
    programs = {
        "cond": lambda v: td.cond(v > 0, td.sqrt, lambda a: a * 0.0 + 1.0, v),
        "while_loop": lambda v: td.while_loop(
            lambda c: c[0] < 1, lambda c: (c[0] + 1, td.sqrt(c[1])), (td.where(v > 0, 0, 1), v)
        )[1],
    }
    f = td.vmap(programs[name])
    x = td.asarray([0.0, 4.0]).requires_grad_()
    f(x).sum().backward()
    wanted = [0.0, 0.25] if name == "cond" else [1.0, 0.25]
    assert x.grad.tolist() == wanted
    assert td.grad(lambda x: f(x).sum())(x.detach()).tolist() == wanted


# -- NumPy's functions that need no data -------------------------------------------------------------------------------
TRANSFORMS = {
    "jit": td.jit,
    "vmap": lambda f: td.vmap(f),
    "jvp": lambda f: lambda x: td.jvp(f, (x,), (x,))[0],
    "grad": lambda f: lambda x: td.value_and_grad(lambda x: f(x).sum())(x)[0],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_numpy_shape_and_dtype_functions_accept_tracers(name):
    seen = []

    def f(x):
        seen.append((np.shape(x), np.ndim(x), np.size(x), np.result_type(x), np.iscomplexobj(x)))
        return np.sum(x, axis=0) + np.max(x) + np.mean(x, axis=-1, keepdims=True)[0]

    TRANSFORMS[name](f)(td.ones((2, 3, 4)))
    shape = (3, 4) if name == "vmap" else (2, 3, 4)
    assert seen[0] == (shape, len(shape), int(np.prod(shape)), np.float32, False)


# -- linearize where there is no reverse mode --------------------------------------------------------------------------
def test_linearize_supports_forward_only_functions():
    f = td.jit(lambda x: td.while_loop(lambda c: c < 10.0, lambda c: c * x, td.asarray(1.0)))
    value, push = td.linearize(f, 2.0)
    assert value.item() == 16.0 and push(1.0).item() == 32.0 and push(2.0).item() == 64.0
    value, push, aux = td.linearize(lambda x, n: (f(x) * n, x * 2), 2.0, 3, has_aux=True)
    assert (value.item(), push(1.0, None).item(), aux.item()) == (48.0, 96.0, 4.0)
    assert td.jit(push)(1.0, None).item() == 96.0


@pytest.mark.parametrize("callback", [td.io_callback, td.pure_callback], ids=["io", "pure"])
def test_linearize_refuses_at_once_what_has_no_derivative(callback):
    def f(x):
        return callback(lambda a: a, td.TensorSpec((), td.float32), x)

    with pytest.raises(td.errors.NotDifferentiableError, match="it calls a Python function"):
        td.linearize(f, td.asarray(1.0))
    assert td.linearize(lambda x: x * f(td.stop_gradient(x)), td.asarray(3.0))[1](1.0).item() == 3.0


def test_fori_loop_of_any_int64_bounds():
    class Stop(Exception):
        pass

    def stop_soon(i, val):
        if val[0] > 2:
            raise Stop(int(i))
        return val + 1

    for lower, upper in ((0, 2**62), (-(2**62), 2**62), (-(2**63), 2**63 - 1)):
        with pytest.raises(Stop, match=str(lower + 3)):
            td.fori_loop(lower, upper, stop_soon, td.zeros(2))
        assert td.jit(lambda x, a=lower, b=upper: td.fori_loop(a, b, lambda i, v: v + 1, x)).trace(td.ones(2))
    assert td.fori_loop(2**63 - 3, 2**63 - 1, lambda i, v: v + i, 0).item() == -5
    for bounds in ((0, 2**63), (-(2**63) - 1, 0), (2**70, 2**70 + 3)):
        with pytest.raises(td.errors.ScalarOverflowError, match=r"fori_loop: (lower|upper)=.* an int64"):
            td.fori_loop(*bounds, lambda i, v: v, td.ones(2))
