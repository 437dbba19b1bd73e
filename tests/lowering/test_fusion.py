"""Fusion: which nodes form one kernel, which must not, and unchanged results."""

import ctypes

import numpy as np
import pytest
import tandem as td
from lowering_harness import agree, kernels, lowered
from tandem.backends.cpu import fastpath

RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(6, 40)).astype(np.float32) for _ in range(2))
W, B = (RNG.normal(size=40).astype(np.float32) for _ in range(2))
T = RNG.normal(size=(3, 5, 7))


def layer_norm(x, w, b):
    centred = x - td.mean(x, -1, keepdims=True)
    return centred / td.sqrt(td.mean(centred * centred, -1, keepdims=True) + 1e-5) * w + b


def log_softmax(x):
    shifted = x - td.max(x, -1, keepdims=True)
    return shifted - td.log(td.sum(td.exp(shifted), -1, keepdims=True))


def logsumexp(x):
    top = td.max(x, -1, keepdims=True)
    return (td.log(td.sum(td.exp(x - top), -1, keepdims=True)) + top).reshape((6,))


def batch_norm(x):
    return (x - td.mean(x, 0)) / td.sqrt(td.var(x, 0) + 1e-5)


ONE_KERNEL = {
    "softmax": (td.softmax, (X,)),
    "softmax of columns": (lambda x: td.softmax(x, 0), (X,)),
    "softmax of a middle axis": (lambda x: td.softmax(x, 1), (T,)),
    "log_softmax": (log_softmax, (X,)),
    "logsumexp": (logsumexp, (X,)),
    "layer_norm": (layer_norm, (X, W, B)),
    "batch_norm": (batch_norm, (X,)),
    "mean": (lambda x: td.mean(x, -1), (X,)),
    "var": (lambda x: td.var(x, -1), (X,)),
    "std": (lambda x: td.std(x), (X,)),
    "std of columns": (lambda x: td.std(x, 0), (X,)),
    "several results": (lambda x, y: (x + y, x * y, td.exp(x)), (X, Y)),
    "a diamond": (lambda x: td.exp(x) * td.tanh(x) + td.exp(x), (X,)),
    "two reductions of one tensor": (lambda x: (td.sum(x, -1), td.max(x, -1), td.argmax(x, -1)), (X,)),
    "broadcasting": (lambda x, w, b: td.relu(x * w + b), (X, W, B)),
    "a transposed operand": (lambda x, y: td.exp(x) + td.permute(y, (1, 0)), (X, np.ascontiguousarray(Y.T))),
    "a transposed intermediate": (lambda x: td.permute(td.exp(x), (1, 0)) * 2, (X,)),
    "a reduction broadcast back": (
        lambda x: x * td.broadcast_to(td.sum(x, -1).reshape((6, 1)), (6, 40)),
        (X,),
    ),
    "0-d after a reduction": (lambda x: td.sqrt(td.sum(x * x) / 240.0) + 1.0, (X,)),
    "cast": (lambda x: td.astype(x * 3, td.int32) + 1, (X,)),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name):
    function, args = ONE_KERNEL[name]
    assert len(kernels(function, *args)) == 1, lowered(function, *args).kernels()
    agree(function, *args)


SEVERAL = {
    "a reshape that joins axes of an intermediate": (lambda x: td.exp(x).reshape((40, 6)) + 1, (X,), 2),
    "reductions over different axes": (lambda x: td.sum(td.sum(td.exp(x), 0) * 2, 0), (X,), 2),
    "a product between": (
        lambda x, w: td.exp(td.exp(x) @ w) + 1,
        (X, RNG.normal(size=(40, 3)).astype("f4")),
        3,
    ),
    "a product of transposed operands": (lambda x, y: td.permute(x, (1, 0)) @ y, (X, Y), 1),
    "a strided operand of a product": (lambda x, y: x[:, ::2] @ td.permute(y[:, ::2], (1, 0)), (X, Y), 3),
    "a scan between": (lambda x: td.cumsum(td.exp(x), 1) + 1, (X,), 3),
    "no way round through a scan": (lambda x: (lambda e: e + td.cumsum(e, 1))(td.exp(x)), (X,), 3),
    "a callback between": (lambda x: td.argsort(td.exp(x), axis=1) + 1, (X,), 3),
    "no way round through a callback": (lambda x: (lambda e: e + td.argsort(e, axis=1))(td.exp(x)), (X,), 3),
    "an expanded bias": (lambda x, b: x + td.exp(b) * 2, (X, B), 2),
    "x + x.T": (lambda x: (lambda e: e + td.permute(e, (1, 0)))(td.exp(x[:, :6])), (X,), 2),
    "a sum of a transpose": (lambda x: td.sum(td.permute(td.exp(x), (1, 0)), -1), (X,), 1),
    "shifted parts": (lambda x: (lambda e: e[:, 1:] - e[:, :-1])(td.exp(x)), (X,), 2),
    "a copying reshape": (lambda x: td.permute(x, (1, 0)).reshape((240,)) * 2, (X,), 2),
    "concat": (lambda x, y: td.concat([td.exp(x), y[:2]], 0) * 2, (X, Y), 3),
    "writing into a slice": (lambda x, w: x.at[1:3].set(w * 2), (X, W), 2),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_kernels(name):
    function, args, count = SEVERAL[name]
    assert len(kernels(function, *args)) == count, lowered(function, *args).kernels()
    agree(function, *args)


def test_a_chain_of_a_hundred_is_one_kernel():
    def chain(x):
        for i in range(50):
            x = x * 0.99 + 0.01 * i
        return x

    assert len(kernels(chain, X)) == 1
    agree(chain, X)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint16", "int64", "bool"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_reductions_of_every_kind_with_what_surrounds_them(dtype, axis):
    x = (RNG.normal(size=(5, 19)) * 3).astype(getattr(td, dtype if dtype != "bool" else "bool_").np)

    def f(x):
        y = x + x
        return (
            td.sum(y, axis),
            td.max(y, axis, keepdims=True),
            td.any(y, axis),
            td.argmin(x, axis),
            td.prod(x, axis),
        )

    agree(f, x, rtol=5e-2 if dtype in ("float16", "bfloat16") else None)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (1, 1), (1, 9), (9, 1), (2, 0, 3)])
def test_shapes_with_nothing_or_one(shape):
    x = RNG.normal(size=shape).astype("f4")
    agree(lambda x: (td.sum(x, 0), td.sum(x * 2, -1, keepdims=True) + x, td.prod(x), td.exp(x) + 1), x)


@pytest.mark.parametrize("columns", [5, 64, 20_000, 70_000])
def test_rows_that_fit_no_cache(columns):
    agree(lambda x: td.softmax(x), RNG.normal(size=(3, columns)).astype("f4"))


def test_long_vectors():
    agree(lambda x: (x - td.mean(x)) / td.std(x), RNG.normal(size=300_000).astype("f4"), rtol=1e-4)


def test_kernels_prints_choice_and_reason():
    table = lowered(
        lambda x, w: td.ops.td.random_gamma_slope(td.cumsum(td.exp(x) @ w, 0), 0.5),
        X,
        RNG.normal(size=(40, 3)).astype("f4"),
    ).kernels()
    text = repr(table)
    assert [row.choice for row in table] == ["fused", "blas", "native", "callback"]
    for part in ("a small product is written out", "sum along axis 0", "random has no emitted kernel"):
        assert part in text
    assert "native: td::cumsum" in text and "callback: td::random_gamma_slope" in text


def test_callback_is_not_fused_with_other_readers():
    agree(lambda x: (td.argsort(x), x * x, td.exp(x)), RNG.normal(size=1).astype("f4"))


@pytest.mark.skipif(bool(fastpath.why_off()), reason="native code is off")
@pytest.mark.parametrize("size", [1, 15, 17, 33])
@pytest.mark.parametrize(
    "function",
    [td.signbit, td.isnan, lambda x: x.astype(td.int8), lambda x: x.astype(td.int16)],
    ids=["signbit", "isnan", "int8", "int16"],
)
def test_nothing_is_written_behind_a_result(function, size):
    """A short last vector of results narrower than what they are computed from."""
    executable = lowered(function, np.arange(size, dtype=np.float32)).compile()  # keeps the code
    convention = executable.convention
    given, result = np.arange(size, dtype=np.float32), np.full(8 * size + 256, 0xAB, np.uint8)
    scratch = np.empty(convention.workspace + 64, np.uint8)
    places = [a.__array_interface__["data"][0] for a in (given, result, scratch)]
    places[-1] += -places[-1] % 64  # code stores whole vectors there
    table = (ctypes.c_void_p * 6)(*places, convention.tables, 0, 0)
    scalars = (ctypes.c_int64 * 1)()
    ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(convention.address)(table, scalars)
    wide = convention.storages[0].dtype.itemsize * size
    assert (result[wide:] == 0xAB).all()
