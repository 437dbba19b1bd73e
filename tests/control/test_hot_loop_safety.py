"""Eager loops that must stay Python loops, or be compiled anew: what the functions' own bytecode does not show."""

import functools
import types
from typing import NamedTuple

import numpy as np
import pytest
import tandem as td
from hot_loop_checks import XS, W, bits, check, compiled, fresh
from tandem import config
from tandem.control import loops

pytestmark = [
    pytest.mark.skipif(not config.flags.native, reason="native code is off"),
    pytest.mark.usefixtures(fresh.__name__),
]
SCALE = 0.5


class Scaled(NamedTuple):
    x: object

    def scale(self):
        CALLS.append(1)
        return self.x * SCALE


class Owner:
    def __init__(self, x):
        self.x = x

    def scale(self):
        CALLS.append(1)
        return Owner(self.x * SCALE)


class Unhashable:
    def __init__(self, x):
        self.x = x


class AnyAttribute:
    def __getattr__(self, name):
        return []

    def __call__(self, c, x):
        CALLS.append(1)
        return c + x, None


CALLS = []
OPTIONS = [1.0]
OPTIONS.append(OPTIONS)
td.pytree.register_pytree_node(Owner, lambda t: ((t.x,), None), lambda static, children: Owner(*children))
td.pytree.register_pytree_node(
    Unhashable, lambda t: ((t.x,), [1]), lambda static, children: Unhashable(*children)
)


@functools.lru_cache
def cached_buffer():
    return td.zeros(3)


def note_in_globals(c, x):
    note_in_globals.__globals__["CALLS"].append(1)
    return c + x, None


def note_in_dict(c, x):
    note_in_dict.__dict__["calls"] = note_in_dict.__dict__.get("calls", 0) + 1
    return c + x, None


def write_in_cache(c, x):
    cached_buffer().add_(x)
    return c + cached_buffer(), None


def noted(function):
    """Run a loop; returns its result, and how many steps have run in Python."""
    CALLS.clear()
    result = function()
    return [*bits(result), len(CALLS) + note_in_dict.__dict__.pop("calls", 0)]


USER_CODE = {
    "globals of a function": lambda: td.scan(note_in_globals, td.zeros(3), XS)[0],
    "attributes of a function": lambda: td.scan(note_in_dict, td.zeros(3), XS)[0],
    "method of a named tuple": lambda: (
        td.scan(lambda c, x: (Scaled(c.scale() + x), None), Scaled(XS[0]), XS)[0].x
    ),
    "method of a captured named tuple": lambda: (
        lambda held: td.scan(lambda c, x: (c + held.scale(), None), XS[0], XS)[0]
    )(Scaled(W[0])),
    "method of a registered class": lambda: td.scan(lambda c, x: (c.scale(), None), Owner(XS[0]), XS)[0].x,
    "any attribute": lambda: td.scan(AnyAttribute(), td.zeros(3), XS)[0],
    "unhashable static part": lambda: td.scan(lambda c, x: (c, x + c.x), Unhashable(XS[0]), XS)[1],
    "a list that holds itself": lambda: td.scan(lambda c, x: (c + x * OPTIONS[0], None), XS[0], XS)[0],
    "text": lambda: td.scan(lambda c, x: (c + len(repr(x)), None), XS[0], XS)[0],
    "name of a class": lambda: td.scan(lambda c, x: (c + len(x.__class__.__name__), None), XS[0], XS)[0],
    "attribute by name": lambda: td.scan(lambda c, x: (c + hasattr(c, "_trace"), None), XS[0], XS)[0],
}


@pytest.mark.parametrize("name", USER_CODE)
def test_code_that_the_bytecode_does_not_show_runs_in_python(name):
    run = USER_CODE[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "find_call", lambda *args, **kwargs: None)
        wanted = noted(run)
    with config.override(hot_loops=0):
        assert [noted(run) for _ in range(2)] == [wanted] * 2
    assert compiled() == 0


def test_caches_keep_their_values():
    with config.override(hot_loops=0):
        cached_buffer.cache_clear()
        total = sum(x for _ in range(2) for x in td.scan(write_in_cache, td.zeros(3), XS)[0])
    cached_buffer.cache_clear()
    with config.override(hot_loops=10**6):
        assert bits(total) == bits(
            sum(x for _ in range(2) for x in td.scan(write_in_cache, td.zeros(3), XS)[0])
        )
    assert compiled() == 0


def test_long_integers_have_a_key():
    modulus = 10**5000 + 3
    check(lambda: td.scan(lambda c, x: (c + x * (modulus % 7), None), td.zeros(3), XS))


def test_tensors_of_modules_are_those_of_the_call():
    module = types.ModuleType("module")
    names = {"module": module}
    exec("def step(c, x): return c + w * module.w + f(x) + module.f(x), None", names)
    for scale in (1, 2, 3):
        module.w = names["w"] = td.ones(3) * scale
        module.f = names["f"] = (lambda w: lambda x: x * w)(td.ones(3) * scale)
        with config.override(hot_loops=0):
            found = td.scan(names["step"], td.zeros(3), XS)[0]
        with config.override(hot_loops=10**6):
            assert bits(found) == bits(td.scan(names["step"], td.zeros(3), XS)[0])


def test_defaults_are_known_by_name():
    def step(c, x, *, j=1.0, k=2.0):
        return c * j + x * k, None

    def run(**defaults):
        step.__kwdefaults__ = defaults
        return bits(td.scan(step, td.zeros(3), XS)[0])

    with config.override(hot_loops=0):
        found = [run(j=1.0, k=2.0), run(k=1.0, j=2.0), run(k=2.0, j=1.0)]
    with config.override(hot_loops=10**6):
        assert found == [run(j=1.0, k=2.0), run(k=1.0, j=2.0), run(k=2.0, j=1.0)]


def test_leaves_keep_what_autograd_knows():
    leaf = td.asarray(W.numpy(), requires_grad=True)
    run = lambda: td.scan(lambda c, x: (c + x * float(leaf.requires_grad), None), td.zeros(3), XS)  # noqa: E731
    with td.no_grad():
        check(run, is_compiled=False)


@pytest.mark.parametrize("module", [np, td.torch])
def test_functions_that_use_files_run_in_python(module, tmp_path):
    path = str(tmp_path / "file.npy")

    def step(c, x):
        if module is td.torch:
            td.torch.save(1.0, path)
        else:
            np.save(path, 1.0)
        return c + x, None

    with config.override(hot_loops=0):
        for _ in range(2):
            td.scan(step, td.zeros(3), XS)
            (tmp_path / "file.npy").unlink()
    assert compiled() == 0


def test_kernels_are_those_of_the_call():
    run = lambda: td.scan(lambda c, x: (c + td.sin(x), None), td.zeros(3), XS)[0]  # noqa: E731
    with config.override(hot_loops=0):
        before, calls = bits(run()), []
        assert compiled() == 1
        library = td.Library("td")
        with library.impl("sin", lambda x: calls.append(1) or td.cos(x), "CPU"):
            run()
        assert len(calls) == 12
        assert bits(run()) == before


def test_one_callable_object_does_not_stand_for_all():
    with config.override(hot_loops=0):
        td.scan(AnyAttribute(), td.zeros(3), XS)
        td.scan(functools.partial(lambda w, h, x: (h @ w + x, None), W), td.zeros(3), XS)
    assert compiled() == 1


def test_a_loop_that_stays_in_python_does_not_keep_others_there():
    """All ``fori_loop`` and ``map`` run functions of the package around their bodies."""
    with config.override(hot_loops=0):
        for body in (lambda i, x: CALLS.append(1) or x + i, lambda i, x: x + i):
            td.fori_loop(0, 5, body, td.zeros(2))
        for body in (lambda x: CALLS.append(1) or x + 1, lambda x: x + 1):
            td.map(body, XS)
    assert compiled() == 2


def test_bodies_are_compiled_when_autograd_does_not_record_them():
    def run(weight):
        return td.scan(lambda c, x: (c @ weight + x, None), td.zeros(3), XS)[0]

    leaf = td.asarray(W.numpy(), requires_grad=True)
    with config.override(hot_loops=0):
        recorded = run(leaf)
        assert recorded.requires_grad and not compiled()
        with td.no_grad():
            assert bits(run(leaf)) == bits(recorded.detach())
        assert bits(run(W)) == bits(recorded.detach())
    assert compiled() == 2
