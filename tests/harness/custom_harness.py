"""Values and comparisons for tests of custom operators."""

import contextlib

import numpy as np
import tandem as td

X = td.asarray([0.5, -1.0, 2.0])


def close(found, wanted, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=rtol, atol=1e-7)


def sine(x: td.Tensor, scale: float = 1.0) -> td.Tensor:
    """Scaled sine."""
    return td.asarray((np.sin(x.numpy()) * scale).astype(x.dtype.np))


@contextlib.contextmanager
def sine_operator():
    """The operator of :func:`sine`, with a fake."""
    made = td.custom_op("outside::sine", sine)
    made.register_fake(lambda x, scale: td.empty_like(x))
    try:
        yield made
    finally:
        made.remove()


def register_derivative(op):
    """Register the derivative of the operator of :func:`sine`."""

    def keep(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    op.register_autograd(lambda ctx, g: (g * td.cos(ctx.saved_tensors[0]) * ctx.scale, None), keep)
