"""Families of unusual arguments: each is accepted, or rejected with an error that names a remedy."""

import inspect

import numpy as np
import pytest
import tandem as td
from optable import table
from rotation import rotating
from tandem.errors import ConcretizationError, DTypeError, ShapeError, TandemError, UnsupportedError
from tandem.registry.function import functions

STRANGE = [
    "cpu", td.int8, None, 1.5, -1, True, 1j, object(), [], {}, (), [1, "a"], b"x", 2**70, float("nan"), np.array(["a"]),
    np.float32(2), np.datetime64("2020-01-01"), np.array([object()]), td.random, td.Tensor, ..., slice(1), {1}, len,
]  # fmt: skip
SAMPLERS = [
    name for name in dir(td.random) if inspect.isfunction(getattr(td.random, name)) and name[0] != "_"
]


# --- td.random --------------------------------------------------------------------------------------------


def refuse_or_take(call, *args):
    try:
        call(*args)
    except TandemError:
        pass
    except TypeError as fault:  # Python's own, about the number of arguments
        assert "argument" in str(fault), fault


@pytest.mark.parametrize("name", SAMPLERS)
def test_random_functions_refuse_strange_arguments(name):
    function = getattr(td.random, name)
    usual = [td.random.key(0), (2,), *[td.ones(3), td.int8, 1.0, 1.0]]
    count = len(inspect.signature(function).parameters)
    for place in range(min(count, len(usual))):
        for length in range(place + 1, min(count, len(usual)) + 1):
            for value in [*STRANGE, td.ones(3), td.random.key(0)]:
                args = usual[:length]
                args[place] = value
                refuse_or_take(function, *args)


def test_words_of_keys_may_be_numpy_arrays():
    words = np.array([1, 2, 3, 4], np.uint32)
    assert td.random.key_data(td.random.wrap_key_data(words)).tolist() == [1, 2, 3, 4]
    assert td.random.clone(words).tolist() == [1, 2, 3, 4]
    for value in ("cpu", td.int8, None, np.float32(2)):
        for function in (td.random.key_data, td.random.clone, td.random.wrap_key_data):
            with pytest.raises(DTypeError, match=r"td\.random\.key"):
                function(value)


def test_dropout_says_which_argument_is_the_key():
    x = td.ones(3)
    for call in (td.dropout, td.jit(td.dropout)):
        for value in (0.5, True, 3):
            with pytest.raises(
                DTypeError, match=r"dropout: the argument 'key' .* td\.dropout\(x, td\.random\.key"
            ):
                call(x, value)
    with pytest.raises(TandemError, match=r"'key' must be a random key, made by td\.random\.key"):
        td.dropout(x, None)


# --- properties -------------------------------------------------------------------------------------------


def check_properties(x):
    for name in [name for name in dir(type(x)) if not name.startswith("_")] + ["missing"]:
        assert hasattr(x, name) in (True, False)
    assert x.T.shape == x.shape[::-1] and hasattr(x, "mT") == (len(x.shape) > 1)
    assert not hasattr(x, "missing")
    return x


SHAPES = [(), (3,), (3, 2), (3, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_hasattr_answers_for_every_property(shape):
    x = td.ones(shape)
    leaf = td.asarray(np.ones(shape), requires_grad=True)
    for tensor in (x, x > 0, leaf, leaf * 2, x.to("meta"), td.quantize_per_tensor(x, 0.1, 0, td.int8)):
        check_properties(tensor)
    for transform in (td.jit, td.functionalize, td.vmap) if shape else (td.jit, td.functionalize):
        transform(check_properties)(x)
    td.jit(td.vmap(check_properties))(td.ones((2, *shape)))
    td.grad(lambda x: check_properties(x).sum())(x)
    td.jvp(check_properties, (x,), (x,))


def test_hasattr_answers_for_sparse_tensors():
    for x in (td.eye(3).to_sparse(), td.eye(3).to_sparse_csr()):
        check_properties(x)
        assert not hasattr(x, "strides") and not hasattr(x, "storage_offset")


def test_transpose_reverses_all_axes_as_in_numpy():
    for shape in ((), (3,), (3, 2), (2, 3, 4)):
        array = np.arange(np.prod(shape)).reshape(shape)
        for result in (td.asarray(array).T, td.transpose(td.asarray(array)), td.asarray(array).transpose()):
            assert np.array_equal(result.numpy(), array.T)


# --- Python numbers under jit -----------------------------------------------------------------------------

# Their result's shape or values are the number's, which a trace does not know.
SIZES = ("arange", "eye", "zeros", "ones", "empty", "full", "hanning", "hamming", "blackman", "bartlett")
# The shape of their result depends on data.
DATA_DEPENDENT = (
    *("unique_all", "unique_counts", "unique_inverse", "unique_values"),
    *("argwhere", "flatnonzero"),
)


def outcome(call, value):
    try:
        return "found", call(value)
    except TandemError as fault:
        return "refused", fault


@rotating
@pytest.mark.parametrize(
    "name", [name for name in table() if name not in ("clone", "contiguous", "stop_gradient")]
)
def test_jit_takes_python_numbers_as_eager_does(name):
    function = functions[table()[name].name]
    for value in (-1, 2.5, True):
        eager, found = outcome(function, value)
        with td.config.override(native=False):
            traced, result = outcome(td.jit(lambda x: function(x)), value)
        if traced != eager:
            error = UnsupportedError if name in DATA_DEPENDENT else ConcretizationError
            assert name in SIZES + DATA_DEPENDENT and isinstance(result, error), (value, found, result)
        elif eager == "found" and isinstance(result, td.Tensor):
            assert (result.shape, result.dtype.kind) == (found.shape, found.dtype.kind), value


@pytest.mark.parametrize("value", [-1, 2.5, True, 1j])
@pytest.mark.parametrize(
    "name", ["var", "std", "mean", "sum", "prod", "any", "cumsum", "cumprod", "flip", "ones_like"]
)
def test_jitted_reductions_of_python_numbers(name, value):
    function = getattr(td, name)
    eager, found = outcome(function, value)
    traced, result = outcome(td.jit(lambda x: function(x)), value)
    assert traced == eager
    if eager == "found":
        assert result.dtype is found.dtype and result.tolist() == found.tolist()


# --- the number of axes -----------------------------------------------------------------------------------

WIDE = (1,) * 64
PLACES = td.zeros((1,) * 40, dtype=td.int64)
TOO_WIDE = {
    "zeros": lambda: td.zeros((1,) * 65),
    "meta": lambda: td.zeros((1,) * 65, device="meta"),
    "newaxis": lambda: td.ones(WIDE)[None],
    "reshape": lambda: td.ones(1).reshape((1,) * 65),
    "expand_dims": lambda: td.expand_dims(td.ones(WIDE), 0),
    "broadcast": lambda: td.broadcast_to(td.ones(1), (1,) * 65),
    "stack": lambda: td.stack([td.ones(WIDE)]),
    "index": lambda: td.ones((1,) * 40)[PLACES],
    "take": lambda: td.take(td.ones((1,) * 40), PLACES, 0),
    "at": lambda: td.ones((1,) * 40).at[PLACES].set(1.0),
    "assignment": lambda: td.ones((1,) * 40).__setitem__(PLACES, 1.0),
    "normal": lambda: td.random.normal(td.random.key(0), (1,) * 65),
    "tensordot": lambda: td.tensordot(td.ones((1,) * 40), td.ones((1,) * 40), 0),
    "vmap": lambda: td.vmap(lambda x: x.reshape(WIDE))(td.ones((1, 1))),
}


@pytest.mark.parametrize("name", TOO_WIDE)
@pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_more_axes_than_arrays_have_are_refused(name, way):
    call = way(TOO_WIDE[name])
    for _ in range(3):
        with pytest.raises(ShapeError, match=r"would have \d+ axes; a tensor has at most 64"):
            call()


def test_hot_calls_refuse_too_many_axes():
    for name in ("index", "reshape", "newaxis", "broadcast"):
        for _ in range(50):
            with pytest.raises(ShapeError, match="at most 64"):
                TOO_WIDE[name]()
    assert td.tile(td.ones(WIDE), WIDE).shape == WIDE


# --- NumPy's functions ------------------------------------------------------------------------------------


def test_numpy_ufuncs_take_tensors_as_keywords():
    a = np.arange(4.0)
    x, mask, one = td.asarray(a), td.asarray([True, False, True, False]), td.asarray(1.0)
    kept = mask.numpy()
    for args in ((x, x), (a, x), (a, a)):
        assert np.add(*args, where=mask, out=np.zeros(4)).tolist() == np.where(kept, a + a, 0).tolist()
    for given in (x, a):
        assert np.add.reduce(given, where=mask, initial=one) == 3.0
        assert np.multiply.reduceat(given, td.asarray([0, 2])).tolist() == [0.0, 6.0]
    assert np.add(x, x, dtype=td.float32).dtype is td.float32
    total = np.zeros(2)
    np.add.at(total, td.asarray([0, 0]), td.asarray([1.0, 2.0]))
    assert total.tolist() == [3.0, 0.0]


@pytest.mark.parametrize("name", ["rfftn", "irfftn"])
def test_real_transforms_need_an_axis(name):
    with pytest.raises(ShapeError, match="at least one axis"):
        getattr(td.fft, name)(td.asarray(1.0))


# -- arrays of NumPy as arguments of functions that are written in Python ----------------------------------------------
A, V, AT = np.arange(6.0).reshape(2, 3), np.arange(3.0), np.array([0, 1])
OF_ARRAYS = {
    "broadcast_arrays": lambda to: td.broadcast_arrays(to(V), to(A))[0],
    "meshgrid": lambda to: td.meshgrid(to(V), to(V))[0],
    "gradient": lambda to: td.gradient(to(V), to(V)),
    "piecewise": lambda to: td.piecewise(to(V), [to(V < 1)], [0, 1]),
    "ix_": lambda to: td.ix_(to(AT), to(AT))[0],
    "block": lambda to: td.block([to(V), to(V), 1.0]),
    "trim_zeros": lambda to: td.trim_zeros(to(V)),
    "poly": lambda to: td.poly(to(V)),
    "roots": lambda to: td.roots(to(V)),
    "polyfit": lambda to: td.polyfit(to(V), to(V), 1),
    "histogramdd": lambda to: td.histogramdd(to(A))[0],
    "diag_indices_from": lambda to: td.diag_indices_from(to(np.eye(2)))[0],
    "tril_indices_from": lambda to: td.tril_indices_from(to(A))[0],
    "apply_along_axis": lambda to: td.apply_along_axis(td.sum, 0, to(A)),
    "apply_over_axes": lambda to: td.apply_over_axes(td.sum, to(A), 0),
    "unique_all": lambda to: td.unique_all(to(V)).values,
    "einsum": lambda to: td.einsum("i,ji->j", to(V), to(A)),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_arrays_are_converted_by_functions_written_in_python(name):
    result, wanted = OF_ARRAYS[name](lambda x: x), OF_ARRAYS[name](td.asarray)
    assert type(result) is td.Tensor and result.dtype is wanted.dtype
    np.testing.assert_array_equal(result.numpy(), wanted.numpy())
