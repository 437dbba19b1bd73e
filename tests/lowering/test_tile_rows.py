"""Loops that ``vmap`` has made for many rows run tile by tile: the bits of each row by itself."""

import numpy as np
import pytest
import tandem as td
from rotation import share_each_commit
from row_programs import RowProgram
from tandem import config
from tandem.lowering.passes import tile_rows
from tandem.registry.dtypes import float64, int64

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
TABLE = td.asarray(np.random.default_rng(7).random(160))


def filter_row(row, k):
    return td.scan(lambda c, x: (c * 0.9 + x, c * 0.5 + x), td.zeros((), dtype=row.dtype), row)


def backwards(row, k):
    return td.scan(lambda c, x: (c * 0.5 + x, c), row[0], row[1:], reverse=True)


def shift_register(row, k):
    def step(c, x):
        c = td.stack([c[1], c[2], c[0] * 0.5 + x])
        return c, c.sum()

    return td.scan(step, td.zeros(3, dtype=row.dtype), row)


def write_row(row, k):
    return td.fori_loop(1, row.shape[0], lambda i, r: r.at[i].set(r[i] + 0.5 * r[i - 1]), row)


def count(row, k):
    return td.fori_loop(0, k.shape[0], lambda i, h: h.at[k[i]].add(1), td.zeros(5, dtype=int64))


def follow(row, k):
    return td.fori_loop(0, 7, lambda i, c: (k[c[0]], c[1] + row[c[0]]), (k[0], row[0]))


def look_up(row, k):
    """A table with as many entries as there are rows."""
    return td.fori_loop(
        0, k.shape[0], lambda i, c: c * 0.5 + TABLE[k[i] * 30 + 1], td.zeros((), dtype=float64)
    )


def windows(row, k):
    return td.fori_loop(0, row.shape[0] - 2, lambda i, a: a + row[i + td.arange(3)].max(), row[0] * 0)


def triangle(row, k):
    def line(i, a):
        return td.fori_loop(0, i, lambda j, b: b + row[i] * row[j], a)

    return td.fori_loop(0, row.shape[0], line, row[0] * 0)


def branches(row, k):
    def step(c, x):
        return td.cond(x > 0.5, lambda c: c + x, lambda c: c * 0.5, c), None

    return td.scan(step, row[0], row)[0]


def sort_slowly(row, k):
    """Exchange neighbours; the first axis of the carry is the elements of the row."""

    def step(i, r):
        low, high = td.minimum(r[:-1:2], r[1::2]), td.maximum(r[:-1:2], r[1::2])
        return td.stack([low, high], 1).reshape(-1)

    return td.fori_loop(0, 4, step, row)


def points(row, k):
    """A carry of two axes, and a matrix that is the same for all rows."""
    turn = td.asarray([[0.0, 1.0], [-1.0, 0.0]], dtype=row.dtype)

    def step(c, x):
        return c * 0.5 + turn * x, (c * turn).sum(1)

    return td.scan(step, td.zeros((2, 2), dtype=row.dtype), row)


def smallest(row, k):
    def step(i, r):
        j = td.argmin(r)
        return (r * 0.5 + i).at[j].set(r.max())

    return td.fori_loop(0, 4, step, row)


def distance(row, k):
    """A loop over a carry of the outer loop, whose results become that carry."""

    def line(above, i):
        def cell(left, given):
            up, corner, j = given
            best = td.minimum(td.minimum(up, left) + 1, corner + td.where(i == j, 0, 1))
            return best, best

        first = above[0] + 1
        _, rest = td.scan(cell, first, (above[1:], above[:-1], k))
        return td.concat([first[None], rest]), above.max()

    return td.scan(line, td.arange(k.shape[0] + 1), k[::-1])


def best_path(row, k):
    """A table of which each row reads a column."""
    table = td.asarray(np.random.default_rng(3).random((2, 5)))
    return td.scan(lambda c, j: ((c[:, None] + table[:, :2]).max(0) + table[:, j], None), table[:, k[0]], k)[
        0
    ]


def products(row, k):
    def step(i, c):
        power = td.stack([c[0] * 0 + 1, c[0], c[1], c[0] * c[1]])
        return row[4:].reshape(2, 2) @ c * 0.5 + (row[:4] @ power) * 0.1

    return td.fori_loop(0, 6, step, row[:2])


def columns(row, k):
    """A loop over columns of a result that an inner loop stacks."""

    def step(i, c):
        _, parts = td.scan(lambda a, x: (a + x, a * x), c[0] * 0.5, c)
        return c * 0.5 + parts[3] * 0.1 + parts[::-1]

    return td.fori_loop(0, 3, step, row)


PROGRAMS = {
    f.__name__: f
    for f in (
        filter_row,
        backwards,
        shift_register,
        write_row,
        count,
        follow,
        look_up,
        windows,
        triangle,
        branches,
        sort_slowly,
        points,
        smallest,
        distance,
        best_path,
        products,
        columns,
    )
}
ROWS = {"even": 160, "odd": 171, "prime": 211}
CASES = [(name, rows, dtype) for name in PROGRAMS for rows in ROWS for dtype in ("float64", "float32")]


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of a few rows, and a count of the loops that are tiled."""
    made = []
    write = tile_rows._Writer.write
    monkeypatch.setattr(tile_rows, "TILE_BYTES", 1024)
    monkeypatch.setattr(tile_rows, "MIN_BYTES", 0)
    monkeypatch.setattr(tile_rows, "LEAST_ROWS", 8)
    monkeypatch.setattr(tile_rows._Writer, "write", lambda self: [write(self), made.append(self.tile)][0])
    return made


def compare(one, two):
    flat, others = td.tree.leaves(one), td.tree.leaves(two)
    assert len(flat) == len(others)
    for x, y in zip(flat, others, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(np.asarray(x).tobytes(), np.asarray(y).tobytes())


@native
@pytest.mark.parametrize("case", share_each_commit(CASES, 6), ids="-".join)
def test_tiled_rows_have_the_bits_of_single_rows(case, small_tiles):
    name, rows, dtype = case
    random = np.random.default_rng(len(name))
    x = td.asarray(random.standard_normal((ROWS[rows], 8)), dtype=getattr(td, dtype))
    k = td.asarray(random.integers(0, 5, (ROWS[rows], 8)))
    program = PROGRAMS[name]
    result = td.jit(td.vmap(program))(x, k)
    single = td.jit(program)
    for row in (0, 1, 77, ROWS[rows] - 1):
        compare(td.tree.map(lambda y, row=row: y[row], result), single(x[row], k[row]))


@native
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_of_independent_rows_are_tiled(name, small_tiles):
    td.jit(td.vmap(PROGRAMS[name])).lower(td.zeros((160, 8)), td.zeros((160, 8), dtype=int64)).kernels()
    assert small_tiles


def have_same_bits(x, y):
    x, y = np.asarray(x), np.asarray(y)
    nan, other = (np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool) for a in (x, y))
    return np.array_equal(nan, other) and x[~nan].tobytes() == y[~other].tobytes()


@native
@pytest.mark.parametrize("seed", share_each_commit(range(160), 20))
def test_tiled_random_programs_have_the_bits_of_others(seed, small_tiles, monkeypatch):
    random = np.random.default_rng(seed)
    program, rows = RowProgram(random, int(random.integers(1, 9))), int(random.choice([64, 96, 101, 160]))
    x = td.asarray(random.standard_normal((rows, 8)).astype(random.choice(["float32", "float64"])))
    k = td.asarray(random.integers(0, 9, (rows, 8)))
    tiled = td.jit(td.vmap(program))(x, k)
    monkeypatch.setattr(tile_rows, "_choose_rows", lambda *_: 0)
    plain = td.jit(td.vmap(program))(x, k)
    assert all(map(have_same_bits, td.tree.leaves(tiled), td.tree.leaves(plain)))


def mean_of_rows(x):
    return td.fori_loop(0, 5, lambda i, c: c * 0.5 + c.mean(0), x)


def rolled_rows(x):
    return td.fori_loop(0, 5, lambda i, c: c * 0.5 + td.roll(c, 1, 0), x)


def rows_at_positions(x):
    return td.fori_loop(0, 5, lambda i, c: c[td.arange(c.shape[0] - 1, -1, -1)] + x, x)


def one_row(x):
    return td.fori_loop(0, 5, lambda i, c: c + c[i], x)


def large_products(x):
    return td.fori_loop(0, 5, lambda i, c: c @ x[:8] * 0.1, x)


@pytest.mark.parametrize("program", [mean_of_rows, rolled_rows, rows_at_positions, one_row, large_products])
def test_loops_whose_rows_depend_on_each_other_are_kept(program, small_tiles):
    x = td.asarray(np.random.default_rng(0).standard_normal((160, 8)))
    result = td.jit(program)(x)
    assert not small_tiles
    np.testing.assert_allclose(result, program(x), rtol=1e-12)


R = 160


def replaced_numbers(x, p):
    """A carry that begins as the numbers of rows becomes a table with as many entries."""

    def step(i, s):
        k, c, j = s
        return p, c * 0.5 + x[k, j], p[j] % 8

    return td.fori_loop(0, 4, step, (td.arange(R), x[:, 0], td.zeros(R, dtype=int64)))


def replaced_inner_numbers(x, p):
    def step(i, c):
        start = td.arange(R), c[:, 0], td.zeros(R, dtype=int64)
        _, v, q = td.fori_loop(0, 3, lambda j, s: (p, s[1] * 0.5 + c[s[0], j], p[s[2]]), start)
        return c * 0.5 + v[:, None] + q[:, None] * 0.01

    return td.fori_loop(0, 4, step, x)


def replaced_columns(x, p):
    table = td.asarray(np.random.default_rng(1).standard_normal((8, R)))
    return td.fori_loop(0, 4, lambda i, s: (table, s[1] * 0.5 + s[0][1]), (x.T, x[:, 0]))


def numbers_as_columns(x, p):
    step = lambda i, c: c.at[td.arange(R)[None], i].set(0.5)  # noqa: E731
    first = td.fori_loop(0, 4, step, x)
    return first, td.fori_loop(0, 4, lambda i, c: c * 0.5 + x[td.arange(R)[None], i].reshape(-1), x[:, 0])


def empty_sums(x, p):
    def step(i, c):
        return c[0] * 0.5 + c[1].sum(1), c[1] * 0.5, c[2] * 0.5 + c[0][:, None]

    return td.fori_loop(0, 4, step, (x[:, 0], x[:, :0], x))


@pytest.mark.parametrize(
    "program", [replaced_numbers, replaced_inner_numbers, replaced_columns, numbers_as_columns, empty_sums]
)
def test_carries_and_numbers_of_other_kinds(program, small_tiles):
    random = np.random.default_rng(0)
    x, p = td.asarray(random.standard_normal((R, 8))), td.asarray(random.permutation(R))
    if program is replaced_inner_numbers:
        p = p % 8
    results = td.tree.leaves(td.jit(program)(x, p))
    with config.override(hot_loops=1 << 30):
        expected = td.tree.leaves(program(x, p))
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_gradients_of_tiled_rows(small_tiles):
    x = td.asarray(np.random.default_rng(0).standard_normal((160, 8)))
    k = td.zeros((160, 8), dtype=int64)
    loss = td.grad(lambda row, k: td.tree.leaves(filter_row(row, k))[1].sum())
    result, single = td.jit(td.vmap(loss))(x, k), td.jit(loss)
    for row in (0, 5, 159):
        np.testing.assert_allclose(result[row], single(x[row], k[row]), rtol=1e-12)


def test_positions_out_of_bounds_raise(small_tiles):
    x = td.zeros((160, 8))
    k = td.asarray(np.zeros((160, 8), int)).at[90, 3].set(9)
    with pytest.raises(td.errors.OutOfBoundsError):
        td.jit(td.vmap(count))(x, k)
