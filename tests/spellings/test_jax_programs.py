"""Tools of JAX's programs: initializers, ravel_pytree, disable_jit, clear_caches, typeof, errors; compared with JAX."""

import numpy as np
import pytest
import tandem as td
import tandem.jax as tj

jax = pytest.importorskip("jax")

FANS = "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform xavier_normal kaiming_uniform"
INITIALIZERS = {
    **{name: lambda m, name=name: getattr(m, name)() for name in FANS.split()},
    "variance_scaling": lambda m: m.variance_scaling(
        3.0, "fan_geo_avg", "normal", in_axis=0, out_axis=(1, 2)
    ),
    "variance_scaling of a batch": lambda m: m.variance_scaling(
        1.0, "fan_out", "uniform", in_axis=0, out_axis=2, batch_axis=1
    ),
    "normal": lambda m: m.normal(0.1),
    "uniform": lambda m: m.uniform(2.0),
    "truncated_normal": lambda m: m.truncated_normal(0.5, lower=-1.0, upper=3.0),
    "orthogonal": lambda m: m.orthogonal(2.0),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers_have_the_moments_of_jax(name):
    ours = INITIALIZERS[name](tj.nn.initializers)(tj.random.key(0), (30, 20, 40)).numpy()
    wanted = np.asarray(INITIALIZERS[name](jax.nn.initializers)(jax.random.key(0), (30, 20, 40)))
    assert ours.dtype == wanted.dtype and ours.shape == wanted.shape
    assert abs(ours.std() / wanted.std() - 1) < 0.03
    assert abs(ours.mean() - wanted.mean()) < 0.05 * wanted.std()
    assert abs(np.abs(ours).max() / np.abs(wanted).max() - 1) < (0.01 if "uniform" in name else 0.3)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("column_axis", [-1, 0])
def test_orthogonal_matrices_are_orthonormal(shape, column_axis):
    matrix = tj.nn.initializers.orthogonal(2.0, column_axis)(tj.random.key(1), shape).numpy()
    rows = np.moveaxis(matrix, column_axis, 0).reshape(shape[column_axis], -1)
    product = rows @ rows.T if rows.shape[0] < rows.shape[1] else rows.T @ rows
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_delta_orthogonal_is_zero_off_the_center():
    kernel = tj.nn.initializers.delta_orthogonal()(tj.random.key(0), (3, 4, 2, 5), td.float64)
    center = kernel[1, 1]
    assert kernel.dtype is td.float64 and np.allclose((center @ center.T).numpy(), np.eye(2))
    assert np.count_nonzero(kernel.numpy()) == np.count_nonzero(center.numpy())


def test_fixed_initializers():
    init, key = tj.nn.initializers, tj.random.key(0)
    assert init.zeros(key, (2,)).tolist() == [0.0, 0.0] and init.ones(key, (1,), td.int8).dtype is td.int8
    assert init.constant(2)(key, (2,)).dtype is td.float32 and init.constant(2)(key, (2,)).tolist() == [
        2.0,
        2.0,
    ]
    assert init.normal(dtype=td.float64)(key, (2,)).dtype is td.float64


@pytest.mark.parametrize(
    "call",
    [
        lambda init, key: init.glorot_normal()(key, (3,)),
        lambda init, key: init.variance_scaling(1.0, "fan", "normal"),
        lambda init, key: init.variance_scaling(1.0, "fan_in", "cauchy"),
        lambda init, key: init.orthogonal()(key, (3,)),
        lambda init, key: init.delta_orthogonal()(key, (3, 3)),
        lambda init, key: init.delta_orthogonal()(key, (3, 4, 3)),
    ],
)
def test_wrong_initializers(call):
    with pytest.raises(ValueError, match=r"mode|distribution|shape"):
        call(tj.nn.initializers, tj.random.key(0))


def test_trees_are_raveled():
    tree = {"a": np.arange(3, dtype=np.int32), "b": np.ones((2, 2), np.float32)}
    vector, unravel = tj.flatten_util.ravel_pytree(tree)
    wanted, _ = pytest.importorskip("jax.flatten_util").ravel_pytree(tree)
    assert vector.tolist() == wanted.tolist() and vector.dtype == wanted.dtype
    again = unravel(vector * 2)
    assert again["a"].dtype is td.int32 and again["b"].tolist() == [[2.0, 2.0]] * 2


def test_jitted_functions_run_as_python_code():
    runs = []
    double = tj.jit(lambda x: runs.append(type(x)) or x * 2)
    x = tj.numpy.ones(3)
    for _ in range(100):
        double(x)
    assert len(runs) == 1
    with tj.disable_jit():
        assert double(x).tolist() == [2.0] * 3 and runs.pop() is td.Tensor
        assert tj.grad(lambda x: double(x).sum())(x).tolist() == [2.0] * 3
    with tj.disable_jit(False):
        double(x)
    assert len(runs) == 2
    tj.config.update("jax_disable_jit", True)
    assert tj.config.jax_disable_jit and double(x).tolist() == [2.0] * 3 and len(runs) == 3
    tj.config.update("jax_disable_jit", False)
    assert not tj.config.jax_disable_jit and double(x).tolist() == [2.0] * 3 and len(runs) == 3


def test_caches_are_cleared():
    double = tj.jit(lambda x: x * 2)
    double(tj.numpy.ones(3))
    tj.clear_caches()
    assert double.cache_info() == (0, 0, 0)


def test_types_of_values():
    assert tj.typeof(tj.numpy.ones((2, 3))) == td.ShapeDtypeStruct((2, 3), td.float32)
    assert tj.typeof(np.arange(3)).shape == jax.typeof(np.arange(3)).shape


def test_errors_have_the_names_of_jax():
    errors, x, leaked = tj.errors, tj.numpy.ones(3), []
    with pytest.raises(errors.TracerBoolConversionError):
        tj.jit(lambda x: x if x.sum() > 0 else -x)(x)
    with pytest.raises(errors.TracerArrayConversionError):
        tj.jit(lambda x: np.asarray(x))(x)
    with pytest.raises(errors.ConcretizationTypeError):
        tj.jit(lambda x: float(x[0]))(x)
    tj.jit(lambda x: leaked.append(x * 2) or x)(x)
    with pytest.raises(errors.UnexpectedTracerError):
        leaked[0] + 1
    assert errors.ShapeError is td.errors.ShapeError and issubclass(
        errors.UnexpectedTracerError, errors.JAXTypeError
    )
