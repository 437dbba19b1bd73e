"""Gather and scatter kernels on CUDA: values, order of sums, widths of accesses; no GPU is used."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.backends.cuda.codegen import helper_sort
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.kernels import positions, sources
from tandem.backends.cuda.launches.prewritten_text import Address
from tandem.backends.cuda.runtime import compiler
from tandem.lowering.layout import Layout, contiguous

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool", "complex64", "complex128"]


def numbers(rng, shape, dtype):
    found = rng.integers(-8, 9, shape).astype("c16" if dtype[0] == "c" else "f8")
    if dtype[0] == "c":
        found = found + 1j * rng.integers(-8, 9, shape)
    return (found.real > 0) if dtype == "bool" else found.astype(dtype)


def on_cuda(rng, array):
    """The array on the device, in one of several layouts."""
    kind, turned = rng.integers(0, 4), tuple(reversed(range(array.ndim)))
    if kind == 1:
        return td.permute(td.asarray(array.T.copy(), device="cuda"), turned)
    if kind == 2 and array.ndim:
        return td.asarray(np.concatenate([array, array], -1), device="cuda")[..., : array.shape[-1]]
    if kind == 3 and array.ndim:
        return td.asarray(array[::-1].copy(), device="cuda")[::-1]
    return td.asarray(array, device="cuda")


def selections(rng, count):
    """Arrays, the axes that are indexed, index tensors, and values that broadcast."""
    for _ in range(count):
        dtype = str(rng.choice(DTYPES))
        shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4, 8, 16, 33, 70], rng.integers(1, 4)))
        axis = int(rng.integers(0, len(shape)))
        many = int(rng.integers(1, len(shape) - axis + 1))
        common = tuple(int(n) for n in rng.choice([1, 2, 3, 5, 20, 90], rng.integers(0, 3)))
        parts = [tuple(1 if rng.random() < 0.2 else n for n in common) for _ in range(many)]
        indices = [rng.integers(-n, n, part) for n, part in zip(shape[axis : axis + many], parts)]
        x = numbers(rng, shape, dtype)
        key = (slice(None),) * axis + tuple(indices)
        whole = x[key].shape
        given = [1 if rng.random() < 0.3 else n for n in whole][int(rng.integers(0, len(whole) + 1)) :]
        yield x, key, numbers(rng, tuple(given), dtype)


def check_selections(rng, count, jitted):
    for number, (x, key, value) in enumerate(selections(rng, count)):
        for name, got, want in results(rng, x, key, value, td.jit if jitted else lambda f: f):
            assert np.array_equal(got.to("cpu").numpy(), want), (name, number, x.shape, x.dtype, key)


def results(rng, x, key, value, run):
    """What is read, written and added at a key, and what NumPy makes of it."""
    a, v = on_cuda(rng, x), on_cuda(rng, value)
    whole = [one for one in key if isinstance(one, slice)]
    parts = tuple(td.asarray(one, device="cuda") for one in key[len(whole) :])
    written, added = x.copy(), x.copy()
    written[key] = value
    (np.bitwise_or if x.dtype == bool else np.add).at(added, key, np.broadcast_to(value, x[key].shape))
    yield "read", run(lambda a, i: a[(*whole, *i)])(a, parts), x[key]
    yield "set", run(lambda a, i, v: a.at[(*whole, *i)].set(v))(a, parts, v), written
    yield "add", run(lambda a, i, v: a.at[(*whole, *i)].add(v))(a, parts, v), added


@pytest.mark.parametrize("count", [30, pytest.param(2000, marks=pytest.mark.full)])
def test_random_selections_match_numpy(cuda, count):
    check_selections(np.random.default_rng(SEED), count, False)


@pytest.mark.parametrize("count", [6, pytest.param(200, marks=pytest.mark.full)])
def test_random_jitted_selections_match_numpy(cuda, count):
    check_selections(np.random.default_rng(SEED + 1), count, True)


def test_many_positions_are_sorted_by_several_blocks(cuda, monkeypatch):
    """Small tiles, so that 3000 positions take the path of millions."""
    monkeypatch.setattr(helper_sort, "TILE_THREADS", 32)
    rng = np.random.default_rng(SEED)
    for rows, width in ((1, 5), (7, 3), (5000, 1), (300, 40)):
        x = rng.integers(-8, 9, (rows, width)).astype("f4")
        i, v = rng.integers(-rows, rows, 3000), rng.integers(-8, 9, (3000, width)).astype("f4")
        want = x.copy()
        np.add.at(want, i, v)
        a, b, c = (td.asarray(one, device="cuda") for one in (x, i, v))
        assert np.array_equal(a.at[b].add(c).to("cpu").numpy(), want)
        found = td.jit(lambda a, b, c: a.at[b].add(c))(a, b, c)
        assert np.array_equal(found.to("cpu").numpy(), want)


@pytest.mark.parametrize("tile", [32, 1024])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16", "float16"])
def test_index_gradients_do_not_depend_on_thread_order(cuda, monkeypatch, dtype, tile):
    monkeypatch.setattr(helper_sort, "TILE_THREADS", tile)
    rng = np.random.default_rng(SEED)
    x = td.asarray(rng.standard_normal((11, 6)), device="cuda").astype(getattr(td, dtype))
    i = td.asarray(rng.integers(0, 11, 700), device="cuda")
    scale = td.asarray(rng.standard_normal((700, 6)) * 10.0 ** rng.integers(-6, 6, (700, 1)), device="cuda")
    scale = scale.astype(x.dtype)

    def slope(x):
        return td.vjp(lambda x: x[i], x)[1](scale)[0]

    found = []
    for order in ("forward", "backward"):
        monkeypatch.setenv("TANDEM_HOST_ORDER", order)
        for run in (slope, td.jit(slope)):
            found.append(run(x).to("cpu").numpy().tobytes())
    assert found[0] == found[2], "eager"
    assert found[1] == found[3], "jitted"


def test_long_runs_are_summed_accurately(cuda):
    """One place gets all: the sum of 20,000 values is made of partial sums."""
    values = np.random.default_rng(SEED).random(20000).astype("f4")
    x = td.zeros(3, dtype=td.float32, device="cuda")
    found = x.at[td.asarray(np.ones(20000, int), device="cuda")].add(td.asarray(values, device="cuda"))
    exact = math.fsum(values.tolist())
    assert abs(found.to("cpu").numpy()[1] - exact) < 3e-6 * exact


def test_positions_out_of_bounds_add_nothing(cuda):
    x = td.zeros((4, 2), dtype=td.float32, device="cuda")
    i = td.asarray([0, 4, 3, 0, -5], device="cuda")
    y = x.at[i].add(1.0)
    with pytest.raises(errors.OutOfBoundsError):
        td.synchronize("cuda")
    assert y.to("cpu").tolist() == [[2.0, 2.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("name", ["set", "add", "max", "min", "multiply"])
def test_positions_out_of_bounds_change_nothing(cuda, name, dtype):
    if dtype == "complex64" and name in ("max", "min"):
        pytest.skip("complex numbers have no order")
    host = numbers(np.random.default_rng(SEED), (4, 3), dtype)
    value = numbers(np.random.default_rng(SEED + 1), (5,), dtype)
    inside = [(1, 2), (3, 0)]
    keys = [td.asarray([4, 1, -5, 3, 99]), td.asarray([0, 2, 1, 0, 0])]
    want = td.asarray(host)
    for position, (i, j) in zip((1, 3), inside, strict=True):
        want = getattr(want.at[i, j], name)(td.asarray(value)[position])
    x, v = td.asarray(host, device="cuda"), td.asarray(value, device="cuda")
    for run in (lambda f: f, td.jit):
        update = run(lambda x, i, j, v: getattr(x.at[i, j], name)(v))
        y = update(x, *[one.to("cuda") for one in keys], v)
        operator = "index_put" if name in ("set", "add") else "index_reduce"
        with pytest.raises(
            errors.OutOfBoundsError, match=f"{operator}: index (4|99|-5) is out of bounds for axis 0"
        ):
            td.synchronize("cuda")
        assert y.to("cpu").tolist() == want.tolist()


# -- what is launched --------------------------------------------------------------------------------------------------
def selected(shape, count, axis=0, strides=None):
    base = contiguous(shape) if strides is None else Layout(shape, strides)
    return positions.Selection("index", base, axis, (count,), [contiguous((count,))], 1, 0)


@pytest.mark.parametrize(
    ("shape", "strides", "axis", "size", "alignment", "width", "lanes"),
    [
        ((100, 64), None, 0, 4, 16, 16, 16),
        ((100, 512), None, 0, 2, 16, 16, 32),
        ((100, 512), None, 0, 4, 4, 4, 32),  # a view that begins at an odd element
        ((100, 6), None, 0, 4, 16, 8, 4),
        ((100, 64), (66, 1), 0, 4, 16, 8, 32),
        ((100, 64), (1, 100), 0, 4, 16, 4, 32),  # across the rows
        ((3, 100, 8), None, 1, 2, 16, 16, 1),
        ((100,), None, 0, 4, 16, 4, 1),
    ],
)
def test_rows_are_read_by_the_widest_access(shape, strides, axis, size, alignment, width, lanes):
    one = selected(shape, 10, axis, strides)
    (launch,) = positions.gather(one, size, alignment, Address(0), Address(2))
    assert launch.kernel.name == f"gather_{width}"
    _, picked, elements, per_row, chunk, pieces = launch.params[3].words
    assert (picked, per_row) == (10, lanes)
    assert elements * width == size * math.prod(shape[axis + 1 :])
    assert pieces * chunk >= elements


def test_long_rows_are_shared_by_warps():
    (launch,) = positions.gather(selected((2, 1 << 20), 2), 4, 16, Address(0), Address(2))
    assert launch.kernel.grid[0] * launch.kernel.block[0] >= 2 * (1 << 18) // positions.EACH


def test_integers_need_no_order():
    value = contiguous((10, 8))
    for dtype, names in (
        (td.int32, ["scatter_add_uint32"]),
        (td.float32, ["order_tile", "runs_add_float32"]),
        (td.complex128, ["order_tile", "runs_add_float64"]),
    ):
        launches = positions.combine(selected((100, 8), 10), "add", dtype, value, Address(0), Address(2))
        assert [one.kernel.name for one in launches] == names
    floats = "add", td.float32
    many = positions.combine(
        selected((100, 8), 10**6), *floats, contiguous((10**6, 8)), Address(0), Address(2)
    )
    assert [one.kernel.name for one in many][-2:] == ["runs_add_float32", "join_add_float32"]
    (single,) = positions.combine(selected((100, 8), 1), *floats, contiguous((1, 8)), Address(0), Address(2))
    assert single.kernel.name == "scatter_add_float32"


@pytest.mark.skipif(not td.lazy.is_installed("cupy"), reason="NVRTC comes through cupy")
def test_wide_accesses_are_single_instructions(tmp_path):
    with td.config.override(cache=False):
        source = module_source([sources.kernel("gather_16"), sources.kernel("scatter_16")])
        text = Path(compiler.nvrtc_file(source, "sm_1000")).read_text()  # of no known generation: PTX
    assert "ld.global" in text
    assert ".v2.u64" in text or ".v2.b64" in text or ".v4.u32" in text or ".v4.b32" in text
