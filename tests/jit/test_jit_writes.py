"""Jitted functions that write into their arguments: the memory is written as by an eager call."""

import numpy as np
import pytest
import tandem as td
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from write_programs import Program


def ones(*shape):
    return td.ones(shape)


def program(x, y):
    x += y
    x[0] = 7.0
    v = x.T
    v[1] *= 2
    return x, v, x.sum(), y, x[0]


def test_as_eagerly():
    f = td.jit(program)
    for _ in range(60):  # the native entry runs it from some call on
        mine, theirs = [(ones(2, 2), ones(2, 2)) for _ in range(2)]
        found, wanted = f(*mine), program(*theirs)
        assert [t.tolist() for t in found] == [t.tolist() for t in wanted]
        assert mine[0].tolist() == theirs[0].tolist()
        assert found[0] is mine[0] and found[3] is mine[1]
        for part in (found[1], found[4]):
            assert part._storage is mine[0]._storage and np.shares_memory(part._array, mine[0]._array)
        assert mine[0].storage().version == 1
    assert f.cache_info().misses == 1


def test_explained():
    f = td.jit(program)
    f(ones(2, 2), ones(2, 2))
    assert "arguments written after the call: x" in f.explain(ones(2, 2), ones(2, 2))


def test_a_layout_that_is_not_contiguous():
    base = np.zeros((3, 4), np.float32)
    td.jit(lambda x: x.add_(1))(td.asarray(base[::2, 1:3]))
    assert base.sum() == 4 and base[0, 1] == 1 and base[1].sum() == 0


def test_a_numpy_array_and_containers():
    array = np.ones(2, np.float32)

    @td.jit
    def step(params, rate):
        for name in params:
            params[name] -= rate * params[name]
        return params

    params = {"a": array, "b": ones(3)}
    out = step(params, 0.5)
    assert array.tolist() == [0.5, 0.5] and params["b"].tolist() == [0.5] * 3
    assert out["b"] is params["b"]


def test_arguments_that_change_places():
    @td.jit
    def swap(x, y):
        before = x * 1
        x[...] = y
        y[...] = before

    x, y = td.asarray([1.0, 2.0]), td.asarray([3.0, 4.0])
    swap(x, y)
    assert x.tolist() == [3.0, 4.0] and y.tolist() == [1.0, 2.0]


def test_arguments_in_the_same_memory():
    def f(x, y):
        x += 1
        return y * 2

    g, x = td.jit(f), ones(3)
    assert g(ones(3), ones(3)).tolist() == [2.0] * 3
    assert g(x, x).tolist() == [4.0] * 3
    assert x.tolist() == [2.0] * 3
    assert g(x[:2], x[1:]).tolist() == [6.0, 4.0]
    assert g(ones(3), ones(3)).tolist() == [2.0] * 3
    held = ones(3)
    h = td.jit(lambda x: (x.add_(1), held * 2)[1])
    assert h(ones(3)).tolist() == [2.0] * 3
    assert h(held).tolist() == [4.0] * 3


def test_read_only_arguments_are_refused_without_writing():
    frozen = np.ones(2, np.float32)
    frozen.flags.writeable = False
    f = td.jit(lambda x: x.add_(1))
    f(ones(2))
    with pytest.raises(NotImplementedError, match="read-only"):
        f(td.asarray(frozen))

    def fails(x):
        x += 1
        raise ZeroDivisionError

    x = ones(2)
    with pytest.raises(ZeroDivisionError):
        td.jit(fails)(x)
    assert x.tolist() == [1.0, 1.0]


def test_a_jitted_function_that_calls_one():
    inner = td.jit(lambda x: x.mul_(3))

    @td.jit
    def outer(x):
        inner(x[0])
        return x.sum()

    x = ones(2, 2)
    assert outer(x).item() == 8.0 and x.tolist() == [[3.0, 3.0], [1.0, 1.0]]


@pytest.mark.parametrize("program", ["pow", "div", "shape"])
def test_results_that_do_not_fit_raise_as_eagerly(program):
    def write(x):
        if program == "pow":
            x **= 0.5
        elif program == "div":
            x /= 2
        else:
            x += td.ones((3, 2), dtype=x.dtype)
        return x

    faults = []
    for function in (write, td.jit(write)):
        with pytest.raises(td.errors.TandemError) as caught:
            function(td.asarray([1, 2]))
        faults.append((type(caught.value), str(caught.value)))
    assert faults[0] == faults[1]


class NoReshape(Program):
    """Under jit a reshape that is written through is refused: eagerly it may be a copy."""

    def step(self):
        while (step := super().step())[0] in ("reshape", "ravel"):
            pass
        return step


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from([(4,), (2, 3), (2, 2, 3)]))
def test_random_programs(data, shape):
    drawn = NoReshape(data.draw)
    arrays = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape), np.arange(5, dtype=np.int64)
    theirs = [array.copy() for array in arrays]
    wanted = drawn.run(np, *theirs)
    mine = [td.asarray(array.copy()) for array in arrays]
    found = td.jit(lambda *a: drawn.run(td, *a))(*mine)
    for one, two in zip((*wanted, *theirs), (*found, *mine), strict=True):
        np.testing.assert_array_equal(one, two.numpy())
    for i, one in enumerate(wanted):
        for target in range(2):  # what lies in an argument's memory does so under jit
            assert np.shares_memory(one, theirs[target]) == np.shares_memory(
                found[i]._array, mine[target]._array
            )


def test_reshaped_views_of_contiguous_memory():
    def program(y):
        grid = td.reshape(y, (2, 3))
        turned = td.permute(grid, (1, 0))
        copied = td.reshape(turned, (6,))
        y[:] = y * 10
        grid[0, 0] = 7
        fresh = td.zeros((4, 3))
        row, part = fresh.reshape((12,)), fresh[:, 1:].reshape((8,))
        row[5] = y[1]
        fresh[0, 2] = 3
        return grid + 0, turned + 0, copied + 0, fresh, row + 0, part + 0

    mine, theirs = (td.asarray(np.arange(6.0)) for _ in range(2))
    found, wanted = td.jit(program)(mine), program(theirs)
    assert [t.tolist() for t in found] == [t.tolist() for t in wanted]
    assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: td.asarray(np.arange(12.0))[::2],
        lambda: td.permute(td.asarray(np.ones((3, 4))), (1, 0)),
    ],
    ids=["strided", "turned"],
)
def test_reshaped_views_of_other_memory_are_refused(make):
    def program(x):
        y = x.reshape((x.size,))
        y[0] = 5
        return x + 0, y

    with pytest.raises(td.errors.UnsupportedError, match="another view"):
        td.jit(program)(make())


def test_freed_views_are_forgotten():
    seen = []

    def program(x):
        for k in range(50):
            x[k] = x[k - 1] + 1
        seen.append(len(x._aliases.views))
        return x

    td.jit(program)(td.zeros(50))
    assert seen[0] < 4
