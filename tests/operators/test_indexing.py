"""Subscripts follow NumPy: reads, writes, every mix of indices, and errors."""

import numpy as np
import pytest
from helpers import assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import errors
from tandem.eager.tensor.tensor import wrap
from tandem.operators.indexing.subscript import getitem, parse_subscript, put
from tandem.registry import dtypes as dt
from tandem.registry.values import TensorSpec

SHAPE = (4, 3, 5)
ROWS, J = np.array([0, 2, 1]), np.array([[1], [-1]])
MASK = np.arange(12).reshape(4, 3) % 3 == 0


def cube(dtype: object = np.float32) -> np.ndarray:
    return np.arange(60).reshape(SHAPE).astype(dtype)


KEYS = [
    (),
    ...,
    0,
    -1,
    np.int64(2),
    slice(None),
    slice(1, None, 2),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(9, 2),
    None,
    (0, 1, 2),
    (0, ..., 1),
    (..., None, 0),
    (None, slice(1, 3), None, 2),
    (slice(None), slice(0, 0)),
    ROWS,
    [0, 1],
    [],
    [[0, 1], [2, 0]],
    (ROWS, ROWS),
    (ROWS, J),
    (ROWS, J, 0),
    (slice(None), ROWS),
    (slice(None), ROWS, ROWS),
    (ROWS, slice(None), ROWS),
    (0, slice(None), ROWS),
    (slice(None), ROWS, 1),
    (ROWS, None, ROWS),
    (..., ROWS),
    (ROWS, ..., ROWS),
    (slice(None), ROWS, ..., ROWS),
    (slice(1, 3), ROWS, slice(None, None, -2)),
    (slice(None), None, J, 0),
    np.array(1),
    (np.array(1), ROWS),
    ROWS.astype(np.uint8),
    MASK,
    (MASK, 0),
    (MASK, ROWS[:1]),
    (slice(None), np.array([True, False, True])),
    (slice(None), [True, False, True], slice(1, 2)),
    np.zeros(4, bool),
    True,
    False,
    (True, ROWS, slice(None), True),
    (..., True),
    np.array(True),
]


def as_tensors(key: object) -> object:
    if isinstance(key, tuple):
        return tuple(map(as_tensors, key))
    return wrap(key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reads_as_numpy(key):
    x = cube()
    assert_same(getitem(wrap(x), key), x[key])
    assert_same(getitem(wrap(x), as_tensors(key)), x[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
def test_writes_as_numpy(key, accumulate):
    x, want = cube(), cube()
    value = np.arange(want[key].size).reshape(want[key].shape).astype(np.float32)
    ours = put(wrap(x), as_tensors(key), wrap(value), combine="add" if accumulate else "")
    if accumulate:
        np.add.at(want, key, value)
    else:
        want[key] = value
    assert_same(ours, want)
    assert_same(wrap(x), cube())


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_basic_keys_give_views_and_the_others_copies(key):
    x = cube()
    found = getitem(wrap(x), as_tensors(key))
    if found.size:
        assert np.shares_memory(found._array, x) == (
            not parse_subscript(wrap(x), as_tensors(key)).with_positions().indices
        )


@pytest.mark.parametrize(
    "value", [7, np.float32(7), np.full((1, 1, 1, 5), 7.0, np.float32)], ids=["int", "0d", "ones"]
)
def test_written_values_broadcast(value):
    x, want = cube(), cube()
    want[1:3] = value
    assert_same(put(wrap(x), slice(1, 3), value if isinstance(value, int) else wrap(np.asarray(value))), want)


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (4, IndexError, "out of bounds"),
        (-5, IndexError, "out of bounds"),
        (np.array([0, 4]), IndexError, "out of bounds"),
        ((0, 0, 0, 0), IndexError, "too many"),
        ((..., 0, ...), IndexError, "at most one"),
        (1.0, IndexError, "is not an index"),
        ("a", IndexError, "is not an index"),
        (slice(0, 2.5), IndexError, "slice"),
        (slice(None, None, 0), IndexError, "step"),
        (np.array([0.5]), IndexError, "float64"),
        ([[1], [1, 2]], IndexError, "rows"),
        ({}, IndexError, "is not an index"),
        (np.zeros(3, bool), IndexError, "mask of shape"),
        ((ROWS, np.array([0, 1])), ValueError, "broadcast"),
    ],
    ids=str,
)
def test_bad_keys(key, error, words):
    x = wrap(cube())
    for use in (lambda: getitem(x, key), lambda: put(x, key, 0)):
        with pytest.raises(error, match=words) as caught:
            use()
        assert isinstance(caught.value, errors.TandemError)
    assert_same(x, cube())


@pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, np.asfortranarray, lambda a: np.flip(np.flip(a).copy())]
)
def test_last_of_repeated_positions_stays_in_every_layout(layout):
    rows = np.array([[0, 1, 2], [1, 0, 1], [2, 2, 0]])
    for value in (np.arange(9.0).reshape(3, 3), np.arange(3.0)[:, None], np.arange(3.0)):
        want = np.zeros(4)
        for place, item in zip(rows.ravel(), np.broadcast_to(value, rows.shape).ravel(), strict=True):
            want[place] = item
        for written in (value, np.asfortranarray(value), np.flip(np.flip(value).copy())):
            assert_same(put(wrap(np.zeros(4)), wrap(layout(rows)), wrap(written)), want)
            x = wrap(np.zeros(4))
            x[wrap(layout(rows))] = wrap(written)
            assert_same(x, want)
    x = wrap(np.zeros(3))
    x[wrap(np.array([0, 1, 0])[::-1])] = wrap(np.array([1.0, 2.0, 3.0]))
    assert_same(x, np.array([3.0, 2.0, 0.0]))


def test_bad_values():
    x = wrap(cube(np.int8))
    with pytest.raises(errors.ShapeError, match="broadcast"):
        put(x, 0, wrap(np.zeros((2, 2), np.int8)))
    with pytest.raises(errors.DTypeError, match="astype"):
        put(x, 0, 0.5j)
    with pytest.raises(OverflowError, match="int8"):
        put(x, ROWS, 200)


def test_mask_without_data_suggests_alternative():
    mask = TensorSpec((4,), dt.bool_)
    from tandem.operators.indexing.take import nonzero

    with pytest.raises(errors.UnsupportedError, match=r"where\(mask.*size="):
        nonzero.operator.decl.shape_rule(mask)
    assert nonzero.operator.decl.shape_rule(mask, size=2) == (TensorSpec((2,), dt.int64),)


def test_plans_are_canonical():
    """Two spellings of one view give one plan, so that equal nodes of a graph are equal."""
    x = wrap(cube())
    assert parse_subscript(x, (slice(-3, 99),)) == parse_subscript(x, (slice(1, None), ...))
    assert parse_subscript(x, slice(3, 3)).plan == parse_subscript(x, slice(2, 1)).plan
    hash(parse_subscript(x, (0, slice(1, 2), None)).plan)


def keys(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[object, ...]]:
    """A key with one part for each of some leading axes, and new axes and an ellipsis between."""

    @st.composite
    def build(draw: st.DrawFn) -> tuple[object, ...]:
        parts: list[object] = []
        dots = draw(st.integers(-1, len(shape)))
        for axis, size in enumerate(shape[: draw(st.integers(0, len(shape)))]):
            if axis == dots:
                parts.append(Ellipsis)
                break
            parts.append(
                draw(
                    st.one_of(
                        st.integers(-size, size - 1),
                        st.slices(size),
                        st.lists(st.integers(-size, size - 1), min_size=2, max_size=2).map(np.array),
                        st.lists(st.booleans(), min_size=size, max_size=size).map(
                            lambda m: np.array(
                                [*m[:-2], *([True, True] if sum(m[:-2]) == 0 else [False, False])]
                            )
                        ),
                    )
                )
            )
            if draw(st.integers(0, 5)) == 0:
                parts.append(None)
        return tuple(parts)

    return build()


@settings(max_examples=300)
@given(keys((4, 3, 5)))
def test_any_mix_of_indices(key):
    x = cube()
    try:
        want = x[key]
    except IndexError:  # masks with different numbers of true elements
        with pytest.raises((IndexError, ValueError)):
            getitem(wrap(x), as_tensors(key))
        return
    assert_same(getitem(wrap(x), as_tensors(key)), want)
    value = np.arange(want.size).reshape(want.shape).astype(np.float32)
    x[key] = value
    assert_same(put(wrap(cube()), as_tensors(key), wrap(value)), x)
