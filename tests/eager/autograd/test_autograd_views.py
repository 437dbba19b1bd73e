"""In-place writes through views: compared with finite differences, and with PyTorch where it is installed."""

import random

import numpy as np
import pytest
import tandem as td
from tandem import errors

POINT = np.random.default_rng(3).normal(size=(2, 3))
PROGRAMS = 150


# -- random programs ---------------------------------------------------------------------------------------------------
def steps_of(seed):
    """A program: a list of steps over a growing pool of tensors, the first of which depends on the argument."""
    rng = random.Random(seed)
    return [
        (
            rng.choice(
                [
                    "row",
                    "part",
                    "turn",
                    "flat",
                    "spread",
                    "buffer",
                    "scale",
                    "add",
                    "store",
                    "copy",
                    "tanh",
                    "use",
                ]
            ),
            rng.randrange(8),
            rng.randrange(8),
            rng.randrange(3),
        )
        for _ in range(rng.randint(3, 9))
    ]


class Tandem:
    errors = (errors.VersionError, errors.UnsupportedError)

    @staticmethod
    def zeros(shape):
        return td.zeros(shape, dtype=td.float64)

    @staticmethod
    def turn(y):
        return td.permute(y, tuple(range(y.ndim))[::-1])

    @staticmethod
    def spread(y):
        return td.broadcast_to(y, (2, *y.shape))


def step(lib, pool, x, kind, one, two, number):
    """Run one step; results enter the pool."""
    y, other = pool[one % len(pool)], pool[two % len(pool)].sum()
    if kind == "row" and y.ndim and y.shape[0]:
        pool.append(y[number % y.shape[0]])
    elif kind == "part" and y.ndim and y.shape[0] > 1:
        pool.append(y[number % 2 : y.shape[0] - number // 2])
    elif kind == "turn" and y.ndim > 1:
        pool.append(lib.turn(y))
    elif kind == "flat" and y.ndim > 1:
        pool.append(y.reshape((-1,)))
    elif kind == "spread" and y.ndim < 3:
        pool.append(lib.spread(y).sum() * 0.25)
    elif kind == "buffer":
        pool.append(lib.zeros((2, 2)))
    elif kind == "scale":
        y.mul_(other.sin() + 1.5)
    elif kind == "add":
        y.add_(other.cos())
    elif kind == "store" and y.ndim and y.shape[0]:
        y[number % y.shape[0]] = other * 0.5
    elif kind == "copy" and y.ndim and y.shape[0] > 1:
        y[:1] = y[-1:] * 0.5
    elif kind == "tanh":
        y.tanh_()
    elif kind == "use":
        pool.append((y * y).sum() * x.sum())


def run(lib, steps, x):
    pool = [x * 1.0]
    for each in steps:
        step(lib, pool, x, *each)
    total = 0.0
    for place, y in enumerate(pool):
        total = total + (y * (place + 1.0)).sin().sum()
    return total


def value_at(steps, at):
    with td.no_grad():
        return run(Tandem, steps, td.asarray(at.copy())).item()


def differences(steps, eps=1e-6):
    found = np.zeros_like(POINT)
    for place in np.ndindex(POINT.shape):
        up, down = POINT.copy(), POINT.copy()
        up[place] += eps
        down[place] -= eps
        found[place] = (value_at(steps, up) - value_at(steps, down)) / (2 * eps)
    return found


def ours(steps):
    """(gradient, None) or (None, the error)."""
    x = td.asarray(POINT.copy(), requires_grad=True)
    try:
        run(Tandem, steps, x).backward()
    except Tandem.errors as fault:
        return None, fault
    return x.grad.numpy(), None


@pytest.mark.parametrize("seed", range(0, PROGRAMS, 3))
def test_random_programs_against_differences(seed):
    steps = steps_of(seed)
    found, fault = ours(steps)
    if fault is None:
        np.testing.assert_allclose(found, differences(steps), rtol=1e-5, atol=1e-6)
    else:
        assert isinstance(fault, errors.VersionError), f"{steps}: {fault}"


@pytest.mark.parametrize("seed", range(1, PROGRAMS, 3))
def test_random_programs_under_grad(seed):
    steps = steps_of(seed)
    try:
        found = td.grad(lambda x: run(Tandem, steps, x))(td.asarray(POINT)).numpy()
    except errors.VersionError:
        return
    np.testing.assert_allclose(found, differences(steps), rtol=1e-5, atol=1e-6)


def test_random_programs_against_pytorch():
    torch = pytest.importorskip("torch")

    class Torch:
        @staticmethod
        def zeros(shape):
            return torch.zeros(shape, dtype=torch.float64)

        @staticmethod
        def turn(y):
            return y.permute(tuple(range(y.ndim))[::-1])

        @staticmethod
        def spread(y):
            return y.expand((2, *y.shape))

    compared = refused = 0
    for seed in range(4 * PROGRAMS):
        steps = steps_of(seed)
        x = torch.tensor(POINT.copy(), requires_grad=True)
        try:
            run(Torch, steps, x).backward()
            want = x.grad.numpy()
        except RuntimeError:  # a saved tensor was written, or something that PyTorch does not follow
            want = None
        found, fault = ours(steps)
        if want is None:
            refused += 1
            assert isinstance(fault, errors.VersionError) or np.allclose(
                found, differences(steps), rtol=1e-5
            ), steps
        else:
            compared += 1
            assert fault is None, (steps, fault)
            np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12, err_msg=str(steps))
    assert compared > PROGRAMS
    assert refused > 10


@pytest.mark.parametrize("seed", range(2, PROGRAMS, 3))
def test_random_programs_under_jit(seed):
    """Compiled gradients are the same, or the program is refused as one that a trace cannot follow."""
    steps = steps_of(seed)
    try:
        found = td.jit(td.grad(lambda x: run(Tandem, steps, x)))(td.asarray(POINT)).numpy()
    except (errors.VersionError, errors.UnsupportedError):
        return
    np.testing.assert_allclose(found, differences(steps), rtol=1e-5, atol=1e-6)
