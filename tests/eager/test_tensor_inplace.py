"""Views and in-place operators: the same programs on tensors and on ndarrays, and what must not be written."""

import gc
import itertools
import operator
import weakref

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import errors
from tandem.eager.tensor import inplace
from tandem.operators.declare.declaration import declared_operators


def start():
    return np.arange(24, dtype=np.float64).reshape(4, 6) + 1


# -- random programs on a pool of views of one memory ------------------------------------------------------------------
INDEX = st.one_of(
    st.integers(-1, 0),
    st.slices(4),
    st.just(Ellipsis),
    st.none(),
    st.tuples(st.slices(3), st.integers(-1, 0)),
)
ROWS = st.lists(st.integers(-1, 0), min_size=1, max_size=3)
STEP = st.one_of(
    st.tuples(st.just("view"), st.integers(0, 9), INDEX),
    st.tuples(st.just("transpose"), st.integers(0, 9)),
    st.tuples(st.just("reshape"), st.integers(0, 9)),
    st.tuples(st.just("assign"), st.integers(0, 9), INDEX, st.integers(-3, 3)),
    st.tuples(st.just("augment"), st.integers(0, 9), st.sampled_from(["add", "sub", "mul"]), st.integers(-2, 2)),
    st.tuples(st.just("from"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("gather"), st.integers(0, 9), ROWS, st.integers(1, 3)),
)  # fmt: skip


def view(array, key):
    """``array[key]``, an array also where NumPy would give a scalar."""
    key = key if isinstance(key, tuple) else (key,)
    return array[key if Ellipsis in key else (*key, ...)]


def take_step(pool, step, is_tensor):
    kind, x = step[0], pool[step[1] % len(pool)]
    if kind == "view":
        pool.append(x[step[2]] if is_tensor else view(x, step[2]))
    elif kind == "transpose":
        pool.append(x.permute(*reversed(range(x.ndim))) if is_tensor else x.T)
    elif kind == "reshape":
        pool.append(x.reshape(-1))
    elif kind == "assign":
        x[step[2]] = step[3]
    elif kind == "augment":
        getattr(x, f"__i{step[2]}__")(step[3])
    elif kind == "from":
        x[...] = pool[step[2] % len(pool)]
    elif kind == "gather":
        x[step[2]] = step[3]


@settings(max_examples=300)
@given(st.lists(STEP, min_size=1, max_size=12))
def test_programs_of_views_and_writes(steps):
    arrays, tensors = [start()], [td.asarray(start())]
    for step in steps:
        outcomes = []
        for pool, is_tensor in ((arrays, False), (tensors, True)):
            try:
                take_step(pool, step, is_tensor)
                outcomes.append(None)
            except (ValueError, IndexError) as fault:
                outcomes.append(type(fault))
        assert (outcomes[0] is None) == (outcomes[1] is None), (step, outcomes)
        arrays = [a if isinstance(a, np.ndarray) else np.asarray(a) for a in arrays]
        for array, tensor in zip(arrays, tensors, strict=True):
            np.testing.assert_array_equal(np.asarray(tensor), array)
    for one, x in zip(arrays, tensors, strict=True):
        for other, y in zip(arrays, tensors, strict=True):
            if np.shares_memory(one, other):
                assert x.storage() is y.storage()


# -- versions ----------------------------------------------------------------------------------------------------------
def test_versions_are_shared_by_views():
    x = td.zeros((3, 4))
    v = x[1]
    before = x.storage().version
    v.add_(1)
    x[0] = 2
    v[...] = x[0]
    assert x.storage().version == v.storage().version == before + 3


def test_failed_writes_change_nothing():
    x = td.asarray(start().astype(np.float32))
    version, wanted = x.storage().version, x.tolist()
    for write in (
        lambda: x.add_(td.zeros((2, 4, 6))),
        lambda: x.add_(td.zeros((4, 6), dtype=td.complex64)),
        lambda: x.add_(1j),
        lambda: x.__setitem__(9, 1.0),
        lambda: x.__setitem__(0, td.zeros(5)),
        lambda: x.__setitem__([0, 9], 1.0),
        lambda: x.__setitem__(0, 1j),
    ):
        with pytest.raises((TypeError, ValueError, IndexError)):
            write()
        assert x.tolist() == wanted
        assert x.storage().version == version


def test_whole_tensor_writers():
    x = td.zeros((2, 2))
    assert x.fill_(3) is x
    assert x.tolist() == [[3, 3], [3, 3]]
    assert x.copy_(td.asarray([1, 2], dtype=td.int8)).tolist() == [[1, 2], [1, 2]]
    assert x.zero_().tolist() == [[0, 0], [0, 0]]
    assert td.ones(2, dtype=td.bool).zero_().tolist() == [False, False]


declared_operators()  # creates the in-place variants


@pytest.mark.parametrize("op", list(inplace.functional), ids=lambda op: op.schema.name)
def test_every_inplace_operator_is_its_functional_one(op):
    """The result is written into the memory, seen by views, and the dtype must fit."""
    inner = inplace.functional[op]
    assert str(op.schema).startswith(f"td::{inner.schema.name}_")
    assert op.schema.is_mutable
    if op.schema.name in ("basic_put_", "index_put_", "index_reduce_"):
        return
    kind = td.int32 if op.schema.name.startswith("bitwise") else td.float64
    x = td.asarray([[1, 2], [3, 1]], dtype=kind)
    view = x[0]
    rest = tuple(
        td.asarray([[2, 1], [1, 2]], dtype=kind) for a in op.schema.arguments[1:] if a.type.core == "Tensor"
    )
    wanted = inner(x, *rest)
    if wanted.dtype is not x.dtype:
        with pytest.raises(errors.DTypeError, match="cannot be written"):
            op(x, *rest)
        return
    assert op(x, *rest) is x
    np.testing.assert_allclose(np.asarray(x), np.asarray(wanted), rtol=1e-14)
    np.testing.assert_array_equal(np.asarray(view), np.asarray(x)[0])


DTYPES = "bool int8 int32 int64 uint8 uint64 float16 float32 float64 complex64 complex128".split()
RUNS = {
    "eager": lambda step, x, y: step(x, y),
    "jit": lambda step, x, y: td.jit(lambda x, y: step(x.clone(), y))(x, y),
    "vmap": lambda step, x, y: td.vmap(lambda x, y: step(x.clone(), y))(x, y),
    "functionalize": lambda step, x, y: td.functionalize(lambda x, y: step(x.clone(), y))(x, y),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("step", [operator.iadd, operator.imul, operator.itruediv], ids=lambda f: f.__name__)
def test_results_are_cast_within_their_kind(run, step):
    """NumPy's rule: a result of the target's kind, or a narrower one, is cast to its dtype; others raise an error."""
    for one, other in itertools.product(DTYPES, DTYPES):
        x, y = np.array([1, 0, 3]).astype(one), np.array([2, 1, 1]).astype(other)
        try:
            wanted = step(x.copy(), y)
        except TypeError:
            with pytest.raises(TypeError):
                RUNS[run](step, td.asarray(x), td.asarray(y))
            continue
        result = RUNS[run](step, td.asarray(x.copy()), td.asarray(y)).numpy()
        assert result.dtype == wanted.dtype, (one, other)
        np.testing.assert_allclose(result, wanted, rtol=1e-3 if one == "float16" else 1e-6)


def test_cast_in_place_result_has_a_gradient():
    def total(x, y):
        z = x * 1
        z *= y
        return (z**2).sum()

    x, y = td.asarray([1.0, 2.0]), td.asarray(np.array([3.0, 0.5]))
    for function in (total, td.jit(total)):
        by_x, by_y = td.grad(function, argnums=(0, 1))(x, y)
        assert (by_x.dtype, by_y.dtype) == (td.float32, td.float64)
        assert by_x.tolist() == [18.0, 1.0] and by_y.tolist() == [6.0, 4.0]
        value, tangent = td.jvp(function, (x, y), (td.ones(2), td.zeros(2, dtype=td.float64)))
        assert (value.item(), tangent.item(), tangent.dtype) == (10.0, 19.0, td.float32)


def test_integer_tensors_take_no_fractions_in_place():
    x = td.asarray([1, 2])
    with pytest.raises(errors.DTypeError, match="cannot be written"):
        x += 1.5
    with pytest.raises(errors.DTypeError, match="does not go into"):
        x[0] = 1.5j
    x += 1
    assert x.tolist() == [2, 3]


VALUES = [3.9, -2.7, np.float32(2.5), np.array([1.5, 2.5]), np.array([[7.9]])]
KEYS = {"element": 0, "slice": slice(0, 2), "positions": [0, 1], "mask": np.array([True, True, False, False])}


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "bool"])
@pytest.mark.parametrize("key", KEYS)
def test_assignments_drop_fractions_as_those_of_numpy(key, dtype):
    for value in VALUES:
        if np.ndim(value) > (key != "element") + (key == "positions"):
            continue
        want, x = np.zeros(4, dtype), td.zeros(4, dtype=dtype)
        want[KEYS[key]] = value
        given = td.asarray(value) if isinstance(value, np.ndarray) else value
        place = KEYS[key] if key in ("element", "slice") else td.asarray(KEYS[key])
        for _ in range(3):
            x[place] = given
        assert np.array_equal(x.numpy(), want)
        assert np.array_equal(td.zeros(4, dtype=dtype).at[place].set(given).numpy(), want)
        compiled = td.jit(lambda x, given, place=place: x.at[place].set(given))
        assert np.array_equal(compiled(td.zeros(4, dtype=dtype), given).numpy(), want)
    x = td.zeros(4, dtype=dtype).fill_(2.7)
    assert np.array_equal(x.numpy(), np.full(4, 2.7).astype(dtype))


def test_read_only_memory_is_refused():
    array = np.ones(3)
    array.flags.writeable = False
    for x in (td.asarray(array), td.broadcast_to(td.zeros(1), (3,))):
        with pytest.raises(errors.UnsupportedError, match=r"read-only.*clone"):
            x.add_(1)
        with pytest.raises(errors.UnsupportedError, match="read-only"):
            x[0] = 1
    assert array.tolist() == [1, 1, 1]


def test_overlapping_source():
    x, array = td.asarray(np.arange(6.0)), np.arange(6.0)
    x[1:] = x[:-1]
    array[1:] = array[:-1].copy()
    np.testing.assert_array_equal(x.numpy(), array)
    x.add_(x[::-1])
    np.testing.assert_array_equal(x.numpy(), array + array[::-1])


def test_memory_lives_as_long_as_a_view():
    x = td.zeros(1000)
    v, gone = x[10:20], weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None
    v += 1
    assert v.storage().nbytes == 4000
    assert v.tolist() == [1.0] * 10


# -- composites and comparisons ----------------------------------------------------------------------------------------
COMPOSITE = {
    "clip_": (1.2, 2.5),
    "clamp_": (None, 2.5),
    "tril_": (),
    "cumsum_": (0,),
    "nan_to_num_": (),
    "leaky_relu_": (0.1,),
    "lt_": (2.0,),
    "greater_equal_": (2,),
    "logical_not_": (),
}


@pytest.mark.parametrize(("name", "args"), COMPOSITE.items(), ids=list(COMPOSITE))
def test_composites_are_written_as_their_results(name, args):
    """Views see the write; jit, functionalize and gradients agree with the functional operator."""
    x = td.asarray([[0.1, 2.0], [3.0, -4.0]])
    functional = getattr(x, name[:-1])(*args)

    def run(x):
        y = x * 1.0
        assert getattr(y, name)(*args) is y
        return y

    written = x.clone()
    view = written[0]
    getattr(written, name)(*args)
    np.testing.assert_array_equal(written.numpy(), functional.numpy().astype(np.float32))
    np.testing.assert_array_equal(view.numpy(), written.numpy()[0])
    for result in (run(x), td.jit(run)(x), td.functionalize(run)(x)):
        np.testing.assert_array_equal(result.numpy(), written.numpy())
    x.requires_grad_()
    run(x).sum().backward()
    zeros = td.zeros((2, 2))
    expected = (
        zeros if functional.dtype is td.bool else td.grad(lambda x: getattr(x, name[:-1])(*args).sum())(x)
    )
    np.testing.assert_array_equal(x.grad.numpy(), expected.numpy())


def test_composite_results_must_fit():
    with pytest.raises(errors.DTypeError, match="clip_"):
        td.asarray([1, 2]).clip_(1.5, 2)
    with pytest.raises(errors.ShapeError, match="lt_"):
        td.zeros(2).lt_(td.ones((3, 2)))
    with pytest.raises(errors.ShapeError, match="cumsum_"):
        td.zeros((2, 2)).cumsum_()


@pytest.mark.parametrize(
    ("dtype", "value"), [("uint8", 300.5), ("int8", -1e30), ("int32", np.inf), ("int16", np.nan)]
)
def test_floats_that_do_not_fit_are_cast_in_every_way(dtype, value):
    with np.errstate(all="ignore"):
        want = td.asarray(value, dtype=td.float64).astype(dtype).item()
    x, mask = td.zeros(3, dtype=dtype), td.asarray([True, False, False])
    x[0] = value
    assert x[0].item() == want and td.zeros(3, dtype=dtype).fill_(value)[0].item() == want
    for place in (0, mask, td.asarray([0])):
        written = td.zeros(3, dtype=dtype)
        written[place] = value
        assert written[0].item() == want
        assert td.zeros(3, dtype=dtype).at[place].set(value)[0].item() == want
        compiled = td.jit(lambda x, place=place: x.at[place].set(value))
        assert compiled(td.zeros(3, dtype=dtype))[0].item() == want


def test_in_place_operators_refuse_keywords_of_numpy():
    x = td.asarray([0.0, 1.0])
    with pytest.raises(errors.ArgumentError, match="has no argument 'where'"):
        x.float_power_(2, where=x > 0)
    assert x.tolist() == [0.0, 1.0]
