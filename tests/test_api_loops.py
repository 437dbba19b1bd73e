"""What programs written for other libraries ask of loops and branches, where examples of a batch differ."""

import numpy as np
import pytest
import tandem as td


def safe_root(x):
    return td.cond(x < 1e-3, lambda _: 1e-3, lambda _: td.sqrt(x), ())


def safe_root_of_operand(x):
    return td.cond(x < 1e-3, lambda x: 0.0 * x, td.sqrt, x)


X = td.asarray([0.0, 4.0, 0.0])
SLOPES = [0.0, 0.25, 0.0]


@pytest.mark.parametrize("f", [safe_root, safe_root_of_operand], ids=["closure", "operand"])
def test_a_branch_not_taken_gives_no_nan(f):
    """All branches are computed for all examples; the infinite slope of one at 0 must not reach those of the other."""

    def loss(x):
        return td.vmap(f)(x).sum()

    for gradient in (td.grad(loss), td.jit(td.grad(loss)), td.grad(td.jit(loss)), td.vmap(td.grad(f))):
        assert gradient(X).tolist() == SLOPES
    assert td.jvp(loss, (X,), (td.ones(3),))[1].item() == 0.25
    assert td.jit(td.vmap(td.grad(td.grad(f))))(td.asarray([0.0, 4.0])).tolist() == [0.0, -0.03125]


def test_a_switch_whose_index_is_out_of_range_for_some():
    branches = [lambda x: x, lambda x: 2.0 * x, lambda x: x * x]

    def f(i, x):
        return td.switch(i, branches, x)

    i, x = td.asarray([-7, 0, 1, 2, 99]), td.asarray([3.0, 3.0, 3.0, 3.0, 3.0])
    want = [3.0, 3.0, 6.0, 9.0, 9.0]
    assert td.vmap(f)(i, x).tolist() == want
    assert td.jit(td.vmap(f))(i, x).tolist() == want
    slopes = [1.0, 1.0, 2.0, 6.0, 6.0]
    for gradient in (td.vmap(td.grad(f, 1)), td.grad(lambda i, x: td.vmap(f)(i, x).sum(), 1)):
        assert gradient(i, x).tolist() == slopes
        assert td.jit(gradient)(i, x).tolist() == slopes


def test_two_batches_of_choices():
    def f(p, x, y):
        return td.cond(p, lambda x, y: x * y, lambda x, y: x - y, x, y)

    p, x, y = td.asarray([True, False]), td.asarray([2.0, 3.0]), td.asarray([5.0, 7.0, 11.0])
    both = td.vmap(td.vmap(f, (None, None, 0)), (0, 0, None))
    want = [[10.0, 14.0, 22.0], [-2.0, -4.0, -8.0]]
    assert both(p, x, y).tolist() == want
    assert td.jit(both)(p, x, y).tolist() == want
    for which, slopes in ((1, [23.0, 3.0]), (2, [1.0, 1.0, 1.0])):
        for gradient in (
            td.grad(lambda p, x, y: both(p, x, y).sum(), which),
            td.jit(td.grad(lambda p, x, y: both(p, x, y).sum(), which)),
        ):
            np.testing.assert_array_equal(np.asarray(gradient(p, x, y)), slopes)


def test_axis_index_in_a_loop():
    def f(x):
        return td.while_loop(lambda x: x < td.axis_index("i"), lambda x: x + 2, x)

    def g(x):
        return td.scan(lambda c, _: (c + td.axis_index("i"), td.psum(c, "i")), x, None, 3)

    x, want = td.asarray([0, 0, 0, 0]), [0, 2, 2, 4]
    for way in (
        td.vmap(f, axis_name="i"),
        td.jit(td.vmap(f, axis_name="i")),
        td.vmap(td.jit(f), axis_name="i"),
        td.jit(td.vmap(td.jit(f), axis_name="i")),
    ):
        assert way(x).tolist() == want
    alone = td.jit(f)
    assert td.vmap(lambda _, x: alone(x), in_axes=(0, None), axis_name="i")(x, 0).tolist() == want
    for way in (
        td.vmap(g, axis_name="i"),
        td.jit(td.vmap(g, axis_name="i")),
        td.vmap(td.jit(g), axis_name="i"),
    ):
        last, sums = way(x)
        assert last.tolist() == [0, 3, 6, 9] and sums[0].tolist() == [0, 6, 12]
