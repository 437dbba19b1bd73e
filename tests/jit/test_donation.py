"""``donate_argnums``: results are stored in the memory of donated arguments, which are deleted."""

import contextlib
import copy
import pickle
import sys
import threading

import cloudpickle
import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import config
from tandem.errors import DeletedTensorError

N = 200  # N x N float32 are more than the smallest that are donated
needs_native = pytest.mark.skipif(
    not config.flags.native, reason="the interpreter stores nothing in arguments"
)


def make(seed=0):
    return td.asarray(np.random.default_rng(seed).standard_normal((N, N), dtype=np.float32))


PROGRAMS = {
    "update": lambda x, y: x.at[3].set(y[2]),
    "chain of updates": lambda x, y: x.at[0].set(y[1]).at[1:5].add(y[1:5]).at[:, 2].multiply(2.0),
    "elementwise": lambda x, y: x - 0.1 * y,
    "two results": lambda x, y: (td.tanh(x + y), x.sum()),
    "read afterwards": lambda x, y: (x + y, x @ y),
    "read by another kernel": lambda x, y: td.exp(x - x.max()) * y,
    "transposed": lambda x, y: x.T + y,
    "neighbours": lambda x, y: x.at[1:-1].set(x[2:] + x[:-2]),
    "loop": lambda x, y: td.fori_loop(0, 3, lambda k, c: c.at[k].set(c[k - 1] + y[k]), x),
    "stencil": lambda x, y: td.fori_loop(0, 3, lambda k, c: c.at[1:-1].set((c[2:] + c[:-2]) * 0.5), x),
    "branches": lambda x, y: td.cond(y[0, 0] > 0, lambda x: x.at[0].set(1.0), lambda x: x * 2, x),
    "argument": lambda x, y: (x, x + y),
    "view": lambda x, y: (x[3], x.at[0].set(1.0)),
    "sorted": lambda x, y: td.sort(x + y, axis=0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_without_donation(name):
    program = PROGRAMS[name]
    wanted = td.tree.leaves(td.jit(program)(make(), make(1)))
    results = td.tree.leaves(td.jit(program, donate_argnums=(0, 1))(make(), make(1)))
    for result, value in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(result.numpy(), value.numpy())


ONE_ARRAY = ("update", "chain of updates", "elementwise", "loop")


@needs_native
@pytest.mark.parametrize("name", ONE_ARRAY)
def test_one_array_of_memory(name):
    x, y = make(), make(1)
    f = td.jit(PROGRAMS[name], donate_argnums=0)
    memory = f.lower(x, y).compile().memory_analysis()
    assert memory["output"] == 0 and memory["temp"] < x.nbytes / 8
    address = x.data_ptr()
    for _ in range(5):
        x = f(x, y)
        assert x.data_ptr() == address


def _write_attribute(x):
    x.shape = (-1,)


USES = {
    "add": lambda x: x + 1,
    "other operand": lambda x: td.ones((N, N)) + x,
    "shape": lambda x: x.shape,
    "numpy": lambda x: np.asarray(x),
    "dlpack": lambda x: np.from_dlpack(x),
    "jit": lambda x: td.jit(td.sin)(x),
    "grad": lambda x: td.grad(lambda x: x.sum())(x),
    "vmap": lambda x: td.vmap(td.sin)(x),
    "item": lambda x: x[0, 0].item(),
    "len": len,
    "iterate": list,
    "write": lambda x: x.__setitem__(0, 1.0),
    "write in place": lambda x: x.add_(1),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "matmul": lambda x: td.ones((N, N)) @ x,
    "where": lambda x: td.where(td.ones((N, N)) > 0, x, 0.0),
    "out": lambda x: td.add(td.ones((N, N)), 1.0, out=x),
    "set shape": _write_attribute,
    "detach": lambda x: x.detach(),
    "view": lambda x: x.reshape(-1),
    "backward": lambda x: (td.ones((N, N)).requires_grad_() * x).sum().backward(),
    "tree": lambda x: td.jit(lambda t: t["x"] + 1)({"x": x}),
}


@needs_native
@pytest.mark.parametrize("use", USES)
def test_a_donated_tensor_raises(use):
    x = make()
    call = USES[use]
    for _ in range(70):  # so that the native entries of these calls exist
        if use not in ("write", "write in place", "set shape", "out"):
            call(x)
    td.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.is_deleted() and repr(x) == str(x) == "<deleted tensor>"
    with pytest.raises(DeletedTensorError, match="deleted"):
        call(x)


@needs_native
def test_views_and_arrays_keep_their_elements():
    f = td.jit(lambda x: x * 2, donate_argnums=0)
    for share in (lambda x: x[3], lambda x: x.numpy()[3], lambda x: x.T[:, 3], lambda x: x.detach()[3]):
        x = make()
        part, wanted = share(x), x.numpy()[3].copy()
        result = f(x)
        assert x.is_deleted()
        np.testing.assert_array_equal(np.asarray(part), wanted)
        np.testing.assert_array_equal(result.numpy()[3], wanted * 2)


def test_arrays_of_the_caller_are_not_written():
    array = np.ones((N, N), np.float32)
    td.jit(lambda x: x * 2, donate_argnums=0)(array)
    assert (array == 1).all()


@needs_native
def test_the_same_tensor_given_twice():
    x = make()
    wanted = x.numpy() * 3
    np.testing.assert_array_equal(td.jit(lambda x, y: x * 2 + y, donate_argnums=0)(x, x).numpy(), wanted)
    assert x.is_deleted()


def test_small_recorded_and_written_arguments_are_not_donated():
    small = td.ones(8)
    td.jit(lambda x: x * 2, donate_argnums=0)(small)
    recorded = make().requires_grad_()
    td.jit(lambda x: (x * 2).sum(), donate_argnums=0)(recorded).backward()
    written = make()
    td.jit(lambda x: x.add_(1), donate_argnums=0)(written)
    assert not small.is_deleted() and not recorded.is_deleted() and not written.is_deleted()
    assert recorded.grad[0, 0].item() == 2


@needs_native
@pytest.mark.parametrize(
    "make_recorded", [lambda: make().requires_grad_(), lambda: make().requires_grad_() * 1]
)
def test_recorded_tensors_are_not_written_under_no_grad(make_recorded):
    x = make_recorded()
    wanted, total = x.detach().numpy().copy(), (x * x).sum()
    x.retain_grad()
    f = td.jit(lambda x: x * 2, donate_argnums=0)
    with td.no_grad():
        results = [f(x), f.lower(x).compile()(x)]
    assert not x.is_deleted() and (x.detach().numpy() == wanted).all()
    for result in results:
        np.testing.assert_array_equal(result.numpy(), wanted * 2)
    total.backward()
    np.testing.assert_array_equal(x.grad.numpy(), wanted * 2)


@needs_native
def test_view_taken_while_memory_is_donated(monkeypatch):
    views, is_sole_owner = [], td.Tensor._is_sole_owner

    def check(tensor):
        result = is_sole_owner(tensor)
        with contextlib.suppress(DeletedTensorError):  # as another thread could
            views.append(x[3])
        return result

    x, wanted = make(), make().numpy()[3]
    monkeypatch.setattr(td.Tensor, "_is_sole_owner", check)
    td.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert all((view.numpy() == wanted).all() for view in views)


@needs_native
def test_two_calls_cannot_take_one_tensor(monkeypatch):
    f, results, is_sole_owner = td.jit(lambda x, k: x * k, donate_argnums=0), [], td.Tensor._is_sole_owner

    def check(tensor):
        result = is_sole_owner(tensor)
        monkeypatch.setattr(td.Tensor, "_is_sole_owner", is_sole_owner)
        with contextlib.suppress(DeletedTensorError):  # as another thread could
            results.append(f(x, td.asarray(3.0)))
        return result

    x, wanted = make(), make().numpy()
    monkeypatch.setattr(td.Tensor, "_is_sole_owner", check)
    result = f(x, td.asarray(2.0))
    assert not results and (result.numpy() == wanted * 2).all()


def test_delete_by_many_threads():
    """A tensor that threads read and delete is whole, or raises an error."""
    faults = []

    def use(x, barrier):
        barrier.wait()
        try:
            if (x + 1).shape != (8, 8):
                faults.append(x)
            x.delete()
        except DeletedTensorError:
            pass
        except BaseException as fault:
            faults.append(fault)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            barrier, x = threading.Barrier(3), td.ones((8, 8))
            threads = [threading.Thread(target=use, args=(x, barrier)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not faults and x.is_deleted()
    finally:
        sys.setswitchinterval(interval)


@needs_native
def test_a_failing_call_leaves_nothing_half_written():
    def program(x, k):
        x = x.at[0].set(9.0)
        return x.at[k].set(1.0)

    x, part = make(), make()
    with pytest.raises(td.errors.OutOfBoundsError):
        td.jit(program, donate_argnums=0)(x, td.asarray(N + 5))
    assert x.is_deleted() and (part.numpy() == make().numpy()).all()


@needs_native
def test_containers_and_names_are_donated():
    state = {"w": make(), "step": td.zeros(())}
    step = td.jit(lambda state, g: {"w": state["w"] - g, "step": state["step"] + 1}, donate_argnames="state")
    address = state["w"].data_ptr()
    result = step(state, make(1))
    assert state["w"].is_deleted() and not state["step"].is_deleted()
    assert result["w"].data_ptr() == address


def test_pickled_by_value_with_its_options():
    step = td.jit(lambda x, n: x * n, donate_argnums=0, static_argnames="n")
    again = pickle.loads(cloudpickle.dumps(step))
    assert again._arguments.donated == {"x"} and again._arguments.static == {"n"}


@needs_native
@settings(max_examples=40)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(0, 3))
def test_random_programs(choices, seed):
    steps = [
        lambda x, y: x.at[1:4].set(y[:3]),
        lambda x, y: td.tanh(x) + y,
        lambda x, y: x.at[:, 3].add(x[:, 5]),
        lambda x, y: x[::-1] + y,
        lambda x, y: x.at[td.asarray([1, 2, 1])].add(1.0),
        lambda x, y: td.where(x > x.mean(), x, y),
    ]

    def program(x, y):
        for choice in choices:
            x = steps[choice](x, y)
        return x, y * 2

    wanted = td.jit(program)(make(seed), make(seed + 1))
    results = td.jit(program, donate_argnums=(0, 1))(make(seed), make(seed + 1))
    for result, value in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(result.numpy(), value.numpy())


def test_memory_does_not_grow():
    f = td.jit(lambda x: x.at[0].add(1.0), donate_argnums=0)
    x = td.zeros((N, N))
    for _ in range(1000):
        x = f(x)
    assert x[0, 0].item() == 1000.0
