"""Accumulation into ``grad``: exact from any number of threads, in place, never into shared memory."""

import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td


@pytest.fixture(autouse=True)
def switch_often():
    """Let threads take turns often, so that a lost update shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def leaf(values, dtype=np.float64):
    return td.asarray(np.asarray(values, dtype), requires_grad=True)


def in_threads(work, threads=8):
    faults = []

    def run(number):
        try:
            work(number)
        except BaseException as fault:
            faults.append(fault)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    assert not any(thread.is_alive() for thread in running), "deadlock"
    assert not faults, faults


class Seen(td.DispatchMode):
    def __tandem_dispatch__(self, op, types, args, kwargs):
        return op(*args, **kwargs)


def eager(x, w, k):
    return (x * w * k).sum()


jitted = td.jit(eager)


@pytest.mark.parametrize(
    "way", ["eager", "jitted", "hooks", "mode", "first", "retained", "sparse", "create_graph"]
)
def test_threads_lose_no_gradient(way):
    size = 40_000 if way == "first" else 3
    x, w = leaf(np.ones(size)), leaf(np.full(size, 2.0))
    rounds = 60 if way in ("sparse", "mode", "create_graph") else 250
    if way == "hooks":
        x.register_hook(lambda g: g * 1.0)
    kept = x * 1.0
    if way == "retained":
        kept.retain_grad()

    def work(number):
        for step in range(rounds):
            k = float(number + step % 3)
            if way == "mode":
                with Seen():
                    eager(x, w, k).backward()
            elif way == "sparse":
                x.backward(td.sparse_coo_tensor([[0]], [k], (3,)))
                w.backward(td.sparse_coo_tensor([[0]], [k], (3,)))
            elif way == "retained":
                eager(kept, w, k).backward(retain_graph=True)
            else:
                (jitted if way == "jitted" else eager)(x, w, k).backward(create_graph=way == "create_graph")

    in_threads(work)
    total = sum(float(number + step % 3) for number in range(8) for step in range(rounds))
    factor = (1, 1) if way == "sparse" else (2, 1)
    for tensor, by in zip((x, w), factor):
        grad = tensor.grad.to_dense() if way == "sparse" else tensor.grad
        assert grad.tolist()[0] == total * by
    if way == "retained":
        assert kept.grad.tolist() == [total * 2] * 3


def test_two_leaves_may_share_one_grad():
    x, w = leaf([1.0]), leaf([1.0])
    x.grad = w.grad = shared = td.asarray(np.zeros(1))
    in_threads(lambda number: [((x, w)[number % 2] * 1.0).sum().backward() for _ in range(200)])
    assert shared.tolist() == [1600.0] and x.grad is shared is w.grad


def test_user_kernel_may_wait_for_another_thread():
    x = leaf([1.0, 1.0])
    x.grad = td.zeros(2, dtype=td.float64)
    calls = []

    def waiting(self, other):
        calls.append(self)
        if len(calls) == 1:
            in_threads(lambda _: x.backward(td.ones(2, dtype=td.float64)), threads=1)
        return td.asarray(self.numpy() + other.numpy())

    with td.Library("td", "IMPL") as library:
        library.impl("add.Tensor", waiting, "CPU")
        x.backward(td.ones(2, dtype=td.float64))
    assert x.grad.tolist() == [2.0, 2.0] and len(calls) == 3  # the outer sum is computed again


# -- in place ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.complex64])
@pytest.mark.parametrize("function", [eager, jitted], ids=["eager", "jitted"])
def test_held_grad_stays_current(function, dtype):
    x, w = leaf([1.0, 2.0], dtype), leaf([3.0, 4.0], dtype)
    for _ in range(40):
        x.grad = w.grad = None
        function(x, w, 1.0).sum().backward()
        held, part, version = x.grad, x.grad[1:], x.grad.storage().version
        function(x, w, 1.0).sum().backward()
        assert x.grad is held and held.tolist() == [6.0, 8.0] and part.tolist() == [8.0]
        assert held.storage().version == version + 1


def test_create_graph_accumulates_out_of_place():
    x = leaf([2.0])
    (x * x).sum().backward()
    held = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not held and held.tolist() == [4.0] and x.grad.tolist() == [8.0] and x.grad.requires_grad
    recorded = x.grad
    (x * x).sum().backward()
    assert x.grad.tolist() == recorded.tolist() == [12.0] and not x.grad.requires_grad


def test_accumulation_is_noticed_by_history_that_saved_grad():
    x, w = leaf([2.0]), leaf([5.0])
    (x * x).sum().backward()
    product = w * x.grad
    (x * x).sum().backward()
    with pytest.raises(td.errors.VersionError):
        product.sum().backward()


class Give(td.autograd.Function):
    """The sum, with a gradient that somebody holds."""

    @staticmethod
    def forward(ctx, x, gradient):
        ctx.gradient = gradient
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return ctx.gradient, None


def held_gradients():
    base = td.asarray(np.ones((2, 2)))
    yield "a tensor", base, base
    yield "a view", base, base.reshape((2, 2))
    yield "a transpose", base, td.permute(base, (1, 0))
    yield "a part", (whole := td.asarray(np.ones((4, 2)))), whole[:2]
    yield "expanded", (one := td.asarray(np.ones((1, 1)))), td.broadcast_to(one, (2, 2))
    array = np.ones((2, 2))
    yield "an array", array, td.asarray(array)
    yield "a view of an array", array, td.asarray(array.T)
    block = bytearray(np.ones(4).tobytes())
    yield "a buffer", np.frombuffer(block), td.asarray(np.frombuffer(block).reshape(2, 2))
    fixed = np.ones((2, 2))
    fixed.flags.writeable = False
    yield "read-only", fixed, td.asarray(fixed)


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "dropped"])
@pytest.mark.parametrize("case", range(9))
def test_memory_of_others_is_never_written(case, kept):
    _, owner, gradient = list(held_gradients())[case]
    x, w = leaf(np.zeros((2, 2))), leaf(np.zeros((2, 2)))
    give = [gradient]
    if not kept:
        del gradient
    for _ in range(2):
        (Give.apply(x, give[0]) + Give.apply(w, give[0])).backward()
    assert x.grad.tolist() == w.grad.tolist() == [[2.0, 2.0]] * 2
    assert np.all(np.asarray(owner) == 1), "the first gradient was not copied"


def test_gradient_kept_by_hook_is_not_modified():
    x, seen = leaf([1.0, 1.0]), []
    x.register_hook(seen.append)
    for _ in range(3):
        (x * 3.0).sum().backward()
    assert [g.tolist() for g in seen] == [[3.0, 3.0]] * 3 and x.grad.tolist() == [9.0, 9.0]


def test_given_gradient_stays_as_it_was():
    x = leaf([1.0, 1.0])
    given = td.asarray(np.ones(2))
    for _ in range(3):
        x.backward(given)
    x.backward(x.grad)
    assert given.tolist() == [1.0, 1.0] and x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("size", [3, 1 << 18])
def test_a_fresh_gradient_is_not_copied(size, monkeypatch):
    x, w = leaf(np.ones(size)), leaf(np.ones(size))
    copies = []
    with Only(copies):
        td.sum(x * w).backward()
    assert not copies and x.grad.tolist()[0] == 1.0


class Through(td.autograd.Function):
    """The identity, with a derivative that is given."""

    @staticmethod
    def forward(ctx, x, derivative):
        ctx.derivative = derivative
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return ctx.derivative(g), None


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("shape", [(2, 3), (3,), (0,), ()])
def test_only_shared_gradients_are_copied(device, shape):
    kept, whole = (td.ones(size, dtype=td.float64, device=device) for size in (shape, (2, *shape)))
    cases = {
        "product": (lambda g: g * 2.0, 0),
        "sum": (lambda g: td.sum(td.stack([g, g]), 0), 0),
        "held": (lambda g: kept, 1),
        "part": (lambda g: whole[0], 1),
        "given": (lambda g: g, 1),
    }
    for name, (derivative, expected) in cases.items():
        x, given = (td.ones(shape, dtype=td.float64, device=device) for _ in range(2))
        y, copies = Through.apply(x.requires_grad_(), derivative), []
        with Only(copies):
            y.backward(given)
        assert len(copies) == expected, name
        assert x.grad.device == device and x.grad is not given


class Only(td.DispatchMode):
    """Note copies."""

    ops = ("clone",)

    def __init__(self, copies):
        super().__init__()
        self.copies = copies

    def __tandem_dispatch__(self, op, types, args, kwargs):
        self.copies.append(op.name)
        return op(*args, **kwargs)


@pytest.mark.parametrize("kind", ["read-only", "expanded"])
def test_grad_that_cannot_be_written_is_replaced(kind):
    array = np.zeros(3) if kind == "read-only" else np.broadcast_to(np.zeros(1), (3,))
    array.flags.writeable = False
    x = leaf(np.ones(3))
    x.grad = held = td.asarray(array)
    (x * 2.0).sum().backward()
    assert x.grad is not held and held.tolist() == [0.0] * 3 and x.grad.tolist() == [2.0] * 3


def test_strided_grad_of_the_user_is_written():
    whole = td.zeros(6, dtype=td.float64)
    x = leaf(np.ones(3))
    x.grad = whole[::2]
    (x * 2.0).sum().backward()
    assert whole.tolist() == [2.0, 0.0] * 3


def test_grad_that_requires_grad_is_written():
    x = leaf([1.0])
    x.grad = held = leaf([1.0])
    (x * 2.0).sum().backward()
    assert x.grad is held and held.tolist() == [3.0] and held.requires_grad


def test_overflow_is_silent():
    x = leaf([1.0], np.float32)
    for _ in range(2):
        x.backward(td.asarray(np.full(1, 3e38, np.float32)))
    assert x.grad.tolist() == [np.inf]


def test_modes_see_the_addition():
    x, seen = leaf([1.0]), []

    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append(op.schema.name)
            return op(*args, **kwargs)

    x.backward(td.asarray(np.ones(1)))
    held = x.grad
    with Log():
        x.backward(td.asarray(np.ones(1)))
    assert "add" in seen and x.grad is held and held.tolist() == [2.0]


def test_references_stay_flat():
    x, w = leaf([1.0]), leaf([1.0])
    for _ in range(200):
        eager(x, w, 1.0).backward()
    grad = x.grad
    before = sys.getrefcount(grad), sys.getrefcount(grad._array), sys.getrefcount(x._meta)
    for _ in range(2000):
        eager(x, w, 1.0).backward()
    assert (sys.getrefcount(grad), sys.getrefcount(grad._array), sys.getrefcount(x._meta)) == before
    gone = weakref.ref(grad)
    x.grad = None
    del grad
    assert gone() is None
