"""Gradients of jitted functions: memory, threads, retracing, control flow."""

import gc
import threading
import tracemalloc
import weakref

import pytest
import tandem as td
from jit_harness import assert_close, check, gradients, leaf, mlp, plain, second, values
from tandem import config, errors

# --- running ----------------------------------------------------------------------------------------------


def test_no_memory_grows():
    params, x = {"w": leaf(4, 4), "b": leaf(4)}, plain(4, 4)
    f = td.jit(mlp)

    def step():
        for p in params.values():
            p.grad = None
        f(params, x).backward()
        f(params, x)

    for _ in range(300):
        step()
    gc.collect()
    tracemalloc.start()
    for _ in range(200):
        step()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(5000 if config.flags.native else 300):
        step()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 20_000


def test_a_history_holds_no_cycle():
    f, w = td.jit(lambda w: td.exp(w) * 2.0), leaf(3)
    f(w), f(w)
    gc.collect()
    gc.disable()
    try:
        y = f(w)
        there = weakref.ref(y)
        del y
        assert there() is None
    finally:
        gc.enable()


def test_a_jitted_function_in_a_cycle_is_collected():
    def make():
        w = leaf(3)

        def f(x):
            return (x * w).sum() if cell else None

        g = td.jit(f)
        cell = [g]
        for _ in range(3):
            g(leaf(3)).backward()
            td.autograd.grad(g(leaf(3)), w, create_graph=True)
        return weakref.ref(g)

    there = make()
    gc.collect()
    assert there() is None


def test_threads():
    params, x = {"w": leaf(3, 3), "b": leaf(3)}, plain(4, 3)
    f = td.jit(mlp)
    wanted = [values(g) for g in td.autograd.grad(mlp(params, x), list(params.values()))]
    faults = []

    def work():
        try:
            for _ in range(200):
                assert_close(list(td.autograd.grad(f(params, x), list(params.values()))), wanted)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_changed_registry_traces_again():
    f, w = td.jit(lambda w: td.sin(w).sum()), leaf(3)
    for _ in range(4):
        assert_close(gradients(f, [w], w), [td.cos(w)])
    with td.Library("td", "IMPL") as lib:
        lib.impl("sin", lambda x: td.asarray(x.numpy() * 0.0 + 5.0), "CPU")
        assert f(w).item() == 15.0
    assert_close(gradients(f, [w], w), [td.cos(w)])


def test_explain_lists_residuals():
    w, x = leaf(30, 20), plain(40, 30)
    f = td.jit(lambda w, x: (lambda h: (h * h).sum())(td.tanh(x @ w)))
    f(w, x)
    text = f.explain(w, x)
    assert "kept for the backward pass" in text and "float64[40,20], 6400 bytes: tanh at" in text
    assert "computed again in the backward pass" in text and "sub at" in text
    g = td.jit(lambda w: (w * 2.0).sum())
    g(w)
    assert "nothing beside arguments and results" in g.explain(w)
    g(w.detach())
    assert "kept" not in g.explain(w.detach())


def test_checkpoint_keeps_nothing_inside():
    w, x = leaf(16, 16), plain(64, 16)

    def f(w, x):
        h = td.checkpoint(lambda w, x: td.tanh(td.tanh(x @ w) @ w))(w, x)
        return (h * h).sum()

    g = check(f, [w], w, x)
    assert g.explain(w, x).count("bytes: tanh") == 1  # the result, which is used outside


def test_control_flow():
    w = leaf(4)

    def f(w):
        carry, sums = td.scan(
            lambda c, x: (td.tanh(c * w) + x, c.sum()), w, td.ones((5, 4), dtype=td.float64)
        )
        return td.cond(w.sum() > 0.0, lambda x: (x * 2.0).sum(), lambda x: (x * x).sum(), carry) + sums.sum()

    check(f, [w], w)


def test_jitted_functions_inside_checkpoint():
    w = leaf(4)
    f = td.jit(lambda w: td.tanh(w * w))

    def g(call, w):
        return td.checkpoint(lambda w: call(call(w) * w))(w).sum()

    for _ in range(3):
        assert_close(gradients(lambda: g(f, w), [w]), gradients(lambda: g(f._fn, w), [w]))
    assert_close(second(lambda w: g(f, w), [w], w), second(lambda w: g(f._fn, w), [w], w), rtol=1e-9)
    assert_close([td.grad(lambda w: g(f, w))(w.detach())], [td.grad(lambda w: g(f._fn, w))(w.detach())])


def test_retained_graph_with_several_results():
    w = leaf(4)
    a, b = td.jit(lambda w: (td.sin(w), td.exp(w)))(w)
    a.sum().backward(retain_graph=True)
    b.sum().backward(retain_graph=True)
    (a * b).sum().backward()
    v = w.detach()
    assert_close([w.grad], [td.cos(v) + td.exp(v) + td.cos(v) * td.exp(v) + td.sin(v) * td.exp(v)])


def test_the_compiled_stage_is_the_forward_pass_alone():
    w = leaf(3)
    compiled = td.jit(lambda w: w * 2.0).lower(w).compile()
    with pytest.raises(errors.AutogradError, match="jitted function itself"):
        compiled(w)
    with td.no_grad():
        values = td.jit(lambda w: w * 2.0).lower(w).compile()(w)
    assert not values.requires_grad


def test_function_capturing_gradients_is_traced_once():
    runs, params = [], {"w": leaf(3)}

    def f(x):
        runs.append(1)
        return (x * params["w"]).sum()

    jitted, x = td.jit(f), plain(3)
    for _ in range(3):
        assert_close(gradients(jitted, params.values(), x), [x])
    assert len(runs) == 1
    unused = td.jit(lambda x: x * 2.0 if params else None)
    for _ in range(4):
        assert not unused(x).requires_grad
    assert unused.cache_info().misses == 1
