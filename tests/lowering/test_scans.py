"""Scans in compiled graphs: loops without callbacks, with the bits of eager calls."""

import numpy as np
import pytest
import tandem as td
from lowering_harness import lowered
from rotation import share_each_commit
from tandem.backends.cpu import fastpath
from tandem.operators.declare.kinds import scan
from tandem.operators.scalar_ir.fold import Fold
from tandem.registry.dtypes import FLOATS

RNG = np.random.default_rng(0)
SCANS = {"cumsum": td.cumsum, "cumprod": td.cumprod}
DTYPES = ("b1", "i1", "u2", "i4", "u8", "f2", "bfloat16", "f4", "f8", "c8", "c16")
SHAPES = [
    (1,),
    (7,),
    (0,),
    (3, 0),
    (0, 3),
    (4, 5),
    (2, 70),
    (70, 2),
    (9, 131),
    (1, 6),
    (3, 4, 5),
    (2, 1, 3, 2),
]
native = pytest.mark.skipif(bool(fastpath.why_off()), reason="graphs are interpreted")


def numbers(shape, dtype):
    x = td.asarray(RNG.normal(size=shape) * 2)
    if dtype[0] == "c":
        return td.asarray((x.numpy() + 1j * RNG.normal(size=shape)).astype(dtype))
    return x.astype(td.bfloat16) if dtype == "bfloat16" else td.asarray(x.numpy().astype(dtype))


def check_scan(call, *args):
    """Check that the first, a hot and a jitted call return the same bits, without callbacks in compiled code."""
    cold = call(*args).numpy()
    hot = [call(*args) for _ in range(6)][-1].numpy()
    jitted = td.jit(call)
    found = [jitted(*args).numpy() for _ in range(3)][-1]
    for result in (hot, found):
        assert (result.dtype, result.shape) == (cold.dtype, cold.shape)
        assert result.tobytes() == cold.tobytes()
    if not fastpath.why_off():
        assert "callback" not in str(jitted.lower(*args).kernels())


@pytest.mark.parametrize("dtype", share_each_commit(DTYPES, 3))
@pytest.mark.parametrize("name", SCANS)
def test_scans_of_every_dtype_and_axis(name, dtype):
    for shape in SHAPES:
        for axis in (None, -1, *range(len(shape))):
            check_scan(lambda x, axis=axis: SCANS[name](x, axis), numbers(shape, dtype))


VIEWS = {
    "transposed": lambda x: x.permute((2, 0, 1)),
    "flipped": lambda x: td.flip(x, 1),
    "sliced": lambda x: x[1:, ::2, 3:],
    "broadcast": lambda x: td.broadcast_to(x[:1], (3, *x.shape[1:])),
    "number": lambda x: x[0, 0, 0],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["f4", "f2", "c8"])
def test_scans_of_views(view, dtype):
    x = numbers((4, 6, 17), dtype)
    for axis in (None, *range(VIEWS[view](x).ndim)):
        check_scan(lambda x, axis=axis: td.cumsum(VIEWS[view](x), axis), x)


@native
def test_views_are_scanned_without_a_copy():
    program = lowered(lambda x: td.cumsum(VIEWS["transposed"](x), 1), numbers((4, 6, 17), "f4").numpy())
    assert [step.kind for step in program.steps] == ["native"]


@pytest.mark.parametrize("dtype", [td.float16, td.float64, td.int8, td.int64])
def test_scans_into_another_dtype(dtype):
    check_scan(lambda x: td.cumsum(x, 0, dtype=dtype), numbers((9, 40), "f4"))


TRANSFORMED = {
    "reverse": lambda x: td.flip(td.cumsum(td.flip(x, 1), 1), 1),
    "vmap": td.vmap(lambda row: td.cumprod(row, 0)),
    "vmap of columns": td.vmap(lambda column: td.cumsum(column), in_axes=1, out_axes=1),
    "gradient of a sum": td.grad(lambda x: (td.cumsum(x, 0) * x).sum()),
    "gradient of all": td.grad(lambda x: (td.cumsum(x) ** 2).sum()),
    "gradient of a product": td.grad(lambda x: td.cumprod(x, 1).sum()),
    "jvp": lambda x: td.jvp(lambda x: td.cumprod(x, 0), (x,), (x,))[1],
    "in a loop": lambda x: td.fori_loop(0, 3, lambda i, c: td.cumsum(c, 1) * 0.5, x),
    "of what is computed": lambda x: td.exp(td.cumsum(td.sin(x) * 2, 1)) + x,
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_scans(name):
    check_scan(TRANSFORMED[name], numbers((6, 8), "f8"))


def test_any_declared_scan_is_emitted():
    def combine(a, b):
        return a * 0.5 + b

    decayed = scan(
        "decayed",
        Fold("decayed", combine, lambda dtype: 0),
        doc="A decaying sum.",
        dtypes=FLOATS,
        reference="numpy.cumsum",
    )
    for shape in ((5,), (6, 200), (200, 6)):
        for axis in range(len(shape)):
            check_scan(lambda x, axis=axis: decayed(x, axis), numbers(shape, "f4"))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_views_are_copied_for_compiled_code(dtype):
    z = numbers((3, 4), dtype)

    def running_sums(z):
        return td.scan(lambda c, row: (c + row, c), td.zeros(3, dtype=z.dtype), z.permute((1, 0)))[1]

    for call in (running_sums, lambda z: z.permute((1, 0))[td.asarray([2, 0])]):
        np.testing.assert_array_equal(td.jit(call)(z).numpy(), call(z).numpy())
