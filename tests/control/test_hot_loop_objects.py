"""Eager loops and transforms whose functions capture objects, methods, modules of td.nn, and arrays of NumPy."""

import dataclasses

import numpy as np
import pytest
import tandem as td
from hot_loop_checks import XS, W, bits, check, compiled, fresh
from tandem import config

pytestmark = [
    pytest.mark.skipif(not config.flags.native, reason="native code is off"),
    pytest.mark.usefixtures(fresh.__name__),
]
X = XS[0]
COLUMN = td.asarray(W.numpy()[:, :1].copy())
CALLS = []
FACTOR = 0.5


class Pendulum:
    """An environment as users write it: numbers, tensors, a log, and methods that call each other."""

    gravity = 9.8

    def __init__(self, dt, weights):
        self.dt, self.weights, self.log = dt, weights, []
        self.inner = None

    @property
    def half(self):
        return self.dt / 2

    @staticmethod
    def bend(x):
        return td.tanh(x)

    @classmethod
    def pull(cls, x):
        return x * cls.gravity

    def force(self, x):
        return self.bend(x @ self.weights) * self.half - self.pull(x) * 0.01

    def step(self, i, x):
        return x + self.force(x) * self.dt

    def __call__(self, i, x):
        return self.step(i, x)

    def __len__(self):
        return 3

    def reset(self):
        self.log.append(1)
        print(self.log)


class Slots:
    __slots__ = ("scale", "unset")

    def __init__(self, scale):
        self.scale = scale

    def step(self, i, x):
        return td.sin(x) * self.scale


@dataclasses.dataclass(frozen=True)
class Options:
    rate: float
    bias: object

    def step(self, i, x):
        return td.cos(x) * self.rate + self.bias


class Net(td.nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.first = td.nn.Linear(3, width)
        self.layers = td.nn.ModuleList([td.nn.Linear(width, width), td.nn.LayerNorm(width)])
        self.last = td.nn.Linear(width, 3)
        self.factor = 0.5

    def forward(self, x):
        x = td.relu(self.first(x))
        for layer in self.layers:
            x = layer(x)
        return self.finish(x)

    def finish(self, x):
        return self.last(x) * self.factor


def check_both(run):
    """Check that calls have the same result before loops are hot and after; returns it."""
    with config.override(hot_loops=10**6):
        wanted = run()
    assert compiled() == 0
    with config.override(hot_loops=0):
        assert run() == wanted
    return wanted


def run_loop(step):
    return td.fori_loop(0, 20, step, X)


PENDULUM = Pendulum(0.1, W)
ARRAY = np.random.default_rng(3).normal(size=(3, 3)).astype(np.float32)
COLUMNS = np.asfortranarray(ARRAY)
PAIR = Slots(W[2]), Options(0.5, 1.0)
STEPS = {
    "bound method": lambda: PENDULUM.step,
    "method in a lambda": lambda: lambda i, x: PENDULUM.step(i, x),
    "callable object": lambda: lambda i, x: PENDULUM(i, x),
    "attributes": lambda: lambda i, x: x * PENDULUM.dt + td.sum(PENDULUM.weights) / len(PENDULUM),
    "dataclass in a tree": lambda: lambda i, x: x * sum(td.tree.leaves(PAIR[1])) * 0.5,
    "map of a tree": lambda: lambda i, x: td.tree.map(lambda a, b: a * b + 1.0, (x, x), (x, W[0]))[1] * 0.5,
    "slots": lambda: Slots(W[0]).step,
    "dataclass": lambda: Options(0.5, W[1]).step,
    "objects in a tuple": lambda: lambda i, x: PAIR[1].step(i, PAIR[0].step(i, x)),
    "array": lambda: lambda i, x: td.tanh(ARRAY @ x) + ARRAY[0, 0] * np.sqrt(ARRAY[1] ** 2).sum(),
    "array of columns": lambda: lambda i, x: td.tanh(COLUMNS @ x) + COLUMNS.sum(axis=0),
}


@pytest.mark.parametrize("name", STEPS)
def test_functions_that_capture_objects_are_compiled(name):
    step = STEPS[name]()
    check(lambda: td.fori_loop(0, 20, step, X))


def run_vmap(step):
    return td.vmap(lambda x: step(0, x))(XS)


def run_vmap_of_method(step):
    return td.vmap(step, in_axes=(None, 0))(0, XS)


RUNS = pytest.mark.parametrize("run", [run_loop, run_vmap, run_vmap_of_method])


@RUNS
def test_attributes_are_read_at_each_call(run):
    env = Pendulum(0.1, W)
    wanted = []
    for limit in (10**6, 0):
        with config.override(hot_loops=limit):
            results = []
            for dt, weights, inner in (
                (0.1, W, None),
                (0.2, W, None),
                (0.2, W + 1, []),
                (0.2, COLUMN, 1),
            ) * 2:
                env.dt, env.weights, env.inner = dt, weights, inner
                results.append(bits([run(env.step) for _ in range(3)]))
            wanted = wanted or results
            assert results == wanted
    assert compiled() == 3  # one for both tensors of one shape


@RUNS
def test_classes_are_read_at_each_call(run):
    def use(is_hot):
        global FACTOR

        class Base:
            offset = 1.0

            def scale(self, x):
                return x * self.factor * FACTOR

        class Model(Base):
            factor = 2.0

            def step(self, i, x):
                return self.scale(x) + self.offset

        def results():
            return bits([run(model.step) for _ in range(3)])

        with config.override(hot_loops=0 if is_hot else 10**6):
            FACTOR, model = 0.5, Model()
            yield results()
            Model.factor = 1.0
            yield results()
            FACTOR = 0.25
            yield results()
            Base.scale = lambda self, x: x * 0.125
            yield results()
            Model.scale = lambda self, x: x * 0.75
            yield results()
            model.scale = lambda x: x * 0.375
            yield results()
            model.offset = 2.0
            yield results()
            Base.offset = 3.0
            yield results()
            del model.offset
            yield results()
            Model.offset = property(lambda self: self.factor * 2)
            yield results()
            Model.__bases__ = (type("Other", (Base,), {"scale": lambda self, x: x}),)
            del Model.scale, model.scale
            yield results()

    with_loops = list(use(is_hot=False))
    assert compiled() == 0
    assert list(use(is_hot=True)) == with_loops
    assert compiled() >= 9
    assert len({*map(repr, with_loops)}) >= 9


def test_objects_in_a_cycle_and_shared_ones():
    class Link:
        def __init__(self, value):
            self.value, self.other = value, None

    first, second = Link(W[0]), Link(2.0)
    first.other, second.other = second, first
    check(lambda: run_loop(lambda i, x: td.sin(x) * first.other.value + second.other.value))


class Effects:
    def __init__(self):
        self.count, self.values, self.cache = 0, [], {}

    def counted(self, i, x):
        self.count += 1
        return x + 1

    def listed(self, i, x):
        self.values.append(1)
        return x + 1

    def cached(self, i, x):
        self.cache["x"] = self.cache.get("x", 0) + 1
        return x * self.cache["x"]

    def logged(self, i, x):
        CALLS.append(1)
        return x

    def called(self, i, x):
        return self.logged(i, x)

    def same(self, i, x):
        return x + 1.0 if self.values is CALLS else x


@pytest.mark.parametrize("name", [name for name in vars(Effects) if not name.startswith("_")])
def test_methods_with_effects_run_each_time(name):
    results = []
    for limit in (10**6, 0):
        state = Effects()
        CALLS.clear()
        with config.override(hot_loops=limit):
            values = bits([run_loop(getattr(state, name)) for _ in range(3)])
        results.append((values, state.count, len(state.values), dict(state.cache), len(CALLS)))
    assert results[0] == results[1]
    assert compiled() == 0


class AnyAttribute:
    def __getattr__(self, name):
        CALLS.append(name)
        return 2.0


class Descriptor:
    def __get__(self, instance, owner):
        CALLS.append("descriptor")
        return 2.0


class Described:
    value = Descriptor()


class Deleted:
    value = 2.0

    def __del__(self):
        CALLS.append("deleted")


class Listed(list):
    value = 2.0


class Added:
    value = 2.0

    def __add__(self, other):
        CALLS.append("added")
        return other


class Node:
    """A pytree whose children are read by a function of the user."""

    value = 2.0


td.pytree.register_pytree_node(Node, lambda node: ((), CALLS.append(1)), lambda static, children: Node())


@pytest.mark.parametrize("kind", [AnyAttribute, Described, Deleted, Listed, Added, Node])
def test_objects_with_code_of_their_own_are_used_each_time(kind):
    state = kind()
    CALLS.clear()
    check(lambda: run_loop(lambda i, x: (state + x if kind is Added else x) * state.value), is_compiled=False)


@pytest.mark.parametrize(
    "write",
    [
        lambda a: a.fill(a[0] + 1),
        lambda a: np.add(a, 1, out=a),
        lambda a: np.copyto(a, a + 1),
        lambda a: a.__setitem__(0, a[0] + 1),
        lambda a: a.sort(),
        lambda a: a.partition(1),
    ],
)
def test_arrays_that_are_written_run_each_time(write):
    results = []
    for limit in (10**6, 0):
        array = np.array([3.0, 2.0, 1.0], np.float32)

        def step(i, x, array=array):
            write(array)
            return x + array

        with config.override(hot_loops=limit):
            results.append((bits([run_loop(step) for _ in range(2)]), array.tobytes()))
    assert results[0] == results[1]


def test_arrays_count_by_their_content():
    array = ARRAY.copy()

    def step(i, x):
        return td.tanh(array @ x)

    with config.override(hot_loops=0):
        first = bits(run_loop(step))
        array[0] += 1.0
        second = bits(run_loop(step))
        array[0] = ARRAY[0]
        array2, array = array, ARRAY.copy()
        array2[:] = 0.0
        assert bits(run_loop(step)) == first != second
    assert compiled() == 2


def test_arrays_of_mapped_functions_count_by_their_content():
    def run():
        array, values = ARRAY.copy(), []
        f = td.vmap(lambda x: td.tanh(array @ x))
        for row in (0, 0, 1, 1, 2):
            values += bits([f(XS) for _ in range(3)])
            array[row] += 1.0
        return values

    check_both(run)


@pytest.mark.parametrize(
    "array", [np.zeros((200, 200), np.float32), np.ones((6, 6), np.float32)[::2, ::2]], ids=["large", "gaps"]
)
def test_large_arrays_and_those_with_gaps_remain_python_loops(array):
    check(lambda: run_loop(lambda i, x: x + array[0, 0]), is_compiled=False)


MODULES = {
    "linear": lambda: td.nn.Linear(3, 3),
    "sequential": lambda: td.nn.Sequential(td.nn.Linear(3, 8), td.nn.Tanh(), td.nn.Linear(8, 3)),
    "net": Net,
    "layer norm": lambda: td.nn.LayerNorm(3),
    "dropout in evaluation": lambda: td.nn.Dropout(0.5).eval(),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("use", ["loop", "vmap", "vmap of a lambda", "scan"])
def test_modules_are_compiled_where_nothing_is_recorded(name, use):
    model = MODULES[name]()
    run = {
        "loop": lambda: td.fori_loop(0, 10, lambda i, x: model(x), X),
        "vmap": lambda: td.vmap(model)(XS),
        "vmap of a lambda": lambda: td.vmap(lambda x: model(x) * 2)(XS),
        "scan": lambda: td.scan(lambda h, x: (td.tanh(model(h) + x), h), X, XS),
    }[use]
    with td.no_grad():
        check(lambda: [run() for _ in range(2)])


def test_parameters_are_read_at_each_call():
    def run():
        td.nn.manual_seed(0)
        model, results = Net(), []
        mapped = td.vmap(model)

        def call():
            for _ in range(2):
                results.append(bits([run_loop(lambda i, x: model(x)), mapped(XS)]))

        with td.no_grad():
            for _ in range(3):
                call()
                for parameter in model.parameters():
                    parameter.mul_(0.9)
            model.factor = 2.0
            call()
            model.layers[0] = td.nn.Identity()
            call()
        return results

    check_both(run)
    assert compiled() == 6


def test_loops_that_train_are_recorded():
    model = td.nn.Linear(3, 3)
    with config.override(hot_loops=0):
        for _ in range(2):
            run_loop(lambda i, x: model(x)).sum().backward()
    assert compiled() == 0
    assert float(td.abs(model.weight.grad).sum()) > 0


def test_buffers_of_modules_are_written_at_each_step():
    def run():
        norm = td.nn.BatchNorm1d(3)
        with td.no_grad():
            values = [td.fori_loop(0, 5, lambda i, x: norm(x) + 1, XS) for _ in range(2)]
        return bits([*values, norm.running_mean, norm.num_batches_tracked])

    check_both(run)


def test_hooks_and_modes_of_modules_run_each_time():
    def run():
        model, calls = td.nn.Linear(3, 3, bias=False), []
        td.nn.init.constant_(model.weight, 0.25)
        with td.no_grad():
            values = bits(run_loop(lambda i, x: model(x)))
            handle = model.register_forward_hook(lambda *args: calls.append(1))
            values += bits(run_loop(lambda i, x: model(x)))
            handle.remove()
            values += bits(run_loop(lambda i, x: model.eval()(x)))
        return values, len(calls), model.training

    assert check_both(run)[1:] == (20, False)
