"""Arguments that require gradients, and the comparison of eager and jitted gradients."""

import functools

import numpy as np
import tandem as td
from helpers import assert_same

rng = np.random.default_rng(7)


def leaf(*shape, dtype=np.float64):
    return td.asarray(rng.standard_normal(shape).astype(dtype), requires_grad=True)


def plain(*shape, dtype=np.float64):
    return td.asarray(rng.standard_normal(shape).astype(dtype))


def gradients(f, leaves, *args):
    """The gradients that ``backward`` gives."""
    for x in leaves:
        x.grad = None
    f(*args).backward()
    return [x.grad for x in leaves]


def values(x):
    return x.detach().numpy() if isinstance(x, td.Tensor) else np.asarray(x)


assert_close = functools.partial(assert_same, rtol=1e-12, atol=1e-14)


def check(f, leaves, *args, jitted=None):
    """Eager and jitted gradients agree, in the first call and in those that machine code answers."""
    jitted = jitted or td.jit(f)
    wanted = gradients(f, leaves, *args)
    for _ in range(3):
        assert_close(gradients(jitted, leaves, *args), wanted)
    return jitted


def mlp(params, x):
    return (td.tanh(x @ params["w"] + params["b"]) ** 2).mean()


def second(f, leaves, *args):
    found = td.autograd.grad(f(*args), leaves, create_graph=True)
    total = sum((g * g).sum() for g in found)
    third = td.autograd.grad(total, leaves, create_graph=True)
    return [*third, *td.autograd.grad(sum((g * g).sum() for g in third), leaves)]
