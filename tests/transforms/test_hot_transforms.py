"""Eager vmap and jvp that are compiled when hot: the results of calls as they are written, and calls that stay so."""

import functools
import gc
import pickle
import sys
import threading

import numpy as np
import pytest
import tandem as td
from hot_loop_checks import compiled, fresh
from hot_transform_checks import check, facts
from tandem import config
from tandem.control import hot_loops, hot_transforms
from tandem.eager.layers.vmap.mapping import BatchOptions

pytestmark = [
    pytest.mark.skipif(not config.flags.native, reason="native code is off"),
    pytest.mark.usefixtures(fresh.__name__),
]
rng = np.random.default_rng(3)
X = td.asarray(rng.normal(size=(4, 3)).astype(np.float32))
W = td.asarray(rng.normal(size=(3, 3)).astype(np.float32))
SCALE = 0.5


def scaled(weight, scale):
    return lambda x: td.tanh(x @ weight) * scale + SCALE


def loss(w, x):
    return (td.tanh(x @ w) ** 2).sum()


CALLS = {
    "elementwise": lambda: td.vmap(lambda x: td.sin(x) * x + 1.0)(X),
    "products": lambda: td.vmap(scaled(W, 2.0))(X),
    "two arguments": lambda: td.vmap(lambda x, y: (x * y).sum())(X, X + 1),
    "shared argument": lambda: td.vmap(loss, (None, 0))(W, X),
    "trees": lambda: td.vmap(lambda p, x: {"a": p["w"] * x, "b": (x, x + 1)}, (0, 0))({"w": X}, X),
    "keywords": lambda: td.vmap(lambda x, *, y: x - y)(X, y=X * 2),
    "numbers": lambda: td.vmap(lambda x, n: x**n, (0, None))(X, 3),
    "last axis": lambda: td.vmap(lambda x: x * 2, 1, 1)(X),
    "result along the last axis": lambda: td.vmap(lambda x: x * 2, 0, 1)(X),
    "shared result": lambda: td.vmap(lambda x: (x + 1, W * 2), out_axes=(0, None))(X),
    "named axis": lambda: td.vmap(lambda x: x - td.pmean(x, "i"), axis_name="i")(X),
    "chunks": lambda: td.vmap(lambda x: td.exp(x), chunk_size=3)(X),
    "nested": lambda: td.vmap(lambda x: td.vmap(lambda y: x * y)(X))(X),
    "vmap of vmap": lambda: td.vmap(td.vmap(lambda x: td.sin(x) + 1))(X),
    "gradients": lambda: td.vmap(td.grad(loss), (None, 0))(W, X),
    "jvp": lambda: td.jvp(lambda x: td.sin(x) @ W, (X,), (X + 1,)),
    "jvp of integers": lambda: td.jvp(lambda x, n: x * n, (X, td.asarray(2)), (X, None)),
    "jvp of vmap": lambda: td.jvp(td.vmap(scaled(W, 2.0)), (X,), (X,)),
    "vmap of jvp": lambda: td.vmap(lambda x: td.jvp(td.sin, (x,), (x,))[1])(X),
    "jvp of grad": lambda: td.jvp(td.grad(lambda x: loss(W, x)), (X,), (X,)),
    "operator": lambda: td.vmap(td.sin)(X),
    "jitted": lambda: td.vmap(td.jit(lambda x: td.sin(x) * 2))(X),
    "branch": lambda: td.vmap(lambda x: td.where(x > 0, x, -x))(X),
    "index": lambda: td.vmap(lambda x, i: x[i] * x[1:].sum())(X, td.asarray([0, 1, 2, 0])),
    "argument": lambda: td.vmap(lambda x: (x, x * 2))(X),
    "keys": lambda: td.vmap(lambda k: td.random.normal(k, (3,)))(td.random.split(td.random.key(1), 4)),
    "recursion": lambda: td.vmap(power)(X),
    "scan": lambda: td.vmap(lambda x: td.scan(lambda c, y: (c + y, c * y), 0.0, x))(X),
}


def power(x, n=3):
    return x if n == 0 else x * power(x, n - 1)


@pytest.mark.parametrize("name", CALLS)
def test_compiled_calls_have_the_results_of_calls_as_written(name):
    check(CALLS[name])


VIEWS = {
    "transposed argument": lambda: td.vmap(lambda x: x, 0, 1)(X),
    "slice of an argument": lambda: td.vmap(lambda x: x[1:])(X),
    "one value twice": lambda: td.vmap(lambda x: (lambda y: (y, y))(x + 1))(X),
    "a value and its view": lambda: td.vmap(lambda x: (lambda y: (y, y[1:]))(x + 1))(X),
}


@pytest.mark.parametrize("name", VIEWS)
def test_results_that_share_memory_are_not_compiled(name):
    check(VIEWS[name], is_compiled=False)


def test_an_argument_that_is_returned_is_the_object_given():
    with config.override(hot_loops=0):
        for _ in range(4):
            assert td.vmap(lambda x: (x, x + 1))(X)[0] is X
    assert compiled() == 1


EFFECTS = {
    "print": lambda log: lambda x: (print(end=""), x * 2)[1],
    "append": lambda log: lambda x: (log.append(1), x * 2)[1],
    "numpy random": lambda log: lambda x: x + np.random.uniform() * 0,
    "unhashable": lambda log: functools.partial(lambda p, x: x * len(p), log),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_functions_with_effects_run_as_written(name):
    log = []
    with config.override(hot_loops=0):
        results = [facts(td.vmap(EFFECTS[name](log))(X)) for _ in range(4)]
    assert results == results[:1] * 4
    assert len(log) == (4 if name == "append" else 0)
    assert compiled() == (name == "unhashable")


def test_fresh_lambdas_share_one_compiled_call():
    weights = [td.asarray(rng.normal(size=(3, 3)).astype(np.float32)) for _ in range(4)]
    with config.override(hot_loops=10**6):
        wanted = [facts(td.vmap(scaled(w, 2.0))(X)) for w in weights]
    with config.override(hot_loops=0):
        for _ in range(3):
            assert [facts(td.vmap(scaled(w, 2.0))(X)) for w in weights] == wanted
        assert compiled() == 1


def test_values_are_those_of_the_call(monkeypatch):
    held, scales = td.ones(3), [2.0]
    run = lambda: td.vmap(lambda x: x * SCALE + held * scales[0])(X)  # noqa: E731 - as a user would
    tensors_only = lambda: td.vmap(lambda x: x * SCALE + held)(X)  # noqa: E731
    changes = (
        lambda: None,
        lambda: monkeypatch.setitem(globals(), "SCALE", 0.25),
        lambda: scales.__setitem__(0, 3.0),
        lambda: held.mul_(5),
        lambda: monkeypatch.setattr(td, "vmap", td.vmap),
    )
    for change in changes:
        change()
        for call in (run, tensors_only):
            with config.override(hot_loops=10**6):
                wanted = facts(call())
            with config.override(hot_loops=0):
                assert [facts(call()) for _ in range(3)] == [wanted] * 3


def test_the_order_of_captured_tensors_counts():
    def call(a, b):
        return facts(td.vmap(lambda x: x * a - b)(X))

    one, two = td.ones(3), td.ones(3) * 2
    with config.override(hot_loops=10**6):
        wanted = [call(one, two), call(two, one), call(one, one)]
    with config.override(hot_loops=0):
        for _ in range(3):
            assert [call(one, two), call(two, one), call(one, one)] == wanted


def test_watched_and_recorded_calls_run_as_written():
    class Count(td.DispatchMode):
        calls = 0

        def __tandem_dispatch__(self, op, types, args, kwargs):
            Count.calls += op.schema.name == "tanh"
            return op(*args, **kwargs)

    run = lambda: td.vmap(scaled(W, 2.0))(X)  # noqa: E731
    with config.override(hot_loops=0):
        for _ in range(3):
            wanted = run()
        assert compiled() == 1
        with Count():
            run()
        assert Count.calls == 1
        leaf = td.asarray(W.numpy(), requires_grad=True)
        td.vmap(scaled(leaf, 2.0))(X).sum().backward()
        assert leaf.grad is not None
        with td.no_grad():
            assert facts(td.vmap(scaled(leaf, 2.0))(X)) == facts(wanted)
        x = td.asarray(X.numpy(), requires_grad=True)
        assert td.vmap(lambda x: x * 2)(x).requires_grad


def test_kernels_and_rules_are_those_of_the_call():
    run = lambda: td.vmap(lambda x: td.sin(x) * 2)(X)  # noqa: E731
    with config.override(hot_loops=0):
        wanted, *_ = (facts(run()) for _ in range(3))
        assert compiled() == 1
        library = td.Library("td")
        with library.impl("sin", lambda x: td.cos(x), "CPU"):
            assert facts(run()) == facts(td.vmap(lambda x: td.cos(x) * 2)(X))
        with td.register_vmap("td::sin", lambda info, in_dims, x: (td.cos(x), 0)):
            assert facts(run()) == facts(td.vmap(lambda x: td.cos(x) * 2)(X))
        assert [facts(run()) for _ in range(3)] == [wanted] * 3


def test_errors_are_those_of_calls_as_written():
    rank = lambda: td.vmap(lambda x: x @ W)(td.ones((2, 5)))  # noqa: E731
    number = lambda: td.vmap(lambda x: float(x) + 1)(td.ones(3))  # noqa: E731
    singular = lambda: td.vmap(lambda x: td.linalg.inv(x))(td.zeros((2, 3, 3)))  # noqa: E731
    position = lambda: td.vmap(lambda x, i: x[i])(X, td.asarray([0, 1, 9, 0]))  # noqa: E731
    for call in (rank, number, singular, position):
        texts = []
        for limit in (10**6, 0, 0, 0):
            with config.override(hot_loops=limit), pytest.raises(Exception) as caught:
                call()
            texts.append((type(caught.value), str(caught.value)))
        assert texts == texts[:1] * 4


def test_an_error_of_compiled_code_is_that_of_the_operator():
    def run(matrices):
        return td.vmap(lambda x: td.linalg.inv(x) * 2)(matrices)

    good, bad = td.eye(3) + td.zeros((2, 3, 3)), td.zeros((2, 3, 3))
    with config.override(hot_loops=10**6), pytest.raises(Exception) as wanted:
        run(bad)
    with config.override(hot_loops=0):
        for _ in range(3):
            run(good)
        with pytest.raises(type(wanted.value)) as caught:
            run(bad)
    assert str(caught.value) == str(wanted.value)


def test_hostile_arguments():
    def own_wrapper(x):
        return x * 2

    own_wrapper.__wrapped__ = own_wrapper

    class AnyAttribute:
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return self

        def __call__(self, x):
            return x * 2

    class Name:
        __hash__ = None

    with config.override(hot_loops=0):
        for function in (own_wrapper, AnyAttribute(), functools.partial(own_wrapper)):
            for _ in range(3):
                assert td.vmap(function)(X).shape == X.shape
        for name in (Name(), ["i"]):
            for _ in range(3):
                assert td.vmap(lambda x: x * 2, axis_name=name)(X).shape == X.shape
        for _ in range(3):
            with pytest.raises(td.errors.ArgumentError):
                td.vmap(lambda x: x, out_axes=True)(X)
            with pytest.raises(td.errors.TandemError):
                td.vmap(lambda x: x, {"a": [0]})(X)


def test_calls_are_compiled_after_their_options_were_pickled():
    """Pickling writes an attribute into the class of a named tuple, of those of the package too."""
    pickle.dumps(BatchOptions(0, 0, None, None, None))
    check(CALLS["vmap of vmap"])


def test_references_and_memory_stay_flat():
    weight = td.asarray(W.numpy())
    run = lambda: td.vmap(scaled(weight, 2.0))(X)  # noqa: E731
    with config.override(hot_loops=0):
        for _ in range(10):
            run()
        gc.collect()
        before = sys.getrefcount(weight), sys.getrefcount(X), len(gc.get_objects())
        for _ in range(20_000):
            run()
        gc.collect()
        after = sys.getrefcount(weight), sys.getrefcount(X), len(gc.get_objects())
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 1000  # of 20,000 calls; other threads may still compile for earlier tests


def test_the_number_of_known_calls_is_bounded():
    with config.override(hot_loops=10**6):
        for number in range(300):
            names = {"td": td}
            exec(f"def function(x): return x * {number}.0", names)
            for size in range(6):
                for _ in range(2):
                    td.vmap(names["function"])(td.ones((2, size)))
    assert len(hot_transforms._known) <= hot_transforms.MOST_CODES
    assert all(len(calls) <= hot_transforms.MOST_CALLS for calls in hot_transforms._known.values())
    assert len(hot_loops._loops) <= hot_loops.MOST_LOOPS


def test_calls_in_threads():
    results = []
    with config.override(hot_loops=0):
        wanted = facts(td.vmap(scaled(W, 2.0))(X))
        work = lambda: results.extend(facts(td.vmap(scaled(W, 2.0))(X)) for _ in range(50))  # noqa: E731
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [wanted] * 200


def test_reverse_mode_through_a_scan_is_not_compiled():
    """Its backward loop would flush denormal numbers to zero."""
    run = lambda: td.vmap(td.grad(lambda x: td.scan(lambda c, y: (c * y, c), 1.0, x)[0]))(X)  # noqa: E731
    check(run, is_compiled=False)
