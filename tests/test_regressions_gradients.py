"""Gradients that once went wrong."""

import numpy as np
import pytest
import tandem as td


@pytest.mark.parametrize("wrap", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_equal_gradients_do_not_share_memory(wrap):
    both = wrap(lambda a, b: td.grad(lambda a, b: (a + b).sum(), argnums=(0, 1))(a, b))
    x = td.asarray(np.array([1.0, 2.0]))
    for _ in range(40):
        one, two = both(x, x)
        one.add_(1.0)
        assert two.tolist() == [1.0, 1.0]
