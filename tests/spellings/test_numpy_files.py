"""npy and npz files of ``tandem.numpy`` are those of NumPy."""

import io

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem.errors import DTypeError

ARRAYS = {
    "float64": np.array([[1.0, -2.0], [0.5, np.nan]]),
    "int8": np.array([1, -2, 3], np.int8),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j], np.complex64),
    "scalar": np.array(5),
    "empty": np.zeros((0, 3), np.float32),
    "order of Fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def check(got, want):
    assert type(got) is td.Tensor and got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", ARRAYS)
def test_one_tensor(name, tmp_path):
    x = ARRAYS[name]
    tnp.save(tmp_path / "x.npy", tnp.asarray(x))
    check(tnp.load(tmp_path / "x.npy"), x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)
    np.save(tmp_path / "y", x)
    check(tnp.load(str(tmp_path / "y.npy")), x)
    check(tnp.load(tmp_path / "y.npy", "r", allow_pickle=False), x)


def test_endings_lists_and_open_files(tmp_path):
    tnp.save(str(tmp_path / "x"), [1.0, 2.0])
    check(tnp.load(tmp_path / "x.npy"), np.array([1.0, 2.0]))
    file = io.BytesIO()
    for value in (tnp.arange(3), np.ones(2)):
        tnp.save(file, value)
    file.seek(0)
    check(tnp.load(file), np.arange(3))
    check(tnp.load(file), np.ones(2))


@pytest.mark.parametrize("save", [tnp.savez, tnp.savez_compressed, np.savez])
def test_archives(save, tmp_path):
    save(tmp_path / "all.npz", np.arange(3), x=np.ones(2), text=np.array("a"))
    with tnp.load(tmp_path / "all.npz") as archive, np.load(tmp_path / "all.npz") as wanted:
        assert archive.files == wanted.files == list(archive) and len(archive) == 3
        assert "x" in archive and "z" not in archive and archive["text"] == "a"
        check(archive["arr_0"], wanted["arr_0"])
        check(dict(archive)["x"], wanted["x"])
        assert archive.get("z") is None and "all.npz" in repr(archive)
        with pytest.raises(KeyError):
            archive["z"]
    with pytest.raises((ValueError, AttributeError)):
        archive["x"]


def test_trees_of_tandem(tmp_path):
    td.save({"w": td.ones(2)}, tmp_path / "tree.npz")
    assert td.load(tmp_path / "tree.npz")["w"].tolist() == [1.0, 1.0]
    with tnp.load(tmp_path / "tree.npz") as archive:
        check(archive["w"], np.ones(2, np.float32))


def test_errors(tmp_path):
    (tmp_path / "x.txt").write_text("1 2")
    with pytest.raises(ValueError, match="pickle"):
        tnp.load(tmp_path / "x.txt")
    with pytest.raises(FileNotFoundError):
        tnp.load(tmp_path / "none.npy")
    with pytest.raises(DTypeError, match=r"save: .*bfloat16"):
        tnp.save(io.BytesIO(), td.ones(2, dtype=td.bfloat16))
