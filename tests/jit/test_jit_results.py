"""Jitted functions: layouts, results, variables, gradients and the cache."""

import numpy as np
import pytest
import tandem as td
from jit_arguments import check, tensor
from tandem import config, errors
from tandem.jit.api import jit

# --- layouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "view",
    [lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[:0], lambda a: a[0, 0]],
)
def test_layouts(view):
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    given = view(base)
    f = jit(lambda x: td.exp(x * 0.1) + x.sum())
    for leaf in (td.asarray(given), np.asarray(given)):
        check(f(leaf), np.exp(given * np.float32(0.1)) + given.sum())


def test_contiguity_is_a_specialization():
    f = jit(lambda x: x + 1)
    x = tensor(3, 3)
    f(x), f(x.T), f(x)
    assert f.cache_info() == (1, 2, 2)


# --- results ----------------------------------------------------------------------------------------------


def test_a_returned_argument_is_the_same_object():
    f = jit(lambda x, y: (y, x, x + y))
    x, y = tensor(2), tensor(2)
    for _ in range(3):
        out = f(x, y)
        assert out[0] is y
        assert out[1] is x
        check(out[2], [2.0, 4.0])


def test_a_returned_captured_tensor_is_the_same_object():
    w = tensor(2)
    f = jit(lambda x: (w, x + w))
    assert f(tensor(2))[0] is w
    assert f(tensor(2))[0] is w


@pytest.mark.parametrize(
    "view", [lambda x: x.T, lambda x: x[1], lambda x: x.reshape((-1,)), lambda x: x[::-1, 1:].T]
)
def test_returned_view_of_argument_shares_its_storage(view):
    x = tensor(3, 4)
    f = jit(lambda x: (view(x), x.sum()))
    for _ in range(3):
        found = f(x)[0]
        np.testing.assert_array_equal(found.numpy(), view(x).numpy())
        assert np.shares_memory(found.numpy(), x.numpy())
    found += 1
    np.testing.assert_array_equal(found.numpy(), view(x).numpy())


@pytest.mark.parametrize(
    "copy", [lambda x: x.T.reshape(-1), lambda x: td.tile(x, 2), lambda x: td.repeat(x, 3, 0)[1:].T]
)
def test_reshape_that_copies_an_argument(copy):
    x = tensor(3, 4)
    f = jit(copy)
    for _ in range(3):
        result = f(x)
        np.testing.assert_array_equal(result.numpy(), copy(x).numpy())
        assert not np.shares_memory(result.numpy(), x.numpy())
    result += 1
    np.testing.assert_array_equal(f(x).numpy(), copy(x).numpy())


def test_strides_decide_whether_a_reshape_copies():
    x = tensor(3, 4)
    f = jit(lambda x: x.T.reshape(-1))
    for given, shares in ((x, False), (x.T, True), (x, False)):
        assert np.shares_memory(f(given).numpy(), x.numpy()) == shares
        np.testing.assert_array_equal(f(given).numpy(), given.numpy().T.reshape(-1))


def test_gradient_of_a_reshape_that_copies():
    x, weights = tensor(2, 3).requires_grad_(), tensor(12)
    for _ in range(3):
        x.grad = None
        (jit(lambda x: td.tile(x, 2).reshape(-1))(x) * weights).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), weights.numpy().reshape(2, 2, 3).sum(1))


def test_a_view_of_an_intermediate():
    f = jit(lambda x: ((x * 2).T, (x * 2)[0]))
    turned, row = f(tensor(2, 3))
    check(turned, [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]])
    check(row, [2.0, 4.0, 6.0])
    turned += 1
    check(row, [2.0, 4.0, 6.0])


def test_one_result_twice_is_one_object():
    def f(x):
        y = x * 2
        return y, {"again": y}

    one, two = jit(f)(tensor(2))
    assert two["again"] is one


@pytest.mark.parametrize(
    "same", [lambda x: x * 1, lambda x: +x, lambda x: x + 0, lambda x: x.astype(x.dtype)]
)
def test_new_result_shares_no_memory_with_arguments(same):
    f = jit(same)
    for dtype in (np.float32, np.int32):
        x = tensor(4, dtype=dtype)
        for _ in range(3):
            y = f(x)
            y.add_(1)
            np.testing.assert_array_equal(x.numpy(), [1, 2, 3, 4])


def test_results_are_fresh_at_each_call():
    f = jit(lambda x: (x + 1, td.ones((2,))))
    one, two = f(tensor(2)), f(tensor(2))
    one[0].add_(5)
    one[1].add_(5)
    check(two[0], [2.0, 3.0])
    check(two[1], [1.0, 1.0])
    check(f(tensor(2))[1], [1.0, 1.0])


def test_constants_and_no_tensors():
    f = jit(lambda n: (n, n + 1, "x", None, 2.5))
    assert f(3) == (3, 4, "x", None, 2.5)
    assert f(5) == (5, 6, "x", None, 2.5)
    assert jit(lambda: None)() is None
    check(jit(lambda: td.zeros((2,)) + 1)(), [1.0, 1.0])


def test_zero_d_results_are_tensors():
    assert jit(lambda x: x.sum())(tensor(3)).shape == ()


# --- variables --------------------------------------------------------------------------------------------

SCALE = 2.0
WEIGHT = td.asarray(np.ones(2, np.float32))


def helper(x):
    return x * SCALE


def test_global_number_is_guarded(monkeypatch):
    f = jit(lambda x: helper(x))
    check(f(tensor(2)), [2.0, 4.0])
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert "global SCALE was 2.0, now 3.0" in f.explain(tensor(2))
    check(f(tensor(2)), [3.0, 6.0])


def test_global_tensor_is_read_at_each_call(monkeypatch):
    f = jit(lambda x: x + WEIGHT)
    check(f(tensor(2)), [2.0, 3.0])
    WEIGHT.add_(1)
    check(f(tensor(2)), [3.0, 4.0])
    assert f.cache_info() == (1, 1, 1)
    WEIGHT.sub_(1)
    monkeypatch.setitem(globals(), "WEIGHT", tensor(2))
    check(f(tensor(2)), [2.0, 4.0])
    assert f.cache_info().misses == 2


def test_closure_variable_is_guarded():
    rate = 1.0

    @jit
    def f(x):
        return x * rate

    check(f(tensor(2)), [1.0, 2.0])
    rate = 10.0
    check(f(tensor(2)), [10.0, 20.0])
    rate = 1.0


def test_captured_tensor_that_starts_to_need_a_gradient():
    w = tensor(2)
    f = jit(lambda x: x * w)
    f(tensor(2))
    w.requires_grad_()
    f(tensor(2)).sum().backward()
    check(w.grad, [1.0, 2.0])
    with td.no_grad():
        assert not f(tensor(2)).requires_grad


def test_side_effects_on_a_global_do_not_retrace(monkeypatch):
    monkeypatch.setitem(globals(), "COUNT", 0)

    def f(x):
        global COUNT
        COUNT += 1
        return x + 1

    g = jit(f)
    g(tensor(2)), g(tensor(2))
    assert g.cache_info() == (1, 1, 1)


# --- gradients --------------------------------------------------------------------------------------------


def loss(w, x):
    return ((x @ w) ** 2).sum()


def test_grad_inside():
    w, x = tensor(3, 2), tensor(4, 3)
    value, gradient = jit(lambda w, x: td.value_and_grad(loss)(w, x))(w, x)
    check(value, loss(w, x).numpy())
    check(gradient, td.grad(loss)(w, x).numpy())


def test_a_jitted_function_inside_a_jitted_gradient():
    inner = jit(loss)
    w, x = tensor(3, 2), tensor(4, 3)
    check(jit(lambda w, x: td.grad(inner)(w, x))(w, x), td.grad(loss)(w, x).numpy())


def test_tensor_that_requires_grad():
    f = jit(lambda x: x * 2)
    x = td.asarray([1.0, 2.0], requires_grad=True)
    assert f(x).requires_grad and not f(x.detach()).requires_grad
    assert f.cache_info() == (0, 2, 2)
    check(f(x.detach()), [2.0, 4.0])
    with td.no_grad():
        assert not f(x).requires_grad


def test_under_an_outer_grad():
    x = tensor(2)
    assert td.grad(jit(lambda w: (w * w).sum()))(x).tolist() == (2 * x).tolist()


def test_result_that_belongs_to_an_outer_grad():
    def outer(v):
        return jit(lambda x: (x * v).sum())(tensor(2))

    assert td.grad(outer)(tensor(2)).tolist() == tensor(2).tolist()


def test_write_after_save_is_noticed():
    def f(w):
        y = td.exp(w)
        y += 1
        return (y * y).sum()

    for g in (td.grad(f), jit(lambda w: td.grad(f)(w))):
        with pytest.raises(errors.VersionError, match="exp"):
            g(tensor(2))


# --- the cache --------------------------------------------------------------------------------------------


def test_hits_and_misses():
    f = jit(lambda x: x + 1)
    for shape in ((2,), (2,), (3,), (2,), (2, 2)):
        f(tensor(*shape))
    assert f.cache_info() == (2, 3, 3)
    f.cache_clear()
    assert f.cache_info() == (0, 0, 0)
    check(f(tensor(2)), [2.0, 3.0])


def test_limit_of_specializations():
    f = jit(lambda x: x + 1)
    with config.override(specializations=3):
        for n in range(1, 8):
            f(tensor(n))
        assert f.cache_info() == (0, 7, 3)
        f(tensor(7)), f(tensor(1))
        assert f.cache_info() == (1, 8, 3)


def test_failing_call_leaves_cache_unchanged():
    f = jit(lambda x, y: x + y)
    f(tensor(2), tensor(2))
    before = f.cache_info()
    with pytest.raises(ValueError, match="broadcast"):
        f(tensor(2), tensor(3))
    assert f.cache_info() == before
    check(f(tensor(2), tensor(2)), [2.0, 4.0])


def test_registering_a_kernel_retraces():
    f = jit(lambda x: td.exp(x))
    check(f(tensor(2)), np.exp([1.0, 2.0]))
    with td.Library("td", "IMPL") as library:
        library.impl("exp", lambda x: x * 0.0, "CompositeImplicit")
        library.impl("exp", td.ops.td.exp.default.registered(td.DispatchKey.CPU).fn, "CPU")
        f(tensor(2))
        assert f.cache_info().misses == 2
    check(f(tensor(2)), np.exp([1.0, 2.0]))


def test_registering_elsewhere_does_not_retrace():
    f = jit(lambda x: td.exp(x))
    f(tensor(2))
    with td.Library("jittest", "DEF") as library:
        library.define("other(Tensor x) -> Tensor")
        library.impl("other", lambda x: x, "CPU")
        f(tensor(2))
    f(tensor(2))
    assert f.cache_info() == (2, 1, 1)


def test_no_grad_is_another_dispatch_state():
    f = jit(lambda x: x + 1)
    f(tensor(2))
    with td.no_grad():
        assert "dispatch state was" in f.explain(tensor(2))
        check(f(tensor(2)), [2.0, 3.0])
