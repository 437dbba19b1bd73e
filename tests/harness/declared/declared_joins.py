"""Subprocess program: declare a join with the pieces of its result in one place, and run it on every path.

``python declared_joins.py`` exits with an error if a path differs from NumPy.
"""

import numpy as np
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.operators.declare.declaration import SampleInput, TensorSample
from tandem.operators.declare.derivatives import Linear
from tandem.operators.declare.kinds import array_op
from tandem.operators.declare.shape_rules import spec_of
from tandem.operators.declare.view_spec import Piece, PieceSpec, ViewLayout
from tandem.registry.dtypes import ALL

NATIVE = fastpath.why_off() == ""


def interleaved(a, b):
    return np.stack([a, b], axis=-1).reshape(*a.shape[:-1], 2 * a.shape[-1])


def result_spec(a, b):
    spec = spec_of(a)
    return spec._replace(shape=(*spec.shape[:-1], 2 * spec.shape[-1]))


def pieces(whole, a, b):
    strides = (*whole.strides[:-1], 2 * whole.strides[-1])
    return [Piece(ViewLayout(x.shape, strides, n * whole.strides[-1]), x) for n, x in enumerate((a, b))]


INTERLEAVE = array_op(
    "join",
    "interleave(Tensor a, Tensor b) -> Tensor",
    result_spec,
    lambda xp, a, b: interleaved(a, b),
    doc="The elements of two tensors in turn, along the last axis.",
    reference=interleaved,
    dtypes=ALL,
    piece_spec=PieceSpec(pieces),
    derivative=Linear({"a": lambda g: g[..., ::2], "b": lambda g: g[..., 1::2]}),
    batching=lambda info, in_dims, a, b: (info.call(a, b), 0),
    samples=lambda dtype: [SampleInput((TensorSample((3, 4)), TensorSample((3, 4))))],
)


def check_calls(x):
    a, b = td.asarray(x), td.asarray(-x if x.dtype != bool else ~x)
    want = interleaved(a.numpy(), b.numpy())
    for result in (INTERLEAVE(a, b), *(td.jit(INTERLEAVE)(a, b) for _ in range(2))):
        np.testing.assert_array_equal(result.numpy(), want)
        assert result.dtype == a.dtype


def check_compiled(x):
    """One kernel computes both pieces and stores them where they belong; a reader of one piece computes that."""
    a = td.asarray(x)
    joined = td.jit(lambda a: INTERLEAVE(a * 2, a + 1))
    np.testing.assert_array_equal(joined(a).numpy(), interleaved(x * 2, x + 1))
    table = joined.lower(a).kernels()
    assert not NATIVE or (len(table.steps) == 1 and "callback" not in str(table))
    read = td.jit(lambda a: INTERLEAVE(a * 2, a + 1)[..., 1::2] * 3)
    np.testing.assert_array_equal(read(a).numpy(), (x + 1) * 3)
    assert not NATIVE or joined.lower(a, device="cuda").cuda_source().count("interleave") >= 2


def check_transforms(x):
    a, weights = td.asarray(x), td.asarray(np.arange(2.0 * x.size, dtype=x.dtype).reshape(*x.shape[:-1], -1))
    for gradient in (td.grad(loss), td.jit(td.grad(loss))):
        np.testing.assert_array_equal(
            gradient(a, weights).numpy(), weights.numpy()[..., ::2] * 2 + weights.numpy()[..., 1::2]
        )
    for batched in (td.vmap(INTERLEAVE), td.jit(td.vmap(INTERLEAVE))):
        np.testing.assert_array_equal(batched(a, -a).numpy(), interleaved(x, -x))


def loss(x, weights):
    return (INTERLEAVE(x * 2, x) * weights).sum()


if __name__ == "__main__":
    config.flags.hot_calls = 3
    for shape in ((3, 4), (1, 1), (2, 3, 3), (0, 2)):
        for dtype in ("f4", "f8", "i2", "c8", "?"):
            check_calls((np.arange(np.prod(shape)) - 3).reshape(shape).astype(dtype))
    check_compiled(np.arange(12.0).reshape(3, 4))
    check_transforms(np.arange(12.0).reshape(3, 4))
