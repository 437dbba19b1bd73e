"""Gathers and scatter-adds in jitted functions on CUDA tensors, and constant parts of a graph.

They run on a double of the driver; no GPU is used.
"""

import gc
from pathlib import Path

import gpu_models
import numpy as np
import pytest
import tandem as td
from cuda_jit_harness import linked, native, on_cpu, tensors_of
from optable import replace
from rotation import one_each_commit
from tandem import errors
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.launches.call_text import write_kernels
from tandem.backends.cuda.runtime.compiler import nvrtc_file

pytestmark = pytest.mark.usefixtures("cuda")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 5)).astype("f4")
LABELS = RNG.integers(-5, 5, 7)
PLACES = RNG.integers(-7, 7, (3, 4))


def there(tree):
    return replace(tree, np.ndarray, lambda a: td.asarray(a, device="cuda"))


def picked(x, y):
    return td.take_along_axis(x, y[:, None], 1)


def slope(f):
    return lambda *args: td.grad(lambda x: td.sum(td.sin(f(x, *args[1:]))))(args[0])


READS = {
    "rows": (lambda x, i: x[i] * 2, (X, PLACES)),
    "columns": (lambda x, i: x[:, i] * 2, (X, PLACES % 5)),
    "of a transposed one": (lambda x, i: x.T[:, i], (X, PLACES)),
    "both axes": (lambda x, i: x[i[:, :, None], i[:, None] % 5], (X, PLACES)),
    "a slice of positions": (lambda x, i: x[i[::2, 1:]], (X, PLACES)),
    "bytes": (lambda x, i: (x > 0)[i], (X, PLACES)),
    "doubles": (lambda x, i: td.astype(x, td.float64)[i], (X, PLACES)),
    "none": (lambda x, i: x[i[:0]], (X, PLACES)),
    "int32 positions": (lambda x, i: x[td.astype(i, td.int32)], (X, PLACES)),
    "one of each row": (picked, (X, LABELS)),
    "one of each computed row": (lambda x, y: picked(td.exp(x), y), (X, LABELS)),
    "one of each column": (lambda x, y: td.take_along_axis(td.exp(x), y[None, :5], 0), (X, LABELS)),
    "of three axes": (
        lambda x, y: td.take_along_axis(
            td.exp(td.reshape(x, (7, 5, 1)) * td.ones((1, 1, 2), device=x.device)),
            y[:, None, None] % 2 * td.ones((7, 5, 1), dtype=td.int64, device=x.device),
            2,
        ),
        (X, LABELS),
    ),
}


@pytest.mark.parametrize("change", [lambda f: f, slope], ids=["values", "gradients"])
def test_reads(change):
    names = [name for name in READS if change is not slope or name != "bytes"]
    calls = [(change(READS[name][0]), READS[name][1]) for name in names]
    found = td.jit(lambda given: [f(*args) for (f, _), args in zip(calls, given, strict=True)])(
        there([args for _, args in calls])
    )
    for name, got, (f, args) in zip(names, map(on_cpu, found), calls, strict=True):
        want = f(*map(td.asarray, args))
        assert got.dtype is want.dtype, name
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


@native
@pytest.mark.parametrize("name", [name for name in READS if name != "int32 positions"])
def test_reads_need_no_python(name):
    f, args = READS[name]
    for g in (f, slope(f)) if name != "bytes" else (f,):
        lowered = td.jit(g).lower(*map(td.asarray, args), device="cuda")
        assert "callback" not in {row.choice for row in lowered.kernels()}


@native
def test_cross_entropy_by_labels_is_one_kernel():
    def loss(x, y):
        return -td.mean(picked(td.log_softmax(x, axis=-1), y))

    lowered = td.jit(td.value_and_grad(loss)).lower(td.asarray(X), td.asarray(LABELS), device="cuda")
    assert len(lowered.kernels().steps) == 2  # rows; the mean


@native
def test_reads_are_replayed_in_graphs(cuda):
    f = lambda x, i: td.sum(td.exp(x[i]) + x[i[0]], axis=0)  # noqa: E731
    with td.config.override(cuda_graphs=1):
        jitted = td.jit(f)
        before = cuda.host_count(b"graph launch")
        for n in range(5):
            places = (PLACES + n + 7) % 7
            got, want = jitted(*there((X + n, places))), f(td.asarray(X + n), td.asarray(places))
            np.testing.assert_allclose(on_cpu(got).numpy(), want.numpy(), rtol=1e-5)
        assert cuda.host_count(b"graph launch") == before + 5


@native
def test_calls_with_constants_are_answered_by_machine_code():
    x = there(X)
    f = td.jit(lambda x: td.where(td.arange(5, device=x.device) < 3, x, 0.0))
    record = linked(f, x)
    want, hits = f(x).tolist(), record.hits
    reserved = td.cuda.memory_reserved()
    with td.cuda.Stream():
        assert f(there(X)).tolist() == want
    assert record.hits >= hits
    del f, record
    gc.collect()
    assert td.cuda.memory_reserved() < reserved


@native
def test_positions_and_masks_are_constants():
    def f(x):
        at = td.arange(x.shape[0], device=x.device)
        mask = at[:, None] >= at
        return td.where(mask, x, -1.0) * (td.full((), 2.0, device=x.device) * -0.5), at + 1

    x = RNG.standard_normal((6, 6)).astype("f4")
    jitted = td.jit(f)
    assert len(jitted.lower(td.asarray(x), device="cuda").kernels().steps) == 1
    for _ in range(2):
        got = jitted(there(x))
        for ours, theirs in zip(got, f(td.asarray(x)), strict=True):
            assert np.array_equal(on_cpu(ours).numpy(), theirs.numpy())
        got[1].add_(1)  # results are nobody else's


@native
def test_elements_of_computed_rows_need_no_memory():
    """Of a row other kernels need two numbers and an element."""
    for name in ("one of each computed row", "one of each column"):
        f, args = READS[name]
        lowered = td.jit(f).lower(*map(td.asarray, args), device="cuda")
        assert len(lowered.kernels().steps) == 1, name
        assert lowered.compile().memory_analysis()["temp"] == 0, name
    rows = td.jit(lambda x, y: picked(td.log_softmax(x, axis=-1), y)).lower(
        td.zeros((64, 1000)), td.zeros(64, dtype=td.int64), device="cuda"
    )
    assert rows.compile().memory_analysis()["temp"] <= 4 * 64 * 4
    source = rows.cuda_source().rpartition("__global__")[2]
    assert source.count("checked(") == 1
    assert "for (int k" not in source


def test_elements_of_several_values_of_one_kernel():
    def f(x, y, i):
        z = td.cos(x) * td.sum(x, 1, keepdims=True)
        return (
            picked(z, y) * 2,
            (z * 3)[i] + 1,
            picked(z - td.max(x, axis=1, keepdims=True), y),
            z[2, i[0, 0] % 5],
        )

    args = X, LABELS, PLACES
    for got, want in zip(td.jit(f)(*there(args)), f(*map(td.asarray, args)), strict=True):
        np.testing.assert_allclose(on_cpu(got).numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_elements_of_views_of_computed_rows():
    def f(x, y):
        z, at = td.exp(x), td.arange(7, device=x.device)
        return z.T[y, at], td.flip(td.cos(x), 1)[at, y], td.log_softmax(x, 0)[at, y], td.softmax(x, 1)[:, y]

    for got, want in zip(td.jit(f)(*there((X, LABELS))), f(td.asarray(X), td.asarray(LABELS)), strict=True):
        np.testing.assert_allclose(on_cpu(got).numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_updates_of_one_element_of_each_row():
    """They are selections: values at one position of each row of a constant."""

    def f(x, y):
        at = td.arange(7, device=x.device)
        zeros = td.zeros((7, 5, 3), device=x.device)
        values = x[:, :3]
        return [
            zeros.at[at, y].set(values),
            zeros.at[at, y].add(values),
            td.full((3, 7, 5), 2.5, device=x.device).at[:, at, y].set(values.T),
            td.zeros((5, 7), device=x.device).at[y, at].add(values[:, 0]),
            td.zeros((7, 5), device=x.device).at[at, y].set(x[0, 0]),
        ]

    for got, want in zip(td.jit(f)(*there((X, LABELS))), f(td.asarray(X), td.asarray(LABELS)), strict=True):
        assert np.array_equal(on_cpu(got).numpy(), want.numpy())


def test_positions_out_of_bounds_are_met():
    bad = LABELS.copy()
    bad[3] = 9
    jitted = [td.jit(lambda x, y: picked(td.exp(x), y)), td.jit(lambda x, y: x[y]), td.jit(slope(picked))]
    for f, limit in zip(
        jitted, ("axis 1 with size 5", "axis 0 with size 7", "axis 1 with size 5"), strict=True
    ):
        for _ in range(2):
            f(*there((X, bad)))
            with pytest.raises(errors.OutOfBoundsError, match=f"index 9 is out of bounds for {limit}"):
                td.synchronize("cuda")
            f(*there((X, LABELS)))
            td.synchronize("cuda")


@native
@pytest.mark.parametrize("architecture", one_each_commit(75, 80, 90, 100))
def test_kernels_of_reads_are_taken_by_nvrtc(architecture):
    pytest.importorskip("cupy", reason="NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")
    kernels = []
    for name in ("rows", "doubles", "one of each row", "one of each computed row"):
        f, args = READS[name]
        lowered = td.jit(slope(f)).lower(*map(td.asarray, args), device="cuda")._lowered
        for step in lowered.steps:
            own = step._replace(kernel=step.kernel._replace(name=f"{step.kernel.name}_{len(kernels)}"))
            kernels += write_kernels(own)
    assert Path(nvrtc_file(module_source(kernels), f"sm_{architecture}")).read_bytes()[:4] == b"\x7fELF"


# -- the models of the benchmarks --------------------------------------------------------------------------------------
def small(name):
    """The arguments of a model, of a size that the double computes soon."""
    params, x, y = gpu_models.MODELS[name][1]()
    if name == "digits":
        return [(w[: 64 if n == 0 else 32, :32], b[:32]) for n, (w, b) in enumerate(params)], x[:20], y[:20]
    c = 16
    cut = {"up": (c, 4 * c), "down": (4 * c, c), "out": (c, 12)} | dict.fromkeys("qkvo", (c, c))
    params = {
        n: p[tuple(slice(s) for s in cut.get(n, (c,)))] * (4 if p.ndim > 1 else 1) for n, p in params.items()
    }
    return params, x[:2, :9, :c], y[:2, :9] % 12


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", gpu_models.MODELS)
def test_models_agree_with_the_cpu(name, dtype):
    def typed(array):
        found = td.asarray(np.ascontiguousarray(array))
        return found if array.dtype.kind != "f" else found.astype(getattr(td, dtype))

    loss = gpu_models.MODELS[name][0](gpu_models.tandem_names())
    args = replace(small(name), np.ndarray, typed)
    exact = td.value_and_grad(loss)(
        *replace(small(name), np.ndarray, lambda a: td.asarray(np.ascontiguousarray(a)))
    )
    found = td.jit(td.value_and_grad(loss))(*replace(args, td.Tensor, lambda x: x.to("cuda")))
    tolerance = {"float32": 1e-5, "bfloat16": 3e-2}[dtype]
    for got, want in zip(tensors_of(found), tensors_of(exact), strict=True):
        assert got.dtype is getattr(td, dtype)
        got, want = on_cpu(got).astype(td.float64).numpy(), want.numpy()
        assert np.abs(got - want).max() <= tolerance * max(np.abs(want).max(), 1e-2), (name, got, want)


@native
@pytest.mark.parametrize(("name", "kernels", "products"), [("digits", 9, 8), ("GPT block", 22, 27)])
def test_models_are_few_kernels(name, kernels, products):
    """A change that makes more of them shows here."""
    model, arguments = gpu_models.MODELS[name]
    args = replace(arguments(), np.ndarray, td.asarray)
    steps = list(
        td.jit(td.value_and_grad(model(gpu_models.tandem_names())))
        .lower(*args, device="cuda")
        .kernels()
        .steps
    )
    assert sum(step.startswith("blas") for step in steps) == products
    assert not any(step.startswith("callback") for step in steps)
    assert len(steps) - products <= kernels
