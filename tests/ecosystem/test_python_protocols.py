"""Python's built-in functions on tensors: round, divmod, trunc, bytes, format, and the HTML of notebooks."""

import math
import re

import numpy as np
import pytest
import tandem as td

X = np.array([7.25, -7.75, 2.5])
RUNS = {"eager": lambda f: f, "jit": td.jit, "vmap": td.vmap}


@pytest.mark.parametrize("run", RUNS)
def test_divmod_and_round_are_those_of_numpy(run):
    x = td.asarray(X)
    for function, wanted in (
        (lambda x: divmod(x, 2), divmod(X, 2)),
        (lambda x: divmod(7.0, x), divmod(7.0, X)),
        (lambda x: divmod(x, td.asarray(2.0)), divmod(X, 2.0)),
        (lambda x: (round(x), round(x, 1)), (np.round(X), np.round(X, 1))),
    ):
        for one, other in zip(RUNS[run](function)(x), wanted, strict=True):
            assert type(one) is td.Tensor and one.dtype is td.float64
            np.testing.assert_array_equal(one.numpy(), other)
    with pytest.raises(TypeError, match="divmod"):
        divmod(x, "2")


def test_single_elements_are_numbers_of_python():
    x = td.asarray(2.75)
    assert (math.trunc(x), math.floor(x), math.ceil(x), math.sqrt(td.asarray(4))) == (2, 2, 3, 2.0)
    assert f"{x:.1f}|{x}|{td.asarray(3):4d}" == "2.8|2.75|   3"


@pytest.mark.parametrize(
    "layout", [lambda x: x, np.transpose, lambda x: x[::-1]], ids=["rows", "columns", "reversed"]
)
def test_bytes_are_the_elements_in_row_major_order(layout):
    array = layout(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert bytes(td.asarray(array)) == td.asarray(array).tobytes() == array.tobytes()


def test_html_is_a_table_of_a_matrix():
    text = td.asarray([[1.0, 2.5], [3.0, 4.0]])._repr_html_()
    assert re.findall("<td>(.*?)</td>", text) == ["1", "2.5", "3", "4"] and "float32[2, 2] on cpu" in text
    long = td.arange(1000)._repr_html_()
    assert long.count("<td>") == 13 and "&hellip;" in long
    for other in (td.ones((2, 2, 2)), td.asarray(1.0), td.ones(2, device="meta"), td.zeros((0, 2))):
        assert other._repr_html_().startswith("<pre>")
    shown = []
    td.jit(lambda x: (shown.append(x._repr_html_()), x)[1])(td.ones(2))
    assert shown[0].startswith("<pre>") and "<td" not in shown[0]
