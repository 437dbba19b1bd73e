"""An operator of the package's own: ``softclip(x, limit)``, which is ``limit * tanh(x / limit)``, computed by NumPy."""

import numpy as np
import tandem as td


@td.custom_op("toy::softclip", device_types="cpu")
def softclip(x: td.Tensor, limit: float = 1.0) -> td.Tensor:
    """The elements, bent smoothly into ``-limit .. limit``."""
    return td.asarray((limit * np.tanh(x.numpy() / limit)).astype(x.dtype.np))


@softclip.register_fake
def _(x, limit):
    return td.empty_like(x)


def keep(ctx, inputs, output):
    ctx.save_for_backward(output)
    ctx.limit = inputs[1]


def backward(ctx, g):
    (output,) = ctx.saved_tensors
    return g * (1 - td.square(output / ctx.limit)), None


softclip.register_autograd(backward, keep)


@softclip.register_vmap
def _(info, in_dims, x, limit):
    return softclip(x, limit), in_dims[
        0
    ]  # one element does not know of another, so a batch is like any tensor
