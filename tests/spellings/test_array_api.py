"""The Array API standard: the namespace protocol, and functions that are not operators."""

import itertools
import pickle

import numpy as np
import pytest
import tandem as td
from hypothesis import given
from hypothesis import strategies as st
from tandem.errors import ArgumentError, ShapeError, UnsupportedError, ValueArgumentError
from tandem.registry.dtypes import COMPLEX, REAL

X = td.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


# -- the namespace -----------------------------------------------------------------------------------------------------
def test_tensor_names_its_namespace():
    assert X.__array_namespace__() is td
    assert X.__array_namespace__(api_version=td.__array_api_version__) is td
    with pytest.raises(ValueArgumentError, match="2024"):
        X.__array_namespace__(api_version="2019.12")


def test_earlier_version_is_the_module_with_a_list_of_devices():
    earlier = X.__array_namespace__(api_version="2024.12")
    assert earlier.__array_api_version__ == "2024.12" and earlier is X.__array_namespace__(
        api_version="2024.12"
    )
    assert earlier.sum is td.sum and earlier.linalg is td.linalg and set(td.__all__) <= set(dir(earlier))
    for namespace, kind in ((earlier, list), (td, tuple)):
        assert type(namespace.__array_namespace_info__().devices()) is kind
    assert earlier.__array_namespace_info__().dtypes() == td.__array_namespace_info__().dtypes()
    with pytest.raises(AttributeError, match="tandem"):
        earlier.summ  # noqa: B018


def test_traced_value_has_a_namespace():
    f = td.jit(lambda x: x.__array_namespace__().sum(x.to_device(x.device)))
    assert f(X).item() == 21


def test_namespace_describes_dtypes_and_devices():
    info = td.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] is td.zeros(1).dtype
    assert info.default_dtypes()["indexing"] is td.argmax(X).dtype
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64", "complex128"}
    assert len(info.dtypes(device="cpu")) == 13
    with pytest.raises(ValueArgumentError, match="no kind"):
        info.dtypes(kind="decimal")


def test_to_device_returns_the_tensor_where_it_is():
    assert X.to_device("cpu") is X
    assert X.to_device("meta").device == "meta"
    with pytest.raises(ArgumentError, match="stream"):
        X.to_device("cpu", stream=1)


# -- shapes ------------------------------------------------------------------------------------------------------------
SHAPES = st.lists(st.lists(st.sampled_from([0, 1, 3]), max_size=3).map(tuple), max_size=3)


@given(SHAPES)
def test_shapes_broadcast_as_in_numpy(shapes):
    try:
        wanted = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match="broadcast"):
            td.broadcast_shapes(*shapes)
        return
    assert td.broadcast_shapes(*shapes) == wanted
    assert [x.shape for x in td.broadcast_arrays(*map(td.zeros, shapes))] == [wanted] * len(shapes)


@given(st.lists(st.integers(0, 3), max_size=4), st.sampled_from(["xy", "ij"]))
def test_meshgrid_equals_numpy(sizes, indexing):
    rows = [np.arange(size, dtype=[np.int64, np.float32][size % 2]) + 10 * size for size in sizes]
    result = td.meshgrid(*map(td.asarray, rows), indexing=indexing)
    wanted = np.meshgrid(*rows, indexing=indexing)
    assert len(result) == len(wanted)
    for one, other in zip(result, wanted):
        np.testing.assert_array_equal(one.numpy(), other, strict=True)


def test_meshgrid_refuses_other_arguments():
    for arrays, options, error in (
        ((X,), {}, ShapeError),
        ((X[0],), {"indexing": "yx"}, ValueArgumentError),
    ):
        with pytest.raises(error, match="meshgrid"):
            td.meshgrid(*arrays, **options)


# -- sets --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse"])
def test_results_have_the_names_of_the_standard(name):
    function = getattr(td, name)
    result, wanted = function(X), getattr(np, name)(X.numpy())
    assert type(result).__name__ == type(wanted).__name__
    assert result._fields == wanted._fields
    assert pickle.loads(pickle.dumps(function))(X).values.tolist() == X.flatten().tolist()


def test_unique_in_a_trace_needs_a_size():
    for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
        with pytest.raises(UnsupportedError, match=f"{name}: the result has a data-dependent shape"):
            td.jit(getattr(td, name))(X)


def test_unique_with_a_size_is_padded_or_cut():
    x = td.asarray([5, 3, 5, 4])
    for function in (td.unique_counts, td.jit(td.unique_counts, static_argnames="size")):
        assert [part.tolist() for part in function(x, size=4)] == [[3, 4, 5, 3], [1, 1, 2, 0]]
        assert [part.tolist() for part in function(x, size=2)] == [[3, 4], [1, 1]]


def test_unique_of_an_empty_tensor_is_empty():
    assert [part.shape for part in td.unique_all(td.zeros((0, 2)))] == [(0,), (0,), (0, 2), (0,)]


def test_gradients_of_unique_values_flow_to_first_occurrences():
    weights = td.asarray([10.0, 20.0])
    slope = td.grad(lambda x: (td.unique_values(x, size=2) * weights).sum())
    assert slope(td.asarray([2.0, 1.0, 2.0])).tolist() == [20.0, 10.0, 0.0]


@given(st.lists(st.integers(0, 40), max_size=30), st.lists(st.integers(0, 40), max_size=30))
def test_isin_equals_numpy(elements, values):
    x, y = np.asarray(elements, np.int64), np.asarray(values, np.int64)
    assert td.isin(td.asarray(x), td.asarray(y)).tolist() == np.isin(x, y).tolist()


# -- linalg ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["eig", "eigh", "qr", "slogdet", "svd"])
def test_factors_have_the_names_of_the_standard(name):
    x = td.asarray([[2.0, 1.0], [1.0, 3.0]])
    result, wanted = getattr(td.linalg, name)(x), getattr(np.linalg, name)(x.numpy())
    assert type(result) is getattr(td.linalg, type(wanted).__name__)
    assert result._fields == wanted._fields
    traced = td.jit(lambda x: getattr(td.linalg, name)(x))(x)
    assert type(traced) is type(result)
    assert [part.shape for part in traced] == [part.shape for part in result]


# -- arguments of the standard -----------------------------------------------------------------------------------------
def test_astype_takes_a_device():
    assert td.astype(X, td.float32, copy=False, device="cpu") is X
    assert td.astype(X, td.int8, device="meta").spec == td.TensorSpec((2, 3), td.int8, "meta")
    assert td.astype(X, td.float32, device="cpu") is not X


def test_dlpack_export_takes_the_arguments_of_the_standard():
    class Other:
        def __dlpack_device__(self):
            return X.__dlpack_device__()

        def __dlpack__(self, **options):
            return X.__dlpack__(**{"stream": None, **options})

    assert td.from_dlpack(Other()).tolist() == X.tolist()
    assert td.from_dlpack(X, copy=True) is not X
    with pytest.raises(BufferError):
        X.__dlpack__(max_version=(1, 0), dl_device=(2, 0))


def test_views_are_copied_as_asked():
    whole, columns = td.arange(6), td.permute(td.reshape(td.arange(6), (2, 3)), (1, 0))
    for call in (td.reshape, td.jit(td.reshape, static_argnames=("shape", "copy"))):
        assert call(whole, shape=(2, 3), copy=True).tolist() == [[0, 1, 2], [3, 4, 5]]
    shared, copied = whole.reshape((2, 3), copy=False), whole.reshape((2, 3), copy=True)
    whole[0] = 7
    assert shared[0, 0].item() == 7 and copied[0, 0].item() == 0
    with pytest.raises(ValueArgumentError, match="reshape: int64\\[3,2\\] needs a copy"):
        td.reshape(columns, (6,), copy=False)
    with pytest.raises(ArgumentError, match="copy"):
        td.reshape(whole, (6,), copy="yes")


# -- arguments and special values --------------------------------------------------------------------------------------
def test_ranks_and_pseudo_inverses_take_a_tolerance_for_each_matrix():
    a = np.stack([np.diag([4.0, 2.0, 1.0])] * 2)
    limits = np.array([0.3, 0.6])
    x, rtol = td.asarray(a), td.asarray(limits)
    for run in (lambda f: f, td.jit, td.vmap):
        inverses = run(lambda x, rtol: td.linalg.pinv(x, rtol=rtol))(x, rtol)
        np.testing.assert_allclose(inverses.numpy(), np.linalg.pinv(a, limits))
        assert run(lambda x, rtol: td.linalg.matrix_rank(x, rtol=rtol))(x, rtol).tolist() == [2, 1]
    of_one = td.vmap(lambda rtol: td.linalg.pinv(x, rtol=rtol))(rtol)
    np.testing.assert_allclose(of_one[1].numpy(), np.linalg.pinv(a, limits[1]))
    with pytest.raises(ShapeError, match="rtol"):
        td.linalg.pinv(x[0], rtol=rtol)


def test_sign_of_zero_is_positive_zero():
    for sign in (td.sign, td.jit(td.sign)):
        for dtype in (td.float16, td.float32, td.float64):
            signs = sign(td.asarray([-0.0, 0.0, -2.0, float("nan")], dtype=dtype)).numpy()
            assert np.signbit(signs[:3]).tolist() == [False, False, True] and np.isnan(signs[3])


def test_casting_rules_are_those_of_numpy():
    for one, other in itertools.product((td.bool, *REAL, *COMPLEX), repeat=2):
        if td.bfloat16 in (one, other):
            continue
        wanted = np.can_cast(one.np, other.np, "same_kind")
        assert td.can_cast(one, other, "same_kind") is wanted, (one, other)


def test_sign_of_a_complex_zero_is_positive_zero():
    zeros = td.asarray([complex(-0.0, -0.0), complex(0.0, -0.0)])
    for sign in (td.sign, td.jit(td.sign)):
        assert np.signbit(sign(zeros).numpy().view(np.float32)).tolist() == [False] * 4


def test_dtype_has_the_attributes_of_numpys():
    for dtype in (td.bool, td.int64, td.float32, td.complex128, td.bfloat16):
        for name in ("char", "str", "num", "byteorder", "alignment", "isnative", "names", "fields"):
            assert getattr(dtype, name) == getattr(dtype.np, name), (dtype, name)
        with pytest.raises(AttributeError, match="a dtype has no attribute 'chars'"):
            dtype.chars  # noqa: B018


def test_parts_of_complex_numbers_are_attributes():
    z = td.asarray([1 + 2j, -3j])
    assert z.real.tolist() == [1.0, 0.0] and z.imag.tolist() == [2.0, -3.0]
    assert X.real.tolist() == X.tolist() and not X.imag.any()
    assert td.jit(lambda z: z.real * z.imag)(z).tolist() == [2.0, 0.0]
    assert td.grad(lambda x: (x * (1 + 2j)).imag.sum())(X[0]).tolist() == [2.0, 2.0, 2.0]
    assert td.vmap(lambda z: z.real)(z).tolist() == [1.0, 0.0]
