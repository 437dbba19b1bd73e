"""Random words, keys and picks in compiled graphs: the launches of kernels of :mod:`.texts`."""

from __future__ import annotations

import math

from ...lowering.steps import NodeStep
from ...operators.philox import BITS, FOLD, SPLIT
from ...registry.dtypes import float32, float64, uint64
from ...tracer.graph import Node
from .direct_positions import plain
from .direct_text import Address, Launch, text_launch


# -- which are served --------------------------------------------------------------------------------------------------
def draws(node: Node) -> bool:
    """Whether words of keys are served."""
    return plain(node.args[0])


def folds_in(node: Node) -> bool:
    """Whether a number is folded into each key by a kernel."""
    key, data = node.args
    return plain(key, data) and data.spec.dtype is uint64 and key.shape == (*data.shape, 4)


def makes_keys(node: Node) -> bool:
    """Whether seeds become keys by a kernel."""
    return plain(node.args[0]) and node.args[0].spec.dtype is uint64


def searches(node: Node) -> bool:
    """Whether bounds are searched by a kernel."""
    bounds, x = node.args
    return plain(bounds, x) and bounds.spec.dtype is x.spec.dtype and x.spec.dtype in (float32, float64)


# -- the launches ------------------------------------------------------------------------------------------------------
def words(step: NodeStep) -> list[Launch]:
    """Words of each key's stream, or new keys made of them."""
    (key, *_), out = step.node.args, step.node.outputs[0].spec
    keys = math.prod(key.shape[:-1])
    each = out.size * (out.dtype.itemsize // 4) // keys
    per_key = -(-each // 4)
    use = SPLIT if step.node.op.name == "td::random_split" else BITS
    blocks = per_key * keys
    return [text_launch("philox_words", blocks, Address(1), Address(0), blocks, per_key, each, use)]


def folded_keys(step: NodeStep) -> list[Launch]:
    """Keys with a number folded into each."""
    count = step.node.outputs[0].spec.size // 4
    return [text_launch("philox_fold", count, Address(2), Address(0), Address(1), count, FOLD)]


def keys_of_seeds(step: NodeStep) -> list[Launch]:
    """A key for each seed."""
    count = step.node.outputs[0].spec.size // 4
    return [text_launch("philox_key", count, Address(1), Address(0), count)]


def picked(step: NodeStep) -> list[Launch]:
    """A search in each row."""
    bounds, x = (value.spec for value in step.node.args)
    per_row = x.size // max(math.prod(bounds.shape[:-1]), 1)
    rest = x.size, bounds.shape[-1], per_row
    return [text_launch(f"pick_{x.dtype.name}", x.size, Address(2), Address(0), Address(1), *rest)]
