"""Numbers and lists in calls of ``tandem.numpy``: hot calls, which native code converts, do what cold ones do."""

import sys
import warnings

import numpy
import pytest
import tandem as td
import tandem.numpy as np
from rotation import share_each_commit
from tandem import config
from tandem.backends.cpu import fastpath

needs_native = pytest.mark.skipif(bool(fastpath.why_off()), reason="native code is off")
VALUES = {
    "float": 0.5,
    "int": 2,
    "complex": 1 + 2j,
    "bool": True,
    "list": [0.5, 0.25],
    "ints": (1, 2),
    "rows": [[1.0, 0.5], [0.25, 2.0]],
    "tensor": td.asarray([0.5, 0.75]),
    "tensors": [td.asarray(1.0), td.asarray(2.0)],
    "ragged": [[1.0], [1.0, 2.0]],
    "empty": [],
    "text": "a",
    "large": 2**70,
}
PAIRS = """
float-int int-float int-int list-float float-list tensor-list list-tensor ints-list rows-list tensor-int large-int
"""
NAMES = [name for name in td.__all__ if isinstance(getattr(numpy, name, None), numpy.ufunc)]
OTHERS = "reshape sum mean max argmax cumsum sort dot outer isclose where clip take diff median trace".split()


def outcome(function, args, kwargs):
    """The result of a call, or that it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # the second argument of a function of one is `out`, which is written
            given = [one.clone() if isinstance(one, td.Tensor) else one for one in args]
            result = function(*given, **kwargs)
    except (td.errors.TandemError, TypeError):
        return "refused"
    parts = result if isinstance(result, tuple) else (result,)
    return [(part.dtype, part.shape, part.numpy().tobytes()) for part in parts]


def compare(name, calls):
    """Check that each call gives the same result when it is cold and when it is hot."""
    function = getattr(np, name)
    with config.override(hot_calls=10**6):
        cold = [outcome(type(function).__call__, (function, *args), kwargs) for args, kwargs in calls]
    with config.override(hot_calls=1):
        for _ in range(4):
            assert [outcome(function, args, kwargs) for args, kwargs in calls] == cold


@pytest.mark.parametrize("name", share_each_commit([*NAMES, *OTHERS], 3))
def test_hot_calls_convert_as_cold_ones(name):
    singles = [(VALUES[one],) for one in VALUES]
    # a second tensor is `out` for the operators of the others, also where NumPy's function has another argument there
    names = [pair for pair in PAIRS.split() if name in NAMES or not pair.endswith("tensor")]
    pairs = [tuple(VALUES[one] for one in pair.split("-")) for pair in names]
    options = [{}, {"dtype": float}, {"where": [True, False]}, {"axis": 0}]
    compare(name, [(args, kwargs) for args in [*singles, *pairs, ()] for kwargs in options])


@needs_native
@pytest.mark.parametrize(
    "call",
    [
        lambda: np.sqrt(2.5),
        lambda: np.sqrt(2),
        lambda: np.add(2, 3),
        lambda: np.exp([1.0, 2.0]),
        lambda: np.maximum([1.0, 2.0], 3.0),
        lambda: np.sum([1, 2]),
        lambda: np.clip(3.0, 0.0, 1.0),
        lambda: np.modf(3),
        lambda: outcome(np.add, ([1.0, 2.0], [1.0, 2.0, 3.0]), {}),
        lambda: outcome(np.add, ([1.0], "text"), {}),
    ],
)
def test_converted_calls_keep_no_memory(call):
    for _ in range(300):
        call()
    before = sys.getallocatedblocks()
    for _ in range(20_000):
        call()
    assert sys.getallocatedblocks() - before < 300


def test_lists_that_hold_the_same_list_twice_and_change_between_calls():
    row = [1.0, 2.0]
    rows = [row, row]
    for step in range(40):
        row[0] = float(step)
        assert np.sum(rows).item() == 2 * step + 4
    rows.append(3.0)
    with pytest.raises(td.errors.ShapeError):
        np.sum(rows)


def test_options_of_ufuncs_take_lists():
    assert np.add([1, 2], [3, 4], dtype=float).dtype is td.float64
    out = td.zeros(2, dtype=td.float64)
    assert np.exp([0.0, 1.0], out=out, where=[True, False]) is out
    assert out.tolist() == [1.0, 0.0]
    assert np.sqrt([4, 9], casting="same_kind").tolist() == [2, 3]


def test_a_list_that_holds_itself_is_refused():
    rows = []
    rows.append(rows)
    for _ in range(3):
        for call in (lambda: np.asarray(rows), lambda: np.add(rows, 1), lambda: np.sum(rows)):
            with pytest.raises(td.errors.ShapeError):
                call()
