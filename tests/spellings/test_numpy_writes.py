"""Functions of ``tandem.numpy`` that write into tensors, read memory or files, and ask, against NumPy."""

import io

import numpy
import pytest
import tandem as td
import tandem.numpy as np

X = numpy.array([[3.0, 1.0, 2.0], [0.5, 7.0, 4.0]])
MASK = X > 1.5
WRITES = {
    "copyto": lambda m, x, k: m.copyto(x, x[1] * 2),
    "copyto where": lambda m, x, k: m.copyto(x, 9.0, where=k),
    "put": lambda m, x, k: m.put(x, [0, -1, 2], [5.0, 6.0]),
    "put wrap": lambda m, x, k: m.put(x, [7, -9], 5.0, mode="wrap"),
    "put clip": lambda m, x, k: m.put(x, [7, -9], [5.0, 6.0], mode="clip"),
    "place": lambda m, x, k: m.place(x, k, [5.0, 6.0]),
    "putmask": lambda m, x, k: m.putmask(x, k, [5.0, 6.0, 7.0, 8.0]),
    "putmask number": lambda m, x, k: m.putmask(x, k, 0.0),
    "fill_diagonal": lambda m, x, k: m.fill_diagonal(x, [5.0, 6.0]),
    "put_along_axis": lambda m, x, k: m.put_along_axis(x, m.asarray([[1], [0]]), 9.0, 1),
}
READS = {
    "sort": lambda m: m.sort(m.asarray(X), None),
    "argsort": lambda m: m.argsort(m.asarray(X), axis=None, kind="stable"),
    "frombuffer": lambda m: m.frombuffer(b"\x01\x02\x03\x04", dtype=m.uint8, count=2, offset=1),
    "fromiter": lambda m: m.fromiter((i * i for i in range(4)), float),
    "fromstring": lambda m: m.fromstring("1 2 3", sep=" "),
    "loadtxt": lambda m: m.loadtxt(io.StringIO("1 2\n3 4")),
    "genfromtxt": lambda m: m.genfromtxt(io.StringIO("1,2\n3,"), delimiter=","),
    "ascontiguousarray": lambda m: m.ascontiguousarray(5.0),
    "asfortranarray": lambda m: m.asfortranarray(X),
    "asarray_chkfinite": lambda m: m.asarray_chkfinite([1.0, 2.0]),
    "real_if_close": lambda m: m.real_if_close(m.asarray([1.0 + 1e-16j])),
    "histogramdd": lambda m: m.histogramdd(m.asarray(X.T), (2, 3), density=True)[0],
    "histogramdd edges": lambda m: m.histogramdd(
        m.asarray(X.T), 4, ((0, 3), (0, 8)), weights=m.asarray(X[0])
    )[1][1],
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_those_of_numpy(name):
    x, want = np.array(X), X.copy()
    assert WRITES[name](np, x, np.asarray(MASK)) is None
    WRITES[name](numpy, want, MASK)
    assert x.tolist() == want.tolist()


@pytest.mark.parametrize("name", [name for name in WRITES if hasattr(td, name)])
def test_tandem_writes_in_place_too(name):
    """A library that finds NumPy's function in the namespace of a tensor relies on the write."""
    x, want = td.asarray(X.copy()), X.copy()
    assert WRITES[name](td, x, td.asarray(MASK)) is None
    WRITES[name](numpy, want, MASK)
    assert x.tolist() == want.tolist()
    changed = td.jit(lambda x: (WRITES[name](td, x, td.asarray(MASK)), x)[1])(td.asarray(X.copy()))
    assert changed.tolist() == want.tolist()


@pytest.mark.parametrize("name", READS)
def test_reads_are_those_of_numpy(name):
    result, want = READS[name](np), READS[name](numpy)
    assert result.dtype.np == want.dtype or "histogram" in name  # a default float
    numpy.testing.assert_allclose(result.numpy(), want, rtol=1e-6, equal_nan=True)


def test_files_are_read_back(tmp_path):
    np.savez(tmp_path / "one.npz", np.asarray(X), second=np.asarray(MASK))
    np.savez_compressed(tmp_path / "two.npz", x=np.asarray(X))
    np.savetxt(tmp_path / "three.txt", np.asarray(X))
    loaded = td.load(tmp_path / "one.npz")
    assert loaded["arr_0"].tolist() == X.tolist() and loaded["second"].dtype is td.bool_
    assert (
        np.load(tmp_path / "two.npz")["x"].tolist()
        == np.loadtxt(tmp_path / "three.txt").tolist()
        == X.tolist()
    )


def test_questions_are_answered_as_by_numpy():
    x = np.asarray(X)
    assert np.shares_memory(x, x[0]) and not np.may_share_memory(x, np.array(X))
    assert np.isfortran(np.asfortranarray(x)) and not np.isfortran(x)
    assert np.min_scalar_type(300) is td.uint16 and np.common_type(np.arange(2)) is td.float64
    assert np.einsum_path("ij,jk->ik", x, x.T)[0] == numpy.einsum_path("ij,jk->ik", X, X.T)[0]
    assert [(at, one.item()) for at, one in np.ndenumerate(x)] == list(numpy.ndenumerate(X))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.isinf(x / 0).all() and set(np.geterr().values()) == {"ignore"}
    with pytest.raises(NotImplementedError, match="nans"):
        np.errstate(all="raise")
    with pytest.raises(ValueError, match="NaN"):
        np.asarray_chkfinite([float("nan")])
    with pytest.raises(IndexError):
        np.put(np.array(X), [9], 1.0)


def test_jax_returns_new_tensors():
    x, jnp = td.asarray(X), td.jax.numpy
    assert jnp.put(x, td.asarray([0, 9]), 5.0, inplace=False).tolist() == [[5.0, 1.0, 2.0], [0.5, 7.0, 5.0]]
    assert jnp.place(x, td.asarray(MASK), [0.0], inplace=False).sum().item() == X[~MASK].sum()
    assert x.tolist() == X.tolist()
    with pytest.raises(ValueError, match="inplace=False"):
        jnp.put(x, [0], 1.0)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float32"])
@pytest.mark.parametrize("number", [2.5, 1, True])
def test_numbers_are_cast_to_the_dtype_that_is_written(dtype, number):
    for order in ("C", "F"):
        arrays = [numpy.zeros((3, 4), dtype=dtype, order=order) for _ in range(3)]
        tensors = [td.asarray(array.copy(order)) for array in arrays]
        for namespace, (one, two, three), mask in (
            (numpy, arrays, numpy.eye(3, 4) > 0),
            (np, tensors, td.asarray(numpy.eye(3, 4) > 0)),
        ):
            namespace.fill_diagonal(one, number)
            namespace.put(two, [0, 5], number)
            namespace.place(three, mask, number)
        for array, tensor in zip(arrays, tensors, strict=True):
            numpy.testing.assert_array_equal(tensor.numpy(), array)
