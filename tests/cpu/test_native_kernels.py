"""Native kernels: compiled code calls inner loops, and returns the bits and raises the errors of eager calls."""

import threading

import numpy as np
import optable
import pytest
import tandem as td
from python_calls import python_calls
from rotation import is_tried, one_each_commit, share_each_commit
from tandem import config, errors, lazy
from tandem.operators.declare.declaration import declared_operators

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
rng = np.random.default_rng(16)
NATIVE = sorted(name for name, op in optable.table().items() if op.decl.native is not None)
DECOMPOSED = sorted(name for name, op in optable.table().items() if op.decl.decomposition is not None)
COMPOSED = [
    *["linalg_pinv", "linalg_lstsq", "linalg_cholesky_ex", "vecdot", "bmm"],
    *["linalg_cholesky", "linalg_eigh", "linalg_inv", "linalg_solve", "fft_rfft", "sort", "topk"],
]

# Operators of the table that are callbacks under jit, with the reason. This list only gets shorter.
CALLBACKS = {
    "td::axis_gather": "collectives run in Python",
    "td::axis_sum": "collectives run in Python",
    "td::index_reduce": "NumPy multiplies complex numbers and bools",
    "td::random_draw_binomial": "rejection sampling",
    "td::random_draw_loggamma": "rejection sampling",
    "td::random_draw_poisson": "rejection sampling",
    "td::random_gamma_slope": "a series without fixed length",
}
# By samples of a few composites only, which not every commit tries.
REACHED_BY_COMPOSITES = {"td::axis_gather", "td::axis_sum", "td::random_gamma_slope"}


def spd(*shape, dtype=np.float64):
    a = rng.standard_normal(shape).astype(dtype)
    return (a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def choices(f, *args):
    return {row.op: row.choice for row in td.jit(f).lower(*args).kernels()}


def bits(result):
    results = result if isinstance(result, tuple) else (result,)
    return [(x.shape, x.dtype, np.asarray(x.numpy()).tobytes()) for x in results]


@native  # without it eager calls and graphs may have different layouts, and NumPy other bits
@pytest.mark.parametrize("name", share_each_commit(sorted({*NATIVE, *DECOMPOSED, *COMPOSED}), 2))
@pytest.mark.parametrize("part", one_each_commit(*range(12)))
def test_jit_returns_the_bits_of_eager_calls(name, part):
    op = optable.table()[name]
    for dtype in op.decl.dtypes[part::12] or op.decl.dtypes[:1]:
        for sample in optable.samples_of(op, dtype):
            found = optable.arrays_of(sample, dtype, optable.generator(op, dtype))
            f, tensors = optable.as_function(op, *optable.to_tensors(found))
            try:
                result = td.jit(f)(*tensors)
            except errors.UnsupportedError:
                assert name == "nonzero"  # without a size the shape of the result depends on data
                continue
            assert bits(result) == bits(f(*tensors)), (dtype, sample)


@native
@pytest.mark.parametrize("part", one_each_commit(*range(12)))
def test_callbacks_of_the_operator_table_are_named(part):
    found = {}
    for op in filter(is_tried, declared_operators()):
        for dtype in {(dtype.kind, dtype.itemsize > 2): dtype for dtype in op.decl.dtypes}.values():
            samples = optable.samples_of(op, dtype)
            for sample in samples if f"td::{op.name}" in CALLBACKS else samples[part::12] or samples[:1]:
                given = optable.arrays_of(sample, dtype, optable.generator(op, dtype))
                if isinstance(given[0][0], np.ndarray) and not given[0][0].size:
                    continue  # positions in an array without elements are checked in Python
                try:
                    f, tensors = optable.as_function(op, *optable.to_tensors(given))
                    table = td.jit(f).lower(*tensors).kernels()
                except errors.TandemError:
                    continue  # nothing to compute, or the shape of the result depends on data
                found |= {row.op: row.why for row in table if row.choice == "callback"}
    assert not found.keys() - CALLBACKS, {name: found[name] for name in found.keys() - CALLBACKS}
    assert not CALLBACKS.keys() - found.keys() - REACHED_BY_COMPOSITES, (
        "these are not callbacks any more: shorten the list"
    )


@native
@pytest.mark.parametrize("size", [2, 8, 9, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_linear_algebra_in_loops_is_native(size, dtype):
    a, b = (
        td.asarray(spd(3, size, size).astype(dtype)),
        td.asarray(rng.standard_normal((3, size, 1)).astype(dtype)),
    )

    def step(k, x):
        return td.linalg.solve(td.linalg.inv(a) + td.linalg.cholesky(a), x)

    def run(b):
        return td.fori_loop(0, 4, step, b)

    assert "callback" not in str(td.jit(run).lower(b).kernels())
    assert bits(td.jit(run)(b)) == bits(run(b))


@native
@pytest.mark.parametrize("size", [3, 12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_singular_matrices_raise_as_eager(size, dtype):
    zero = td.zeros((2, size, size), dtype=td.asarray(np.zeros(1, dtype)).dtype)
    indefinite = zero - td.eye(size, dtype=zero.dtype)
    for f, x in ((td.linalg.inv, zero), (td.linalg.cholesky, indefinite)):
        jitted = td.jit(f)
        for call in (f, jitted, jitted, td.jit(lambda x, f=f: td.fori_loop(0, 2, lambda k, x: f(x), x))):
            with pytest.raises(errors.LinearAlgebraError) as caught:
                call(x)
            assert str(caught.value).split(": ", 1)[1] in (
                "Singular matrix",
                "Matrix is not positive definite",
            )
        assert np.isfinite(jitted(td.eye(size, dtype=x.dtype).expand_dims(0) + zero).numpy()).all()


@pytest.mark.parametrize("size", [4, 12])
def test_lower_operators_read_the_lower_triangle(size):
    x = spd(3, size, size)
    spoiled = td.asarray(np.tril(x) + np.triu(np.full_like(x, 1e3), 1))
    for name in ("linalg_cholesky_lower", "linalg_eigh_lower"):
        f = getattr(td.ops.td, name)
        assert bits(td.jit(f)(spoiled)) == bits(f(spoiled)) == bits(f(td.asarray(x)))


@native
@pytest.mark.parametrize("columns", [1, 3, 64, 70])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_systems_are_solved_by_substitution(columns, upper):
    a = rng.standard_normal((3, 70, 70)).astype(np.float32) / 70 + 2 * np.eye(70, dtype=np.float32)
    b = rng.standard_normal((70, columns)).astype(np.float32)
    wanted = np.linalg.solve(np.triu(a) if upper else np.tril(a), b)

    def f(a, b):
        return td.linalg.solve_triangular(a, b, upper=upper)

    for order in ("C", "F"):
        given = [td.asarray(np.asarray(x, order=order)) for x in (a, b)]
        assert choices(f, *given)["td::linalg_solve_triangular_stack"] == "native"
        assert bits(td.jit(f)(*given)) == bits(f(*given))
        np.testing.assert_allclose(f(*given).numpy(), wanted, rtol=1e-4, atol=1e-5)
    a[1, 5, 5] = 0
    for solve in (f, td.jit(f)):
        with pytest.raises(errors.LinearAlgebraError):
            solve(td.asarray(a), td.asarray(b))


def test_nan_is_not_a_failure():
    x = td.full((3, 3), float("nan"))
    for size in (3, 12):
        x = td.full((size, size), float("nan"))
        assert bits(td.jit(td.linalg.det)(x)) == bits(td.linalg.det(x))
        assert np.isnan(td.jit(td.linalg.inv)(x).numpy()).all() and np.isnan(td.linalg.inv(x).numpy()).all()


VALUES = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 1.0, -2.0, 5e-324]


@pytest.mark.parametrize("count", [0, 1, 9, 33, 300, 5000])
@pytest.mark.parametrize(
    "dtype",
    [
        "bool_",
        "int8",
        "uint8",
        "int16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
    ],
)
def test_argsort_is_the_stable_order(count, dtype):
    values = (
        rng.choice([*VALUES, 3.0, 7.0, 100.0], count)
        if dtype.startswith("float")
        else rng.integers(-99, 99, count)
    )
    x = values.astype(dtype.rstrip("_"))
    for given in (x, np.repeat(x, 2)[::2], x[::-1]):
        wanted = np.argsort(given, kind="stable")
        for f in (td.argsort, td.jit(td.argsort)):
            assert np.array_equal(f(td.asarray(given)).numpy(), wanted)
    turned = td.jit(lambda x: td.argsort(x, descending=True))(td.asarray(x)).numpy()
    assert np.array_equal(turned, len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1])


def test_argsort_along_any_axis():
    x = rng.integers(0, 5, (4, 50, 3))
    for axis in (0, 1, -1, -3):
        f = td.jit(lambda x, axis=axis: td.argsort(x, axis=axis))
        for given in (x, np.asfortranarray(x), x[::-1, ::2]):
            assert np.array_equal(f(td.asarray(given)).numpy(), np.argsort(given, axis, kind="stable"))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["bool_", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_argtopk_is_the_start_of_argsort(dtype, descending):
    for count in (1, 16, 33, 100, 3000):
        values = (
            rng.choice([*VALUES, 3.0, 7.0], count)
            if dtype.startswith("float")
            else rng.integers(0, 99, count)
        )
        x = values.astype(dtype.rstrip("_"))
        for given in (x, np.repeat(x, 2)[::2], np.sort(x)[::-1]):
            wanted = td.argsort(td.asarray(given), descending=descending).numpy()
            for k in {0, 1, count // 100, count // 8, count // 2, count}:
                f = td.jit(lambda x, k=k: td.ops.td.argtopk(x, k, descending=descending))
                for result in (
                    f(td.asarray(given)),
                    td.ops.td.argtopk(td.asarray(given), k, descending=descending),
                ):
                    assert np.array_equal(result.numpy(), wanted[:k])


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_promotes_and_orders_nan(side):
    table = np.sort(np.asarray(VALUES, np.float32))
    for values in (np.asarray(VALUES), np.asarray(VALUES, np.float16), np.arange(-3, 3), np.asarray(2.0)):
        f = td.jit(lambda t, v: td.searchsorted(t, v, side))
        wanted = np.searchsorted(table.astype(np.result_type(table, values)), values, side)
        assert np.array_equal(f(td.asarray(table), td.asarray(values)).numpy(), wanted)
    assert td.jit(lambda t: td.searchsorted(t, 1, side))(td.asarray(table)).item() == np.searchsorted(
        table, 1, side
    )


@native
@pytest.mark.parametrize("name", ["gcd", "lcm"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_functions_of_integers_are_loops_of_numpy(name, dtype):
    limits = np.iinfo(dtype)
    x = np.array([0, 12, 7, limits.max, limits.min, 100], dtype)
    function, reference = getattr(td, name), getattr(np, name)
    one, two = td.asarray(x[:, None]), td.asarray(x)
    jitted = td.jit(function)
    for _ in range(6):
        for call in (function, jitted):
            np.testing.assert_array_equal(call(one, two), reference(x[:, None], x))
            np.testing.assert_array_equal(call(two, 6), reference(x, np.array(6, dtype)))
    for call in (function, jitted):
        for _ in range(100):  # the first calls are cold
            call(one, two)
        assert python_calls(call, one, two) == []


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 40, 3), (300, 2), (4, 1, 6), (7,), (0, 2)])
def test_folds_of_complex_numbers_have_the_bits_of_eager_calls(name, shape):
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    fold = getattr(td, name)

    def over(axis, keepdims):
        return lambda t: fold(t, axis, keepdims=keepdims)

    for given in (x, x[::-1], x.T, np.repeat(x, 2, -1)[..., ::2]):
        t = td.asarray(given)
        for axis in (None, 0, -1, (0, -1)[: x.ndim], tuple(range(x.ndim))):
            for keepdims in (False, True):
                f = over(axis, keepdims)
                assert bits(td.jit(f)(t)) == bits(f(t))
        assert "callback" not in choices(fold, t).values()


@native
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 4, 4), (5, 3), (3, 5), (2, 1, 3), (20, 20)])
def test_qr_and_lu_factorize_batches(dtype, shape):
    x = rng.standard_normal(shape)
    x = (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)
    close = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    t, inner = td.asarray(x), min(shape[-2:])
    for mode in ("reduced", "complete"):
        q, r = (part.numpy() for part in td.jit(lambda t, mode=mode: tuple(td.linalg.qr(t, mode=mode)))(t))
        np.testing.assert_allclose(q @ r, x, atol=close)
        gram = np.conj(np.swapaxes(q, -1, -2)) @ q
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(q.shape[-1]), gram.shape), atol=close)
    packed, _, rows = (part.numpy() for part in td.jit(lambda t: tuple(td.ops.td.linalg_lu_permuted(t)))(t))
    lower = np.tril(packed[..., :inner], -1) + np.eye(shape[-2], inner)
    np.testing.assert_allclose(
        lower @ np.triu(packed[..., :inner, :]), np.take_along_axis(x, rows[..., None], -2), atol=close
    )


@native
@pytest.mark.parametrize("size", [1, 3, 12])
def test_cholesky_ex_names_the_minor(size):
    x = spd(4, size, size)
    for k in range(1, 4):
        x[k, size - k if k < size else 0, size - k if k < size else 0] *= -1
    wanted = [0]
    for matrix in x[1:]:
        wanted.append(next(k for k in range(1, size + 1) if np.linalg.det(matrix[:k, :k]) <= 0))
    for f in (td.linalg.cholesky_ex, td.jit(lambda x: tuple(td.linalg.cholesky_ex(x)))):
        lower, info = f(td.asarray(x))
        assert info.tolist() == wanted
        assert np.isnan(lower.numpy()).any((1, 2)).tolist() == [False, True, True, True]


@native
def test_decomposed_results_are_returned_by_native_code():
    x = td.asarray(rng.standard_normal(16))
    for f, given in (
        (lambda x: td.sum(x + 1j), x),
        (lambda x: td.nonzero(x > 0, size=8), x),
        (lambda x: (td.sum(x + 1j), td.sum(x + 1j)), x),
        (lambda a: a @ a, td.asarray(rng.integers(0, 9, (4, 4)))),
        (lambda key: td.random.permutation(key, 16), td.random.key(0)),
        (lambda x: td.topk(x, 3), x),
    ):
        jitted = td.jit(f)
        for _ in range(100):
            result = jitted(given)
        (made,) = jitted._specializations
        (record,) = made.records.values()
        assert bits(result) == bits(f(given))
        assert not isinstance(record, str) or "there twice" in record, record


@native
def test_missing_lapack_leaves_numpy(monkeypatch):
    from tandem.backends.cpu.native_kernels import emitted, plans, providers

    monkeypatch.setitem(emitted.LOOPS, "qr", emitted.LOOPS["qr"]._replace(imports=lambda dtype: {}))
    monkeypatch.setattr(providers._find, "results", {})
    monkeypatch.setattr(providers, "faults", {})
    monkeypatch.setattr(plans, "_plans", {})
    x = td.asarray(spd(2, 5, 5))
    assert choices(td.linalg.qr, x)["td::linalg_qr"] == "callback"
    assert bits(td.jit(lambda x: tuple(td.linalg.qr(x)))(x)) == bits(tuple(td.linalg.qr(x)))
    assert "LAPACK" in providers.faults["tandem.qr"]


@native
def test_operands_of_any_layout_are_not_copied():
    x = td.asarray(spd(6, 4, 4))
    for f in (
        lambda x: td.linalg.inv(x.mT),
        lambda x: td.linalg.inv(x[::-2, ::-1]),
        lambda x: td.linalg.det(td.permute(td.flip(x, 0), (1, 0, 2))[:, :4]),
        lambda x: td.linalg.solve(x[0], x[:, :, 1:2]),
        lambda x: td.linalg.solve(x[:, None], x[None, :3]),
        lambda x: td.fft.fft(td.permute(x, (2, 0, 1)) + 0j),
    ):
        assert bits(td.jit(f)(x)) == bits(f(x))
    steps = td.jit(lambda x: td.linalg.inv(x.mT)).lower(x).kernels().steps
    assert [step for step in steps if "copy" in step] == []


@native
def test_gradients_of_jitted_calls():
    a = td.asarray(spd(2, 3, 3))
    for f in (
        lambda a: td.linalg.inv(a).sum(),
        lambda a: td.log(td.linalg.cholesky(a) ** 2 + 1).sum(),
        lambda a: td.linalg.det(a).sum(),
        lambda a: td.linalg.eigh(a)[0].max(-1).sum(),
        lambda a: td.linalg.svd(a, full_matrices=False)[1].sum(),
        lambda a: td.abs(td.fft.rfft(a)).sum(),
        lambda a: td.special.gammaln(td.abs(a) + 1).sum(),
        lambda a: (td.sort(a, axis=-1) * td.arange(3.0)).sum(),
    ):
        np.testing.assert_allclose(
            td.jit(td.grad(f))(a).numpy(), td.grad(f)(a).numpy(), rtol=1e-11, atol=1e-13
        )


@native
def test_vmapped_calls_are_one_loop_call():
    a = td.asarray(spd(5, 3, 3))
    for f in (td.linalg.inv, td.linalg.cholesky, td.linalg.det, td.argsort, td.special.gammaln):
        jitted = td.jit(td.vmap(f))
        assert "callback" not in choices(td.vmap(f), a).values()
        assert bits(jitted(a)) == bits(td.vmap(f)(a))


@native
def test_special_errstate_raises_from_compiled_code():
    special = pytest.importorskip("scipy.special")
    f = td.jit(lambda x: td.special.gammaln(x) + 1)
    x = td.asarray(np.array([-1.0, 2.0]))
    assert np.isinf(f(x).numpy()[0])
    with special.errstate(all="raise"), pytest.raises(special.SpecialFunctionError):
        f(x)
    assert np.isinf(f(x).numpy()[0])


@native
def test_loops_run_in_threads():
    a = td.asarray(spd(200, 10, 10))
    f = td.jit(lambda a: td.fori_loop(0, 20, lambda k, x: td.linalg.inv(x) + a, a))
    wanted, found = bits(f(a)), []
    threads = [threading.Thread(target=lambda: found.extend(bits(f(a)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted * 4


@native
def test_missing_loops_fall_back_to_python(monkeypatch):
    from tandem.backends.cpu.native_kernels import providers

    missing = providers.UfuncProvider("numpy.absent", lazy.Module("numpy.absent"), is_double=True)
    monkeypatch.setitem(providers.PROVIDERS, "numpy.linalg", missing)
    monkeypatch.setattr(providers._find, "results", {})
    monkeypatch.setattr(providers, "faults", {})
    x = td.asarray(spd(2, 11, 11))
    assert choices(td.linalg.det, x) == {"td::linalg_det": "callback"}
    assert bits(td.jit(td.linalg.det)(x)) == bits(td.linalg.det(x))
    assert "cannot be imported" in providers.faults["numpy.linalg.det"]


@native
def test_a_loop_that_computes_something_else_is_not_used(monkeypatch):
    from tandem.backends.cpu.native_kernels import providers
    from tandem.registry import dtypes as dt

    monkeypatch.setattr(providers, "call_arrays", lambda loop, arrays: False)
    found = providers.PROVIDERS["numpy.linalg"].find("inv", (dt.float64, dt.float64), ())
    assert "something else" in found
