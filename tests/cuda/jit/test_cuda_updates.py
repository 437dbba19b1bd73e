"""Writes at integer positions in jitted functions on CUDA: updates in place, in the kernels that compute their values.

They run on a double of the driver; no GPU is used.
"""

import os

import numpy as np
import pytest
import tandem as td
from cuda_jit_harness import native, on_cpu
from optable import replace
from rotation import one_each_commit, share_each_commit
from tandem import errors
from tandem.backends.cuda.codegen import helper_sort
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.launches.call_text import write_kernels
from tandem.backends.cuda.runtime.compiler import nvrtc_file

pytestmark = pytest.mark.usefixtures("cuda")
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((50, 32)).astype("f4")
ROWS = RNG.integers(-50, 50, (3, 5))
VALUES = RNG.standard_normal((3, 5, 32)).astype("f4")
MANY = RNG.integers(-50, 50, 700)
COUNTS = np.zeros(40, "i8")
DTYPES = (
    "bool int8 uint8 int16 int32 int64 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
).split()

# name -> (function, arguments, number of launches besides the copy of the old value)
CASES = {
    "rows": (lambda x, i, v: x.at[i].set(v), (TABLE, ROWS, VALUES), 3),
    "rows of something computed": (lambda x, i, v: x.at[i].set(td.exp(v) * 2), (TABLE, ROWS, VALUES), 3),
    "one number": (lambda x, i: x.at[i].set(3), (TABLE, ROWS), 3),
    "one row": (lambda x, i, v: x.at[i[0, 0]].set(v[0, 0] + 1), (TABLE, ROWS, VALUES), 1),
    "added to one row": (lambda x, i, v: x.at[i[0, 0]].add(v[0, 0] + 1), (TABLE, ROWS, VALUES), 1),
    "columns": (lambda x, i, v: x.at[:, i % 32].set(v[0, 0, 0]), (TABLE, ROWS, VALUES), 3),
    "elements": (lambda x, i, v: x.at[i, i % 32].set(v[:, :, 0]), (TABLE, ROWS, VALUES), 3),
    "a window": (
        lambda x, n, v: td.jax.lax.dynamic_update_slice(x, v[0] * 2, (n, n)),
        (TABLE, 7, VALUES[:, :, :9]),
        1,
    ),
    "added to a window": (
        lambda x, n, v: x.at[n + td.arange(5, device=v.device)].add(v),
        (TABLE, 7, VALUES[0]),
        1,
    ),
    "sums": (lambda x, i, v: x.at[i].add(v), (TABLE, ROWS, VALUES), 2),
    "sums of something computed": (lambda x, i, v: x.at[i].add(td.sin(v) * v), (TABLE, ROWS, VALUES), 2),
    "sums at computed positions": (lambda x, i, v: x.at[(i * 3) % 50].add(v), (TABLE, ROWS, VALUES), 2),
    "sums in columns": (lambda x, i, v: x.at[:, i % 32].add(v[0, 0, 0] * 2), (TABLE, ROWS, VALUES), 2),
    "sums of elements": (lambda x, i, v: x.at[i, i % 32].add(v[:, :, 0]), (TABLE, ROWS, VALUES), 2),
    "many sums": (lambda x, i, v: x.at[i].add(v[0, 0]), (TABLE, MANY, VALUES), 3),
    "products": (lambda x, i, v: x.at[i].multiply(v), (TABLE, ROWS, VALUES), 2),
    "products of bools": (
        lambda x, i, v: (x > 0).at[i].multiply(v > -1),
        (TABLE, ROWS, VALUES),
        2,
    ),
    "largest": (lambda x, i, v: x.at[i].max(v), (TABLE, ROWS, VALUES), 2),
    "smallest": (lambda x, i, v: x.at[i].min(v), (TABLE, ROWS, VALUES), 2),
    "a histogram": (lambda c, i: c.at[i % 40].add(1), (COUNTS, MANY), 1),
    "a histogram of bytes": (
        lambda c, i: td.astype(c, td.uint8).at[i % 40].add(td.astype(i, td.uint8)),
        (COUNTS, MANY),
        3,
    ),
    "largest integers": (lambda c, i: c.at[i % 40].max(i), (COUNTS, MANY), 1),
    "int32 positions": (lambda x, i, v: x.at[td.astype(i, td.int32)].add(v), (TABLE, ROWS, VALUES), 2),
    "values that are read at positions": (
        lambda x, i, v: x.at[i[0]].set(v[1, i[1] % 5]),
        (TABLE, ROWS, VALUES),
        4,
    ),
    "set to rows of what is updated": (lambda x, i: (x * 2).at[i].set(x * 2), (TABLE, MANY[:50]), 3),
    "added to what they are computed from": (lambda x, i: (x * 2).at[i].add(x * 2), (TABLE, MANY[:50]), 2),
    "clipped positions": (lambda x, i, v: x.at[i + 20].set(v, mode="clip"), (TABLE, ROWS, VALUES), 3),
}


def there(tree):
    return replace(tree, np.ndarray, lambda a: td.asarray(a, device="cuda"))


def here(tree):
    return replace(tree, np.ndarray, td.asarray)


def lower(f, args):
    return td.jit(f).lower(*here(args), device="cuda")


def bits(x):
    return on_cpu(x).numpy().tobytes()


def test_values_are_those_of_eager_calls():
    calls = [(f, args) for f, args, _ in CASES.values()]
    found = td.jit(lambda given: [f(*args) for (f, _), args in zip(calls, given, strict=True)])(
        there([args for _, args in calls])
    )
    for name, got, (f, args) in zip(CASES, found, calls, strict=True):
        want = f(*there(args))
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        assert bits(got) == bits(want), name


@native
@pytest.mark.parametrize("name", CASES)
def test_updates_are_emitted(name):
    f, args, launches = CASES[name]
    lowered = lower(f, args)
    assert not {"callback", "native"} & {row.choice for row in lowered.kernels()}
    steps = [step for step in lowered._lowered.steps if step.nodes]
    first = [step for step in steps if all("index" not in node.op.name for node in step.nodes)]
    assert len(first) <= 1, lowered.kernels()  # the old value
    assert sum(len(write_kernels(step)) for step in steps if step not in first) == launches


@native
def test_chains_of_writes_have_one_buffer():
    def chain(x, i):
        x = x * 2
        for number in range(6):
            x = x.at[i[number]].add(td.sin(x[i[number] - 1]))
        return x

    lowered = lower(chain, (TABLE, MANY))
    assert not any("copy" in step for step in lowered.kernels().steps)
    assert lowered.compile().memory_analysis()["temp"] < TABLE.nbytes
    assert bits(td.jit(chain)(*there((TABLE, MANY)))) == bits(chain(*there((TABLE, MANY))))


@native
def test_slices_are_written_in_place():
    def f(x):
        x = x + 1
        return x.at[2:].set(x[2:] * x[2:] + x[2:])

    lowered = lower(f, (TABLE,))
    assert len(lowered.kernels().steps) == 2
    step = lowered._lowered.steps[1]
    assert {p for kernel in write_kernels(step) for p in kernel.params} == {
        step.params.index(step.updated.out)
    }
    assert bits(td.jit(f)(*there((TABLE,)))) == bits(f(*there((TABLE,))))


def test_updates_read_what_they_write_in_place():
    """The value is computed from another row or column of the memory that it is written to."""

    def f(x, i):
        x = x * 2
        x = x.at[:, i].set(td.sin(x[:, i - 1]) * x[:, i])
        return x.at[i].add(x[i - 2] * 3 + x[i])

    jitted = td.jit(f)
    for i in (3, 0, -1, 1):
        assert bits(jitted(*there((TABLE, i)))) == bits(f(*there((TABLE, i))))


@pytest.mark.parametrize("dtype", share_each_commit(DTYPES, 3))
def test_elements_of_each_dtype_keep_their_bits(dtype):
    rng = np.random.default_rng(SEED)
    numbers, other = (
        td.asarray(rng.integers(-9, 9, s).astype("f8"), device="cuda") for s in ((9, 5), (300, 5))
    )
    i = there(rng.integers(-9, 9, 300))
    writes = {
        "set": lambda x, v: x.at[i].set(v),
        "add": lambda x, v: x.at[i].add(v),
        "multiply": lambda x, v: x.at[i].multiply(v),
        "max": lambda x, v: x.at[i].max(v),
        "min": lambda x, v: x.at[i].min(v),
        "one": lambda x, v: x.at[i[0]].add(v[0]),
        "elements": lambda x, v: x.at[i, i % 5].add(v[:, 0]),
    }
    x, v = (td.astype(a, getattr(td, dtype)) for a in (numbers, other))
    if x.dtype.kind in "fc":
        x, v = (a * td.astype(td.full((), 0.7, device="cuda"), a.dtype) for a in (x, v))
    chosen = {n: f for n, f in writes.items() if x.dtype.kind != "c" or n not in ("max", "min")}
    results = td.jit(lambda x, v, chosen=chosen: [f(x, v) for f in chosen.values()])(x, v)
    for (name, f), got in zip(chosen.items(), results, strict=True):
        assert got.dtype is x.dtype
        assert bits(got) == bits(f(x, v)), (name, dtype)


def test_many_positions_are_sorted_by_several_blocks(monkeypatch):
    """Small tiles, so that 3000 positions take the path of millions."""
    monkeypatch.setattr(helper_sort, "TILE_THREADS", 32)
    rng = np.random.default_rng(SEED)
    for rows, width in ((1, 5), (7, 3), (5000, 1), (300, 40)):
        args = there(
            (
                rng.standard_normal((rows, width)).astype("f4"),
                rng.integers(-rows, rows, 3000),
                rng.standard_normal((3000, width)).astype("f4"),
            )
        )
        f = lambda x, i, v: x.at[i].add(td.sin(v))  # noqa: E731
        assert bits(td.jit(f)(*args)) == bits(f(*args)), (rows, width)


def random_update(rng):
    """A function that writes at positions, in a random program, and its arguments."""
    shape = tuple(int(n) for n in rng.choice([1, 2, 4, 8, 12, 33], rng.integers(1, 4)))
    axis = int(rng.integers(0, len(shape)))
    many = int(rng.integers(1, len(shape) - axis + 1))
    common = tuple(int(n) for n in rng.choice([1, 2, 4, 17, 90], rng.integers(0, 3)))
    parts = [tuple(1 if rng.random() < 0.2 else n for n in common) for _ in range(many)]
    indices = [rng.integers(-n, n, part) for n, part in zip(shape[axis : axis + many], parts, strict=True)]
    x = rng.integers(-8, 9, shape).astype(rng.choice(["f4", "f8", "i4", "i8", "u1"]))
    x = x * x.dtype.type(0.7) if x.dtype.kind == "f" else x
    key = (slice(None),) * axis
    selected = x[(*key, *indices)].shape
    value = rng.integers(-8, 9, tuple(1 if rng.random() < 0.2 else n for n in selected)).astype(x.dtype)
    ways = rng.choice(["set", "add", "multiply", "max", "min"], 2)

    def update(x, value, *indices):
        base = x * 3 if rng_choice else x
        first = getattr(base.at[(*key, *indices)], ways[0])(value + 1)
        return first, getattr(first.at[(*key, *indices)], ways[1])(value * 2 - x[(*key, *indices)])

    rng_choice = bool(rng.integers(0, 2))
    return update, (x, value, *indices)


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(5, 600, 5))])
def test_random_updates(first):
    for number in range(first, first + 5):
        f, args = random_update(np.random.default_rng((SEED, number)))
        got, want = td.jit(f)(*there(args)), f(*there(args))
        for one, other in zip(got, want, strict=True):
            assert one.dtype is other.dtype, number
            assert bits(one) == bits(other), number


# -- positions out of bounds -------------------------------------------------------------------------------------------
WRITES = {
    "set": lambda x, i, v: x.at[i].set(v),
    "add": lambda x, i, v: x.at[i].add(v),
    "max": lambda x, i, v: x.at[i].max(v),
    "counts": lambda x, i, v: td.astype(x, td.int64).at[i].add(1),
}


@pytest.mark.parametrize("name", WRITES)
def test_positions_out_of_bounds_are_reported(name):
    bad = np.array([3, 60, 4, -51, 3])
    value = VALUES[0]
    f = td.jit(WRITES[name])
    for _ in range(2):
        got = f(*there((TABLE, bad, value)))
        with pytest.raises(
            errors.OutOfBoundsError, match=r"index (60|-51) is out of bounds for axis 0 with size 50"
        ):
            td.synchronize("cuda")
        kept = [0, 2, 4]  # nothing is written for the others
        want = WRITES[name](*there((TABLE, bad[kept], value[kept])))
        assert not td.config.flags.native or bits(got) == bits(want)


@native
def test_updates_are_replayed_in_graphs(cuda):
    f = lambda x, i, v: (x * 2).at[i].add(td.sin(v)).at[i].set(v)  # noqa: E731
    with td.config.override(cuda_graphs=1):
        jitted = td.jit(f)
        before = cuda.host_count(b"graph launch")
        for n in range(5):
            args = there((TABLE + n, (ROWS + n + 50) % 50, VALUES - n))
            assert bits(jitted(*args)) == bits(f(*args))
        assert cuda.host_count(b"graph launch") == before + 5


@native
@pytest.mark.parametrize("architecture", one_each_commit(75, 80, 90, 100))
def test_kernels_are_taken_by_nvrtc(architecture, monkeypatch):
    pytest.importorskip("cupy", reason="NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")
    kernels = []
    for number, (f, args, _) in enumerate(CASES.values()):
        monkeypatch.setattr(helper_sort, "TILE_THREADS", 32 if number % 2 else 1024)
        for step in lower(f, args)._lowered.steps:
            own = step._replace(kernel=step.kernel._replace(name=f"{step.kernel.name}_{number}"))
            kernels += write_kernels(own)
    with open(nvrtc_file(module_source(kernels), f"sm_{architecture}"), "rb") as binary:
        assert binary.read(4) == b"\x7fELF"
