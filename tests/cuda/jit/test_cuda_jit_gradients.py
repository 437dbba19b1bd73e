"""Gradients of jitted calls on CUDA tensors agree with the CPU's, for every differentiable operator.

They run on a double of the driver (no GPU is used).
"""

import os
import zlib

import numpy as np
import pytest
import tandem as td
from gradient_harness import DIFFERENTIABLE, OPS, smooth_samples
from optable import replace
from tandem import errors
from tandem.registry.function import functions

pytestmark = pytest.mark.usefixtures("cuda")
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
SHARE = 24  # of the operators are tried in one default run


def loss_of(op, given):
    """A function of the float64 tensors in an operator's arguments: the sum of squares of its real results."""

    def loss(*leaves):
        leaves = iter(leaves)
        args, options = replace(given, td.Tensor, lambda x: next(leaves) if x.dtype is td.float64 else x)
        out = functions[op.name](*args, **options)
        real = [x for x in (out if isinstance(out, tuple | list) else (out,)) if x.dtype.kind == "f"]
        return sum((td.sum(x * x) for x in real), td.sum(next(iter(real))) * 0) if real else None

    return loss


def moved(tree, device):
    return replace(tree, np.ndarray, lambda array: td.asarray(array, device=device))


def float_leaves(tree):
    found = []
    replace(tree, td.Tensor, lambda x: found.append(x) if x.dtype is td.float64 else None)
    return found


def check(op, args, kwargs):
    here, there = (moved((args, kwargs), device) for device in ("cpu", "cuda"))
    loss, points = loss_of(op, here), float_leaves(here)
    if loss(*points) is None:
        return
    places = tuple(range(len(points)))
    want = td.grad(loss, argnums=places)(*points)
    try:
        got = td.jit(td.grad(loss_of(op, there), argnums=places))(*float_leaves(there))
    except errors.UnsupportedError as fault:
        assert "trace" in str(fault), op.name
        return
    leaves = [td.asarray(x.numpy(), device="cuda", requires_grad=True) for x in points]
    value = td.jit(loss_of(op, there))(*leaves)
    if value.requires_grad:
        value.backward()
    for w, g, leaf in zip(want, got, leaves, strict=True):
        assert g.device == "cuda:0"
        np.testing.assert_allclose(g.cpu().numpy(), w.numpy(), rtol=1e-8, atol=1e-9, err_msg=op.name)
        recorded = np.zeros(w.shape) if leaf.grad is None else leaf.grad.cpu().numpy()
        np.testing.assert_allclose(recorded, w.numpy(), rtol=1e-8, atol=1e-9, err_msg=op.name)


def chosen(name):
    return zlib.crc32(f"{SEED} gradient {name}".encode()) % SHARE == 0


def test_a_sample_of_operators():
    for name in filter(chosen, DIFFERENTIABLE):
        args, kwargs = next(iter(smooth_samples(OPS[name])), (None, None))
        if args is not None:
            check(OPS[name], args, kwargs)


@pytest.mark.full
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_every_operator(name):
    for args, kwargs in smooth_samples(OPS[name])[:2]:
        check(OPS[name], args, kwargs)
