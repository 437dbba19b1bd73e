"""``td.debug.strict_names``: calls whose meaning differs between libraries raise."""

import pytest
import tandem as td
from source_tree import ROOT
from tandem.debug.differences import DEFAULT_DTYPES, DIFFERENCES, format_table
from tandem.errors import AmbiguousNameError

X = td.asarray([[1.0, 5.0, 2.0], [7.0, 4.0, 9.0], [3.0, 6.0, 8.0]])
RAISE = {
    "split": lambda: td.split(X, 3),
    "split sizes": lambda: X.split([1, 2]),
    "std": lambda: td.std(X),
    "var": lambda: X.var(axis=0),
    "max": lambda: td.max(X, 1),
    "min": lambda: X.min(1),
    "median": lambda: X.median(),
    "nanmedian": lambda: td.nanmedian(X, 1),
    "sort": lambda: X.sort(),
    "transpose": lambda: X.transpose(0, 1),
    "repeat": lambda: X.repeat(2),
    "nonzero": lambda: td.nonzero(X),
    "equal": lambda: td.equal(X, X),
    "meshgrid": lambda: td.meshgrid(X[0], X[0]),
    "cross": lambda: td.cross(X, X),
    "tensor": lambda: td.tensor(X.numpy()),
}
PASS = {
    "split": lambda: td.split(X, sections=3),
    "std": lambda: (td.std(X, correction=1), X.std(ddof=0), X.var(dim=1)),
    "max": lambda: (td.max(X), X.max(axis=1), X.max(dim=1)),
    "median": lambda: (td.median(X, axis=None), X.median(dim=1)),
    "sort": lambda: (X.sort(axis=0), X.sort(dim=0)),
    "transpose": lambda: (X.transpose(), td.transpose(X, (1, 0)), X.T),
    "repeat": lambda: (td.repeat(X, 2, axis=0), td.repeat_interleave(X, 2)),
    "nonzero": lambda: (td.nonzero(X, size=None), td.torch.nonzero(X)),
    "equal": lambda: (X == X, td.eq(X, X)),
    "meshgrid": lambda: td.meshgrid(X[0], X[0], indexing="ij"),
    "cross": lambda: td.cross(X, X, axis=-1),
    "tensor": lambda: (td.tensor([1]), td.tensor(X, copy=True)),
    "inside": lambda: (td.quantile(X, 0.5), td.torch.std(X), td.numpy.split(X, 3), td.cov(X)),
}


@pytest.mark.parametrize("name", RAISE)
def test_ambiguous_calls_raise(name):
    RAISE[name]()
    with td.debug.strict_names(), pytest.raises(AmbiguousNameError, match="Write"):
        RAISE[name]()
    RAISE[name]()


@pytest.mark.parametrize("name", PASS)
def test_calls_of_one_meaning_pass(name):
    with td.debug.strict_names(dtypes=True):
        PASS[name]()


def test_every_name_is_tried():
    names = {name for row in DIFFERENCES for name in row.names.split()}
    assert names == {name.split()[0] for name in RAISE}
    assert all(hasattr(td, name) for row in DEFAULT_DTYPES for name in row.names.split())


def test_dtypes_are_checked_on_request():
    calls = (
        lambda: td.zeros(3),
        lambda: td.linspace(0, 1, 3),
        lambda: td.asarray([[1.0]]),
        lambda: td.full(3, 0.5),
        lambda: td.arange(0.5, 2),
    )
    with td.debug.strict_names():
        assert all(call().dtype is td.float32 for call in calls)
    with td.debug.strict_names(dtypes=True):
        for call in calls:
            with pytest.raises(AmbiguousNameError, match="float64"):
                call()
        with pytest.raises(AmbiguousNameError, match="uint64"):
            td.asarray([1], dtype=td.uint8).sum()
        assert td.sum(td.asarray([1], dtype=td.uint8), dtype=td.int64).item() == 1
        assert td.zeros(3, dtype=td.float32).shape == td.asarray([1, 2, 3]).shape == td.arange(3).shape


def test_traced_calls_raise_and_everything_is_restored():
    before = td.split, td.Tensor.std, td.meshgrid, td.zeros
    with (
        pytest.raises(RuntimeError, match="stop"),
        td.debug.strict_names(),
        td.debug.strict_names(dtypes=True),
    ):
        with pytest.raises(AmbiguousNameError):
            td.jit(lambda x: x.std())(X)
        raise RuntimeError("stop")
    assert before == (td.split, td.Tensor.std, td.meshgrid, td.zeros)


def test_guide_lists_every_call():
    text = (ROOT / "docs" / "other_libraries.md").read_text()
    assert format_table() in text, "paste the output of `python -m tandem.debug.differences`"
