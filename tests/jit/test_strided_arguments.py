"""Arguments that are not contiguous: compiled code reads them by their strides, and copies none."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given
from hypothesis import strategies as st
from rotation import share_each_commit
from tandem.backends.cpu import fastpath

BASE = np.arange(4 * 6 * 5, dtype=np.float64).reshape(4, 6, 5)


@st.composite
def views(draw):
    """A view of an array: a slice of each axis, in an order of the axes, perhaps broadcast."""
    slices = []
    for size in BASE.shape:
        start, stop = sorted(draw(st.tuples(*[st.integers(0, size - 1)] * 2)))
        step = draw(st.sampled_from((1, 1, 2, 3)))
        one = slice(start, stop + 1, step)
        slices.append(slice(None, None, -1) if draw(st.integers(0, 4)) == 0 else one)
    array = BASE.copy()[tuple(slices)].transpose(draw(st.permutations(range(3))))
    if draw(st.integers(0, 5)) == 0:
        array = np.broadcast_to(array[:, :1], (array.shape[0], 3, array.shape[2]))
    return array


FUNCTIONS = {
    "elementwise": lambda x: x * 2.0 + 1.0,
    "sums": lambda x: (x.sum(0), x.sum(2), x.max(), x.mean(1)),
    "product": lambda x: td.matmul(x, td.swapaxes(x, 1, 2)),
    "sort": lambda x: td.sort(x, 1),
    "views": lambda x: (x[0], x.T, x[:, ::-1], x),
    "reshape": lambda x: (x.reshape(-1), x.reshape(-1) + 1.0),
    "loop": lambda x: td.fori_loop(
        0, 3, lambda i, s: s + x[i % x.shape[0]], td.zeros(x.shape[1:], dtype=x.dtype)
    ),
    "gather": lambda x: x[td.asarray([0, 0])],
}


def check(function, x):
    wanted, jitted = function(x), td.jit(function)
    for _ in range(3):
        result = jitted(x)
        for got, want in zip(td.pytree.flatten(result)[0], td.pytree.flatten(wanted)[0], strict=True):
            assert got.shape == want.shape and got.numpy().tobytes() == want.numpy().tobytes()


@pytest.mark.parametrize("name", share_each_commit(FUNCTIONS, 2))
@given(array=views())
def test_results_are_those_of_eager_calls(name, array):
    check(FUNCTIONS[name], td.asarray(array))


@pytest.mark.parametrize(
    "dtype", share_each_commit(["bool", "int8", "float16", "bfloat16", "float32", "complex64"], 2)
)
@given(array=views())
def test_dtypes(dtype, array):
    check(lambda x: (x[1:], td.cat([x, x], 1)), td.asarray(array).astype(dtype))
    check(
        lambda x: (x[1:], td.cat([x, x], 1)), td.asarray(array.astype(td.ones(1, dtype=dtype).numpy().dtype))
    )


@given(array=views())
def test_gradients(array):
    def function(x):
        return (td.sin(x) * x.sum(0)).sum()

    jitted = td.jit(function)
    for _ in range(3):
        x = td.asarray(array).requires_grad_()
        value = jitted(x)
        value.backward()
        assert np.allclose(x.grad.numpy(), td.grad(function)(td.asarray(array.copy())).numpy())


@pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")
def test_code_reads_memory_of_the_argument():
    f = td.jit(lambda x: x + 1.0)
    x = td.asarray(BASE.copy())
    assert "strides (1, 5, 30)" in str(f.lower(x.T).kernels())
    for _ in range(3):
        assert f(x.T).tolist() == (BASE.T + 1).tolist()
    assert f(x[:, ::-1]).tolist() == (BASE[:, ::-1] + 1).tolist()
    assert f.cache_info().specializations == 2
    assert "layout was strides (240, -40, 8), now contiguous" in f.explain(x)


def test_many_strides_share_one_specialization():
    f = td.jit(lambda x: x * 2.0)
    for width in range(3, 60):
        x = np.arange(width * 3.0).reshape(3, width)
        for _ in range(2):
            assert f(td.asarray(x)[:, :2]).tolist() == (x[:, :2] * 2).tolist()
    assert f.cache_info().specializations == 5
    assert f.cache_info().misses == 5


def test_captured_views_are_read_by_their_strides():
    held = td.asarray(BASE.copy())
    view = held[:, ::2].T

    def function(x):
        return view * x

    f = td.jit(function)
    for scale in (1.0, 2.0, 3.0):
        assert f(scale).tolist() == (BASE[:, ::2].T * scale).tolist()
    held += 1.0
    assert f(1.0).tolist() == (BASE[:, ::2].T + 1).tolist()


def test_views_are_written():
    def function(x, y):
        x += y
        x[0] = 0.0
        return x.sum()

    f = td.jit(function)
    for _ in range(3):
        x, y = td.asarray(BASE.copy()), td.asarray(BASE.copy())
        want, other = BASE.copy(), BASE.copy()
        want.T[:] += other.T
        want.T[0] = 0.0
        assert f(x.T, y.T).item() == want.sum() and x.tolist() == want.tolist()
        copied = td.jit(lambda x, y: x.copy_(y))
        copied(x.T.T, y[::-1])
        assert x.tolist() == other[::-1].tolist()


def test_unaligned_arrays_are_copied():
    raw = np.zeros(8 * 12 + 1, np.int8)[1:].view(np.float64).reshape(3, 4)
    raw[:] = np.arange(12.0).reshape(3, 4)
    fields = np.zeros(3, dtype=[("a", np.int8), ("b", np.float64)])
    fields["b"] = [1, 2, 3]
    for array in (raw, raw.T, fields["b"]):
        f = td.jit(lambda x: x + 1.0)
        for _ in range(3):
            assert f(array).tolist() == (array + 1).tolist()


def test_donated_views():
    f = td.jit(lambda x: x + 1.0, donate_argnums=0)
    for _ in range(3):
        x = td.ones((200, 200))
        assert f(x.T[::2]).tolist() == np.full((100, 200), 2.0).tolist()


def test_strided_views_of_tensors_that_are_not_contiguous_are_copied():
    x = td.asarray(np.arange(340.0).reshape(20, 17))
    for size, stride in (((), ()), ((1,), (1,)), ((5,), (1,)), ((3, 4), (4, 1)), ((2, 2), (7, 3))):
        want = td.as_strided(x.T.contiguous(), size, stride) + 1.0
        inner = td.jit(lambda x, size=size, stride=stride: td.as_strided(x.T, size, stride) + 1.0)
        outer = td.jit(lambda x, size=size, stride=stride: td.as_strided(x, size, stride) + 1.0)
        for _ in range(3):
            assert inner(x).tolist() == outer(x.T).tolist() == want.tolist()
