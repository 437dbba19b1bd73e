"""``eval_shape``, abstract arguments, donated arguments, implicit solutions without reverse mode."""

import pickle

import numpy as np
import pytest
import tandem as td

S = td.ShapeDtypeStruct


def test_structs_are_values():
    x = S([2, 3], np.float32)
    assert (x.shape, x.dtype, x.ndim, x.size, len(x)) == ((2, 3), td.float32, 2, 6, 2)
    assert x == S((2, 3), td.float32) and hash(x) == hash(S((2, 3), "float32")) and x != S((2, 3), td.float64)
    assert pickle.loads(pickle.dumps(x)) == x and td.tree.leaves({"x": x}) == [x]
    assert repr(S((), td.bool)) == "ShapeDtypeStruct(shape=(), dtype=bool)"
    with pytest.raises(TypeError):
        len(S((), td.float32))
    with pytest.raises(AttributeError):
        x.shape = (3,)


@pytest.mark.parametrize("shape", [(-1,), (2.0,), (None,), "ab"])
def test_shape_structs_reject_invalid_shapes(shape):
    with pytest.raises(td.errors.ArgumentError, match="shape"):
        S(shape, td.float32)


def test_shapes_of_results_without_data():
    found = td.eval_shape(
        lambda p, x, n, f: {"y": f(x @ p["w"]), "n": n * 2, "half": n / 2, "none": None},
        {"w": S((3, 4), td.float64)},
        td.zeros((2, 3), dtype=td.float64),
        3,
        td.exp,
    )
    assert found == {
        "y": S((2, 4), td.float64),
        "n": S((), td.int64),
        "half": S((), td.float32),
        "none": None,
    }


def test_eval_shape_allocates_nothing_and_takes_keywords():
    assert td.eval_shape(lambda x, *, k: x[:, None] * x + k, S((10**6,), td.float32), k=1.0).size == 10**12


@pytest.mark.parametrize(
    ("fun", "wanted"),
    [
        (td.grad(lambda x: (x**2).sum()), S((5,), td.float32)),
        (td.vmap(lambda x: td.stack([x, x])), S((5, 2), td.float32)),
        (td.jit(lambda x: x.sum()), S((), td.float32)),
        (lambda x: td.scan(lambda c, y: (c + y, c), 0.0, x)[1], S((5,), td.float32)),
        (lambda x: td.cond(x.sum() > 0, td.exp, td.negative, x), S((5,), td.float32)),
        (td.hessian(lambda x: (x**3).sum()), S((5, 5), td.float32)),
    ],
)
def test_shapes_through_transforms(fun, wanted):
    assert td.eval_shape(fun, S((5,), td.float32)) == wanted


def test_shapes_are_asked_for_inside_of_transforms():
    def f(x):
        return (x * td.eval_shape(lambda y: td.stack([x, y]), x).ndim).sum()

    x = td.ones(3)
    assert td.grad(f)(x).tolist() == td.jit(td.grad(f))(x).tolist() == [2.0, 2.0, 2.0]
    assert td.vmap(f)(td.ones((2, 3))).tolist() == [6.0, 6.0]


def test_shapes_that_depend_on_data_raise():
    with pytest.raises(td.errors.ConcretizationError):
        td.eval_shape(lambda x: x.item(), S((), td.float32))
    with pytest.raises(td.errors.ShapeError):
        td.eval_shape(lambda x: x @ x, S((2, 3), td.float32))


class Described:
    shape, dtype = (2, 3), np.dtype("float32")


@pytest.mark.parametrize("given", [S((2, 3), td.float32), Described()], ids=["struct", "object"])
def test_stages_accept_objects_with_shape_and_dtype(given):
    f = td.jit(lambda x, y: x @ y)
    assert f.trace(given, S((3,), td.float32)).graph
    compiled = f.lower(given, S((3,), td.float32)).compile()
    assert compiled(td.ones((2, 3)), td.ones(3)).tolist() == [3.0, 3.0]
    with pytest.raises(td.errors.ArgumentError):
        f(given, td.ones(3))


# -- donated arguments ----------------------------------------------------------------------------------------------
def test_small_donated_tensors_stay_what_they_are():
    x = td.ones(3)
    f = td.jit(lambda x, y: x + y, donate_argnums=0, donate_argnames="y")
    assert f(x, x).tolist() == [2.0, 2.0, 2.0] and x.tolist() == [1.0, 1.0, 1.0]

    @td.jit(donate_argnums=(0, 1))
    def g(x, y):
        return x * y

    assert g(x, 2.0).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "options",
    [
        {"donate_argnums": 2},
        {"donate_argnames": "z"},
        {"donate_argnums": "x"},
        {"donate_argnums": 0, "static_argnames": "x"},
    ],
)
def test_donated_arguments_are_checked(options):
    with pytest.raises(td.errors.ArgumentError, match="jit: "):
        td.jit(lambda x, y: x + y, **options)


# -- solutions ------------------------------------------------------------------------------------------------------
A = td.asarray([[2.0, 1.0], [0.5, 3.0]])
B = td.asarray([1.0, 2.0])


def hidden(matvec, b):
    return td.linalg.solve(A, td.stop_gradient(b))


@pytest.mark.parametrize("mode", ["grad", "jit"])
def test_a_solve_that_cannot_be_transposed_raises(mode):
    def f(b):
        return td.custom_linear_solve(lambda x: A @ x, b, hidden).sum()

    with pytest.raises(td.errors.RuleError, match="transpose_solve"):
        (td.jit(td.grad(f)) if mode == "jit" else td.grad(f))(B)


def test_opaque_solve_uses_given_transpose():
    def f(b):
        back = lambda vecmat, y: td.linalg.solve(A.mT, td.stop_gradient(y))  # noqa: E731
        return td.custom_linear_solve(lambda x: A @ x, b, hidden, back).sum()

    np.testing.assert_allclose(td.grad(f)(B).numpy(), np.linalg.solve(A.numpy().T, np.ones(2)), rtol=1e-5)


def test_forward_mode_needs_no_transpose():
    def f(a, b):
        return td.custom_linear_solve(
            lambda x: a @ x, b, lambda mv, y: td.stop_gradient(td.linalg.solve(td.jacfwd(mv)(y), y))
        )

    tangent = td.jvp(f, (A, B), (td.ones_like(A), td.ones_like(B)))[1]
    same = td.jvp(td.linalg.solve, (A, B), (td.ones_like(A), td.ones_like(B)))[1]
    np.testing.assert_allclose(tangent.numpy(), same.numpy(), rtol=1e-5)
    batch = td.jvp(td.vmap(f), (A[None], B[None]), (td.ones((1, 2, 2)), td.ones((1, 2))))[1]
    np.testing.assert_allclose(batch[0].numpy(), same.numpy(), rtol=1e-5)
    with pytest.raises(td.errors.RuleError, match="transpose_solve"):
        td.grad(lambda a: f(a, B).sum())(A)


# -- arguments that are refused ----------------------------------------------------------------------------------------
def test_a_refused_argument_is_named_by_its_path():
    @td.jit
    def f(x, params):
        return x

    with pytest.raises(
        TypeError, match=r"f: argument params\['w'\]\[1\]: a object is given; jit takes tensors"
    ):
        f(1.0, {"w": [2.0, object()]})


def test_arrays_of_objects_are_a_matter_of_dtype():
    objects = np.array([1, 2, 3], dtype=object)
    for call in (td.asarray, td.grad(lambda x: x.sum()), td.vmap(lambda x: x), td.jit(lambda x: x)):
        with pytest.raises(TypeError, match="dtype"):
            call(objects)
