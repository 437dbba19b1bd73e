"""Which captured tensors jitted functions write: those that guarded variables and attributes lead to."""

import copy
import dataclasses
import pickle
import threading

import numpy as np
import pytest
import tandem as td
from tandem.errors import ConcretizationError, UnsupportedError

X = np.random.default_rng(0).random((8, 4)).astype(np.float32)


MADE = {
    "asarray": lambda: td.asarray(np.zeros(4, np.float32)),
    "array": lambda: td.array([0.0] * 4),
    "tensor": lambda: td.tensor([0.0] * 4),
    "Tensor": lambda: td.Tensor([0.0] * 4),
    "from_numpy": lambda: td.torch.from_numpy(np.zeros(4, np.float32)),
    "from_dlpack": lambda: td.from_dlpack(np.zeros(4, np.float32)),
    "copy": lambda: copy.copy(ZEROS),
    "deepcopy": lambda: copy.deepcopy(ZEROS),
    "pickle": lambda: pickle.loads(pickle.dumps(ZEROS)),
    "detach": lambda: td.asarray(np.zeros(4, np.float32)).detach(),
    "view": lambda: td.asarray(np.zeros((2, 4), np.float32))[1],
    "alias": lambda: td.asarray(td.asarray(np.zeros(4, np.float32)).numpy()),
    "clone": lambda: ZEROS.clone(),
    "zeros": lambda: td.zeros(4),
    "array_of_zeros": lambda: td.asarray(ZEROS.numpy().copy()),
}
ZEROS = td.zeros(4)


@pytest.mark.parametrize("name", MADE)
def test_tensors_made_in_the_function_start_anew_in_each_call(name):
    def f(v):
        x = MADE[name]()
        x += v
        x[0] = 5.0
        return x * 2 + ZEROS

    jitted = td.jit(f)
    for k in range(1, 5):
        v = td.full((4,), float(k))
        try:
            result = jitted(v)
        except UnsupportedError as fault:
            assert "from outside of the" in str(fault)
            break
        assert result.tolist() == f(v).tolist() == [10.0, *[2.0 * k] * 3]
    assert ZEROS.tolist() == [0.0] * 4


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def test_attributes_that_held_captured_tensors_are_guarded():
    inner = Holder(state=td.zeros(3), unused=td.ones(3), name="a")
    outer = Holder(inner=inner, scale=td.ones(3), count=0)

    class Model:
        def __init__(self):
            self.bias = td.ones(3)
            self.outer = outer

        def step(self, x):
            self.outer.inner.state.add_(x)
            return self.outer.inner.state * self.outer.scale + self.bias

    model, traces = Model(), []
    jitted = td.jit(lambda x: traces.append(1) or model.step(x))
    bound = td.jit(model.step)
    x = td.ones(3)
    assert jitted(x).tolist() == [2.0] * 3 and bound(x).tolist() == [3.0] * 3
    for _ in range(40):
        inner.unused, inner.name, outer.count = td.ones(3), "b", outer.count + 1
        jitted(x), bound(x)
    assert len(traces) == 1 and inner.state.tolist() == [82.0] * 3
    before, inner.state = inner.state, td.zeros(3)
    assert jitted(x).tolist() == [2.0] * 3 and before.tolist() == [82.0] * 3
    model.bias = td.full((3,), 10.0)
    assert bound(x).tolist() == [12.0] * 3
    outer.inner = Holder(state=td.full((3,), 5.0))
    assert jitted(x).tolist() == [16.0] * 3 and inner.state.tolist() == [2.0] * 3
    outer.scale = td.zeros(3)
    assert bound(x).tolist() == jitted(x).tolist() == [10.0] * 3


def in_thread(make):
    made = []
    thread = threading.Thread(target=lambda: made.append(make()))
    thread.start()
    thread.join()
    return made[0]


def swapped(o, v):
    o.a.add_(v)
    o.a, o.b = o.b, o.a
    return o.b * 1


def popped(o, v):
    h = o.items.pop(0)
    h.add_(v)
    o.items.append(h)
    return h * 1


def number(o, v):
    n = float(o.c)
    o.c.add_(1.0)
    return v * n


def shared(o, v):
    o.a.numpy()[0] += 1
    o.a.add_(v)
    return o.a * 2


def copied(o, v):
    before = copy.copy(o.a)
    o.a.add_(v)
    return before + o.a


def detached(o, v):
    o.c.add_(1.0)
    return v * float(o.c.detach())


def threaded(o, v):
    made = in_thread(lambda: td.asarray(np.zeros(2, np.float32)))
    made.add_(v)
    return made * 1


def overlapping(o, v):
    o.over.add_(td.arange(4.0))
    return o.over * 1


def masked(o, v):
    total = v[o.alias].sum()
    o.mask.copy_(v > 1)
    return v[o.alias].sum() + total


def reassigned(o, v):
    o.a.add_(v)
    o.a = td.zeros(2)
    return v * 1


def listed(o, v):
    o.items[0].add_(v)
    return o.items[0] * 1


def make_holder():
    over = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (4,), (0,))
    mask = td.zeros(2, dtype=bool)
    return Holder(
        a=td.zeros(2), b=td.zeros(2), c=td.zeros(()), items=[td.zeros(2), td.ones(2)], over=td.asarray(over),
        mask=mask, alias=mask[:],
    )  # fmt: skip


UNUSUAL = [
    swapped,
    popped,
    number,
    shared,
    copied,
    detached,
    threaded,
    overlapping,
    masked,
    reassigned,
    listed,
]


@pytest.mark.parametrize("body", UNUSUAL, ids=lambda body: body.__name__)
def test_unusual_writes_are_right_or_refused(body):
    def run_calls(jitted):
        o = make_holder()
        function = td.jit(lambda v: body(o, v)) if jitted else lambda v: body(o, v)
        return [function(td.full((2,), k)).tolist() for k in (0.5, 3.0, 3.0, 0.5, 3.0)]

    try:
        results = run_calls(True)
    except (UnsupportedError, ConcretizationError):
        return
    assert results == run_calls(False)


def test_places_that_are_not_guarded_are_not_written():
    class Slots:
        __slots__ = ("t",)

    @dataclasses.dataclass
    class Data:
        t: td.Tensor

    class OnClass:
        t = td.zeros(2)

    slots = Slots()
    slots.t = td.zeros(2)
    holders = [slots, Data(td.zeros(2)), OnClass(), Holder(inner=[Holder(t=td.zeros(2))])]
    for holder in holders:

        def f(v, holder=holder):
            target = holder.t if not hasattr(holder, "inner") else holder.inner[0].t
            target.add_(v)
            return target * 1

        jitted = td.jit(lambda v, f=f: f(v))
        try:
            first = jitted(td.ones(2)).tolist()
        except UnsupportedError:
            continue
        place = holder if not hasattr(holder, "inner") else holder.inner[0]
        place.t = td.zeros(2)
        assert jitted(td.ones(2)).tolist() == first == [1.0, 1.0] and place.t.tolist() == [1.0, 1.0]


def test_jitted_methods_write_attributes():
    class Meter:
        def __init__(self):
            self.total = td.zeros(2)

        @td.jit
        def step(self, v):
            self.total.add_(v)
            return self.total * 1

    one, other = Meter(), Meter()
    for k in range(1, 4):
        assert one.step(td.ones(2)).tolist() == [float(k)] * 2 == one.total.tolist()
    assert other.step(td.ones(2)).tolist() == [1.0] * 2 and one.total.tolist() == [3.0] * 2
    one.total = td.zeros(2)
    assert one.step(td.ones(2)).tolist() == [1.0] * 2 == one.total.tolist()


def test_modules_in_objects_are_guarded():
    holder = Holder(norm=td.nn.BatchNorm1d(4))
    jitted, x = td.jit(lambda v: holder.norm(v)), td.asarray(X)
    jitted(x)
    mean = holder.norm.running_mean.tolist()
    holder.norm.eval()
    np.testing.assert_allclose(jitted(x).detach(), holder.norm(x).detach(), rtol=1e-5)
    assert holder.norm.running_mean.tolist() == mean
    holder.norm.train()
    holder.norm.running_mean = td.zeros(4)
    jitted(x)
    np.testing.assert_allclose(holder.norm.running_mean, mean, rtol=1e-6)
    holder.norm = td.nn.BatchNorm1d(4)
    jitted(x)
    np.testing.assert_allclose(holder.norm.running_mean, mean, rtol=1e-6)


def test_an_argument_that_is_captured_too():
    def make():
        c = td.zeros(4)

        def f(v):
            c.add_(1.0)
            return v + c

        return f, c

    (eager, one), (jitted, other) = make(), make()
    jitted = td.jit(jitted)
    for k in range(4):
        given = (one, other) if k % 2 else (td.ones(4), td.ones(4))
        assert eager(given[0]).tolist() == jitted(given[1]).tolist()
        assert one.tolist() == other.tolist()
