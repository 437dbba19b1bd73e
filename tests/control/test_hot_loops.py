"""Eager loops that are compiled when hot: the results of Python loops, and Python loops where steps have effects."""

import functools
import gc
import math
import operator
import sys
import threading
import time
from typing import NamedTuple

import numpy as np
import positional_programs
import pytest
import tandem as td
from hot_loop_checks import XS, W, bits, check, compiled, fresh, rng
from positional_programs import difference
from tandem import config
from tandem.control import hot_loops
from tandem.control.captured_values import Captures, NoKey

pytestmark = [
    pytest.mark.skipif(not config.flags.native, reason="native code is off"),
    pytest.mark.usefixtures(fresh.__name__),
]
SCALE = 0.5


class Parameters(NamedTuple):
    weight: object
    bias: object


def affine(weight, x):
    return td.tanh(x @ weight) * SCALE


def closure(weight, scale):
    def step(h, x):
        h = td.tanh(h @ weight + x) * scale
        return h, {"sum": h.sum(), "h": h}

    return step


PARAMETERS = {"w": W, "parts": [td.ones(3), (td.zeros(3), 2)]}
LOOPS = {
    "scan": lambda: td.scan(closure(W, 0.5), td.zeros(3), XS),
    "reverse": lambda: td.scan(closure(W, 0.5), td.zeros(3), XS, reverse=True),
    "numbers": lambda: td.scan(lambda c, x: (c * 0.5 + x.sum(), c), 1.0, XS),
    "integers": lambda: td.scan(lambda c, x: (c + 1, None), 0, None, 9),
    "widened": lambda: td.scan(lambda c, x: (c + x[0], c), 1, XS),
    "globals": lambda: td.scan(lambda h, x: (affine(W, h) + x, math.sqrt(2.0) * h), td.ones(3), XS),
    "trees": lambda: td.scan(
        lambda c, x: ((x @ PARAMETERS["w"] + c[1]["a"], {"a": c[0] * PARAMETERS["parts"][1][1]}), c[0]),
        (td.zeros(3), {"a": td.ones(3)}),
        XS,
    ),
    "named tuple": lambda: td.scan(
        lambda p, x: (Parameters(p.weight * 0.9 + x, p.bias), p.bias), Parameters(XS[0], XS[1]), XS
    ),
    "partial": lambda: td.scan(functools.partial(lambda w, h, x: (h @ w + x, None), W), td.zeros(3), XS),
    "fori": lambda: td.fori_loop(2, 40, lambda i, x: x * 0.9 + i, td.ones(2)),
    "fori reads": lambda: td.fori_loop(1, 12, lambda i, x: x.at[i].set(XS[i] * x[i - 1] + 1), XS),
    "fori writes": lambda: td.fori_loop(1, 12, write_row, td.zeros((12, 3))),
    "fori tensor": lambda: td.fori_loop(0, td.asarray(30), lambda i, x: td.sin(x) + i, td.ones(2)),
    "while": lambda: td.while_loop(
        lambda s: s[0] < 50, lambda s: (s[0] + 1, td.cos(s[1]) * 1.1), (0, td.ones(3))
    ),
    "map": lambda: td.map(lambda x: td.exp(x) @ W, XS),
    "nested": lambda: td.fori_loop(
        0, 5, lambda i, x: td.scan(lambda c, row: (c + row * i, None), x, XS)[0] * 0.1, td.zeros(3)
    ),
    "branch": lambda: td.scan(
        lambda c, x: (td.cond(c.sum() > 1, lambda c: c * 0.5, lambda c: c + x, c), c), XS[0], XS
    ),
    "gradient": lambda: td.scan(
        lambda q, x: (q - 0.1 * td.grad(lambda q: (td.sin(q) ** 2).sum())(q), q), XS[0], XS
    ),
    "mapped": lambda: td.scan(lambda q, x: (td.vmap(lambda a, b: a * b + td.exp(-a))(q, x), None), XS[0], XS),
    "jitted": lambda: td.scan(td.jit(lambda q, x: (q @ W + x, q)), XS[0], XS),
    "keys": lambda: td.scan(
        lambda k, x: (td.random.split(k)[0], x + td.random.normal(k, (3,))), td.random.key(3), XS
    ),
    "unchanged": lambda: td.scan(lambda c, x: ((c[0], c[1] + c[0]), x), (XS[0], XS[1]), XS),
    "local list": lambda: td.scan(lambda c, x: (sum([c, x, c]) / 3, c), XS[0], XS),
}


def write_row(i, x):
    x[i] = x[i - 1] * 0.5 + i
    return x


@pytest.mark.parametrize("name", LOOPS)
def test_compiled_loops_have_the_bits_of_python_loops(name):
    check(LOOPS[name])


def test_other_objects_with_the_same_code_use_one_compiled_loop():
    weights = [td.asarray(rng.normal(size=(3, 3)).astype(np.float32)) for _ in range(4)]
    with config.override(hot_loops=10**6):
        wanted = [bits(td.scan(closure(w, 0.5), td.zeros(3), XS)) for w in weights]
    with config.override(hot_loops=0):
        assert [bits(td.scan(closure(w, 0.5), td.zeros(3), XS)) for w in weights] == wanted
        assert compiled() == 1
        td.scan(closure(weights[0], 0.25), td.zeros(3), XS)
        assert compiled() == 2


def test_values_are_those_of_the_call(monkeypatch):
    """Globals, contents of containers and of tensors that change between calls."""
    held, scales = td.ones(3), [2.0]

    def run():
        return td.scan(lambda c, x: (c * SCALE + x * scales[0] + held, None), td.zeros(3), XS)[0]

    with config.override(hot_loops=0):
        for _ in range(2):
            run()
        for change in (
            lambda: monkeypatch.setitem(globals(), "SCALE", 0.25),
            lambda: scales.__setitem__(0, 3.0),
            lambda: held.mul_(5),
        ):
            change()
            found = run()
            with config.override(hot_loops=10**6):
                assert bits(found) == bits(run())


def extended(log):
    def step(c, x, log=log):
        log += [1]
        return c + x, None

    return step


EFFECTS = {
    "print": lambda log: lambda c, x: (c + x, print(end="") or c),
    "append": lambda log: lambda c, x: (c + x, log.append(1)),
    "bound append": lambda log, push=None: (lambda push: lambda c, x: (c + x, push(1)))(log.append),
    "item": lambda log: lambda c, x: (c + x, log.__setitem__(slice(None), [*log, 1])),
    "default": lambda log: lambda c, x, log=log: (c + x, operator.iconcat(log, [1]) and None),
    "in place": extended,
    "time": lambda log: lambda c, x: (c + time.perf_counter() * 0 + x, None),
    "numpy random": lambda log: lambda c, x: (c + np.random.uniform() * 0 + x, None),
    "data": lambda log: lambda c, x: (c + (x if x.sum() > 0 else -x), None),
    "data of a capture": lambda log: lambda c, x: (c + x * float(W.sum()), None),
    "numpy": lambda log: lambda c, x: (c + td.asarray(np.linalg.norm(x.numpy())), None),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_steps_with_effects_run_in_python(name):
    log = []
    run = lambda: td.scan(EFFECTS[name](log), td.zeros(3), XS)[0]  # noqa: E731 - as a user would
    with config.override(hot_loops=0):
        results = [run() for _ in range(3)]
    assert compiled() == 0
    assert len(log) in (0, 36)
    assert all(bits(one) == bits(results[0]) for one in results)


def test_assignments_outside_of_the_step_run_in_python():
    count, log, owner = 0, {}, type("Owner", (), {})()
    owner.steps = 0

    def nonlocal_count(c, x):
        nonlocal count
        count += 1
        return c + x, None

    def stores(c, x):
        log[len(log)] = 1
        return c + x, None

    def attribute(c, x):
        owner.steps += 1
        return c + x, None

    def swallows(c, x):
        try:
            return (c + x if float(x[0]) > 0 else c - x), None
        except Exception:
            return c, None

    with config.override(hot_loops=0):
        for step in (nonlocal_count, stores, attribute, swallows):
            first = td.scan(step, td.zeros(3), XS)[0]
            assert bits(td.scan(step, td.zeros(3), XS)[0]) == bits(first)
    assert (count, len(log), owner.steps, compiled()) == (24, 24, 24, 0)


def test_watched_and_recorded_loops_run_in_python():
    class Count(td.DispatchMode):
        calls = 0

        def __tandem_dispatch__(self, op, types, args, kwargs):
            Count.calls += op.schema.name == "tanh"
            return op(*args, **kwargs)

    run = lambda: td.scan(closure(W, 0.5), td.zeros(3), XS)  # noqa: E731
    with config.override(hot_loops=0):
        run()
        assert compiled() == 1
        with Count():
            run()
        assert Count.calls == 12
        lines = set()

        def tracer(frame, event, argument):
            lines.add(frame.f_code.co_name)
            return tracer

        sys.settrace(tracer)
        try:
            run()
        finally:
            sys.settrace(None)
        assert "step" in lines
        leaf = td.asarray(W.numpy(), requires_grad=True)
        h, _ = td.scan(closure(leaf, 0.5), td.zeros(3), XS)
        h.sum().backward()
        assert leaf.grad is not None
        with td.no_grad():
            assert bits(td.scan(closure(leaf, 0.5), td.zeros(3), XS)) == bits(run())


def test_long_python_loops_go_on_as_compiled_code():
    def run(steps):
        return td.fori_loop(0, steps, lambda i, x: td.sin(x) + i * 0.5, 1.0)

    def until(limit):
        return td.while_loop(lambda s: s[0] < limit, lambda s: (s[0] + 1, td.cos(s[1])), (0, 1.0))

    def rows(xs, reverse):
        return td.scan(lambda c, x: (c * 0.5 + x, c), 0.0, xs, reverse=reverse)

    xs = td.asarray(rng.normal(size=4000))
    for call in (lambda: run(4000), lambda: until(4000), lambda: rows(xs, False), lambda: rows(xs, True)):
        with config.override(hot_loops=10**6):
            wanted = call()
        with config.override(hot_loops=1):
            hot_loops._loops.clear()
            assert bits(call()) == bits(wanted)
        assert compiled() > 0
        hot_loops._loops.clear()


def test_errors_are_those_of_python_loops():
    def step(i, x):
        return x.at[i].add(1.0)

    with config.override(hot_loops=0):
        assert td.fori_loop(0, 3, step, td.zeros(3)).tolist() == [1.0, 1.0, 1.0]
        for _ in range(2):
            with pytest.raises(td.errors.ArgumentError):
                td.fori_loop(0, 3, lambda i, x: (x, x), td.zeros(3))


def test_functions_without_a_key():
    for function in (
        lambda: np.random.uniform(),
        lambda: print(),
        lambda: td.set_default_dtype(td.float32),
    ):
        with pytest.raises(NoKey):
            Captures(hot_loops.UNRECORDED[0]).make_key(function)


def test_loops_in_threads():
    results = []
    with config.override(hot_loops=0):
        wanted = bits(td.scan(closure(W, 0.5), td.zeros(3), XS))
        threads = [
            threading.Thread(
                target=lambda: results.extend(
                    bits(td.scan(closure(W, 0.5), td.zeros(3), XS)) for _ in range(50)
                )
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [wanted] * 200


def test_captured_tensors_are_not_kept():
    with config.override(hot_loops=0):
        weight = td.asarray(W.numpy())
        references = sys.getrefcount(weight)
        td.scan(closure(weight, 0.5), td.zeros(3), XS)
        gc.collect()
        assert sys.getrefcount(weight) == references


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_random_programs(seed):
    ((program, arrays),) = positional_programs.drawn(seed)
    leaves = [td.asarray(array) for array in arrays]
    with np.errstate(all="ignore"):
        with config.override(hot_loops=10**6):
            try:
                wanted = program(*leaves)
            except td.errors.UnsupportedError:
                return
        with config.override(hot_loops=0):
            assert difference(program(*leaves), wanted) in ("", "signs of zeros")
