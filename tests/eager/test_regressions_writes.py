"""Regressions: writes in place, and where what is written lies in memory."""

from __future__ import annotations

import numpy as np
import pytest
import tandem as td
from tandem import errors


# -- the first write of a batch into a tensor made inside vmap goes through a view -----------------------------------
def element(y):
    z = td.zeros(3)
    z[0] += y
    return z


def part(y):
    z = td.ones(3)
    z[0:2] *= td.stack([y, y + 1])
    return z


def reshaped(y):
    z = td.zeros(3)
    z.reshape(3, 1)[1] = y
    return z


def held(y):
    z = td.ones((2, 3))
    row, back, first = z[1], z[:, ::-1], z.T[0]
    row[1:].add_(y)
    return z, row, back, first


def turned(y):
    z = td.zeros((2, 3))
    z.T[0] = y
    z[:, ::-1][1, 0] -= y * y
    return z


def broadcast(y):
    z = td.zeros(3)
    rows = td.broadcast_to(z, (2, 3))
    z[1:] += y
    return rows


def between(y):
    def loss(u):
        z = td.zeros(3)
        z[0] += u * u
        z[1:] += y * u
        return (z * z).sum()

    return td.grad(loss)(y)


def nested(y):
    def inner(u):
        z = td.ones(3)
        z[0] += u
        z[1:2].add_(y)
        z[2] *= u * y
        return z

    return td.vmap(inner)(td.asarray([1.0, 3.0]))


EXAMPLES = td.asarray([1.0, 2.0, 5.0, -1.0])
TRACED = [element, part, held, turned, between, nested]


def same(found, each):
    """What a transform of a function gives, and what the function gives for each example."""
    columns = zip(*map(td.tree.leaves, each), strict=True)
    for got, items in zip(td.tree.leaves(found), columns, strict=True):
        np.testing.assert_allclose(got.numpy(), np.stack([item.numpy() for item in items]))


@pytest.mark.parametrize("function", [*TRACED, reshaped, broadcast])
def test_batches_are_written_through_views(function):
    same(td.vmap(function)(EXAMPLES), [function(y) for y in EXAMPLES])


@pytest.mark.parametrize("function", TRACED)
def test_batches_are_written_through_traced_views(function):
    each = [function(y) for y in EXAMPLES]
    same(td.jit(td.vmap(function))(EXAMPLES), each)
    same(td.vmap(td.jit(function))(EXAMPLES), each)


@pytest.mark.parametrize("function", [element, part, held, turned])
def test_gradients_of_batches_written_through_views(function):
    def loss(y):
        return sum((leaf * leaf).sum() for leaf in td.tree.leaves(function(y)))

    def all_losses(y):
        return sum((leaf * leaf).sum() for leaf in td.tree.leaves(td.vmap(function)(y)))

    each = [td.grad(loss)(y) for y in EXAMPLES]
    for transform in (
        td.vmap(td.grad(loss)),
        td.grad(all_losses),
        td.jit(td.grad(all_losses)),
        td.jit(td.vmap(td.grad(loss))),
    ):
        same(transform(EXAMPLES), each)
    second = td.grad(lambda y: td.grad(all_losses)(y).sum())
    same(second(EXAMPLES), [td.grad(td.grad(loss))(y) for y in EXAMPLES])


def test_an_empty_batch_is_written_through_views():
    assert td.vmap(element)(td.ones(0)).shape == (0, 3)
    assert td.vmap(held)(td.ones(0))[2].shape == (0, 2, 3)


def test_batches_are_not_written_through_views_from_outside():
    outside = td.zeros(3)
    row = outside[:2]

    def into_element(y):
        outside[0] += y

    def into_view(y):
        row.add_(y)

    for write in (into_element, into_view):
        for transform in (td.vmap, lambda f: td.jit(td.vmap(f))):
            with pytest.raises(errors.UnsupportedError, match=r"\.at\["):
                transform(write)(EXAMPLES)
    assert outside.tolist() == [0, 0, 0]


@pytest.mark.parametrize("take", [lambda z: z[0], lambda z: z[0:2], lambda z: z.reshape(3, 1)])
def test_write_through_view_of_constant_persists(take):
    def write(y):
        z = td.asarray(np.zeros(3, np.float32))
        v = take(z)
        v.add_(y)
        return z

    with pytest.raises(td.errors.UnsupportedError, match="outside of the jitted function"):
        td.jit(write)(td.asarray(1.0))
