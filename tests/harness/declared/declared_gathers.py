"""Subprocess program: declare a gather in one place, and run it on every path.

``python declared_gathers.py`` exits with an error if a path differs from NumPy.
"""

import numpy as np
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.errors import ShapeError
from tandem.operators.declare.declaration import SampleInput, TensorSample
from tandem.operators.declare.derivatives import Linear
from tandem.operators.declare.kinds import array_op
from tandem.operators.declare.shape_rules import spec_of
from tandem.registry.dtypes import ALL

NATIVE = fastpath.why_off() == ""


def result_spec(self):
    spec = spec_of(self)
    if len(spec.shape) < 2:
        raise ShapeError(f"take_diagonal takes matrices, not shape {spec.shape}")
    return spec._replace(shape=(*spec.shape[:-2], min(spec.shape[-2:])))


def scatter(g, self_spec):
    count = g.shape[-1]
    return td.zeros(self_spec.shape, dtype=g.dtype).at[..., td.arange(count), td.arange(count)].set(g)


TAKE_DIAGONAL = array_op(
    "gather",
    "take_diagonal(Tensor self) -> Tensor",
    result_spec,
    lambda xp, x: xp.diagonal(x, axis1=-2, axis2=-1).copy(),
    doc="A copy of the diagonal of each matrix.",
    reference=lambda x: np.diagonal(x, axis1=-2, axis2=-1),
    dtypes=ALL,
    derivative=Linear({"self": scatter}),
    batching=lambda info, in_dims, x: (info.call(x), 0),
    samples=lambda dtype: [SampleInput((TensorSample((3, 4)),)), SampleInput((TensorSample((2, 5, 3)),))],
)


def diagonal(x):
    return np.diagonal(x, axis1=-2, axis2=-1)


def native_calls():
    record = fastpath.stubs().kernels[TAKE_DIAGONAL.operator].record if NATIVE else None
    return 0 if record is None else record.calls


def check_calls(x):
    t = td.asarray(x)
    results = [TAKE_DIAGONAL.operator(t), TAKE_DIAGONAL(t)]
    before = native_calls()
    results += [*(TAKE_DIAGONAL(t) for _ in range(6)), td.jit(TAKE_DIAGONAL)(t)]
    for result in results:
        np.testing.assert_array_equal(result.numpy(), diagonal(x))
        assert result.dtype == t.dtype and not np.shares_memory(result.numpy(), x)
    assert not NATIVE or native_calls() > before


def check_transforms(x):
    t, weights = td.asarray(x), td.asarray(diagonal(np.arange(x.size, dtype=x.dtype).reshape(x.shape)))
    want = np.zeros_like(x)
    count = min(x.shape[-2:])
    want[..., np.arange(count), np.arange(count)] = weights.numpy()
    for gradient in (td.grad(loss), td.jit(td.grad(loss))):
        np.testing.assert_array_equal(gradient(t, weights).numpy(), want)
    tangent = td.jvp(TAKE_DIAGONAL, (t,), (2 * t,))[1]
    np.testing.assert_array_equal(tangent.numpy(), 2 * diagonal(x))
    for batched in (td.vmap(TAKE_DIAGONAL), td.jit(td.vmap(TAKE_DIAGONAL))):
        np.testing.assert_array_equal(batched(td.stack([t, -t])).numpy(), [diagonal(x), -diagonal(x)])


def loss(x, weights):
    return (TAKE_DIAGONAL(x) * weights).sum()


def check_other_devices(x):
    assert TAKE_DIAGONAL(td.zeros(x.shape, device="meta")).shape == diagonal(x).shape
    if not NATIVE:
        return
    assert (
        "take_diagonal"
        in td.jit(lambda t: TAKE_DIAGONAL(t) * 2).lower(td.asarray(x), device="cuda").cuda_source()
    )


if __name__ == "__main__":
    config.flags.hot_calls = 3
    for shape in ((3, 4), (5, 2), (1, 1), (2, 3, 3), (0, 2)):
        for dtype in ("f4", "f8", "i2", "c8", "?"):
            check_calls((np.arange(np.prod(shape)) - 3).reshape(shape).astype(dtype))
    check_transforms(np.arange(12.0).reshape(3, 4))
    check_transforms(np.arange(24, dtype="f4").reshape(2, 4, 3))
    check_other_devices(np.ones((2, 3, 3), "f4"))
