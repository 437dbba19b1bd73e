"""Kernels that store their results in parts of buffers, without a copy."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import config

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
RNG = np.random.default_rng(3)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def steps(f, *args):
    return len(td.jit(f).lower(*map(td.asarray, args)).kernels().steps)


def stencil(a):
    return 0.25 * (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1])


def in_loop(step):
    return lambda *carry: td.fori_loop(0, 3, lambda _, now: step(*now), carry)


# By name: a function, the shapes of its arguments, and the number of its kernels.
PROGRAMS = {
    "concat": (lambda x, y: td.concat([x * 2, y + 1], 0), [(4, 5), (3, 5)], 2),
    "concat along the last axis": (lambda x, y: td.concat([x * 2, y + 1], 1), [(4, 5), (4, 3)], 2),
    "parts that other kernels read": (lambda x: (lambda y: td.concat([y, y], 0))(td.exp(x)), [(4, 5)], 3),
    "a result that is also a part": (lambda x: (lambda y: (y, td.concat([y, x], 0)))(td.exp(x)), [(4, 5)], 3),
    "a sum of joined halves": (lambda x, y: td.concat([x * 2 + y, x - y]) + 1, [(40,), (40,)], 1),
    "a cast of joined halves": (lambda x, y: td.concat([x * 2, y - x]).astype("float64"), [(40,), (40,)], 1),
    "joined halves that are also read": (
        lambda x, y: (lambda z: (z + 1, z[:3]))(td.concat([x * 2 + y, x - y])),
        [(40,), (40,)],
        None,
    ),
    "a transposed part": (lambda x: td.concat([(x * 2).T, x.T], 1), [(4, 5)], 2),
    "a padded value": (lambda x: td.pad(td.exp(x), 1), [(4, 5)], 2),
    "a slice of an argument": (lambda x, y: x.at[1:3].set(y * 2), [(4, 5), (2, 5)], 2),
    "a sum added to a slice": (lambda x, y: x.at[1:3].add(y * 2), [(4, 5), (2, 5)], 2),
    "a value that reads what it replaces": (lambda x: x.at[1:3].set(x[1:3] * 2), [(4, 5)], 2),
    "a value that reads the neighbours": (lambda x: x.at[1:-1, 1:-1].set(stencil(x)), [(6, 7)], 2),
    "a softmax of a part": (lambda x: td.concat([td.softmax(x, 1), x], 0), [(4, 5)], 2),
    "a row of sums": (lambda x: td.concat([x.sum(1), x[:, 0]], 0), [(4, 5)], 2),
    "items of a loop": (
        lambda x: td.scan(lambda c, i: (c + i[:, None], None), x, (x.at[:, :4].set(0) + 1).T)[0],
        [(3, 5)],
        None,
    ),
    "an update and a whole result of one kernel": (
        lambda x, y, z: (
            td.scan(lambda c, _: (td.sin(c), None), z, None, 2)[0].at[:2].add(x * y) * 2,
            td.zeros(2).at[:].set(x + y),
        ),
        [(2,), (2,), (2,)],
        None,
    ),
    "a slice and a whole value that one kernel writes": (
        lambda x: (lambda b: (x.at[:2].set(b), x[:2].at[:].set(b + 1)))(x[2:] * 2),
        [(4, 5)],
        2,
    ),
    "a chain": (lambda x: (lambda y: y.at[2:].set(y[:2] + 1))(x.at[:2].set(x[2:] * 2)), [(4, 5)], None),
}
LOOPS = {
    "two arrays in turn": (
        lambda a, b: (lambda c: (a.at[1:-1, 1:-1].set(stencil(c)), c))(b.at[1:-1, 1:-1].set(stencil(a))),
        [(6, 7), (6, 7)],
    ),
    "one array": (lambda a: (a.at[1:-1, 1:-1].set(stencil(a)),), [(6, 7)]),
    "the same elements": (lambda a, b: (a.at[1:].set(a[1:] - b[1:] + b[:-1]), b + 1), [(6, 7), (6, 7)]),
    "shifted elements": (lambda a: (a.at[1:].set(a[:-1] * 2),), [(6, 7)]),
    "reversed elements": (lambda a: (a.at[:].set(td.flip(a, (0,)) * 2),), [(6, 7)]),
    "the old array later": (lambda a, b: (a.at[1:].set(b[1:] * 2), a + b), [(6, 7), (6, 7)]),
}


def check(f, shapes):
    args = [array(*shape) for shape in shapes]
    before = [a.copy() for a in args]
    one, two = f(*map(td.asarray, args)), td.jit(f)(*map(td.asarray, args))
    for eager, jitted in zip(one if type(one) is tuple else (one,), two if type(two) is tuple else (two,)):
        np.testing.assert_array_equal(np.asarray(jitted), np.asarray(eager))
    for a, old in zip(args, before):
        np.testing.assert_array_equal(a, old)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_equal_eager_ones(name):
    check(*PROGRAMS[name][:2])


@native
@pytest.mark.parametrize("name", [name for name, case in PROGRAMS.items() if case[2]])
def test_number_of_kernels(name):
    f, shapes, count = PROGRAMS[name]
    assert steps(f, *(array(*shape) for shape in shapes)) == count


@pytest.mark.parametrize("name", LOOPS)
def test_carries_equal_eager_ones(name):
    step, shapes = LOOPS[name]
    check(in_loop(step), shapes)
    check(step, shapes)


def random_program(seed):
    """A program of some writes to slices, concatenations and sums of two arrays."""
    rng = np.random.default_rng(seed)
    plan = [(int(rng.integers(6)), int(rng.integers(0, 4)), int(rng.integers(2))) for _ in range(6)]

    def program(a, b):
        values = [a, b]
        for kind, k, which in plan:
            x, y = values[-1], values[-1 - which]
            if kind == 0:
                x = x.at[k : k + 4].set(y[k : k + 4] * 2 - 1)
            elif kind == 1:
                x = x.at[k : k + 4].set(y[3 - k : 7 - k] * 0.5)
            elif kind == 2:
                x = td.concat([y[k:] * 2, x[:k] + 1], 0)
            elif kind == 3:
                x = x.at[:, 1:-1].add(y[:, :-2] - y[:, 2:])
            elif kind == 4:
                x = td.concat([y[:, : k + 1] + 1, td.exp(-(x[:, k + 1 :] ** 2))], 1)
            else:
                x = x * 0.5 + y
            values.append(x)
        return values[-1], values[-2]

    return program


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    program = random_program(seed)
    check(program, [(7, 8), (7, 8)])
    check(in_loop(program), [(7, 8), (7, 8)])


@needs_native
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex128"])
@pytest.mark.parametrize("shape", [(2, 3), (4,), ()])
def test_numbers_are_pieces_of_flat_joins(shape, dtype):
    x = td.ones(shape, dtype=dtype)
    programs = [lambda x, n: td.concat([x, 0.1, x, n], axis=None), lambda x, n: td.append(x, n)]
    for program in programs:
        compiled = td.jit(program)
        assert "callback" not in {row.choice for row in compiled.lower(x, 0.1).kernels()}
        got, want = compiled(x, 0.1), program(x, 0.1)
        assert (got.dtype, got.tolist()) == (want.dtype, want.tolist())


@needs_native
def test_products_of_bools_at_positions_are_updates():
    x, v, at = td.asarray([True, True, False, True]), td.asarray([True, False, True]), td.asarray([0, 0, -2])
    compiled = td.jit(lambda x, at, v: x.at[at].multiply(v))
    assert [row.choice for row in compiled.lower(x, at, v).kernels()] == ["update"]
    assert compiled(x, at, v).tolist() == x.at[at].multiply(v).tolist() == [False, True, False, True]
