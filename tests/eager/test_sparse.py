"""Sparse tensors: against dense ones, element by element, in both layouts, with gradients and under transforms."""

import itertools
import warnings

import numpy as np
import pytest
import tandem as td
from optable import arrays_of, generator, replace, samples_of, table, to_tensors
from rotation import rotating
from sparse_programs import EACH, LAYOUTS, numbers
from tandem.eager.sparse.tensor import SparseTensor
from tandem.errors import (
    ArgumentError,
    DTypeError,
    FallbackWarning,
    OutOfBoundsError,
    ShapeError,
    TandemError,
    UnsupportedError,
    ValueArgumentError,
)
from tandem.registry.dtypes import NUMERIC
from tandem.registry.function import functions

pytestmark = pytest.mark.usefixtures("no_fallback")
OPS = table()
DTYPES = [d for d in NUMERIC if d.name not in ("float16", "bfloat16")]


def matrix(seed, *shape, density=0.4, dtype=np.float64):
    """A matrix with zeros; small integers, so that sums are exact in every dtype."""
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 5, shape) * rng.choice([1] if np.dtype(dtype).kind == "u" else [-1, 1], shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.integers(1, 5, shape)
    return (values * (rng.random(shape) < density)).astype(dtype)


def sparse(array, layout):
    return td.asarray(array).to_sparse(layout)


def same(got, want):
    assert isinstance(got, SparseTensor) or type(got) is td.Tensor
    assert got.shape == want.shape
    assert np.array_equal(numbers(got), want), (numbers(got), want)


# -- making and converting ---------------------------------------------------------------------------------------------
@EACH
@pytest.mark.parametrize("dtype", [d.name for d in NUMERIC] + ["bool"])
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4), (4, 0), (6, 2)], ids=str)
def test_round_trip(layout, dtype, shape):
    array = td.asarray(matrix(0, *shape)).astype(td.float64)
    dense = (abs(array) if dtype.startswith("u") else array).astype(dtype)
    x = dense.to_sparse(layout)
    assert (x.layout, x.shape, x.dtype.name, x.device) == (layout, shape, dtype, "cpu")
    assert x.nnz == np.count_nonzero(array.numpy())
    assert x.is_coalesced
    same(x, dense.numpy())
    for other in LAYOUTS:
        again = x.to_sparse(other)
        assert again.layout == other
        same(again, dense.numpy())
    assert x.to_sparse(td.strided).layout == dense.layout == td.strided


def test_places_that_occur_twice_are_added():
    x = td.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    assert (x.nnz, x.is_coalesced) == (3, False)
    assert x.values().tolist() == [3.0, 4.0, 5.0]
    y = x.coalesce()
    assert (y.nnz, y.is_coalesced, y.coalesce() is y) == (2, True, True)
    assert (y.indices().tolist(), y.values().tolist()) == ([[0, 1], [0, 2]], [4.0, 8.0])
    same(x, np.array([[4.0, 0, 0], [0, 0, 8.0]]))
    same(x * x, np.array([[16.0, 0, 0], [0, 0, 64.0]]))
    same(td.sqrt(x), np.sqrt(np.array([[4.0, 0, 0], [0, 0, 8.0]], np.float32)))
    same(x @ td.ones((3, 2)), np.array([[4.0, 4.0], [8.0, 8.0]]))
    same(x.T, np.array([[4.0, 0], [0, 0], [0, 8.0]]))
    same(x.to_sparse_csr(), np.array([[4.0, 0, 0], [0, 0, 8.0]]))
    row = td.sparse_csr_tensor([0, 2, 2], [1, 1], [1.0, 2.0], (2, 2))
    assert (row.is_coalesced, row.coalesce().values().tolist()) == (False, [3.0])
    same(row @ td.ones(2), np.array([3.0, 0.0]))


def test_parts_shapes_and_more_axes():
    x = td.sparse_coo_tensor(np.array([[0, 3], [1, 0], [2, 2]]), td.asarray([1, 2], dtype=td.int32))
    assert (x.shape, x.dtype, x.indices().dtype) == ((4, 2, 3), td.int32, td.int64)
    dense = np.zeros((4, 2, 3), np.int32)
    dense[0, 1, 2], dense[3, 0, 2] = 1, 2
    same(x, dense)
    same(x.permute(2, 0, 1), dense.transpose(2, 0, 1))
    same(x.reshape(8, -1), dense.reshape(8, 3))
    same(x.sum((0, 2)), dense.sum((0, 2)))
    same(x + x, dense + dense)
    vector = td.asarray([0.0, 2.0, 0.0]).to_sparse()
    same(vector * 2, np.array([0.0, 4.0, 0.0]))
    csr = td.sparse_csr_tensor([0, 1, 1], [4], [2.0])
    assert csr.shape == (2, 5)
    assert (csr.crow_indices().tolist(), csr.col_indices().tolist()) == ([0, 1, 1], [4])
    assert csr.nbytes == 3 * 8 + 8 + 4
    assert td.sparse_coo_tensor([[0], [0]], [1], (1, 1), dtype=td.float64).dtype is td.float64
    with pytest.raises((TandemError, ValueError), match="read-only"):
        x.indices()[0, 0] = 7


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: td.sparse_coo_tensor([[0], [5]], [1.0], (2, 3)), OutOfBoundsError, "axis 1"),
        (lambda: td.sparse_coo_tensor([[-1], [0]], [1.0], (2, 3)), OutOfBoundsError, "axis 0"),
        (lambda: td.sparse_coo_tensor([[0.5], [0.0]], [1.0], (2, 3)), DTypeError, "integers"),
        (lambda: td.sparse_coo_tensor([0], [1.0], (2,)), ShapeError, "2 axes"),
        (
            lambda: td.sparse_coo_tensor([[0], [0]], [1.0, 2.0], (2, 2)),
            ShapeError,
            "1 positions take 1 values",
        ),
        (lambda: td.sparse_coo_tensor([[0], [0]], [1.0], (2,)), ShapeError, "2 rows"),
        (lambda: td.sparse_coo_tensor([[], []], []), ShapeError, "shape must be given"),
        (lambda: td.sparse_coo_tensor([[0]], [1.0], (-1,)), ShapeError, "negative"),
        (lambda: td.sparse_csr_tensor([0, 2], [0], [1.0], (1, 1)), OutOfBoundsError, "row starts"),
        (lambda: td.sparse_csr_tensor([1, 1], [0], [1.0], (1, 1)), OutOfBoundsError, "row starts"),
        (lambda: td.sparse_csr_tensor([0, 3, 1], [0], [1.0], (2, 1)), OutOfBoundsError, "row starts"),
        (lambda: td.sparse_csr_tensor([0, 1], [1], [1.0], (1, 1)), OutOfBoundsError, "columns"),
        (lambda: td.sparse_csr_tensor([0, 1], [0], [1.0], (2, 2)), ShapeError, "rows"),
        (lambda: td.sparse_csr_tensor([0, 1], [0], [1.0, 2.0], (1, 2)), ShapeError, "values"),
        (lambda: td.ones((2, 2)).to_sparse("sparse_bsr"), ValueArgumentError, "sparse_coo"),
        (lambda: td.ones((2, 2)).to_sparse(3), ArgumentError, "layout"),
        (lambda: td.ones(3).to_sparse_csr(), ShapeError, "matrices"),
        (lambda: td.ones(()).to_sparse(), ShapeError, "0-d"),
        (lambda: td.ones((2, 2)).to_sparse().crow_indices(), UnsupportedError, "sparse_coo"),
        (lambda: td.ones((2, 2), device="meta").to_sparse(), UnsupportedError, "data"),
        (lambda: td.ones((2, 2)).to_sparse().to("meta"), UnsupportedError, "dense"),
        (lambda: td.ones((2, 2)).to_sparse() @ td.ones((3, 2)), ShapeError, "inner sizes are 2 and 3"),
        (lambda: td.ones((2, 2), dtype=td.bool).to_sparse() @ td.ones(2, dtype=td.bool), DTypeError, "bool"),
        (lambda: td.ones((2, 2)).to_sparse().sum(2), OutOfBoundsError, "axis 2"),
        (lambda: td.ones((2, 2)).to_sparse().permute(0, 0), ShapeError, "permutation"),
        (lambda: td.ones((2, 2)).to_sparse().reshape(3), ShapeError, "reshape"),
    ],
    ids=range(26),
)
def test_bad_calls(call, error, match):
    with pytest.raises(error, match=match):
        call()


# -- operators ---------------------------------------------------------------------------------------------------------
PAIRS = list(itertools.product(LAYOUTS, [*LAYOUTS, td.strided]))


@pytest.mark.parametrize(("one", "two"), PAIRS, ids=str)
@pytest.mark.parametrize("dtype", [d.name for d in DTYPES])
def test_arithmetic(one, two, dtype):
    a, b = matrix(1, 5, 6, dtype=dtype), matrix(2, 5, 6, dtype=dtype)
    x, y = sparse(a, one), sparse(b, two)
    same(x + y, a + b)
    same(y + x, a + b)
    same(x - y, a - b)
    same(x * y, a * b)
    assert isinstance(x * y, SparseTensor)
    assert isinstance(x + y, SparseTensor) == (two != td.strided)
    assert (x + y).layout == (one if two != td.strided else td.strided)


@EACH
@pytest.mark.parametrize("dtype", [d.name for d in DTYPES])
def test_products(layout, dtype):
    a, b, v = (matrix(s, *shape, dtype=dtype) for s, shape in ((3, (5, 6)), (4, (6, 3)), (5, (6,))))
    x = sparse(a, layout)
    for other in (b, v, np.asfortranarray(b), b[::-1][::-1]):
        same(x @ td.asarray(other), a @ other)
    same(td.asarray(b.T) @ x.T, b.T @ a.T)
    same(td.asarray(v) @ x.T, v @ a.T)
    assert type(x @ td.asarray(b)) is td.Tensor
    for kind in LAYOUTS:
        product = x @ sparse(b, kind)
        assert isinstance(product, SparseTensor)
        assert product.layout == layout
        same(product, a @ b)
    same(td.matmul(x, sparse(a.T, layout)), a @ a.T)


@EACH
@pytest.mark.parametrize(
    "shapes", [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((3, 3), (3, 1))], ids=str
)
def test_products_with_nothing(layout, shapes):
    a, b = (np.zeros(shape) for shape in shapes)
    same(sparse(a, layout) @ td.asarray(b), a @ b)
    same(td.asarray(a) @ sparse(b, layout), a @ b)
    same(sparse(a, layout) @ sparse(b, layout), a @ b)
    same(sparse(a, layout) + sparse(a, layout), a)
    same(sparse(a, layout).sum(0), a.sum(0))
    same(sparse(a, layout).T, a.T)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_types_are_summed_in_float32(name):
    a, b = matrix(6, 8, 9), matrix(7, 9, 4)
    x, y = td.asarray(a).astype(name), td.asarray(b).astype(name)
    for found in (x.to_sparse() @ y, x @ y.to_sparse_csr(), (x.to_sparse_csr() @ y.to_sparse()).to_dense()):
        assert found.dtype.name == name
        assert np.array_equal(found.astype(td.float64).numpy(), a @ b)
    assert x.to_sparse().sum(0).dtype.name == name


@EACH
def test_mixed_dtypes_promote_as_dense(layout):
    a, b = matrix(8, 4, 4), matrix(9, 4, 4)
    for one, two in itertools.product(("int32", "float32", "float64", "complex64"), repeat=2):
        x, y = td.asarray(a).astype("int32").astype(one), td.asarray(b).astype("int32").astype(two)
        for found, want in (
            (x.to_sparse(layout) @ y, x @ y),
            (x.to_sparse(layout) + y, x + y),
            (x.to_sparse(layout) * y.to_sparse(), x * y),
            (x.to_sparse(layout) @ y.to_sparse(), x @ y),
        ):
            assert found.dtype is want.dtype
            same(found, want.numpy())


@EACH
def test_numbers_rows_and_columns(layout):
    a = matrix(10, 4, 5)
    x = sparse(a, layout)
    for found, want in (
        (x * 2, a * 2),
        (3.0 * x, 3 * a),
        (x / 2, a / 2),
        (x * td.asarray(2.0), a * 2),
        (-x, -a),
        (x * td.asarray(np.arange(5.0)), a * np.arange(5)),
        (x * td.asarray(np.arange(4.0)[:, None]), a * np.arange(4)[:, None]),
    ):
        assert isinstance(found, SparseTensor)
        same(found, want)
    assert (x * 2.5).dtype is td.float64
    assert x.to(td.float32).dtype is td.float32


ZERO_TO_ZERO = (
    "abs asin asinh atan atanh ceil conj erf expm1 floor imag isinf isnan log1p neg positive real relu round"
)
ZERO_TO_ZERO += " sign signbit sin sinh sqrt square tan tanh trunc"


@EACH
@pytest.mark.parametrize("name", ZERO_TO_ZERO.split())
def test_what_gives_zero_for_zero_stays_sparse(layout, name):
    a = matrix(11, 4, 5) / 8
    a = abs(a) if name == "sqrt" else a
    if name in ("imag", "conj", "real"):
        a = a.astype(complex)
    function = getattr(td, name)
    found = function(sparse(a, layout))
    assert isinstance(found, SparseTensor)
    same(found, function(td.asarray(a)).numpy())
    assert function(td.zeros(1, dtype=td.asarray(a).dtype)).astype(td.bool).tolist() == [False]


@EACH
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums(layout, axis, keepdims):
    a = matrix(12, 4, 5)
    got = sparse(a, layout).sum(axis, keepdims=keepdims)
    assert type(got) is td.Tensor
    same(got, np.asarray(a.sum(axis, keepdims=keepdims)))
    narrow = td.asarray(a).astype(td.int8).to_sparse(layout)
    assert narrow.sum(axis).dtype is td.asarray(a).astype(td.int8).sum(axis).dtype
    assert narrow.sum(axis, dtype=td.float32).dtype is td.float32
    same(td.mean(sparse(a, layout), axis), np.asarray(a.mean(axis)))


@EACH
def test_transposes_clones_and_loops(layout):
    a = matrix(13, 4, 5)
    x = sparse(a, layout)
    same(x.T, a.T)
    same(x.mT, a.T)
    same(td.transpose(x), a.T)
    assert x.T.layout == layout
    assert x.T.is_coalesced
    same(td.clone(x), a)
    assert td.clone(x).values() is not x.values()
    assert len(x) == 4
    assert x.T.T.layout == layout


# -- falling back ------------------------------------------------------------------------------------------------------
@EACH
def test_missing_sparse_kernel_falls_back_with_one_warning(layout):
    a = matrix(14, 3, 4)
    x = sparse(a, layout)
    with pytest.warns(FallbackWarning, match=rf"td::cos\({layout} float64\[3,4\]\) has no kernel"):
        got = td.cos(x)
    assert np.allclose(got.numpy(), np.cos(a), rtol=1e-14)
    td.cos(x)  # said once
    with pytest.warns(FallbackWarning, match="td::eq"):
        assert (x == 0).tolist() == (a == 0).tolist()
    with pytest.warns(FallbackWarning, match="td::add"):
        assert np.array_equal((x + 1).numpy(), a + 1)
    with pytest.warns(FallbackWarning, match="td::basic_index"):
        assert x[1].tolist() == a[1].tolist()
    with pytest.warns(FallbackWarning, match="td::matmul"):
        assert np.array_equal((td.asarray(np.ones((2, 3, 3))) @ x).numpy(), np.ones((2, 3, 3)) @ a)
    with pytest.warns(FallbackWarning, match="td::concat"):
        assert td.concat([x, td.asarray(a)]).shape == (6, 4)
    w = td.asarray(a).requires_grad_()
    with pytest.warns(FallbackWarning, match="td::exp"):
        td.exp(w.to_sparse(layout)).sum().backward()
    assert np.allclose(w.grad.numpy(), np.exp(a) * (a != 0))
    assert td.dispatch_table("cos")["SparseCPU"].kind == "fallback"
    assert td.dispatch_table("matmul")["SparseCPU"].kind == "kernel"


def is_plain(array):
    """No infinity, no NaN and no negative zero: a place that is not stored is 0, and stays so in a product."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        return True
    return bool(np.isfinite(array).all()) and not np.signbit(array[array == 0]).any()


@rotating
@EACH
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.decl.samples])
def test_every_operator_gives_what_it_gives_dense(layout, name):
    op = OPS[name]
    warnings.simplefilter("ignore", FallbackWarning)
    dtype = next((d for d in (td.float64, td.int32, td.bool_) if d in op.decl.dtypes), None)
    for sample in samples_of(op, dtype)[:12] if dtype else ():
        args, kwargs = arrays_of(sample, dtype, generator(op, dtype))
        if not all(
            is_plain(array) for arg in args for array in (arg if isinstance(arg, (list, tuple)) else (arg,))
        ):
            continue
        args, kwargs = to_tensors((args, kwargs))
        fits = (lambda x: x.shape) if layout == td.sparse_coo else (lambda x: len(x.shape) == 2)
        mixed = replace(args, td.Tensor, lambda x, fits=fits: x.to_sparse(layout) if fits(x) else x)
        want, got = functions[op.name](*args, **kwargs), functions[op.name](*mixed, **kwargs)
        pairs = zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]
        for dense, found in pairs:
            found = found.to_dense()
            assert found.spec == dense.spec, sample
            assert np.allclose(found.numpy(), dense.numpy(), rtol=1e-10, equal_nan=True), sample


def test_the_warning_points_at_the_caller():
    with pytest.warns(FallbackWarning) as caught:
        td.cosh(td.ones((2, 2)).to_sparse())
    assert caught[0].filename == __file__


@EACH
def test_a_sparse_tensor_is_not_written(layout):
    x = sparse(matrix(15, 3, 3), layout)
    before = numbers(x).copy()
    for write in (
        lambda: x.add_(1),
        lambda: x.__setitem__((0, 0), 1.0),
        lambda: x.mul_(2),
        lambda: x.copy_(td.ones((3, 3))),
        lambda: x.zero_(),
    ):
        with pytest.raises(UnsupportedError, match="cannot be written in place"):
            write()
    assert np.array_equal(numbers(x), before)
    y = td.zeros((3, 3), dtype=td.float64)
    with pytest.warns(FallbackWarning, match="td::add_"):
        y.add_(x)
    same(y, before)


@pytest.mark.parametrize(
    "read",
    [
        np.asarray,
        bool,
        float,
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: x.item(),
        lambda x: x.strides,
    ]
    + [lambda x: x.storage(), lambda x: x.__dlpack__(), lambda x: x.storage_offset],
    ids=range(10),
)
def test_sparse_tensor_has_no_dense_memory(read):
    with pytest.raises(UnsupportedError, match="to_dense"):
        read(td.ones((1, 1)).to_sparse())


def test_text():
    x = td.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    assert repr(x) == str(x) == f"{x}"
    assert (
        repr(x) == "tensor(indices=[[0, 1], [1, 0]], values=[1., 2.], shape=(2, 2), nnz=2, layout=sparse_coo)"
    )
    y = td.sparse_csr_tensor([0, 0], [], td.zeros(0, dtype=td.int32), (1, 2))
    assert "crow_indices=[0, 0], col_indices=[], values=[], shape=(1, 2), nnz=0, dtype=int32" in repr(y)
    big = td.ones((50, 50)).to_sparse()
    assert len(repr(big)) < 300
    assert "requires_grad=True" in repr(x.requires_grad_())
