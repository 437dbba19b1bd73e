"""Lists of numbers, and integers in linear algebra, as arguments of ``tandem.numpy`` and ``tandem.jax.numpy``."""

import contextlib
import pickle

import numpy
import pytest
import tandem as td
import tandem.jax.numpy as jnp
import tandem.numpy as tnp
from tandem.errors import ArgumentError, DTypeError

CALLS = """
np.sqrt([1.0, 4.0])
np.add([1, 2], [3, 4])
np.add(1, [3, 4])
np.maximum([1, 5], 3)
np.dot([[1, 2], [3, 4]], [1, 1])
np.concatenate([[1], [2, 3]])
np.concatenate(([1.5], np.array([2.0])))
np.vstack([[1, 2], [3, 4]])
np.stack([[1, 2], [3, 4]], axis=1)
np.where([True, False], [1, 2], 3)
np.isin(np.array([1, 2, 3]), [1, 3])
np.append(np.array([1, 2]), [3, 4])
np.insert([1, 2, 3], 1, [9, 8])
np.delete([1, 2, 3], [0, 2])
np.interp(2.5, [1, 2, 3], [3.0, 2.0, 0.0])
np.polyval([3.0, 0, 1], [1, 2])
np.bincount([0, 1, 1, 3])
np.histogram([1, 2, 1], bins=[0, 1, 2, 3])
np.digitize([0.2, 6.4], [0.0, 1.0, 2.5, 4.0, 10.0])
np.repeat([1, 2], [2, 3])
np.array_equal([1, 2], [1, 2])
np.allclose([1.0, 2], [1, 2])
np.diag([1, 2, 3])
np.gradient([1.0, 2, 4])
np.sort([3, 1, 2])
np.max([[1, 2], [3, 0]], axis=1)
np.prod([1, 2, 3.0])
np.quantile([1.0, 3, 2], [0.1, 0.5])
np.unique([1, 1, 2], return_counts=True)
np.searchsorted([1, 2, 3], [0, 2, 5])
np.clip([1, 5, 9], 2, [6, 4, 6])
np.round([1.25, 2.5], 1)
np.meshgrid([1, 2], [3, 4])
np.take([4, 3, 5], [0, 2])
np.choose([0, 1], [[1, 2], [3, 4]])
np.einsum("i,i", [1, 2], [3, 4])
np.block([[np.array([1]), np.array([2])]])
np.lexsort(([1, 2, 0], [0, 0, 1]))
np.ravel_multi_index(([0, 1], [1, 2]), (2, 3))
np.apply_along_axis(sum, 0, [[1, 2], [3, 4]])
np.add.outer([1, 2], [3, 4])
np.add.reduce([1, 2, 3])
np.sum(a=[1, 2])
np.sqrt(2)
np.sin(0.5)
np.maximum(0, 1.5)
np.power(2, 0.5)
np.arctan2(1, 2)
np.exp(1j)
np.round(2.567, 1)
np.clip(0.3, 0, 1)
np.clip(np.array([0.3], dtype="float32"), 0.5, 1)
np.maximum(0.5, np.array([0.3], dtype="float32"))
np.zeros_like(np.array([1, 2]), dtype=float)
np.cumsum(np.array([1, 2]), dtype=float)
np.i0(3)
np.sinc(3)
np.spacing(3)
np.frexp(3)
np.mean(3)
np.std(3)
np.median(3)
np.sum(3)
np.mean(3, dtype=np.float32)
np.stack([0.1, 0.2])
np.stack([1, 0.2])
np.hstack([1, 2])
np.column_stack([0.1, 0.2])
np.atleast_1d([1, 2])
np.atleast_1d(0.1)
np.atleast_2d(np.array([1.0], dtype="float32"), 0.1)
np.atleast_3d([[1, 2]], 3)
np.broadcast_arrays([0.1, 0.2], [[1], [2]], 3)
np.meshgrid(0.3, [1, 2])
np.mgrid[0:1:0.5, 0:2]
np.r_[1.5, 2, 0:1:0.25]
np.c_[[1, 2], [3.0, 4]]
np.linspace(0, 1, 5, retstep=True)
np.linspace([0, 10], 20, 3)
np.linspace(0, [3, 4], 3, axis=1, endpoint=False)
np.float64(3) * np.array([1, 2])
np.int32(4)
np.zeros(2, dtype=np.dtype("i2"))
np.add([1, 2], 1, out=np.array([5, 6]), where=[True, False])
np.power([2, 3], 2, dtype=np.float64)
np.absolute(np.array([-1, 2]), where=np.array([True, False]), out=np.zeros(2, dtype=int))
np.multiply([1.5, 2], 2, dtype="float32", casting="same_kind")
np.array([1 + 2j, 3j, 1]) > 1 + 1j
np.fromfunction(lambda i, j: i + j, (2, 2))
np.split(np.arange(4), np.arange(4).size)[3]
np.linalg.norm([3, 4])
np.linalg.solve([[3, 1], [1, 2]], [9, 8])
np.linalg.solve(np.array([[3, 1], [1, 2]]), np.array([9, 8]))
np.linalg.eigvalsh([[2, 1], [1, 2]])
np.linalg.svd([[1, 2], [3, 4]], compute_uv=False)
np.linalg.svd(np.array([[1.0, 2], [2, 4.5]]), False, False, True)
np.linalg.qr([[1.0, 0.5], [0.0, 4.0]], "r")
np.linalg.eigvalsh(np.array([[2.0, 1.0], [5.0, 2.0]]), "U")
np.linalg.eigh(np.array([[2.0, 1.0], [5.0, 2.0]]), UPLO="L").eigenvalues
np.linalg.pinv([[1.0, 2], [2, 4.0001]], rcond=1e-2)
np.linalg.pinv([[1.0, 2], [2, 5]], hermitian=True)
np.linalg.matrix_rank([[4, 0], [0, 1]], 2.0)
np.linalg.matrix_rank([[4, 0], [0, 1]], rtol=0.5)
np.fft.fftfreq(4, d=0.1)
np.linalg.matrix_power([[1, 2], [3, 4]], 3)
np.linalg.matrix_power([[1, 2], [3, 4]], -1)
np.linalg.det(np.array([[True, False], [False, True]]))
np.fft.rfft([1, 2, 3, 4])
""".strip().splitlines()


def compare(result, wanted):
    if isinstance(wanted, (tuple, list)):
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted):
            compare(one, other)
    else:
        assert numpy.asarray(result).dtype == numpy.asarray(wanted).dtype
        numpy.testing.assert_allclose(numpy.asarray(result), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("call", CALLS)
def test_lists_and_integers_are_taken_as_by_numpy(call):
    compare(eval(call, {"np": tnp}), eval(call, {"np": numpy}))


def test_wrong_lists_raise_the_error_of_the_operator():
    for call in (lambda: tnp.sin(["a"]), lambda: tnp.dot([1, 2], "a"), lambda: tnp.sin(object())):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ArgumentError, match="has no argument 'size'"):
        tnp.cumsum([1, 2], size=0)
    with pytest.raises(ArgumentError):  # of tandem itself, and of JAX
        td.sin([1.0])
    with pytest.raises(ArgumentError):
        jnp.sin([1.0])


def test_functions_for_lists_are_traced_and_differentiated():
    x = td.asarray([1.0, 2.0])
    assert td.grad(lambda x: tnp.dot(x, [3.0, 4.0]))(x).tolist() == [3.0, 4.0]
    assert td.jit(lambda x: tnp.stack([x, [5, 6]]))(x).tolist() == [[1.0, 2.0], [5.0, 6.0]]
    assert td.vmap(tnp.sin)(x).tolist() == td.sin(x).tolist()


@pytest.mark.parametrize(
    "function",
    [tnp.sin, tnp.where, tnp.concatenate, tnp.linalg.solve, tnp.linalg.eigh, tnp.sum, tnp.atleast_1d],
)
def test_functions_for_lists_are_pickled_by_name(function):
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__doc__


@pytest.mark.parametrize("name", ["det", "inv", "eigh", "svd", "norm", "slogdet"])
def test_integers_in_linear_algebra_of_jax(name):
    matrix = td.asarray([[3, 1], [1, 2]])
    function, plain = getattr(jnp.linalg, name), getattr(td.linalg, name)
    one, other = function(matrix), plain(matrix.astype(td.float32))
    compare(
        tuple(one) if isinstance(one, tuple) else one, tuple(other) if isinstance(other, tuple) else other
    )
    compare(td.jit(function)(matrix), other)
    with pytest.raises(DTypeError):
        plain(matrix)
    with pytest.raises(DTypeError):
        function(matrix.astype(td.float16))


OF_TYPES = """
sum(b, dtype=float)
sum(b, None, float)
sum(b, dtype=complex)
cumsum(a, 0, float)
cumsum(a, dtype=complex)
prod(b, dtype=float)
astype(a, float)
mean(a, dtype=float)
mean(b, None, float)
var(b, dtype=float)
std(b, dtype=float)
zeros_like(b, float)
ones_like(b, dtype=complex)
full_like(b, 1, float)
empty_like(b, complex)
""".strip().splitlines()


@pytest.mark.parametrize("call", OF_TYPES)
def test_python_types_name_the_wide_dtypes_in_hot_calls(call):
    """``float`` and ``complex`` name float64 and complex128, also where the same call of ``td`` is compiled."""
    name = call.split("(")[0]
    wanted = eval(f"np.{call}", {"np": numpy, "a": numpy.arange(3), "b": numpy.ones(3, numpy.float32)}).dtype
    names = {"a": tnp.arange(3), "b": tnp.ones(3, dtype=tnp.float32)}
    with td.config.override(hot_calls=1, hot_composites=1):
        for _ in range(4):
            with contextlib.suppress(TypeError):  # td lacks some of the spellings
                eval(f"td.{name}{call[len(name) :]}", {"td": td, **names})
            assert eval(f"np.{call}", {"np": tnp, **names}).dtype.np == wanted
