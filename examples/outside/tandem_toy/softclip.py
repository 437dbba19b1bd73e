"""A custom operator: ``softclip(x, limit)``, which is ``limit * tanh(x / limit)``, computed by NumPy."""

from typing import Any

import numpy as np
import tandem as td


@td.custom_op("toy::softclip", device_types="cpu")
def softclip(x: td.Tensor, limit: float = 1.0) -> td.Tensor:
    """The elements, bent smoothly into ``-limit .. limit``."""
    return td.asarray((limit * np.tanh(x.numpy() / limit)).astype(x.dtype.np))


@softclip.register_fake
def _(x: td.Tensor, limit: float) -> td.Tensor:
    return td.empty_like(x)


def keep(ctx: Any, inputs: tuple[Any, ...], output: td.Tensor) -> None:
    ctx.save_for_backward(output)
    ctx.limit = inputs[1]


def backward(ctx: Any, g: td.Tensor) -> tuple[td.Tensor, None]:
    (output,) = ctx.saved_tensors
    return g * (1 - td.square(output / ctx.limit)), None


softclip.register_autograd(backward, keep)


@softclip.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: td.Tensor, limit: float) -> tuple[td.Tensor, int | None]:
    # each element is independent of the others, so a batch is a tensor like any other
    return softclip(x, limit), in_dims[0]
