"""Eager CUDA: operators, gradients, transforms, writes and errors, on the test double of the driver."""

import os
import zlib

import numpy as np
import pytest
import tandem as td
from cuda_host.rows import run_row, to_cuda
from optable import errors_of, generator, make, replace, rows, table
from rotation import rotating
from tandem import errors
from tandem.backends.cuda import load
from tandem.registry.dispatch.keys import DispatchKey
from tandem.registry.function import functions

pytestmark = pytest.mark.usefixtures("cuda")
OPS = table()
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))


# -- every operator ----------------------------------------------------------------------------------------------------
CHECKED = [name for name, op in OPS.items() if op.decl.reference and op.decl.samples]
SHARE = 10  # of the operators are tried in one default run; the commit, or TANDEM_TEST_SEED, chooses which


def chosen(name):
    return zlib.crc32(f"{SEED} {name}".encode()) % SHARE == 0


@pytest.mark.parametrize("part", range(4))
def test_operators_agree_with_their_references(part):
    """A sample: one row of some of the operators."""
    for name in CHECKED[part::4]:
        if chosen(name):
            found = list(rows(OPS[name]))
            run_row(OPS[name], *found[zlib.crc32(f"{SEED} row {name}".encode()) % len(found)])


@pytest.mark.full
@pytest.mark.parametrize("name", CHECKED)
def test_every_row_agrees_with_its_reference(name):
    for dtype, sample in rows(OPS[name]):
        run_row(OPS[name], dtype, sample)


@rotating
@pytest.mark.parametrize("name", OPS)
def test_every_operator_is_served(name):
    """By emitted kernels, stride arithmetic, the array library, or as a composite; nothing is left out."""
    td.zeros(1, device="cuda")
    op = OPS[name]
    way = load.strategy_of(op)
    assert way in ("emitted", "view", "library", "in place", "composite")
    kind = op.table[DispatchKey.CUDA].kind
    assert kind.startswith("composite" if way == "composite" else "kernel"), (way, kind)


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_two_devices_are_an_error_that_names_both():
    x, y = td.ones(3, device="cuda"), td.ones(3)
    for call in (
        lambda: x + y,
        lambda: y * x,
        lambda: td.concat([x, y]),
        lambda: td.where(x > 0, x, y),
        lambda: x @ y,
        lambda: x.add_(y),
        lambda: y.add_(x),
        lambda: td.ones(3, device="cuda:1") + x,
    ):
        with pytest.raises(errors.DeviceError, match="cuda:0") as caught:
            call()
        assert "cpu" in str(caught.value) or "cuda:1" in str(caught.value)
    assert x.tolist() == [1.0] * 3
    assert y.tolist() == [1.0] * 3


def test_constants_of_the_host_are_numbers():
    x = td.ones(2, device="cuda", dtype=td.float64)
    assert (x * np.float32(2)).tolist() == [2.0, 2.0]
    assert (td.asarray(3.0) - x).device == "cuda:0"
    assert (x + td.asarray(1)).dtype is td.float64
    x[0] = td.asarray(9.0)
    assert x.tolist() == [9.0, 1.0]


@rotating
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.decl.errors])
def test_bad_calls_raise_what_they_say(name):
    """As on the CPU; positions out of bounds are noticed where the host waits."""
    op = OPS[name]
    default = td.float32 if td.float32 in op.decl.dtypes or not op.decl.dtypes else op.decl.dtypes[-1]
    for bad in errors_of(op):
        rng = generator(op, default)
        made = replace((bad.args, dict(bad.kwargs)), _draw_type(), lambda d, rng=rng: _drawn(d, default, rng))
        args, kwargs = to_cuda(made)
        if "device" in kwargs or bad.error is MemoryError:
            continue
        with pytest.raises(bad.error) as caught:
            functions[op.name](*args, **kwargs)
            td.synchronize("cuda:0")
            td.synchronize()
        assert isinstance(caught.value, errors.TandemError), bad


def _draw_type():
    return td.operators.declare.declaration.TensorSample


def _drawn(draw, dtype, rng):
    return make(draw, dtype, rng)


def test_positions_out_of_bounds():
    x = td.arange(4, device="cuda")
    with pytest.raises(errors.OutOfBoundsError, match="index 4 is out of bounds for axis 0 with size 4"):
        x[td.asarray([0, 4])].tolist()
    with pytest.raises(errors.OutOfBoundsError, match="index -5"):
        x[td.asarray([-5])] = 0
        td.synchronize()
    assert x.tolist() == [0, 1, 2, 3]
    td.synchronize()


def test_devices_that_are_not_there():
    with pytest.raises(errors.DeviceError, match="there are 'cuda:0', 'cuda:1'"):
        td.ones(2, device="cuda:7")
    with pytest.raises(errors.DeviceError, match="unknown device"):
        td.ones(2).to("cuda:x")


# -- random programs ---------------------------------------------------------------------------------------------------
def one_step(rng, x):
    """A random step that keeps the number of axes at two or three: what it does, given a tensor on any device."""
    kind = rng.integers(0, 9)
    rank = x.ndim
    if kind == 0:
        axes = tuple(int(a) for a in rng.permutation(rank))
        return lambda v: td.permute(v, axes)
    if kind == 1:
        axis, step = int(rng.integers(0, rank)), int(rng.choice([1, 2, -1]))
        plan = tuple(slice(None, None, step) if a == axis else slice(None) for a in range(rank))
        return lambda v: v[plan]
    if kind == 2:
        return lambda v: v.reshape((-1, v.shape[-1]))
    if kind == 3:
        return lambda v: v + v[:1]
    if kind == 4:
        number = float(rng.integers(-2, 3))
        return lambda v: v.clone().mul_(number)
    if kind == 5:
        return lambda v: td.concat([v, v[:2]], axis=0)
    if kind == 6:
        places = [int(i) for i in rng.integers(-x.shape[0], x.shape[0], 3)]
        return lambda v: v[td.asarray(places)]
    if kind == 7:
        place, many = int(rng.integers(0, x.shape[0])), [int(i) for i in rng.integers(0, x.shape[0], 4)]

        def write(v):
            made = v.clone()
            made[place] = made[-1] * 2
            return made.at[td.asarray(many)].add(1.0)

        return write
    return lambda v: v - v.sum(0, keepdims=True) * 0.5


@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
def test_random_programs_agree_with_the_cpu(seed):
    rng = np.random.default_rng(seed)
    x = td.asarray(rng.integers(-3, 4, (4, 3, 5)).astype(np.float64))
    y = x.to("cuda")
    for _ in range(12):
        step = one_step(rng, x)
        x, y = step(x), step(y)
        assert y.device == "cuda:0"
        np.testing.assert_allclose(y.to("cpu").numpy(), x.numpy(), rtol=1e-12, atol=1e-9)
        if x.size > 400:
            x, y = x[:3], y[:3]


@pytest.mark.parametrize("seed", range(SEED, SEED + 30))
def test_wrong_arguments_raise_as_on_cpu(seed):
    """Random arguments, most of them wrong: the same class of error as on the CPU, and the tensors stay as they are."""
    rng = np.random.default_rng(seed)
    names = [
        name
        for name, op in OPS.items()
        if op.decl.kind in ("view", "reduction", "scan", "gather", "join", "scatter")
    ]
    values = [None, -1, 2, 10**6, 1.5, "x", (0, 1), (5,), (), True, [[1]], td.float32, object()]
    x = td.arange(6, dtype=td.float32).reshape((2, 3))
    y = x.to("cuda")
    for _ in range(10):
        call = functions[OPS[names[rng.integers(len(names))]].name]
        rest = [values[i] for i in rng.integers(0, len(values), int(rng.integers(0, 3)))]
        outcomes = []
        for tensor in (x, y):
            try:
                found = call(tensor, *rest)
                td.synchronize()
                outcomes.append([item.shape for item in (found if isinstance(found, tuple) else (found,))])
            except errors.TandemError as fault:
                outcomes.append(type(fault))
        assert outcomes[0] == outcomes[1], (call, rest)
    assert y.tolist() == x.tolist()


@pytest.mark.parametrize("device", ["cuda", "meta"])
def test_write_to_residual_raises_in_backward(cuda, device):
    x = td.ones((2, 2), device=device, dtype=td.float32).requires_grad_()
    y = td.exp(x)
    y.mul_(2.0)
    with pytest.raises(errors.VersionError, match="exp"):
        y.sum().backward()


def test_host_constants_with_integers(cuda):
    x = td.asarray([1, 2], device="cuda")
    for _ in range(3):
        assert td.where(x > 1, td.asarray(5), 0).tolist() == [0, 5]
        assert td.where(x > 1, 0, np.int64(5)).tolist() == [5, 0]


@pytest.mark.parametrize("dtype", [td.float32, td.int8, td.complex64], ids=str)
def test_positions_along_negative_strides(cuda, dtype):
    a, at = np.arange(1, 7).reshape(3, 2).astype(dtype.np), np.asarray([0, 2])
    x, place = td.asarray(a, device="cuda"), td.asarray(at, device="cuda")
    back = x[::-1, ::-1]
    assert back[place].tolist() == a[::-1, ::-1][at].tolist()
    assert back[place, place - 1].tolist() == a[::-1, ::-1][at, at - 1].tolist()
    added = x[::-1].at[place].add(x[:2])
    want = a[::-1].copy()
    want[at] += a[:2]
    assert added.tolist() == want.tolist()
    back[place] = x[:2].clone()
    a[::-1, ::-1][at] = a[:2].copy()
    assert x.tolist() == a.tolist()
