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
    "where": lambda d: d.where(d > 5),
    "where drop": lambda d: d.where(d > 14, drop=True),
    "where of ints": lambda d: d.astype("int64").where(d > 5),
    "pad": lambda d: d.pad(a=1, c=(1, 2)),
    "pad reflected": lambda d: d.pad(c=2, mode="reflect"),
    "rolling mean": lambda d: d.rolling(c=2).mean(),
    "rolling sum": lambda d: d.rolling(c=3, center=True, min_periods=1).sum(),
    "rolling median": lambda d: d.rolling(b=2).median(),
    "rolling windows": lambda d: d.rolling(c=2, b=2).construct(c="w", b="v", fill_value=0),
    "cumulative": lambda d: d.cumulative("c").sum(),
    "coarsen": lambda d: d.coarsen(c=3, boundary="pad").mean(),
    "shift": lambda d: d.shift(c=1),
    "reindex": lambda d: d.assign_coords(c=[0, 1, 2, 3]).reindex(c=[1, 2, 5]),
    "groupby first": lambda d: d.assign_coords(c=[0, 0, 1, 1]).groupby("c").first(),
    "weighted": lambda d: d.weighted(d.isel(a=0, b=0)).mean("c"),
    "covariance": lambda d: (d - d.mean("c")).dot(d * 2, dim="c"),
    "round": lambda d: (d / 7).round(1),
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


IMAGES = {
    "colours": np.arange(90, dtype="uint8").reshape(5, 6, 3),
    "grey": np.arange(30, dtype="uint8").reshape(5, 6),
    "reversed": np.arange(30, dtype="uint8").reshape(5, 6)[::2, ::-1],
    "float": np.arange(30, dtype="float32").reshape(5, 6),
    "bool": np.arange(30).reshape(5, 6) % 3 == 0,
}


@pytest.mark.parametrize("name", IMAGES)
def test_pillow_makes_images_of_tensors(name):
    image = pytest.importorskip("PIL.Image")
    array = IMAGES[name]
    made = image.fromarray(td.asarray(array))
    assert np.asarray(made).tolist() == np.asarray(image.fromarray(array)).tolist()
    assert td.asarray(made).tolist() == array.tolist()


def test_array_interface_needs_elements_without_gradients():
    x = td.asarray([1.0, 2.0])
    assert x.__array_interface__["data"][0] == x.data_ptr()
    assert not hasattr(td.zeros(2, device="meta"), "__array_interface__")
    half = td.asarray([1.5], dtype=td.bfloat16)
    assert not hasattr(half, "__array_interface__") and np.asarray(half).dtype == half.dtype.np
    assert not hasattr(td.asarray([1.0], requires_grad=True), "__array_interface__")
    with pytest.raises(td.errors.ArgumentError, match="record gradients"):
        np.asarray(td.asarray([1.0], requires_grad=True))


def test_matplotlib_draws_tensors_as_arrays():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def draw(m):
        figure, axes = plt.subplots(2, 2)
        axes[0, 0].hist(m)
        axes[0, 1].boxplot(m)
        axes[1, 0].violinplot(m)
        axes[1, 1].plot(m[0], m[1], "o--")
        figure.canvas.draw()
        result = np.asarray(figure.canvas.buffer_rgba()).copy()
        plt.close(figure)
        return result

    np.testing.assert_array_equal(draw(X[0]), draw(A[0]))


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
