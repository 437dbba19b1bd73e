"""vmap of every declared operator equals a loop over the examples, for each batched argument and axis."""

import itertools
import os
import warnings
import zlib

import numpy as np
import pytest
import tandem as td
from gradient_harness import DIFFERENTIABLE, drawn_like, flat, holes, smooth_samples, weighted
from optable import check, depends_on_data, generator, make, replace, rows, table, to_tensors, tolerance
from rotation import rotating, rotating_all
from tandem.custom.check_layers import rearrange_elements
from tandem.errors import UnsupportedError
from tandem.jit.api import jit
from tandem.operators.declare.declaration import TensorSample
from tandem.registry.function import functions

OPS = table()
SIZE = 3  # examples in a batch
# Operators that run as a loop over the examples, and why. None does.
LOOPED: dict[str, str] = {}
EXACT = ("view", "cast", "copy", "join", "gather", "creation", "random", "comparison")
BATCHABLE = [name for name, op in OPS.items() if op.decl.samples]


@pytest.fixture(autouse=True)
def no_loops(request):
    """A loop over the examples says so with a warning; here that is an error."""
    with warnings.catch_warnings():
        if getattr(request, "param", None) not in LOOPED:
            warnings.simplefilter("error", UserWarning)
        yield


def drawn(draw, dtype, rng, example):
    """The array of a TensorSample for one example; values that are given are some of these in another order."""
    array = make(draw, dtype, rng)
    return array if draw.values is None else rearrange_elements(array, example)


def examples_of(op, dtype, sample):
    """The arguments of each example, as ``(args, kwargs)`` with arrays."""
    rng, tree = generator(op, dtype), (sample.args, dict(sample.kwargs))
    return [replace(tree, TensorSample, lambda d, e=e: drawn(d, dtype, rng, e)) for e in range(SIZE)]


class Hole:
    def __init__(self, index):
        self.index = index


def as_function(op, example):
    """(f, arrays): the call as a function of its tensors, and those of an example."""
    arrays = []
    form = replace(example, np.ndarray, lambda array: arrays.append(array) or Hole(len(arrays) - 1))

    def call(*values):
        args, kwargs = replace(form, Hole, lambda hole: values[hole.index])
        return functions[op.name](*args, **kwargs)

    return call, arrays


def choices(count):
    """Which of the tensors are batched: each alone, and all."""
    yield from (
        [True] * count,
        *([at == one for at in range(count)] for one in range(count if count > 1 else 0)),
    )


def stacked(results):
    """The results of all examples as arrays, the batch in front."""
    if isinstance(results[0], tuple):
        return tuple(np.stack([r[i]._array for r in results]) for i in range(len(results[0])))
    return np.stack([r._array for r in results])


def check_row(op, dtype, sample, transform=lambda f: f):
    examples = examples_of(op, dtype, sample)
    call, first = as_function(op, examples[0])
    columns = list(zip(*(as_function(op, example)[1] for example in examples), strict=True))
    for batched in choices(len(first)) if first else ():
        for axis in (0, -1):
            inputs = [
                np.stack(column, axis if column[0].ndim else 0) if is_batched else column[0]
                for column, is_batched in zip(columns, batched, strict=True)
            ]
            in_axes = tuple(
                (axis if column[0].ndim else 0) if b else None
                for column, b in zip(columns, batched, strict=True)
            )
            what = f"vmap {op.name} {dtype} {sample} in_axes={in_axes}"
            refused = depends_on_data(op, *to_tensors(examples[0]))
            compare(op, transform(td.vmap(call, in_axes)), call, inputs, columns, batched, refused, what)


def compare(op, mapped, call, inputs, columns, batched, refused, what):
    calls = [
        [column[e] if b else column[0] for column, b in zip(columns, batched, strict=True)]
        for e in range(SIZE)
    ]
    results = [call(*to_tensors(arrays)) for arrays in calls]
    if refused or differ(results):
        with pytest.raises(UnsupportedError, match=r"differ|depends on data"):
            mapped(*to_tensors(inputs))
        return
    got, want = mapped(*to_tensors(inputs)), stacked(results)
    if op.decl.kind in EXACT:
        pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
        for tensor, array in pairs:
            assert tensor.dtype.np == array.dtype
            found, wanted = (
                x.astype(np.float32) if tensor.dtype is td.bfloat16 else x for x in (tensor._array, array)
            )
            np.testing.assert_array_equal(found, wanted, err_msg=what)  # NumPy knows no NaN of bfloat16
    else:
        check(op, got, want, inputs, what)


def differ(results):
    shapes = [tuple(r.shape for r in (one if isinstance(one, tuple) else (one,))) for one in results]
    return len(set(shapes)) > 1


def chosen_rows(op):
    """One row of each dtype, another for each seed, and the last, which has extremes."""
    seed = int(os.environ.get("TANDEM_TEST_SEED", "0"))
    for _, group in itertools.groupby(rows(op), lambda row: row[0]):
        group = list(group)
        place = zlib.crc32(f"batched {seed} {op.name} {group[0][0]}".encode()) % len(group)
        yield from {id(row): row for row in (group[place], group[-1])}.values()


@rotating
@pytest.mark.parametrize("name", BATCHABLE)
def test_vmap_is_a_loop(name):
    for dtype, sample in chosen_rows(OPS[name]):
        check_row(OPS[name], dtype, sample)


@pytest.mark.full
@pytest.mark.parametrize("name", BATCHABLE)
def test_vmap_is_a_loop_on_every_row(name):
    for dtype, sample in rows(OPS[name]):
        check_row(OPS[name], dtype, sample)


@rotating_all
@pytest.mark.parametrize("name", BATCHABLE)
def test_vmap_under_jit(name):
    op = OPS[name]
    found = list(rows(op))
    for dtype, sample in {id(row): row for row in (found[0], found[len(found) // 2])}.values():
        check_row(op, dtype, sample, jit)


# -- gradients ---------------------------------------------------------------------------------------------------------
def total(op, call, weights):
    """``f`` of tensors that gives the sum of the inexact results, weighted."""

    def f(*values):
        out = call(*values)
        items = [item for item in (out if isinstance(out, tuple) else (out,)) if item.dtype.is_inexact]
        return sum(
            (weighted(item, w) for item, w in zip(items, weights, strict=True)),
            td.zeros((), dtype=td.float64),
        )

    return f


def gradient_case(op, args, kwargs):
    """(f, batches, count): f of float64 tensors, and a batch of each of them."""
    rng = generator(op, td.float64)
    options = to_tensors(kwargs)

    def call(*values):
        return functions[op.name](*holes(args, values), **options)

    points = [a for a in flat(args) if isinstance(a, np.ndarray) and a.dtype == np.float64]
    batches = [np.stack([p, p * 0.75, p * 0.5]) for p in points]
    out = call(*to_tensors(points))
    items = [item for item in (out if isinstance(out, tuple) else (out,)) if item.dtype.is_inexact]
    weights = [to_tensors(np.asarray(drawn_like(item, rng))) for item in items]
    return total(op, call, weights), to_tensors(batches)


@rotating_all
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_batches(name):
    """vmap of grad, grad of vmap, and both under jit, against a loop of grad."""
    op = OPS[name]
    for args, kwargs in smooth_samples(op)[::2]:
        f, batches = gradient_case(op, args, kwargs)
        where = tuple(range(len(batches)))
        one = td.grad(f, where)
        want = [one(*[b[e] for b in batches]) for e in range(SIZE)]
        together = td.grad(lambda *values, f=f: td.vmap(f)(*values).sum(), where)
        for transform in (td.vmap(one), together, jit(td.vmap(one)), jit(together)):
            got = transform(*batches)
            for at, gradient in enumerate(got):
                close(gradient, [w[at] for w in want], op, f"{name} {args} {kwargs}")


def close(got, want, op, what):
    want = np.stack([w._array for w in want])
    bound = max(1e-10, 10 * tolerance(op, td.float64))
    scale = max(1.0, np.abs(want[np.isfinite(want)]).max(initial=0.0))
    np.testing.assert_allclose(got._array, want, rtol=bound, atol=bound * scale, err_msg=what)
