"""Helpers for tests of jitted functions on CUDA tensors, on the driver's test double or a GPU."""

import itertools

import numpy as np
import pytest
import tandem as td
from closeness import close_enough
from optable import arrays_of, check, expected, generator, replace, table
from tandem import errors
from tandem.backends.cuda.kernels.tensor import CudaTensor
from tandem.registry.function import functions

native = pytest.mark.skipif(not td.config.flags.native, reason="native code is off: graphs are interpreted")
OPS = table()
CHECKED = [name for name, op in OPS.items() if op.decl.reference and op.decl.samples]


def to_cuda(tree):
    return replace(tree, np.ndarray, lambda array: td.asarray(array, device="cuda"))


def on_cpu(result):
    assert type(result) is CudaTensor
    return result.to("cpu")


def random(*shape, dtype="float32", seed=0):
    return td.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype), device="cuda")


# -- operators ---------------------------------------------------------------------------------------------------------
def run_rows(op, found):
    """Call an operator on several rows in one jitted function of their tensors: one module of kernels for all."""
    drawn = [arrays_of(sample, dtype, generator(op, dtype)) for dtype, sample in found]
    given = [to_cuda(one) for one in drawn]
    kept = [row for row in zip(given, drawn, found, strict=True) if tensors_of(row[0])]
    if not kept:
        return
    given, drawn, found = zip(*kept, strict=True)

    @td.jit
    def jitted(*leaves):
        leaves = iter(leaves)
        calls = [replace(one, td.Tensor, lambda _: next(leaves)) for one in given]
        return [functions[op.name](*args, **options) for args, options in calls]

    try:
        results = jitted(*tensors_of(given))
    except errors.UnsupportedError as fault:
        assert "trace" in str(fault), op.name
        return
    for got, (args, kwargs), (dtype, sample) in zip(results, drawn, found, strict=True):
        want = expected(op, args, kwargs)
        pair = [one if isinstance(one, tuple) else (one,) for one in (got, want)]
        check(op, tuple(map(on_cpu, pair[0])), pair[1], args, f"jitted on cuda: {op.name} {dtype} {sample}")


def tensors_of(tree):
    found = []
    replace(tree, td.Tensor, found.append)
    return found


# -- programs ----------------------------------------------------------------------------------------------------------
def jitted(program):
    return td.jit(lambda *leaves: program(*leaves))


def check_programs(chosen):
    for program, arrays in chosen:
        with np.errstate(all="ignore"):
            leaves = to_cuda(list(arrays))
            want = program(*leaves)
            got = jitted(program)(*leaves)
            pairs = [
                [on_cpu(x).numpy() for x in (r if isinstance(r, tuple | list) else (r,))] for r in (got, want)
            ]
            close_enough(*pairs)


def many(x, s):
    """Several kernels."""
    a = td.softmax(x * s, axis=0)
    b = td.softmax(a + 1, axis=1)
    return a, td.sum(b) + td.max(a, axis=0)


# -- models: forward and backward, against the CPU ---------------------------------------------------------------------
def mlp(params, x, y):
    for w, b in params[:-1]:
        x = td.relu(x @ w + b)
    w, b = params[-1]
    return td.cross_entropy(x @ w + b, y)


def mlp_arguments():
    rng = np.random.default_rng(3)
    sizes = (64, 32, 10)
    params = [
        (rng.standard_normal((m, n)).astype("f4") / 8, np.zeros(n, "f4"))
        for m, n in itertools.pairwise(sizes)
    ]
    return params, rng.random((50, 64)).astype("f4"), rng.integers(0, 10, 50)


def block(params, x, y):
    """A block of a small language model: attention with a mask, then a gated layer, then the loss of each position."""
    h = params["embed"][x]
    n, t, c = h.shape
    z = td.layer_norm(h, (c,), params["g1"], params["b1"])
    q, k, v = (
        td.permute(td.reshape(z @ params[w], (n, t, 2, c // 2)), (0, 2, 1, 3)) for w in ("q", "k", "v")
    )
    mask = td.arange(t, device=x.device)[:, None] >= td.arange(t, device=x.device)
    scores = q @ td.permute(k, (0, 1, 3, 2)) * (c // 2) ** -0.5
    a = td.softmax(td.where(mask, scores, -1e9), axis=-1) @ v
    h = h + td.reshape(td.permute(a, (0, 2, 1, 3)), (n, t, c)) @ params["o"]
    z = td.layer_norm(h, (c,), params["g2"], params["b2"])
    h = h + td.gelu(z @ params["up"]) @ params["down"]
    logits = h @ params["embed"].T
    return td.cross_entropy(td.reshape(logits, (n * t, logits.shape[-1])), td.reshape(y, (n * t,)))


def block_arguments():
    rng = np.random.default_rng(4)
    c, vocabulary = 16, 11
    shapes = {"embed": (vocabulary, c), "up": (c, 4 * c), "down": (4 * c, c)} | dict.fromkeys("qkvo", (c, c))
    params = {name: rng.standard_normal(shape).astype("f4") / 4 for name, shape in shapes.items()}
    params |= {
        "g1": np.ones(c, "f4"),
        "g2": np.ones(c, "f4"),
        "b1": np.zeros(c, "f4"),
        "b2": np.zeros(c, "f4"),
    }
    return params, rng.integers(0, vocabulary, (2, 5)), rng.integers(0, vocabulary, (2, 5))


def check_model(loss, arguments):
    given_ = arguments()
    there = to_cuda(given_)
    host = replace(given_, np.ndarray, td.asarray)
    want, slopes = td.value_and_grad(loss)(*host)
    value, found = td.jit(td.value_and_grad(loss))(*there)
    assert np.allclose(value.item(), want.item(), rtol=1e-5)
    for a, b in zip(tensors_of(found), tensors_of(slopes), strict=True):
        np.testing.assert_allclose(on_cpu(a).numpy(), b.numpy(), rtol=1e-3, atol=1e-5)
    # the other way: a jitted forward pass whose gradient is recorded
    params = replace(given_[0], np.ndarray, lambda x: td.asarray(x, device="cuda", requires_grad=True))
    jitted_ = td.jit(loss)
    for _ in range(2):
        jitted_(params, *there[1:]).backward()
    for a, b in zip(tensors_of(params), tensors_of(slopes), strict=True):
        np.testing.assert_allclose(on_cpu(a.grad).numpy(), 2 * b.numpy(), rtol=1e-3, atol=1e-5)


# -- by machine code ---------------------------------------------------------------------------------------------------
def linked(f, *args):
    """The record by which machine code answers such calls."""
    if not td.config.flags.native:
        pytest.skip("native code is off")
    for _ in range(40):
        f(*args)
    (record,) = f._specializations[0].records.values()
    assert not isinstance(record, str), record
    hits = record.hits
    f(*args)
    assert record.hits == hits + 1
    return record
