"""xarray, dask, pandas and matplotlib with tensors; each test needs the library."""

import io

import numpy as np
import pytest
import tandem as td

A = np.arange(24.0).reshape(2, 3, 4)
X = td.asarray(A)


def assert_tensor(result, wanted):
    assert type(result) is td.Tensor
    np.testing.assert_allclose(result.numpy(), wanted)


XARRAY = {
    "mean": lambda d: d.mean("a"),
    "std": lambda d: d.std(),
    "arithmetic": lambda d: d * 2 + d.mean("a"),
    "select": lambda d: d.isel(a=0, b=slice(1, 3)),
    "transpose": lambda d: d.transpose("c", "a", "b"),
    "sine": lambda d: np.sin(d),
    "cumsum": lambda d: d.cumsum("a"),
    "median": lambda d: d.median("a"),
    "groupby": lambda d: d.assign_coords(a=[0, 0]).groupby("a").mean(),
    "diff": lambda d: d.diff("c"),
    "real": lambda d: d.real,
    "clip": lambda d: d.clip(1, 3),
    "stack": lambda d: d.stack(z=("a", "b")),
    "isnull": lambda d: d.isnull(),
    "max": lambda d: d.max(skipna=True),
}


@pytest.mark.parametrize("name", XARRAY)
def test_xarray_keeps_tensors(name):
    xarray = pytest.importorskip("xarray")
    make = lambda data: XARRAY[name](xarray.DataArray(data, dims=("a", "b", "c")))  # noqa: E731
    assert_tensor(make(X).data, make(A).data)


DASK = {
    "sum": lambda d: d.sum(),
    "mean": lambda d: d.mean(0),
    "std": lambda d: d.std(),
    "arithmetic": lambda d: (d + 1).T,
    "slice": lambda d: d[0, :, 1:3],
    "blocks": lambda d: d.map_blocks(np.exp),
    "reshape": lambda d: d.reshape(6, 4),
    "argmax": lambda d: d.argmax(2),
    "sine": lambda d: np.sin(d),
    "cumsum": lambda d: d.cumsum(2),
}


@pytest.mark.parametrize("name", DASK)
def test_dask_keeps_tensors(name):
    array = pytest.importorskip("dask.array")
    compute = lambda x: DASK[name](array.from_array(x, chunks=(1, 3, 2), asarray=False)).compute()  # noqa: E731
    assert_tensor(td.asarray(compute(X)), compute(A))


def test_pandas_reads_tensors():
    pandas = pytest.importorskip("pandas")
    m = X[0]
    assert pandas.DataFrame(m).shape == (3, 4)
    frame = pandas.DataFrame({"a": m[0], "b": m[1]})
    assert frame.a.tolist() == A[0, 0].tolist() and frame.assign(c=m[2]).c.tolist() == A[0, 2].tolist()
    assert td.asarray(frame).tolist() == frame.to_numpy().tolist()
    assert (pandas.Series([1.0, 2.0, 3.0, 4.0]) + m[0]).tolist() == [1.0, 3.0, 5.0, 7.0]
    assert pandas.Series([1, 2, 3, 4]).iloc[td.asarray([0, 2])].tolist() == [1, 3]


def test_matplotlib_draws_tensors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    m, x, y = X[0], X[0, 0], X[0, 1]
    figure, axes = plt.subplots()
    axes.plot(x, y)
    axes.scatter(x, y, c=x, s=y)
    axes.bar(x, y)
    axes.hist(X.ravel())
    axes.imshow(m)
    axes.contour(m)
    axes.errorbar(x, y, yerr=x)
    axes.fill_between(x, y, x)
    axes.quiver(m, m)
    axes.set_xlim(x[0], x[3])
    figure.savefig(io.BytesIO())
    plt.close(figure)
