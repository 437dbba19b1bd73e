"""``td.vmap``: axes, pytrees, nesting, levels, writes, leaks, errors."""

import dataclasses
import re
from collections import namedtuple

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import errors
from tandem.eager.layers.levels import stack
from tandem.eager.layers.vmap.tensor import BatchedTensor
from vmap_harness import assert_close, draw, f64

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object


# -- axes --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("out_axis", [0, 1, -1, -2])
def test_any_axis(in_axis, out_axis):
    x = draw(2, 3, 4)
    got = td.vmap(lambda v: v.sum(0) * 2, in_axis, out_axis)(x)
    want = np.moveaxis(np.moveaxis(x.numpy(), in_axis, 0).sum(1) * 2, 0, out_axis)
    assert_close(got, want)


def test_axes_of_arguments_and_results():
    x, y = draw(3, 2), draw(4, 3, seed=1)

    def f(a, b, *, scale):
        assert (a.shape, b.shape, scale.shape) == ((2,), (4,), ())
        return {"sum": a.sum() + b, "pair": Pair(a * scale, b)}

    got = td.vmap(f, (0, 1), {"sum": 0, "pair": Pair(1, -1)})(x, y, scale=f64([1, 2, 3]))
    assert_close(got["sum"], x.numpy().sum(1)[:, None] + y.numpy().T)
    assert_close(got["pair"].a, (x.numpy() * [[1], [2], [3]]).T)
    assert_close(got["pair"].b, y.numpy())


def test_trees_of_arguments():
    layers = [Layer(draw(3, 2, 2), draw(2, seed=1)), None]

    def f(p, x):
        return p["layers"][0].weight @ x + p["layers"][0].bias

    got = td.vmap(f, ({"layers": [Layer(0, None), None]}, None))({"layers": layers}, draw(2, seed=2))
    want = layers[0].weight.numpy() @ draw(2, seed=2).numpy() + layers[0].bias.numpy()
    assert_close(got, want)
    assert_close(
        td.vmap(f, ({"layers": [Layer(0, None), 0]}, None))({"layers": layers}, draw(2, seed=2)), want
    )


def test_what_all_examples_share_is_repeated():
    x = draw(3, 2)
    one, two, three, four = td.vmap(lambda v: (td.ones(2), 1.5, 7, v), out_axes=(1, 0, None, 0))(x)
    assert one.shape == (2, 3)
    assert (two.tolist(), two.dtype, three) == ([1.5] * 3, td.float32, 7)
    assert_close(four, x.numpy())
    one[0, 0] = 5.0
    assert one.tolist() == [[5, 1, 1], [1, 1, 1]]
    assert td.vmap(lambda: td.ones(2), axis_size=4)().shape == (4, 2)
    assert td.vmap(lambda v: v, in_axes=None, axis_size=2)(3.0).tolist() == [3.0, 3.0]
    assert td.vmap(lambda v: None)(x) is None


def test_numpy_arrays_numbers_and_closures():
    x, outside, array = draw(3, 2), draw(2, seed=1), np.array([1.0, 2.0])
    got = td.vmap(lambda v, k: (v * outside + array) * k, (0, None))(x.numpy(), 2)
    assert_close(got, (x.numpy() * outside.numpy() + array) * 2)
    got = td.vmap(lambda v: np.float32(2) * v + array)(x)
    assert_close(got, x.numpy() * 2 + array)
    assert td.vmap(np.sin)(x).shape == (3, 2)


def test_name_and_doc_are_kept():
    def f(x):
        """Doc."""
        return x

    assert (td.vmap(f).__name__, td.vmap(f).__doc__) == ("f", "Doc.")


def test_empty_batches():
    x = td.zeros((0, 3))
    assert td.vmap(lambda v: (v.sum(), v @ v, v[1:], v.argmax()))(x)[2].shape == (0, 2)
    assert td.vmap(td.grad(lambda v: (v * v).sum()))(x).shape == (0, 3)


SHAPES = st.lists(st.integers(0, 3), min_size=1, max_size=3)


@st.composite
def mapped_trees(draw_value):
    """(tree of arrays, in_axes tree, size): leaves with a batch axis somewhere, or none."""
    size = draw_value(st.integers(1, 3))

    def leaf():
        shape = draw_value(SHAPES)
        axis = draw_value(st.none() | st.integers(-len(shape), len(shape) - 1))
        if axis is not None:
            shape[axis] = size
        return np.arange(np.prod(shape, dtype=int)).reshape(shape) * 1.0, axis

    def tree(depth):
        kind = draw_value(st.sampled_from(["leaf", "list", "dict", "pair"] if depth else ["leaf"]))
        if kind == "leaf":
            return leaf()
        children = [tree(depth - 1) for _ in range(2 if kind == "pair" else draw_value(st.integers(0, 2)))]
        values, axes = [c[0] for c in children], [c[1] for c in children]
        if kind == "list":
            return values, axes
        if kind == "pair":
            return Pair(*values), Pair(*axes)
        return dict(enumerate(values)), dict(reversed([*enumerate(axes)]))

    values, axes = tree(2)
    return values, axes, size


@settings(max_examples=60)
@given(mapped_trees())
def test_trees_and_axes(case):
    """vmap of the identity with the same axes in and out is the identity, and inside each leaf has lost its axis."""
    tree, axes, size = case
    seen = []
    got = td.vmap(lambda t: seen.append(t) or t, (axes,), axes, axis_size=size)(tree)
    for leaf, back, inner, axis in zip(
        td.pytree.leaves(tree),
        td.pytree.leaves(got),
        td.pytree.leaves(seen[0]),
        td.pytree.spread_prefix(axes, tree),
        strict=True,
    ):
        np.testing.assert_array_equal(np.asarray(back), leaf)
        assert inner.shape == (leaf.shape if axis is None else np.moveaxis(leaf, axis, 0).shape[1:])


# -- what the function sees --------------------------------------------------------------------------------------------
def test_what_a_value_shows():
    seen = {}

    def f(x):
        seen.update(
            shape=x.shape, dtype=x.dtype, ndim=x.ndim, size=x.size, n=len(x), text=repr(x), spec=str(x.spec)
        )
        seen.update(strides=x.stride(), contiguous=x.is_contiguous(), nbytes=x.nbytes)
        seen.update(grad=x.requires_grad, device=x.device, rows=[row.shape for row in x], text2=f"{x}")
        return x.T

    td.vmap(f)(draw(5, 2, 3))
    assert (seen["shape"], seen["ndim"], seen["size"], seen["n"]) == ((2, 3), 2, 6, 2)
    assert seen["text"].startswith("<float64[2,3] of vmap(")
    assert (seen["spec"], seen["strides"], seen["contiguous"]) == ("float64[2,3]", (3, 1), True)
    assert (seen["rows"], seen["grad"], seen["device"]) == ([(3,), (3,)], False, "cpu")


DATA = [
    (lambda x: x if x.sum() > 0 else -x, r"bool\(\).*td\.where"),
    (lambda x: x.sum().item(), r"item\(\).*return the value"),
    (lambda x: float(x[0]), r"float\(\)"),
    (lambda x: x.tolist(), r"tolist\(\)"),
    (lambda x: td.zeros(x.argmax()), r"size.*in_axes=None"),
    (lambda x: range(x.argmax()), r"size.*in_axes=None"),
    (lambda x: x.numpy(), r"numpy\(\)"),
    (lambda x: np.asarray(x), "numpy"),
    (lambda x: np.frompyfunc(abs, 1, 1)(x), "numpy"),
]


@pytest.mark.parametrize(("ask", "text"), DATA)
def test_one_value_of_a_batch_has_no_data(ask, text):
    with pytest.raises(errors.ConcretizationError, match=rf"(?s){text}") as caught:
        td.vmap(ask)(draw(3, 2))
    assert "vmap(" in str(caught.value)
    assert not stack.levels


def test_masks_have_other_shapes_for_each_example():
    with pytest.raises(errors.UnsupportedError, match=r"(?s)vmap.*where\(mask"):
        td.vmap(lambda x: x[x > 0])(draw(3, 2))
    got = td.vmap(lambda x: td.nonzero(x > 0, size=2, fill_value=-1)[0])(f64([[1, 1, 1], [-1, 2, -3]]))
    assert got.tolist() == [[0, 1], [1, -1]]


def test_leaked_values_say_where_they_were_made():
    kept = []

    def careless(x):
        kept.extend([x, x * 2])
        return x

    td.vmap(careless)(draw(3, 2))
    for value in kept:
        for use in (lambda v=value: v + 1, lambda v=value: v.sum(), lambda v=value: bool(v[0]), value.tolist):
            with pytest.raises(
                errors.LeakedTracerError, match=r"(?s)careless.*batch of 3.*test_vmap\.py:\d+"
            ):
                use()
    with pytest.raises(errors.LeakedTracerError, match="careless"):
        td.vmap(lambda x: x * kept[1])(draw(3, 2))


def test_levels_are_closed_after_errors():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        td.vmap(td.grad(td.vmap(fails)))(draw(2, 2))
    assert not stack.levels


# -- errors ------------------------------------------------------------------------------------------------------------
X, Y = td.ones((3, 2)), td.ones((4, 2))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: td.vmap(3), TypeError, "takes a function"),
        (lambda: td.vmap(lambda x: x, "0"), TypeError, "in_axes is an int"),
        (lambda: td.vmap(lambda x: x, axis_size=1.5), TypeError, "axis_size"),
        (lambda: td.vmap(lambda x, y: x, (0,))(X, Y), TypeError, "1 items.*2 positional"),
        (lambda: td.vmap(lambda x: x, ("a",))(X), TypeError, "contains 'a'; axes"),
        (lambda: td.vmap(lambda x: x, ({"a": 0},))([X]), TypeError, "dict.*list"),
        (lambda: td.vmap(lambda x: x, ({"a": 0},))({"b": X}), TypeError, r"\['a'\].*\['b'\]"),
        (lambda: td.vmap(lambda x: x, ([0, 0],))([X]), TypeError, r"\[0\], \[1\].*\[0\]"),
        (
            lambda: td.vmap(lambda x, y: x)(X, Y),
            ValueError,
            "3 in argument 0 along axis 0, 4 in argument 1 along",
        ),
        (
            lambda: td.vmap(lambda p: p)({"w": X, "b": Y}),
            ValueError,
            r"4 in argument 0, at \['b'\], along axis 0",
        ),
        (lambda: td.vmap(lambda x, *, y: x)(X, y=Y), ValueError, "4 in keyword argument 'y'"),
        (lambda: td.vmap(lambda x: x, axis_size=5)(X), ValueError, "5 by axis_size"),
        (lambda: td.vmap(lambda x: x, 2)(X), IndexError, r"argument 0 is float32\[3,2\].*no axis 2"),
        (lambda: td.vmap(lambda x: x, -3)(X), IndexError, "no axis -3"),
        (lambda: td.vmap(lambda x: x)(1.5), IndexError, "argument 0 is a float.*None"),
        (lambda: td.vmap(lambda x: x)("a"), TypeError, "argument 0.*in_axes=None"),
        (lambda: td.vmap(lambda x: x, None)(X), ValueError, "no argument is mapped.*axis_size"),
        (lambda: td.vmap(lambda: 1)(), ValueError, "no argument is mapped"),
        (lambda: td.vmap(lambda x: x, 0, None)(X), ValueError, "result differs.*None"),
        (lambda: td.vmap(lambda x: {"a": x}, 0, {"a": None})(X), ValueError, r"result at \['a'\] differs"),
        (lambda: td.vmap(lambda x: x, 0, 2)(X), IndexError, "no axis 2"),
        (lambda: td.vmap(lambda x: x, 0, (0, 0))(X), TypeError, "out_axes.*tuple"),
        (lambda: td.vmap(lambda x: "a")(X), TypeError, "the result.*out_axes=None"),
        (lambda: td.vmap(lambda x: x + td.ones(3))(X), ValueError, re.escape("(2,) and (3,)")),
        (lambda: td.vmap(lambda x: x.sum(1))(X), IndexError, "axis 1 is out of bounds for an array of 1"),
        (lambda: td.vmap(lambda x: x @ td.ones(3))(X), ValueError, "inner sizes are 2 and 3"),
        (lambda: td.vmap(lambda x: x.reshape(3))(X), ValueError, "has 2 elements"),
        (lambda: td.vmap(lambda x: x[2])(X), IndexError, "out of bounds for axis 0 with size 2"),
        (lambda: td.vmap(lambda x: td.concat([x, td.ones((2, 2))]))(X), ValueError, "differ"),
    ],
)
def test_errors_say_what_works(call, kind, text):
    with pytest.raises(kind, match=rf"(?s){text}") as caught:
        call()
    assert isinstance(caught.value, errors.TandemError)
    assert not stack.levels


def test_batched_values_are_tensors():
    seen = []
    td.vmap(lambda x: seen.append(x) or x)(X)
    assert type(seen[0]) is BatchedTensor
    assert isinstance(seen[0], td.Tensor)


@pytest.mark.parametrize("vmap", [td.vmap, td.torch.vmap, td.torch.func.vmap])
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 3, 10])
def test_torch_spellings_and_chunks(vmap, chunk_size):
    x, w = td.reshape(td.arange(15.0), (5, 3)), td.asarray([1.0, 2.0, 3.0])

    def f(x, w):
        return x * w, {"sum": (x * w).sum(), "same": w}

    want = f(x, w)[0].numpy().T, (x * w).sum(1).numpy()
    run = vmap(f, in_dims=(1, None), out_dims=(1, {"sum": 0, "same": None}), chunk_size=chunk_size)
    for function in (run, td.jit(run)):
        product, rest = function(x.T, w)
        assert np.array_equal(product.numpy(), want[0])
        assert np.array_equal(rest["sum"].numpy(), want[1])
        assert rest["same"].tolist() == w.tolist()


@pytest.mark.parametrize("both", [{"in_axes": 0, "in_dims": 0}, {"out_axes": 0, "out_dims": 1}])
def test_two_spellings_of_axes_are_refused(both):
    with pytest.raises(TypeError, match="twice"):
        td.vmap(lambda x: x, **both)


@pytest.mark.parametrize("chunk_size", [0, -1, 2.0, True])
def test_chunk_size_is_checked(chunk_size):
    with pytest.raises(td.errors.ArgumentError, match="chunk_size"):
        td.vmap(lambda x: x, chunk_size=chunk_size)
