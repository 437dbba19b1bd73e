"""Jitted functions on CUDA tensors compared with eager calls and the CPU, on the test double of the driver."""

import numpy as np
import pytest
import tandem as td
from cuda_jit_harness import on_cpu, random
from tandem import errors
from tandem.backends.cuda.launches.executable import CudaExecutable
from tandem.lowering.lower import Interpreted

pytestmark = pytest.mark.usefixtures("cuda")


def test_a_call():
    f = td.jit(lambda x, s: td.tanh(x) * s)
    x = random(5, 7)
    assert np.allclose(f(x, 2.0).cpu().numpy(), np.tanh(x.cpu().numpy()) * 2, rtol=1e-6)
    compiled = CudaExecutable if td.config.flags.native else Interpreted
    assert type(f._specializations[0].executable) is compiled
    f(x, 3.0)
    assert f.cache_info()[:2] == (1, 1)
    f(x.T, 3.0)
    f(x.cpu(), 3.0)
    f(td.ones((5, 7), device="cuda:1"), 3.0)
    assert f.cache_info()[:2] == (1, 4)
    assert "on cuda:0" in str(f._specializations[0].guards[0])


def test_devices_are_kept_apart():
    f = td.jit(lambda x: x + 1)
    f(td.ones(3))
    assert "device was cpu, now cuda:1" in f.explain(td.ones(3, device="cuda:1"))
    for device in ("cuda:0", "cuda:1", "cpu"):
        assert f(td.ones(3, device=device)).device == device
    with td.cuda.device(1):
        assert f(td.ones(3, device="cuda")).device == "cuda:1"
        assert f(td.ones(3, device="cuda:0")).device == "cuda:0"


def test_mixed_devices_say_what_eager_says():
    x, y = random(3), td.ones(3)
    for pair in ((x, y), (y, x), (x, td.ones(3, device="cuda:1"))):
        with pytest.raises(errors.DeviceError) as eager:
            td.add(*pair)
        with pytest.raises(errors.DeviceError) as jitted_:
            td.jit(lambda a, b: a + b)(*pair)
        assert str(jitted_.value) == str(eager.value)
    with pytest.raises(errors.DeviceError, match="cuda:0"):
        td.jit(lambda a: a @ y)(x)


def test_numbers_and_positions_may_be_on_host():
    x, s = random(5, 3), td.asarray(2.0)
    found = td.jit(lambda x, s: (x * (s * 3 + 1), x[[0, 2]], td.fori_loop(0, 3, lambda i, c: c + i, x)))(x, s)
    want = x * 7, x[[0, 2]], x + 3
    for a, b in zip(found, want, strict=True):
        assert np.allclose(on_cpu(a).numpy(), b.cpu().numpy())


def test_work_on_several_devices_is_interpreted():
    f = td.jit(lambda x: (x + 1, (x * 2).to("cpu") + 1, td.arange(3)))
    x = random(4)
    a, b, c = f(x)
    assert (a.device, b.device, c.tolist()) == ("cuda:0", "cpu", [0, 1, 2])
    assert np.allclose(b.numpy(), x.cpu().numpy() * 2 + 1)
    assert {row.choice for row in f.lower(x).kernels()} == {"interpreted"}
    assert td.jit(lambda x: x.to("cuda") + 1)(td.ones(2)).device == "cuda:0"


def test_layouts_of_arguments():
    wide = random(8, 12)
    f = td.jit(lambda x: x * 2 + 1)
    for x in (
        wide.T,
        wide[1:, 1:],
        wide[::2, ::-1],
        wide[:, :1],
        wide.reshape(96)[1:],
        td.broadcast_to(wide[0], (3, 12)),
    ):
        assert np.array_equal(f(x).cpu().numpy(), x.cpu().numpy() * 2 + 1)


def test_results_that_are_views_and_arguments():
    x = random(4, 6)

    @td.jit
    def f(x):
        y = td.exp(x)
        return x, x.T, y, y[1:], x * 1, x.reshape(24)

    same, turned, y, part, product, flat = f(x)
    assert same is x
    assert turned.storage() is x.storage() and flat.storage() is x.storage()
    assert product.storage() is not x.storage()
    part.add_(1.0)
    assert np.allclose(y.cpu().numpy(), np.exp(x.cpu().numpy()), rtol=1e-6)


def test_writes_are_written_back():
    @td.jit
    def f(x, y):
        x[0] = 7.0
        x.add_(y)
        return x.sum()

    def plain(x, y):
        x[0] = 7.0
        x.add_(y)
        return x.sum()

    ours, theirs, y = random(3, 4), random(3, 4), random(3, 4, seed=1)
    version = ours._version if hasattr(ours, "_version") else None
    assert np.allclose(f(ours, y).item(), plain(theirs, y).item(), rtol=1e-6)
    assert np.array_equal(ours.cpu().numpy(), theirs.cpu().numpy())
    assert version is None or ours._version > version
    f(ours[:, 1:3], y[:, 1:3])
    plain(theirs[:, 1:3], y[:, 1:3])
    assert np.array_equal(ours.cpu().numpy(), theirs.cpu().numpy())
    f(ours, ours)  # one memory: as it is written
    plain(theirs, theirs)
    assert np.array_equal(ours.cpu().numpy(), theirs.cpu().numpy())
    with pytest.raises(errors.UnsupportedError, match="broadcast"):
        f(td.broadcast_to(y[0], (3, 4)), y)


def test_callbacks_get_the_elements(capsys):
    x = random(3)
    td.jit(lambda x: td.debug.print("here: {}", x * 0 + 1))(x)
    td.synchronize("cuda")
    assert capsys.readouterr().out == "here: [1. 1. 1.]\n"


def test_captured_tensors_are_read_at_each_call():
    w = random(4)
    f = td.jit(lambda x: x * w)
    x = random(3, 4, seed=1)
    assert np.array_equal(f(x).cpu().numpy(), (x * w).cpu().numpy())
    w.mul_(2.0)
    assert np.array_equal(f(x).cpu().numpy(), (x * w).cpu().numpy())
    assert f.cache_info().misses == 1


def test_autocast():
    x, w = random(4, 8), random(8, 3, seed=1)
    f = td.jit(lambda x, w: td.relu(x @ w))
    assert f(x, w).dtype is td.float32
    with td.autocast("cuda", td.bfloat16):
        found = f(x, w)
        assert found.dtype is td.bfloat16
        assert np.array_equal(
            found.cpu().astype(td.float32).numpy(), td.relu(x @ w).cpu().astype(td.float32).numpy()
        )


def test_transforms():
    x, w = random(6, 5), random(5, 4, seed=1)

    def loss(w, x):
        return td.sum(td.tanh(x @ w) ** 2)

    f = td.jit(loss)
    near = lambda a, b: np.testing.assert_allclose(on_cpu(a).numpy(), b.cpu().numpy(), rtol=2e-5, atol=1e-6)  # noqa: E731
    near(td.grad(f)(w, x), td.grad(loss)(w.cpu(), x.cpu()))
    near(td.jit(td.grad(loss))(w, x), td.grad(loss)(w.cpu(), x.cpu()))
    near(td.vmap(f, in_axes=(None, 0))(w, x), td.vmap(loss, in_axes=(None, 0))(w.cpu(), x.cpu()))
    near(
        td.jit(td.vmap(td.grad(loss), in_axes=(None, 0)))(w, x),
        td.vmap(td.grad(loss), in_axes=(None, 0))(w.cpu(), x.cpu()),
    )
    near(td.jvp(f, (w, x), (w, x))[1], td.jvp(loss, (w.cpu(), x.cpu()), (w.cpu(), x.cpu()))[1])
    near(
        td.grad(lambda w: td.sum(td.grad(f)(w, x) ** 2))(w),
        td.grad(lambda w: td.sum(td.grad(loss)(w, x.cpu()) ** 2))(w.cpu()),
    )


def reverse_in_place(x):
    y = td.clone(x)
    y[::-1] = x
    return y


UPDATES = {
    "a part of one kernel's results": lambda x: (lambda v: (v * 2 + 1).at[::-1].set(v))(td.sin(x)),
    "a sum with a part": lambda x: (lambda v: (v * 2 + 1).at[1:].add(v[:-1]))(td.sin(x)),
    "a tangent": lambda x: td.jvp(lambda x: reverse_in_place(td.clip(x, -1, 1)), (x,), (x * 2,)),
    "a tangent of parts": lambda x: td.jvp(lambda x: reverse_in_place(x.at[::2].add(x[::2])), (x,), (x * 2,)),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_are_written_after_what_they_update(name):
    """A kernel that computes what an update starts from does not move behind the update."""
    x = td.asarray(np.arange(15.0).reshape(5, 3), device="cuda")
    jitted = td.pytree.flatten(td.jit(UPDATES[name])(x))[0]
    for got, want in zip(jitted, td.pytree.flatten(UPDATES[name](x.cpu()))[0], strict=True):
        np.testing.assert_allclose(on_cpu(got).numpy(), want.numpy(), rtol=1e-6)


def test_loops():
    h, w = random(3, 3), random(3, 3, seed=1)

    def f(h, w):
        last, all_ = td.scan(lambda h, _: (td.tanh(h @ w), td.sum(h)), h, None, length=4, reverse=True)
        grown = td.while_loop(lambda x: td.sum(x) < 10, lambda x: x + 1, td.abs(last))
        return last, all_, grown, td.cond(td.sum(last) > 0, lambda x: x + 1, lambda x: x - 1, last)

    for got, want in zip(td.jit(f)(h, w), f(h.cpu(), w.cpu()), strict=True):
        np.testing.assert_allclose(on_cpu(got).numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    g = lambda h, w: td.grad(lambda w: td.sum(f(h, w)[0]))(w)  # noqa: E731
    np.testing.assert_allclose(
        td.jit(g)(h, w).cpu().numpy(), g(h.cpu(), w.cpu()).numpy(), rtol=1e-5, atol=1e-6
    )
    empty = td.scan(lambda c, x: (c + x, c), h[0], h[:0])
    for got, want in zip(
        td.jit(lambda h: td.scan(lambda c, x: (c + x, c), h[0], h[:0]))(h), empty, strict=True
    ):
        assert np.array_equal(got.cpu().numpy(), want.cpu().numpy())


def test_loops_with_a_number_as_first_carry(cuda):
    def count(x):
        return td.scan(lambda state, _: ((state[0] + 1, state[1] + 1), None), (0, x), length=3)[0]

    x = td.asarray(np.arange(4.0), device="cuda")
    for number, array in (count(x), td.jit(count)(x)):
        assert int(number) == 3
        assert array.to("cpu").tolist() == [3, 4, 5, 6]


def test_interpreted_body_gets_host_numbers_that_the_device_computed(cuda):
    """``index_reduce`` is interpreted; the branch around the loop computes the initial counter on the device."""

    def step(state):
        i, x = state
        return i + 1, x.at[(td.arange(3, device="cuda") + i) % 3].max(x[0] * 2)

    def f(x):
        grow = lambda x: td.while_loop(lambda state: state[0] < 3, step, (0, x))[1]  # noqa: E731
        return td.cond(x.sum() > 0, grow, lambda x: x, x)

    x = td.asarray(np.arange(1.0, 4.0), device="cuda")
    assert td.jit(f)(x).tolist() == f(x).tolist() == [8.0, 8.0, 8.0]


MADE = {
    "a matrix": (lambda x: x * td.eye(300, k=1, device=x.device), 1),
    "a matrix without ones": (lambda x: td.eye(300, 400, k=-350, dtype=td.int32, device=x.device), 1),
    "flat parts": (lambda x: td.ops.td.concat([x[:3] * 2, x[5:7]], None), 2),
    "numbers": (lambda x: x[0] * td.linspace(0.1, 7, 300, device=x.device), 1),
}


@pytest.mark.parametrize("name", MADE)
def test_matrices_and_joins_are_computed_where_they_are_read(cuda, name):
    f, kernels = MADE[name]
    x = random(300, 300)
    got, want = td.jit(f)(x), f(x)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert on_cpu(got).numpy().tobytes() == on_cpu(want).numpy().tobytes()
    if td.config.flags.native:
        steps = td.jit(f).lower(x.to("cpu"), device="cuda").kernels().steps
        assert len(steps) <= kernels + 1
        assert not any(step.startswith(("callback", "native")) for step in steps)
