"""Operations of sparse tensors on the device and on the CPU."""

import numpy as np
import pytest
import tandem as td


def drawn(seed, *shape, dtype="float32", density=0.5):
    """Small integers, so that sums are exact in every dtype; many zeros."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -3
    values = rng.integers(low, 4, shape) * (rng.random(shape) < density)
    return td.asarray(values).astype(dtype)


def same(got, want):
    """A result on the device and one on the CPU."""
    assert got.device == "cuda:0"
    assert (got.shape, got.dtype, got.layout) == (want.shape, want.dtype, want.layout)
    np.testing.assert_array_equal(
        *(x.to_dense().to("cpu").astype(td.complex128).numpy() for x in (got, want))
    )


def everything(x, y, layout):
    """What is done with sparse tensors, by name."""
    a, b, other = x.to_sparse(layout), y.to_sparse(layout), x.T.reshape(x.shape)
    c = other.to_sparse(layout)
    return {
        "itself": a,
        "other layout": a.to_sparse_csr().to_sparse_coo(),
        "transposed": a.T,
        "reshaped": a.reshape((7, 5)),
        "cast": a.astype(td.float64) if x.dtype.kind != "c" else a.astype(td.complex128),
        "clone": a.clone(),
        "sparse + sparse": a + c,
        "sparse - sparse": a - c,
        "sparse + dense": a + other,
        "sparse * sparse": a * c,
        "sparse * dense": a * other,
        "sparse * number": a * 2,
        "negative": -a,
        "sum": a.sum(),
        "sum of columns": a.sum(0),
        "sum of rows": a.sum((1,), keepdims=True),
        "spmm": a @ y,
        "spmv": a @ y[:, 0],
        "dense @ sparse": y.T @ a.T,
        "vector @ sparse": other[:, 0] @ a,
        "sparse @ sparse": a @ b,
    }


LAYOUTS = [td.sparse_coo, td.sparse_csr]


EACH = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def numbers(x):
    return x.to_dense().numpy()
