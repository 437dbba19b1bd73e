"""Check that native code answers the calls of a jitted function."""

import numpy as np
import tandem as td
from tandem.registry.function import initialize

initialize()  # before that, the first jitted call of a process leaves its native entry to the second


def native_calls(f):
    return sum(s.calls - s.hits for s in f._specializations)


def check_native(f, *args, **kwargs):
    """Call three times; the last two must be answered natively, with the first one's result."""
    first = f(*args, **kwargs)
    before = native_calls(f)
    second, third = f(*args, **kwargs), f(*args, **kwargs)
    assert native_calls(f) == before + 2, [s.records for s in f._specializations]
    for other in (second, third):
        leaves, treedef = td.pytree.flatten(first)
        more, same = td.pytree.flatten(other)
        assert treedef == same
        for a, b in zip(leaves, more):
            assert type(a) is type(b)
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    return third
