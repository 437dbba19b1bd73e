"""Checks of eager transforms that are compiled when hot, against their calls as they are written."""

import numpy as np
import tandem as td
from tandem import config
from tandem.control import hot_loops


def fill(form, values):
    """A template with values in place of its ``("hole", number)``."""
    if isinstance(form, tuple):
        if len(form) == 2 and isinstance(form[0], str) and form[0] == "hole":
            return values[form[1]]
        return tuple([fill(item, values) for item in form])
    if isinstance(form, list):
        return [fill(item, values) for item in form]
    if isinstance(form, dict):
        return {name: fill(item, values) for name, item in form.items()}
    return form


def facts(tree):
    """What can be told about the tensors of a result: bits, layouts, and whether numbers are weak."""
    leaves, treedef = td.tree.flatten(tree)
    return treedef, [describe(x) if isinstance(x, td.Tensor) else (type(x), x) for x in leaves]


def describe(x):
    array = x.numpy()
    if x.dtype.is_inexact:
        array = np.where(np.isnan(array), np.nan, array).astype(array.dtype)  # a NaN has any sign
    strides = [stride for stride, size in zip(x._array.strides, x.shape) if size > 1] if x.size else None
    return x.dtype, x.shape, strides, array.tobytes(), x._keys, x.requires_grad


def check(run, is_compiled=True):
    """Compare a call as it is written with the compiled one; three times, for the forms of recognizing it."""
    with config.override(hot_loops=10**6):
        wanted = facts(run())
    assert not any(loop.function for loop in hot_loops._loops.values())
    with config.override(hot_loops=0):
        for _ in range(3):
            assert facts(run()) == wanted
    assert any(loop.function for loop in hot_loops._loops.values()) is is_compiled
