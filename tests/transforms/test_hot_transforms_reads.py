"""Hot eager vmap and jvp whose functions read more than values: texts, files, old gradients, and identity."""

import numpy as np
import pytest
import tandem as td
from hot_loop_checks import compiled, fresh
from tandem import config

pytestmark = [
    pytest.mark.skipif(not config.flags.native, reason="native code is off"),
    pytest.mark.usefixtures(fresh.__name__),
]
X = td.asarray(np.arange(12, dtype=np.float32).reshape(4, 3))
W = td.asarray(np.ones(3, np.float32))


def values(run, limit, count=4):
    with config.override(hot_loops=limit):
        return [[x.tolist() for x in td.tree.leaves(run())] for _ in range(count)]


def check(make):
    """Compare the results of a sequence of calls; ``make`` makes the call with fresh state."""
    wanted = values(make(), 10**6)
    assert values(make(), 0) == wanted


TEXTS = {
    "str": lambda w: lambda x: x * len(str(w)),
    "f-string": lambda w: lambda x: x * len(f"{w}"),
    "percent": lambda w: lambda x: x * len("%s" % w),  # noqa: UP031 - the operator is what is tested
    "format": lambda w: lambda x: x * len("{:>40}, {}".format("", w)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_of_a_tensor_is_that_of_its_values(name):
    def make():
        w = td.ones(3)
        return lambda: td.vmap(TEXTS[name](w.mul_(10)))(X)

    check(make)


def test_numpy_functions_with_code_of_the_user_run_each_time():
    def make():
        calls = []
        count = np.frompyfunc(lambda x: calls.append(x) or float(len(calls)), 1, 1)
        return lambda: td.vmap(lambda x: x * count(2.0))(X)

    check(make)


def test_files_are_read_each_time(tmp_path):
    path = str(tmp_path / "numbers")

    def make():
        def run():
            counts.append(1)
            np.full(3, len(counts), np.float32).tofile(path)
            return td.vmap(lambda x: x + np.fromfile(path, np.float32))(X)

        counts = []
        return run

    check(make)


def test_an_old_gradient_is_seen():
    def make():
        def run():
            counts.append(1)
            if len(counts) == 3:
                w.grad = None
            return td.vmap(lambda x: x * (1.0 if w.grad is None else 2.0))(X)

        w, counts = td.asarray(W.numpy(), requires_grad=True), []
        w.sum().backward()
        w.requires_grad_(False)
        return run

    check(make)


def test_an_argument_may_be_the_captured_tensor():
    def one(x, w):
        return x * (2.0 if w is W else 3.0)

    def two(x, y):
        return x * (2.0 if x is y else 3.0)

    other = td.ones(3)
    check(lambda: lambda: [td.vmap(one, (None, 0))(X, X), td.vmap(one, (0, None))(X, W)])
    check(lambda: lambda: [td.vmap(one, (0, None))(X, w) for w in (other, W, other)])
    check(lambda: lambda: [td.vmap(two, None, axis_size=2)(W, w) for w in (other, W, other)])


def test_axes_are_those_of_the_transform():
    square = td.asarray(np.arange(9, dtype=np.float32).reshape(3, 3))

    def make():
        def run():
            result = mapped(square, square)
            axes[1] = 1
            return result

        axes = [0, 0]
        mapped = td.vmap(lambda x, y: (x * y).sum(), axes)
        return run

    check(make)
    assert len({str(x) for x in values(make(), 10**6)}) == 1


def test_a_detached_argument_is_another_tensor():
    with config.override(hot_loops=0):
        for _ in range(4):
            for result in (td.vmap(lambda x: x.detach())(X), td.jvp(lambda x: x.detach(), (X,), (X,))[0]):
                assert result is not X
                result.requires_grad_()
                assert not X.requires_grad
    assert compiled() == 0
