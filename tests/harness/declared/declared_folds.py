"""Subprocess program: declare folds, each in one place, and run them on every path.

``python declared_folds.py NAME`` exits with an error if a path differs from NumPy, or from the other paths in a bit.
"""

import sys

import numpy as np
import tandem as td
from tandem.backends.cpu import fastpath as native_layer
from tandem.operators.declare.derivatives import Linear, NotDifferentiable, Rule
from tandem.operators.declare.kinds import reduction, scan
from tandem.operators.reductions.folds import sum_result_dtype
from tandem.operators.scalar_ir import nodes as s
from tandem.operators.scalar_ir.fold import Fold, accumulate_as_result, lowest
from tandem.operators.shape.views import expand_reduced
from tandem.registry.dtypes import FLOATS, INTEGERS, REAL, int64

NATIVE = not native_layer.why_off()  # without native code NumPy chooses the order of a sum
SHAPES = [(3,), (5, 4), (40, 70), (3, 1500), (1200, 3), (4, 5, 6), (0, 3)]


def add(a, b):
    return a + b


def declare(fold, dtypes, **fields):
    fields.setdefault("derivative", NotDifferentiable("a test"))
    kind = fields.pop("kind", reduction)
    return kind(fold.name, fold, doc="A fold of a test.", dtypes=dtypes, reference="numpy.sum", **fields)


def make_sum_of_squares():
    fold = Fold(
        "sum_of_squares",
        add,
        lambda dtype: 0,
        accumulate_as_result,
        prepare=lambda x: x * x,
        compensated=True,
    )
    derivative = Rule(
        vjp={
            "self": lambda g, self, axis, keepdims: 2 * self * expand_reduced(g, self.shape, axis, keepdims)
        },
        jvp={"self": lambda t, self, axis, keepdims: td.sum(2 * self * t, axis, keepdims=keepdims)},
    )
    return declare(fold, REAL, dtype_of=sum_result_dtype, derivative=derivative)


def make_norm():
    fold = Fold("norm_of", add, lambda dtype: 0, accumulate_as_result, prepare=lambda x: x * x, finish=s.sqrt)
    return declare(fold, FLOATS)


def make_largest_magnitude():
    return declare(Fold("max_magnitude", s.maximum, lambda dtype: 0, prepare=s.abs), REAL)


def make_count():
    fold = Fold("count_positive", add, lambda dtype: 0, prepare=lambda x: s.cast(x > 0, int64))
    return declare(fold, REAL, dtype_of=lambda dtype: int64)


def make_logsum():
    def combine(a, b):
        return s.select(a == b, a + np.log(2.0), s.maximum(a, b) + s.log1p(s.exp(-abs(a - b))))

    return declare(Fold("log_add", combine, lambda dtype: -np.inf), FLOATS)


def make_parity():
    return declare(Fold("parity", lambda a, b: a ^ b, lambda dtype: 0), INTEGERS)


def square(x):
    return x.astype("f8" if x.dtype.kind == "f" else "i8") ** 2


FOLDS = {
    "sum_of_squares": (
        make_sum_of_squares,
        lambda x, axis: square(x).sum(axis),
        ("f4", "f8", "f2", "i4", "u1"),
    ),
    "norm": (make_norm, lambda x, axis: np.sqrt(square(x).sum(axis)), ("f4", "f8")),
    "magnitude": (make_largest_magnitude, lambda x, axis: np.abs(x).max(axis, initial=0), ("f4", "f2", "i2")),
    "count": (make_count, lambda x, axis: (x > 0).sum(axis), ("f4", "f8", "u1")),
    "logsum": (make_logsum, lambda x, axis: np.logaddexp.reduce(x.astype("f8"), axis), ("f4", "f8")),
    "parity": (make_parity, np.bitwise_xor.reduce, ("i4", "u1")),
}


def numbers(shape, dtype):
    rng = np.random.default_rng(len(shape) + sum(shape))
    return (rng.integers(0, 9, shape) if dtype[0] in "ui" else rng.standard_normal(shape) * 2).astype(dtype)


def along(function, axis):
    return lambda t: function(t, axis)


def check_calls(fold, reference, dtype, shape):
    x = numbers(shape, dtype)
    t = td.asarray(x)
    for axis in (None, *range(len(shape)), *([(0, 2)] if len(shape) == 3 else [])):
        cold = fold.operator(t, axis)
        hot = [fold(t, axis) for _ in range(6)][-1]
        jitted = td.jit(along(fold, axis))
        assert "callback" not in str(jitted.lower(t).kernels())
        results = [result.numpy() for result in (cold, hot, jitted(t))]
        expected = reference(x, axis)
        for result in results:
            near = {"rtol": 2e-2} if dtype == "f2" else {"rtol": 1e-5, "atol": 1e-6}
            np.testing.assert_allclose(result.astype("f8"), expected, **near)
        assert len({(r.dtype, r.shape, r.tobytes() if NATIVE else b"") for r in results}) == 1, (shape, axis)


def check_transforms(fold, dtype):
    x = numbers((6, 8), dtype)
    t = td.asarray(x)
    want = np.stack([fold(row).numpy() for row in t])
    assert np.array_equal(td.vmap(fold)(t).numpy(), want)
    assert np.array_equal(td.jit(td.vmap(fold))(t).numpy(), want)
    assert fold(td.zeros((3, 4), dtype=t.dtype, device="meta"), 0).shape == (4,)
    if NATIVE:
        source = td.jit(lambda t: fold(t, 1)).lower(t, device="cuda").cuda_source()
        assert fold.__name__ in source


def check_gradients(sumsq):
    x = td.asarray(numbers((6, 8), "f8"))
    for gradient in (td.grad(sumsq), td.jit(td.grad(sumsq))):
        np.testing.assert_allclose(gradient(x).numpy(), 2 * x.numpy())
    leaf = td.asarray(numbers((6, 8), "f8"), requires_grad=True)
    for _ in range(6):
        leaf.grad = None
        sumsq(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * leaf.detach().numpy())


def check_scan():
    fold = Fold("running_max", s.maximum, lowest)
    cummax = declare(fold, REAL, kind=scan, derivative=Linear({"self": lambda g, self_spec, axis: g}))
    magnitudes = Fold("running_sumsq", add, lambda dtype: 0, prepare=lambda x: x * x, finish=s.sqrt)
    norms = declare(magnitudes, FLOATS, kind=scan)
    for dtype in ("f4", "i2"):
        for shape in SHAPES[:6]:
            x = numbers(shape, dtype)
            t = td.asarray(x)
            for axis in range(len(shape)):
                want = np.maximum.accumulate(x, axis)
                results = [cummax.operator(t, axis), [cummax(t, axis) for _ in range(6)][-1]]
                jitted = td.jit(along(cummax, axis))
                assert "callback" not in str(jitted.lower(t).kernels())
                results += [jitted(t)]
                for result in results:
                    np.testing.assert_array_equal(result.numpy(), want)
    x = numbers((4, 9), "f4")
    t, along_rows = td.asarray(x), along(norms, 1)
    results = [norms.operator(t, 1), [norms(t, 1) for _ in range(6)][-1], td.jit(along_rows)(t)]
    for result in results:
        np.testing.assert_allclose(result.numpy(), np.sqrt(np.cumsum(square(x), 1)), rtol=1e-5)
    assert td.vmap(lambda row: cummax(row, 0))(td.asarray(x)).shape == (4, 9)
    assert cummax(td.zeros((3, 4), device="meta"), 0).shape == (3, 4)


def main(name):
    if name == "scan":
        check_scan()
        return
    make, reference, dtypes = FOLDS[name]
    fold = make()
    for dtype in dtypes:
        for shape in SHAPES if dtype == dtypes[0] else SHAPES[2:3]:
            check_calls(fold, reference, dtype, shape)
    check_transforms(fold, dtypes[-1])
    if name == "sum_of_squares":
        check_gradients(fold)


main(sys.argv[1])
