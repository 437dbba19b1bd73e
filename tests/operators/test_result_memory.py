"""Results of operators share memory with arguments where the schema declares a view, and nowhere else.

The samples of the op table are drawn again with other sizes (1 and 0 among them), ranks, and numbers, because a
result may be a view of its argument for some shapes only.
"""

import itertools
import os
import random
import zlib

import numpy as np
import pytest
import tandem as td
from optable import arrays_of, generator, replace, samples_of, table, to_tensors
from rotation import rotating
from tandem.errors import TandemError
from tandem.operators.declare.declaration import TensorSample
from tandem.registry.function import functions

# Losses warn of an input and a target of different shapes.
pytestmark = pytest.mark.filterwarnings("ignore:.*which is rarely intended:UserWarning")

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
OPS = {
    name: op
    for name, op in table().items()
    if op.decl.samples and not (op.schema.is_view or op.schema.is_mutable)
}


def draws_in(sample):
    found = []
    replace((sample.args, dict(sample.kwargs)), TensorSample, lambda draw: found.append(draw) or draw)
    return found


def resized(draw, sizes):
    shape = tuple(sizes.get(size, size) for size in draw.shape)
    values = draw.values
    if values:
        values = tuple(itertools.islice(itertools.cycle(values), int(np.prod(shape, dtype=int))))
    return draw._replace(shape=shape, values=values)


def varied(sample, rng, count):
    """The sample, and others like it: with other sizes, ranks, and integers among the arguments."""
    yield sample
    lengths = sorted({size for draw in draws_in(sample) for size in draw.shape})
    for _ in range(count):
        sizes = {size: rng.choice([size, 1, 1, 0]) for size in lengths}
        keep = rng.randint(0, 4)

        def change(value, sizes=sizes):
            return value if type(value) is bool else rng.choice([value, value, sizes.get(value, value), 0, 1])

        args, kwargs = sample.args, dict(sample.kwargs)
        if rng.random() < 0.3:
            args = tuple(() if type(a) is tuple and a and type(a[0]) is int else a for a in args)
        args, kwargs = replace((args, kwargs), int, change)
        args, kwargs = replace((args, kwargs), TensorSample, lambda draw, sizes=sizes: resized(draw, sizes))
        if keep < 2:
            args = replace(
                args,
                TensorSample,
                lambda draw, keep=keep: draw._replace(shape=draw.shape[:keep], values=None),
            )
        yield type(sample)(args, kwargs)


def tensors_in(tree):
    found = []
    replace(tree, td.Tensor, lambda tensor: found.append(tensor) or tensor)
    return found


def check_memory(name, call, args, kwargs, what):
    given = tensors_in((args, kwargs))
    try:
        results = tensors_in(call(*args, **kwargs))
    except (TandemError, ValueError):
        return False
    for result, tensor in itertools.product(results, given):
        assert result is not tensor, f"{name} returns its argument: {what}"
        assert not np.shares_memory(result._array, tensor._array), f"{name} returns a view: {what}"
        assert result._storage is None or result._storage is not tensor._storage, what
    return bool(results)


def check_operator(name, dtypes, count):
    op, checked = OPS[name], 0
    rng = random.Random(zlib.crc32(f"{SEED} {name}".encode()))
    for dtype in dtypes:
        for sample in samples_of(op, dtype):
            for other in varied(sample, rng, count):
                args, kwargs = to_tensors(arrays_of(other, dtype, generator(op, dtype)))
                checked += check_memory(name, functions[op.name], args, kwargs, f"{dtype} {other}")
    assert checked, "no call succeeded"


@rotating
@pytest.mark.parametrize("name", OPS)
def test_results_own_their_memory(name):
    dtypes = OPS[name].decl.dtypes or (td.float32,)
    check_operator(name, [dtypes[SEED % len(dtypes)]], 4)


@pytest.mark.full
@pytest.mark.parametrize("name", OPS)
def test_results_of_every_dtype_own_their_memory(name):
    check_operator(name, OPS[name].decl.dtypes or (td.float32,), 16)


class Hole(tuple):
    """Where a tensor goes."""

    __slots__ = ()


def jitted(name, args, kwargs):
    """The call as a jitted function of its tensors."""
    tensors = tensors_in((args, kwargs))
    numbers = itertools.count()
    args, kwargs = replace((args, kwargs), td.Tensor, lambda _: Hole((next(numbers),)))

    def call(*given):
        filled = replace((args, kwargs), Hole, lambda hole: given[hole[0]])
        return functions[OPS[name].name](*filled[0], **filled[1])

    return td.jit(call), tensors


def check_jitted(name, count, native):
    op, rng = OPS[name], random.Random(zlib.crc32(f"{SEED} jit {name}".encode()))
    dtypes = op.decl.dtypes or (td.float32,)
    dtype = td.float32 if td.float32 in dtypes else dtypes[0]
    samples = samples_of(op, dtype)
    for sample in rng.sample(samples, min(count, len(samples))):
        for other in varied(sample, rng, count):
            args, kwargs = to_tensors(arrays_of(other, dtype, generator(op, dtype)))
            call, tensors = jitted(name, args, kwargs)
            with td.config.override(native=native):
                check_memory(name, call, tensors, {}, f"jit {dtype} {other}")


@rotating
@pytest.mark.parametrize("name", OPS)
def test_jitted_results_own_their_memory(name):
    check_jitted(name, 2, False)


@pytest.mark.full
@pytest.mark.parametrize("name", OPS)
def test_compiled_results_own_their_memory(name):
    check_jitted(name, 4, True)


CALLS = {
    "tile": (lambda x: td.tile(x, (2, 1)), (1, 3)),
    "tile once": (lambda x: td.tile(x, (1, 1)), (2, 3)),
    "tile of one": (lambda x: td.tile(x, (3,)), (1,)),
    "repeat": (lambda x: td.repeat(x, 2, 0), (1, 1)),
    "repeat once": (lambda x: td.repeat(x, 1), (3,)),
    "max_pool1d": (lambda x: td.max_pool1d(x, 1), (1, 2, 3)),
    "nan_to_num": (lambda x: td.nan_to_num(x.astype(td.int32)), (3,)),
    "diff": (lambda x: td.diff(x, n=0), (3,)),
    "roll": (lambda x: td.roll(x, 1, ()), (3,)),
    "matrix_power": (lambda x: td.linalg.matrix_power(x, 1), (2, 2)),
    "fftshift": (lambda x: td.fft.fftshift(x), ()),
    "fftn": (lambda x: td.fft.fftn(x, axes=()), (2, 2)),
}
SAMPLED = pytest.mark.parametrize("name", CALLS)


@SAMPLED
@pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_result_does_not_change_when_argument_is_written(name, way):
    call, shape = CALLS[name]
    x = td.ones(shape)
    y = way(call)(x)
    before = y.tolist()
    x[...] = 99.0
    assert y.tolist() == before


@SAMPLED
def test_writes_inside_jitted_and_functionalized_functions(name):
    call, shape = CALLS[name]

    def program(x):
        y = call(x)
        x[...] = 99.0
        return y

    before = call(td.ones(shape)).tolist()
    for transform in (td.jit, td.functionalize):
        x = td.ones(shape)
        assert transform(program)(x).tolist() == before
        assert x.sum().item() == 99.0 * x.size


@SAMPLED
def test_writes_inside_vmapped_functions(name):
    call, shape = CALLS[name]

    def program(x):
        x = x * 1
        y = call(x)
        x[...] = 99.0
        return y

    found = td.vmap(program)(td.ones((2, *shape)))
    want = call(td.ones(shape)).tolist()
    assert found.tolist() == [want, want]


def test_gradients_go_through_copied_results():
    for name in ("tile", "repeat", "max_pool1d", "diff", "matrix_power"):
        call, shape = CALLS[name]
        x = td.asarray(np.ones(shape), requires_grad=True)
        (call(x) * 3).sum().backward()
        assert (
            x.grad.tolist() == td.jit(td.grad(lambda x, call=call: (call(x) * 3).sum()))(x.detach()).tolist()
        )
        assert x.grad.sum().item() == 3 * call(x).size


def test_composite_operators_of_users_copy_views():
    @td.composite_op("memory_test::same(Tensor x) -> Tensor")
    def same(x):
        return x

    @td.composite_op("memory_test::both(Tensor x) -> (Tensor, Tensor)")
    def both(x):
        return x[:1], x + 1

    for way in (lambda f: f, td.jit):
        x = td.ones(3)
        results = way(lambda x: (same(x), *both(x)))(x)
        x[...] = 5.0
        assert [result.tolist() for result in results] == [[1.0] * 3, [1.0], [2.0] * 3]


def test_compiled_copies_are_made_once():
    with td.config.override(native=True):
        lowered = td.jit(lambda x: td.tile(x, (2, 1)) + 1).lower(td.ones((4, 5)))
    rows = [row for row in lowered.kernels() if row.op in ("td::reshape", "td::clone")]
    assert sum(row.choice != "view" for row in rows) == 1


def test_astype_copies_by_default():
    x = td.ones(3)
    for way in (lambda f: f, td.jit):
        assert way(lambda x: td.astype(x, td.float32, copy=False))(x) is x
        copied = way(lambda x: td.astype(x, td.float32))(x)
        assert not np.shares_memory(copied._array, x._array)
