"""Trees of tensors in npz files, and tensors in safetensors files."""

import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem.errors import ArgumentError, BackendUnavailableError, ValueArgumentError

NUMBERS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KEYS = st.text() | st.integers()
TREES = st.recursive(
    NUMBERS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=8,
)


def assert_same(tree, other):
    assert type(tree) is type(other) or isinstance(tree, td.Tensor)
    if isinstance(tree, td.Tensor):
        assert tree.dtype is other.dtype and tree.shape == other.shape
        assert tree.numpy().tobytes() == other.numpy().tobytes()
    elif isinstance(tree, dict):
        assert list(tree) == list(other)
        for key in tree:
            assert_same(tree[key], other[key])
    elif isinstance(tree, (list, tuple)):
        assert len(tree) == len(other)
        for one, two in zip(tree, other):
            assert_same(one, two)
    else:
        assert tree == other


@settings(deadline=None)
@given(TREES)
def test_trees_of_numbers_round_trip(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("files") / "tree.npz"
    td.save(tree, path)
    assert_same(tree, td.load(path))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_tensors_round_trip(tmp_path, dtype, shape):
    x = (td.random.uniform(td.random.key(0), shape) * 2).to(dtype)
    tree = {"a": [x, (x.T,)], 1: x, "1": x + x, "file": x, "allow_pickle": x, "__structure__": x, "a/0": x}
    td.save(tree, tmp_path / "tree.npz")
    assert_same(tree, td.load(tmp_path / "tree.npz"))
    td.save(x, str(tmp_path / "leaf"))
    assert_same(x, td.load(tmp_path / "leaf"))


def test_numpy_reads_the_file(tmp_path):
    td.save(td.nn.Linear(2, 3).state_dict(), tmp_path / "state.npz")
    with np.load(tmp_path / "state.npz") as archive:
        assert archive["weight"].shape == (3, 2) and archive["bias"].dtype == np.float32
    np.savez(tmp_path / "other.npz", x=np.arange(3))
    assert td.load(tmp_path / "other.npz")["x"].tolist() == [0, 1, 2]


def test_model_and_optimizer_round_trip(tmp_path):
    model = td.nn.Sequential(td.nn.Linear(2, 3), td.nn.BatchNorm1d(3))
    optimizer = td.optim.Adam(model.parameters(), lr=0.1)
    model(td.ones((4, 2))).sum().backward()
    optimizer.step()
    td.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "run.npz")
    saved = td.load(tmp_path / "run.npz")
    other = td.nn.Sequential(td.nn.Linear(2, 3), td.nn.BatchNorm1d(3))
    other.load_state_dict(saved["model"])
    again = td.optim.Adam(other.parameters())
    again.load_state_dict(saved["optimizer"])
    assert_same(model.state_dict(), other.state_dict())
    assert_same(optimizer.state_dict(), again.state_dict())


def test_other_values_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="state_dict"):
        td.save({"model": td.nn.Linear(2, 3)}, tmp_path / "model.npz")
    with pytest.raises(ArgumentError, match="at a/0"):
        td.save({"a": [object()]}, tmp_path / "model.npz")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueArgumentError, match="not an npz file"):
        td.load(tmp_path / "text")
    np.savez(tmp_path / "objects.npz", x=np.array([object()]))
    with pytest.raises(ValueError, match="allow_pickle"):
        td.load(tmp_path / "objects.npz")
    assert not zipfile.is_zipfile(tmp_path / "model.npz")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64", "int8", "uint64", "bool"])
def test_safetensors_round_trip(tmp_path, dtype):
    pytest.importorskip("safetensors")
    x = (td.random.uniform(td.random.key(0), (2, 3)) * 2).to(dtype)
    tensors = {"x": x, "y.z": x.T, "empty": x[:0], "number": x[0, 0]}
    td.save_safetensors(tensors, tmp_path / "x.safetensors", {"format": "test"})
    loaded = td.load_safetensors(tmp_path / "x.safetensors")  # in an order of the library's own
    assert_same(tensors, {name: loaded.pop(name) for name in tensors})
    assert not loaded
    with pytest.raises(ArgumentError, match="'x' must be a tensor"):
        td.save_safetensors({"x": 1.0}, tmp_path / "y.safetensors")


def test_missing_safetensors_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("tandem.lazy.is_installed", lambda name: False)
    with pytest.raises(BackendUnavailableError, match="pip install"):
        td.save_safetensors({}, tmp_path / "x.safetensors")
