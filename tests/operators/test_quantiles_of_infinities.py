"""Medians and quantiles of infinite elements are elements, and not NaN."""

import numpy as np
import pytest
import tandem as td

INF = np.inf


@pytest.mark.parametrize(
    "numbers",
    [[INF], [INF] * 3, [-INF, -1.0], [-INF, -INF], [1.0, -INF, -INF], [1.0, INF], [-INF, 0.0, 1.0, INF]],
)
def test_medians_of_infinities(numbers):
    x = td.asarray(numbers)
    for median in (td.median, td.jit(td.median)):
        assert median(x).item() == np.median(numbers)
    for method in ("linear", "midpoint"):
        assert td.quantile(x, 0.5, method=method).item() == np.median(numbers)


def test_gradients_of_equal_elements_are_shared():
    assert td.grad(td.median)(td.asarray([1.0, 1.0])).tolist() == [0.5, 0.5]
