"""Arrays of destroyed tensors are taken by new ones: never while anything refers to them, and with the right layout."""

import gc
import sys
import weakref

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth
from kernel_harness import needs_native
from rotation import share_each_commit
from tandem import config

DTYPES = [np.float32, np.float64, np.int64, np.uint8, np.complex64, np.complex128, np.float16, np.bool_]
SHAPES = [(), (1,), (16,), (3, 5), (5, 3), (2, 1, 4), (2, 2, 2, 2), (1, 2, 1, 2, 2), (0, 3), (700,), (70, 70)]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1, hot_composites=1):
        yield


def random_view(random, x):
    """A view of an array or tensor, by the same call for both."""
    choice = random.integers(5)
    if choice == 0:
        return lambda v: v.T
    if choice == 1 and x.ndim > 1:  # an element is no view in NumPy
        at = int(random.integers(x.shape[0])) if x.shape[0] else slice(0, 0)
        return lambda v: v[at]
    if choice == 2 and x.ndim:
        step = int(random.choice([-2, -1, 1, 2]))
        return lambda v: v[::step]
    if choice == 3:
        return lambda v: v[None]
    return lambda v: v.reshape(-1)


def random_result(random, x):
    """A result with memory of its own."""
    if x.dtype == np.bool_:
        return lambda v: ~v
    return (lambda v: v + v, lambda v: v * 3, lambda v: -v, lambda v: v.sum(dtype=v.dtype))[
        random.integers(4)
    ]


@pytest.mark.parametrize("seed", share_each_commit(range(40), 8))
def test_random_programs_equal_numpy(seed):
    random = np.random.default_rng(seed)
    held = []
    for step in range(1500):
        if not held or random.random() < 0.2:
            array = random.integers(0, 9, SHAPES[random.integers(len(SHAPES))]).astype(random.choice(DTYPES))
            array = np.asarray(array)
            held.append((td.asarray(array.copy()), array))
        x, array = held[random.integers(len(held))]
        make = random_view(random, array) if random.random() < 0.5 else random_result(random, array)
        with np.errstate(all="ignore"):
            y, expected = make(x), np.asarray(make(array))
        assert y.shape == expected.shape
        assert y.numpy().flags.aligned
        assert y.numpy().flags.c_contiguous == expected.flags.c_contiguous
        assert y.numpy().flags.f_contiguous == expected.flags.f_contiguous
        np.testing.assert_array_equal(y.numpy(), expected, err_msg=f"step {step}")
        if random.random() < 0.5:
            held.append((y, expected))
        if random.random() < 0.1 and expected.size and np.shares_memory(y.numpy(), x.numpy()):
            y[...], expected[...] = expected.dtype.type(1), 1
        while len(held) > 12 or (held and random.random() < 0.3):
            held.pop(random.integers(len(held)))
    for x, array in held:
        np.testing.assert_array_equal(x.numpy(), array)


def make_ten(x):
    return [x + i for i in range(10)]


@pytest.mark.parametrize(
    "export",
    [
        lambda x: x.numpy(),
        memoryview,
        lambda x: x.numpy().view(np.int64),
        np.from_dlpack,
        lambda x: x[2:].numpy(),
    ],
)
def test_memory_that_is_in_use_is_not_taken(export):
    x = td.asarray(np.zeros(16))
    make_ten(x)
    for _ in range(20):
        y = x + 7
        shared = export(y)
        before = bytes(shared)
        del y
        alive = make_ten(x)
        assert bytes(shared) == before
        del shared, alive


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy 2.5 warns of changes of shapes and dtypes
def test_arrays_that_a_program_has_changed():
    x = td.asarray(np.zeros((4, 4)))
    for _ in range(20):
        for change in (
            lambda a: a.setflags(write=False),
            lambda a: setattr(a, "shape", (2, 8)),
            lambda a: setattr(a, "dtype", np.int64),
            lambda a: a.resize((2, 2), refcheck=False),
            lambda a: setattr(a, "shape", (1, 16)),
        ):
            y = x + 1
            change(y.numpy())
            del y
            made = [x + i for i in range(4)]
            assert all(
                z.shape == (4, 4) and z.dtype is td.float64 and z.numpy().flags.writeable for z in made
            )
            assert [float(z.sum()) for z in made] == [0, 16, 32, 48]


def test_strides_of_axes_of_length_1_are_those_of_a_new_array():
    x, column = td.asarray(np.zeros((1, 5))), td.asarray(np.zeros((5, 1)))
    for _ in range(20):
        y = column.T + 1  # in the order of the operand
        wanted = y.strides
        del y
        assert (x + 2).strides == (40, 8)
        assert (column.T + 1).strides == wanted


def test_views_of_memory_that_is_read_only():
    fixed = np.arange(6.0)
    fixed.setflags(write=False)
    x, free = td.asarray(fixed, copy=False), td.asarray(np.arange(6.0))
    for _ in range(20):
        assert not x[1:].numpy().flags.writeable
        assert free[1:].numpy().flags.writeable
        assert td.broadcast_to(free, (2, 6)).shape == (2, 6)


def test_weak_references_to_arrays_die():
    x = td.asarray(np.zeros(16))
    for _ in range(50):
        y = x + 1
        reference = weakref.ref(y._array)
        del y
        assert reference() is None


def test_memory_of_a_source_is_freed_with_its_views():
    for _ in range(50):
        x = td.asarray(np.zeros(1000))
        reference = weakref.ref(x._array)
        views = x[1:], x[2], x.reshape(10, 100).T
        del x
        gc.collect()
        assert reference() is not None
        del views
        assert reference() is None


@needs_native
def test_memory_is_taken_again():
    x = td.asarray(np.zeros(16))
    make_ten(x)
    places = {(x + i)._array.ctypes.data for i in range(50)}
    assert len(places) <= 2


def test_references_to_dtypes_do_not_grow():
    x = [td.asarray(np.zeros(n, d)) for n in (1, 5, 16) for d in (np.float32, np.float64, np.int64)]
    dtypes = [np.dtype(d) for d in (np.float32, np.float64, np.int64)]

    def run(count):
        for _ in range(count):
            for y in x:
                y + y, y[0], y[None].T

    run(100)
    before = [sys.getrefcount(d) for d in dtypes]
    assert smallest_block_growth(lambda: run(2000)) < 100
    assert [sys.getrefcount(d) for d in dtypes] == before
