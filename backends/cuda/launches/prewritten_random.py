"""Random bits, keys and choices in compiled graphs: the launches of prewritten kernels."""

from __future__ import annotations

import math

from ....lowering.thunks import NodeThunk
from ....operators.random.philox import BITS, FOLD, SPLIT
from ....registry.dtypes import float32, float64, uint64
from ....tracer.graph import Node
from .prewritten_text import Address, Launch, are_tensors, make_source_launch


# -- supported nodes ---------------------------------------------------------------------------------------------------
def can_draw(node: Node) -> bool:
    """Whether the kernel supports a node of ``random_bits`` or ``random_split``."""
    return are_tensors(node.args[0])


def can_fold_in(node: Node) -> bool:
    """Whether the kernel supports a node of ``random_fold_in``."""
    key, data = node.args
    return are_tensors(key, data) and data.spec.dtype is uint64 and key.shape == (*data.shape, 4)


def can_make_keys(node: Node) -> bool:
    """Whether the kernel supports a node of ``random_key``."""
    return are_tensors(node.args[0]) and node.args[0].spec.dtype is uint64


def can_search(node: Node) -> bool:
    """Whether the kernel supports a node of ``random_pick``."""
    bounds, x = node.args
    return are_tensors(bounds, x) and bounds.spec.dtype is x.spec.dtype and x.spec.dtype in (float32, float64)


# -- the launches ------------------------------------------------------------------------------------------------------
def draw_bits(step: NodeThunk) -> list[Launch]:
    """The launch that draws bits of each key's stream; ``random_split`` uses them as new keys."""
    (key, *_), out = step.node.args, step.node.outputs[0].spec
    keys = math.prod(key.shape[:-1])
    each = out.size * (out.dtype.itemsize // 4) // keys
    per_key = -(-each // 4)
    use = SPLIT if step.node.op.name == "td::random_split" else BITS
    blocks = per_key * keys
    return [make_source_launch("philox_words", blocks, Address(1), Address(0), blocks, per_key, each, use)]


def fold_in(step: NodeThunk) -> list[Launch]:
    """The launch that folds a number into each key."""
    count = step.node.outputs[0].spec.size // 4
    return [make_source_launch("philox_fold", count, Address(2), Address(0), Address(1), count, FOLD)]


def make_keys(step: NodeThunk) -> list[Launch]:
    """The launch that makes a key of each seed."""
    count = step.node.outputs[0].spec.size // 4
    return [make_source_launch("philox_key", count, Address(1), Address(0), count)]


def search_bounds(step: NodeThunk) -> list[Launch]:
    """The launch of a binary search in each row."""
    bounds, x = (value.spec for value in step.node.args)
    per_row = x.size // max(math.prod(bounds.shape[:-1]), 1)
    rest = x.size, bounds.shape[-1], per_row
    return [make_source_launch(f"pick_{x.dtype.name}", x.size, Address(2), Address(0), Address(1), *rest)]
