"""Dispatch modes for some operators, below autograd, and in jitted functions."""

import threading

import numpy as np
import pytest
import tandem as td
from mode_log import Log, check_no_mode
from tandem.registry import native_type


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    check_no_mode()


def ones(*shape):
    return td.ones(shape)


# --- interest in a few operators --------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["name", "function", "operator", "full", "packet", "class"])
def test_interest_by(how):
    ops = {
        "name": ["exp"],
        "function": [td.exp],
        "operator": [td.exp.operator],
        "full": ["td::exp"],
        "packet": [td.ops.td.exp],
        "class": None,
    }[how]

    class Exp(Log):
        ops = ("exp",)

    x = ones(2)
    for _ in range(60):  # hot: the native entries step aside
        td.exp(x), x + 1
    with Exp() if ops is None else Log(ops=ops) as log:
        td.exp(x), x + 1, x.exp_()
    assert log.names == ["exp"]
    td.exp(x)
    assert log.names == ["exp"]


def test_native_entries_of_other_operators_stay():
    x = ones(2)
    for _ in range(60):
        td.exp(x), x + x, x.sum()
    others = (td.add, td.sum)
    before = [native_type.entry_of(one) for one in others]
    with Log(ops=["exp"]):
        x + x, x.sum()
        assert [native_type.entry_of(one) for one in others] == before
        assert not native_type.entry_of(td.exp)


def test_overloads_by_name():
    x = ones(2)
    with Log(ops=["td::add.Tensor"]) as one, Log(ops=["add"]) as every:
        x + x
    assert one.names == every.names == ["add"]


def test_outer_mode_sees_calls_inner_mode_skips():
    x = ones(2)
    with Log() as every, Log(ops=["exp"]) as some:
        td.exp(x), td.cos(x)
    assert every.names == ["exp", "cos"] and some.names == ["exp"]
    with Log(ops=["exp"]) as some, Log() as every:
        td.exp(x), td.cos(x)
    assert every.names == ["exp", "cos"] and some.names == ["exp"]


def test_two_interested_modes_and_one_that_ends():
    x = ones(2)
    one, two = Log(ops=["exp"]), Log(ops=["exp", "cos"])
    one.__enter__()
    with two:
        td.exp(x), td.cos(x)
    td.exp(x), td.cos(x)
    one.__exit__(None, None, None)
    td.exp(x)
    assert one.names == ["exp", "exp"] and two.names == ["exp", "cos"]


def test_bad_modes():
    with pytest.raises(TypeError, match="ops are operators"):
        Log(ops=[3]).__enter__()
    with pytest.raises(AttributeError, match="no operator"):
        Log(ops=["no_such"]).__enter__()
    with pytest.raises(ValueError, match="below is None or 'Autograd'"):
        Log(below="Tracer")


# --- below autograd ---------------------------------------------------------------------------------------


def test_below_mode_sees_parts_of_composites():
    x, w = ones(3), ones(3).requires_grad_()
    with Log(below="Autograd") as plain:
        td.softmax(x)
    with Log(below="Autograd") as recorded:
        td.softmax(w)
    assert plain.names == recorded.names == ["max", "stop_gradient", "sub", "exp", "sum", "div"]


def test_below_mode_sees_backward_pass_once():
    w = ones(3).requires_grad_()
    with Log(below="Autograd") as log:
        loss = td.exp(w).sum()
        forward = len(log.names)
        loss.backward()
    assert log.names[:forward] == ["exp", "sum"] and "mul" in log.names[forward:]
    np.testing.assert_allclose(w.grad.numpy(), np.exp(np.ones(3)), rtol=1e-6)


def test_below_sees_casts_and_transforms():
    with Log(below="Autograd") as log, td.autocast("cpu"):
        ones(2, 2) @ ones(2, 2)
    assert log.names == ["full", "full", "cast", "cast", "matmul"]
    with Log(below="Autograd") as log:
        td.grad(lambda x: (x * x).sum())(ones(2))
    assert log.names[:3] == ["full", "mul", "sum"]


def test_both_places_at_once():
    x = ones(3)
    with Log(below="Autograd") as low, Log() as high:
        x.mean()
    assert high.names == ["mean"] and low.names == ["sum", "div"]


# --- jit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"below": "Autograd"}, {"ops": ["exp"]}], ids=["all", "below", "ops"]
)
def test_a_jitted_function_runs_its_python_code(options):
    f = td.jit(lambda x: td.exp(x) + 1)
    x = ones(2)
    wanted = f(x).tolist()
    for _ in range(60):
        f(x)
    with Log(**options) as log:
        np.testing.assert_allclose(f(x).tolist(), wanted, rtol=1e-6)
        f(x)
    assert log.names == (["exp"] * 2 if "ops" in options else ["exp", "add"] * 2)
    misses = f.cache_info().misses
    assert f(x).tolist() == wanted
    f(x)
    assert f.cache_info().misses <= misses + 1 and len(log.names) in (2, 4)


def test_another_thread_keeps_its_compiled_code():
    f = td.jit(lambda x: td.exp(x) + 1)
    x, found = ones(2), []
    f(x)
    with Log(ops=["exp"]) as log:
        thread = threading.Thread(target=lambda: found.extend(f(x).tolist() for _ in range(5)))
        thread.start()
        thread.join()
        assert log.names == []
        f(x)
        assert log.names == ["exp"]
    assert found == [f(x).tolist()] * 5
