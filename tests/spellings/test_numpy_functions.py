"""NumPy's functions that are not operators: plain functions, and results whose shape depends on data."""

import functools

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem.errors import ArgumentError, ShapeError, UnsupportedError, ValueArgumentError


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def same(got, want):
    got, want = (value if isinstance(value, tuple | list) else (value,) for value in (got, want))
    for one, two in zip(got, want, strict=True):
        assert one.shape == np.shape(two)
        np.testing.assert_allclose(one.numpy(), two, rtol=1e-6, atol=1e-7)


# -- results that depend on data ---------------------------------------------------------------------------------------
MASK = np.array([True, False, True, True])
SELECTIONS = {
    "argwhere": (MASK,),
    "flatnonzero": (MASK,),
    "extract": (MASK, np.arange(4)),
    "compress": (MASK, np.arange(4)),
    "bincount": (np.array([1, 3, 1]),),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_shapes_that_depend_on_data(name):
    args, function = SELECTIONS[name], getattr(td, name)
    tensors = [td.asarray(arg) for arg in args]
    same(function(*tensors), getattr(np, name)(*args))
    word = "length" if name == "bincount" else "size"
    with pytest.raises(UnsupportedError, match=f"{name}.*{word}="):
        td.jit(function)(*tensors)
    assert td.jit(lambda *x: function(*x, **{word: 2}))(*tensors).shape[0] == 2


def test_trim_zeros():
    x = np.array([0, 1, 0, 2, 0])
    for trim in ("f", "b", "fb"):
        same(td.trim_zeros(td.asarray(x), trim), np.trim_zeros(x, trim))
    assert td.trim_zeros(td.zeros(3)).shape == (0,)
    for transform in (td.jit, td.vmap):
        with pytest.raises(UnsupportedError, match=r"trim_zeros.*depends on data"):
            transform(td.trim_zeros)(td.asarray(x if transform is td.jit else x[None]))
    with pytest.raises(ValueArgumentError, match="trim"):
        td.trim_zeros(td.ones(2), "x")
    with pytest.raises(ShapeError, match="one axis"):
        td.trim_zeros(td.ones((2, 2)))


# -- plain functions ---------------------------------------------------------------------------------------------------
def test_piecewise(rng):
    x = rng.normal(size=(3, 4))
    for transform in (lambda f: f, td.jit):
        f = transform(lambda x: td.piecewise(x, [x < 0, x > 1], [lambda x: -x, 5.0, lambda x: x * x]))
        same(f(td.asarray(x)), np.piecewise(x, [x < 0, x > 1], [lambda x: -x, 5.0, lambda x: x * x]))
    same(td.piecewise(td.asarray(x), td.asarray(x > 0), [2.0]), np.piecewise(x, [x > 0], [2.0]))
    with pytest.raises(ValueArgumentError, match="functions"):
        td.piecewise(td.asarray(x), [x > 0], [])


def test_gradient(rng):
    x, y, at = rng.normal(size=7), rng.normal(size=(3, 4)), np.cumsum(rng.uniform(0.1, 1, 7))
    calls = [((x,), {}), ((x, 2.0), {"edge_order": 2}), ((x, at), {"edge_order": 2}), ((x, at), {})]
    calls += [((y,), {}), ((y, 2.0, at[:4]), {"edge_order": 2}), ((y,), {"axis": 1}), ((x[:2], at[:2]), {})]
    for args, options in calls:
        tensors = [td.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        same(td.gradient(*tensors, **options), np.gradient(*args, **options))
        same(td.jit(functools.partial(td.gradient, **options))(*tensors), np.gradient(*args, **options))
    with pytest.raises(ShapeError, match="samples"):
        td.gradient(td.ones(1))
    with pytest.raises(ValueArgumentError, match="edge_order"):
        td.gradient(td.ones(3), edge_order=3)


def test_block():
    rows = [[np.eye(2), np.zeros((2, 1))], [np.ones((1, 2)), np.full((1, 1), 5.0)]]
    blocks = [[td.asarray(one) for one in row] for row in rows]
    same(td.block(blocks), np.block(rows))
    same(td.jit(td.block)(blocks), np.block(rows))
    with pytest.raises(ArgumentError, match="empty"):
        td.block([])
    with pytest.raises(ValueArgumentError, match="depths"):
        td.block([td.ones(2), [td.ones(2)]])


def test_index_functions():
    x = np.arange(12).reshape(3, 4)
    tensor = td.asarray(x)
    same(
        tensor[td.ix_(td.asarray([2, 0]), td.asarray([True, False, True, False]))], x[np.ix_([2, 0], [0, 2])]
    )
    same(td.mask_indices(3, lambda m, k: td.triu(m, k=k), 1), np.mask_indices(3, np.triu, 1))
    same(td.tril_indices_from(tensor, 1), np.tril_indices_from(x, 1))
    same(td.triu_indices_from(tensor), np.triu_indices_from(x))
    same(td.diag_indices_from(tensor[:, :3]), np.diag_indices_from(x[:, :3]))
    with pytest.raises(ShapeError, match="one length"):
        td.diag_indices_from(tensor)
    with pytest.raises(ShapeError, match="matrix"):
        td.tril_indices_from(td.ones(3))


def test_index_tricks():
    assert td.s_[1:2, ...] == np.s_[1:2, ...] and td.index_exp[3] == np.index_exp[3]
    same(td.mgrid[0:2, 1:4], np.mgrid[0:2, 1:4])
    same(td.mgrid[0:1:5j], np.mgrid[0:1:5j])
    same(td.ogrid[0:2, 1:4], np.ogrid[0:2, 1:4])
    same(td.mgrid[0:1:3j, 1:4], np.mgrid[0:1:3j, 1:4])
    same(td.r_[td.asarray([1, 2]), 5, 0:3], np.r_[np.array([1, 2]), 5, 0:3])
    same(td.c_[td.asarray([1, 2]), td.asarray([3, 4])], np.c_[np.array([1, 2]), np.array([3, 4])])
    with pytest.raises(ArgumentError, match="directives"):
        td.r_["c", 1]
    with pytest.raises(ArgumentError, match="stop"):
        td.mgrid[1:]


def test_questions_about_tensors():
    x = td.ones((2, 3))
    assert (td.ndim(x), td.shape(x), td.size(x), td.size(x, -1)) == (2, (2, 3), 6, 3)
    assert (td.ndim(1.0), td.shape([[1]]), td.size([1, 2])) == (0, (1, 1), 2)
    assert td.isscalar(2) and not td.isscalar(x) and td.iterable(x) and not td.iterable(td.asarray(1))
    assert (
        td.iscomplexobj(td.asarray(1j))
        and td.isrealobj(x)
        and td.jit(lambda x: x * td.ndim(x))(x).shape == (2, 3)
    )
    assert td.issubdtype(td.float32, td.inexact) and td.issubdtype(td.bfloat16, td.floating)
    assert td.issubdtype(td.uint8, "uint8") and not td.issubdtype(td.int8, td.unsignedinteger)
    assert (td.double, td.single, td.intp, td.uint) == (td.float64, td.float32, td.int64, td.uint64)
    assert td.euler_gamma == np.euler_gamma and td.i0 is td.special.i0


def test_array_copies():
    x = np.ones(3)
    assert td.array(x, ndmin=3).shape == (1, 1, 3)
    copy = td.array(x)
    x[0] = 5
    assert copy.tolist() == [1, 1, 1] and td.array(x, copy=None).tolist() == [5, 1, 1]
    assert td.array([1, 2], td.float32).dtype is td.float32


def test_print_options():
    x = td.asarray([0.123456, 1.0], dtype=td.float64)
    before = td.get_printoptions()
    with td.printoptions(precision=2):
        assert td.array_str(x) == "[0.12 1.  ]" and "0.12," in td.array_repr(x)
    assert td.array2string(x, precision=1) == "[0.1 1. ]" and td.get_printoptions() == before


# -- maps and polynomials ----------------------------------------------------------------------------------------------
def test_functions_along_axes(rng):
    x = rng.normal(size=(2, 3, 4))
    for axis in (0, 1, -1):
        for function, other in (
            (td.cumsum, np.cumsum),
            (td.sum, np.sum),
            (lambda v: td.outer(v, v), np.outer),
        ):
            wanted = (lambda v: np.outer(v, v)) if other is np.outer else other
            same(td.apply_along_axis(function, axis, td.asarray(x)), np.apply_along_axis(wanted, axis, x))
    same(td.apply_over_axes(td.sum, td.asarray(x), (0, 2)), np.apply_over_axes(np.sum, x, (0, 2)))
    same(td.fromfunction(lambda i, j: i * 2 + j, (2, 3)), np.fromfunction(lambda i, j: i * 2 + j, (2, 3)))
    with pytest.raises(ShapeError, match="axes"):
        td.apply_over_axes(lambda a, axis: td.zeros(()), td.asarray(x), 0)


def test_reductions_that_skip_nan_take_a_dtype():
    x = np.array([[1.0, np.nan, 3.0], [2.0, 5.0, 8.0]], np.float32)
    for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd"):
        for dtype in (np.float64, np.float32):
            wanted = getattr(np, name)(x, axis=0, dtype=dtype)
            for namespace in (td, np, td.numpy):
                result = getattr(namespace, name)(td.asarray(x), axis=0, dtype=dtype)
                assert result.dtype.np == wanted.dtype
                np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-6)


def test_function_that_cannot_be_batched_is_applied_to_each_vector():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)) + 0.5
    functions = (
        lambda v: v[v > 0].sum(),
        lambda v: v if v[0] > 0.5 else -v,
        lambda v: np.outer(v, v) if float(v.sum()) > 1 else np.outer(v, -v),
    )
    for function in functions:
        for axis in (0, 1, -1):
            wanted = np.apply_along_axis(function, axis, x)
            for apply in (td.apply_along_axis, np.apply_along_axis):
                result = apply(function, axis, td.asarray(x))
                assert type(result) is td.Tensor
                np.testing.assert_allclose(result.numpy(), wanted)


def test_vectorize(rng):
    x, y = rng.normal(size=(2, 1, 3)), rng.normal(size=(4, 3))
    choose = lambda a, b: td.where(a > b, a - b, a + b)  # noqa: E731
    same(td.vectorize(choose)(td.asarray(x), td.asarray(y)), np.where(x > y, x - y, x + y))
    dot = td.vectorize(td.dot, signature="(n),(n)->()")
    for transform in (lambda f: f, td.jit):
        same(transform(dot)(td.asarray(x), td.asarray(y)), (x * y).sum(-1))
    power = td.vectorize(lambda a, n: a**n, excluded={1})
    same(power(td.asarray(y), 3), y**3)
    with pytest.raises(ValueArgumentError, match="signature"):
        td.vectorize(td.dot, signature="n,n")(td.ones(2), td.ones(2))
    with pytest.raises(ShapeError, match="core"):
        dot(td.asarray(1.0), td.ones(3))


def test_polynomials(rng):
    zeros, x, y = rng.normal(size=3), rng.normal(size=9), rng.normal(size=(9, 2))
    same(td.poly(td.asarray(zeros)), np.poly(zeros))
    same(td.poly(td.asarray(y[:2])), np.poly(y[:2]))
    p = np.array([0.0, 2.0, -3.0, 1.0, 0.0])
    same(td.roots(td.asarray(p)), np.roots(p).astype(complex))
    found = td.jit(lambda p: td.roots(p, strip_zeros=False))(td.asarray(p[1:4]))
    same(found, np.roots(p[1:4]).astype(complex))
    with pytest.raises(UnsupportedError, match="strip_zeros=False"):
        td.jit(td.roots)(td.asarray(p))
    assert td.roots(td.zeros(3)).shape == (0,)
    tensors, weights = (td.asarray(x), td.asarray(y[:, 0])), np.abs(x) + 1
    for transform in (lambda f: f, td.jit):
        same(transform(lambda x, y: td.polyfit(x, y, 2))(*tensors), np.polyfit(x, y[:, 0], 2))
    same(td.polyfit(tensors[0], td.asarray(y), 2, w=td.asarray(weights)), np.polyfit(x, y, 2, w=weights))
    same(td.polyfit(*tensors, 2, cov=True), np.polyfit(x, y[:, 0], 2, cov=True))
    assert td.grad(lambda y: td.polyfit(tensors[0], y, 1).sum())(tensors[1]).shape == (9,)
    with pytest.raises(ValueArgumentError, match="degree"):
        td.polyfit(*tensors, -1)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("num", [0, 1, 2, 7, 50])
def test_linspace_between_tensors_and_traced_numbers_has_the_bits_of_numpy(num, shape):
    rng = np.random.default_rng(num)
    start, stop = rng.normal(size=(2, *shape)).astype(rng.choice(["float32", "float64"]))
    if shape:
        stop.flat[0] = start.flat[0]  # NumPy rounds in another order if one distance is 0
    for options in ({}, {"endpoint": False}, {"axis": -1}):
        wanted = np.linspace(start, stop, num, **options)
        got = tnp.linspace(td.asarray(start), td.asarray(stop), num, **options)
        assert (got.shape, got.dtype.np) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(got.numpy(), wanted)
    jitted = td.jit(lambda first, last: tnp.linspace(first, last, num))
    np.testing.assert_array_equal(jitted(-1.75, 0.25).numpy(), np.linspace(-1.75, 0.25, num))


@pytest.mark.parametrize("module", [td.numpy, td.jax.numpy])
@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
@pytest.mark.parametrize("dtype", [bool, int, float, complex, np.float32, np.dtype("int8"), "bool"])
@pytest.mark.parametrize("shape", [5, (5,), (2, 3)])
def test_a_type_follows_the_shape(module, name, dtype, shape):
    function = getattr(module, name)
    found = function(shape, dtype)
    assert found.shape == np.empty(shape).shape
    assert found.dtype == function(shape, dtype=dtype).dtype
    assert td.jit(lambda x: function(shape, dtype))(td.ones(1)).dtype == found.dtype


@pytest.mark.parametrize("module", [td.numpy, td.jax.numpy])
@pytest.mark.parametrize(
    "args, options",
    [
        (([1, 2], float), {}),
        (([1, 2],), {"ndmin": 3}),
        ((3,), {"ndmin": 1}),
        (([[1, 2], [3, 4]],), {"order": "F"}),
        (([[1, 2], [3, 4]], np.int32), {"order": "C", "ndmin": 1}),
    ],
)
def test_arguments_of_array(module, args, options):
    found, wanted = module.array(*args, **options), np.array(*args, **options)
    assert found.tolist() == wanted.tolist()
    assert found.shape == wanted.shape
    if module is td.numpy:
        assert found.dtype.np == wanted.dtype
        assert found.strides == wanted.strides
    with pytest.raises(ValueError, match="order"):
        module.array([1], order="X")


def test_array_without_a_copy_in_another_order():
    x = np.arange(6.0).reshape(2, 3).T
    assert np.shares_memory(tnp.array(x, copy=False, order="F").numpy(), x)
    with pytest.raises(ValueError, match="needs a copy"):
        tnp.array(x, copy=False, order="C")
    with pytest.raises(TypeError, match="integer"):
        tnp.array([1], ndmin=2.5)
