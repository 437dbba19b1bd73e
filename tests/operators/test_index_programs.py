"""Random programs of indexing, ``.at`` and assignments agree with NumPy: eager, jitted, vmapped and under grad.

The default run takes a sample by seed; ``-m full`` runs 50,000 eager and 5,000 jitted programs: 100,000 and 10,000
statements. Both mean most beside the fence of :mod:`fence`, which ends the process at a read or a write outside of an
array.
"""

import os

import numpy as np
import pytest
import tandem as td
from index_programs import IN_PLACE, Drawer, Program, expected, filled, laid_out, run, same
from tandem.errors import UnsupportedError, VersionError

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
PARTS = pytest.mark.parametrize("part", range(10))


def seeds(part, count, start=0):
    """The seeds of one of ten parts of ``count`` programs; another sample for each seed of the tests."""
    first = start + (SEED % 1000) * 100_000 + part * (count // 10)
    return range(first, first + count // 10)


def arguments(program, seed):
    """The tensors of a program: ``x``, which may lie anyhow in memory, and those for the slots."""
    x = td.asarray(laid_out(program.x.copy(), np.random.default_rng(seed)))
    return x, [td.asarray(array) for array in program.arrays]


def check(results, wanted, program, seed):
    (x, found), (want, read) = results, wanted
    dtype = program.x.dtype.name
    assert same(x, want, dtype), f"seed {seed}\n got: {x!r}\nwant: {want!r}\n{program}"
    for one, other in zip(found, read, strict=True):
        assert same(one, other, dtype), f"seed {seed}\nread: {one!r}\nwant: {other!r}\n{program}"


def check_eager(seed):
    program = Drawer(seed).program()
    x, tensors = arguments(program, seed)
    check(run(program, x, tensors), expected(program, program.x, program.arrays), program, seed)
    for tensor, array in zip(tensors, program.arrays, strict=True):
        assert np.array_equal(tensor.numpy(), array, equal_nan=array.dtype.kind in "fc"), (
            f"seed {seed}: an argument"
        )


@PARTS
def test_eager_programs(part):
    for seed in seeds(part, 350):
        check_eager(seed)


@pytest.mark.full
@PARTS
def test_every_eager_program(part):
    for seed in seeds(part, 50_000):
        check_eager(seed)


def check_jitted(seed):
    program = Drawer(seed, masks=False).program()
    (x, tensors), (beside, _) = arguments(program, seed), arguments(program, seed)
    run(program, beside, tensors)
    check(
        td.jit(lambda x, *tensors: run(program, x, tensors))(x, *tensors),
        expected(program, program.x, program.arrays),
        program,
        seed,
    )
    assert np.array_equal(x.numpy(), beside.numpy(), equal_nan=x.dtype.is_inexact), (
        f"seed {seed}: what x became"
    )


@PARTS
def test_jitted_programs(part):
    for seed in seeds(part, 100, 50_000):
        check_jitted(seed)


@pytest.mark.full
@PARTS
def test_every_jitted_program(part):
    for seed in seeds(part, 5000, 50_000):
        check_jitted(seed)


def check_vmapped(seed):
    """Each example has its own ``x``, and for some of the slots its own values or positions."""
    program, rng = Drawer(seed, masks=False).program(2), np.random.default_rng(seed)
    batched = [rng.random() < 0.5 for _ in program.arrays]
    arrays, xs = [], []
    for _ in range(3):
        xs.append(rng.permutation(program.x.ravel()).reshape(program.x.shape))
        own = [rng.permutation(array.ravel()).reshape(array.shape) for array in program.arrays]
        arrays.append([a if mine else b for a, b, mine in zip(own, program.arrays, batched, strict=True)])
    in_dims = (0, *[0 if mine else None for mine in batched])
    given = [
        np.stack([one[place] for one in arrays]) if mine else program.arrays[place]
        for place, mine in enumerate(batched)
    ]
    function = td.vmap(lambda x, *tensors: run(program, x, tensors), in_dims)
    results = function(td.asarray(np.stack(xs)), *map(td.asarray, given))
    for number, (x, own) in enumerate(zip(xs, arrays, strict=True)):
        one = results[0][number], [found[number] for found in results[1]]
        check(one, expected(program, x, own), program, seed)


@PARTS
def test_vmapped_programs(part):
    for seed in seeds(part, 40, 70_000):
        check_vmapped(seed)


@pytest.mark.full
@PARTS
def test_every_vmapped_program(part):
    for seed in seeds(part, 2000, 70_000):
        check_vmapped(seed)


def overwrites_residuals(program):
    """Whether a program writes into memory that its backward pass may read.

    Backward of ``multiply``, ``min`` and ``max`` may read their result, which is ``x`` then, and that of a quotient the
    part of ``x`` that it was written into.
    """
    needed = False
    for one in program.statements:
        is_write = one.kind == "assign" or one.kind in IN_PLACE
        if needed and is_write:
            return True
        if one.kind == "at" and one.method != "get":
            needed = one.method in ("multiply", "min", "max")
        needed |= one.kind == "/"
    return False


def has_kink(program, x):
    """Whether a program raises what is not positive to a power, at which differences and derivatives differ."""
    for number, one in enumerate(program.statements):
        before, _ = expected(Program(x, program.statements[:number], program.arrays), x, program.arrays)
        if one.method == "power" and np.any(before[filled(one.key, program.arrays)] <= 0):
            return True
    return False


def check_gradients(seed):
    """Of a sum of all results, by ``x`` and by every value, against differences; whether backward was refused."""
    drawer = Drawer(seed, dtype="float64")
    program, rng = drawer.program(2), drawer.rng
    if any(one.kind in ("//", "%", "**") for one in program.statements):
        return False
    is_value = [array.dtype.kind in "f" for array in program.arrays]
    values = [
        rng.uniform(0.5, 2.0, array.shape)
        for array, mine in zip(program.arrays, is_value, strict=True)
        if mine
    ]

    def results(x, *values):
        values = iter(values)
        given = [
            next(values) if mine else td.asarray(array)
            for array, mine in zip(program.arrays, is_value, strict=True)
        ]
        x, found = run(program, x * 1, given)
        return [*found, x]

    def total(*args):
        return sum(td.sin(one).sum() for one in results(*args))

    start = rng.uniform(0.5, 2.0, program.x.shape)
    if has_kink(program, start):
        return False
    args = [td.asarray(one) for one in (start, *values)]
    if any(np.abs(one.numpy()).max(initial=0) > 100 for one in results(*args)):
        return (
            False  # a quotient by many equal indices: the sine of large numbers is too steep for differences
        )
    try:
        td.check_grads(total, args, order=1, atol=1e-5, rtol=1e-5, eps=1e-6)  # some functions are steep
    except (VersionError, UnsupportedError) as fault:  # where a level is open, the second
        assert overwrites_residuals(program), f"seed {seed}: {fault}\n{program}"
        return True
    return False


@PARTS
def test_gradients_of_programs(part):
    for seed in seeds(part, 30, 80_000):
        check_gradients(seed)


@pytest.mark.full
@PARTS
def test_gradients_of_more_programs(part):
    for seed in seeds(part, 1000, 80_000):
        check_gradients(seed)


KEYS = [(slice(1, None),), (slice(None, None, -1),), (...,), (2,), (None, slice(0, 2)), ([0, 2],), ([0, 0],)]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("name", ["+", "-", "*", "/", "**"])
def test_augmented_assignment_has_a_gradient(name, key):
    key = tuple(np.asarray(part) if isinstance(part, list) else part for part in key)

    def total(x, w):
        x = x * 1.0
        x[key] = IN_PLACE[name](x[key], w)
        return td.sin(x).sum()

    x, w = td.asarray(np.array([0.5, 1.5, 2.0])), td.asarray(np.array(1.25))
    td.check_grads(total, (x, w), order=1, atol=1e-5, rtol=1e-5)
    expected = [one.tolist() for one in td.grad(total, argnums=(0, 1))(x, w)]
    x, w = x.requires_grad_(), w.requires_grad_()
    for _ in range(60):
        x.grad = w.grad = None
        total(x, w).backward()
        assert [x.grad.tolist(), w.grad.tolist()] == expected


def test_assignment_of_other_elements_is_a_write():
    cases = {
        "shifted": (lambda x: x[:-1], [3.0, 3.0, 0.0]),
        "turned": (lambda x: x[1:][::-1], [1.0, 3.0, 2.0]),
    }
    for other, gradient in cases.values():
        x = td.asarray(np.array([0.5, 1.5, 2.0]), requires_grad=True)
        y = x * 1.0
        before = y.storage().version
        y[1:] = other(y)
        assert y.storage().version == before + 1
        (y * np.array([1.0, 2.0, 3.0])).sum().backward()
        assert x.grad.tolist() == gradient


def test_residual_that_is_overwritten_is_refused():
    for step in (lambda x, w: x[1:].__itruediv__(w), lambda x, w: x.at[np.array([1])].multiply(w)):
        x = td.asarray(np.array([0.5, 1.5, 2.0]), requires_grad=True)
        w = td.asarray(np.array(1.25), requires_grad=True)
        y = x * 1.0
        z = step(y, w)
        z[0] = 3.0
        with pytest.raises(VersionError):
            z.sum().backward()


def test_positions_out_of_bounds_raise_and_write_nothing():
    rng = np.random.default_rng(SEED)
    for _ in range(60):
        shape = tuple(rng.integers(1, 4, rng.integers(1, 4)))
        axis = int(rng.integers(len(shape)))
        wrong = int(rng.choice([shape[axis], -shape[axis] - 1]))
        part = wrong if rng.random() < 0.3 else td.asarray([0, wrong])
        key = (*[slice(None)] * axis, part)
        x = td.asarray(rng.normal(size=shape))
        before = x.tolist()
        calls = [lambda x, key: x[key], lambda x, key: x.__setitem__(key, 1.0)]
        calls += [
            lambda x, key, name=name: getattr(x.at[key], name)(1.0)
            for name in ("set", "add", "multiply", "max")
        ]
        for call in calls:
            with pytest.raises(IndexError, match="out of bounds"):
                call(x, key)
            assert x.tolist() == before


def test_programs_cover_what_they_are_for():
    kinds, dtypes, repeated, spread = set(), set(), 0, 0
    for seed in range(500):
        program = Drawer(seed).program()
        dtypes.add(program.x.dtype.name)
        for one in program.statements:
            kinds.add(one.method or one.kind)
            places = np.arange(program.x.size).reshape(program.x.shape)[filled(one.key, program.arrays)]
            repeated += len(np.unique(places)) < np.size(places)
            spread += one.value is not None and np.shape(filled(one.value, program.arrays)) != np.shape(
                places
            )
    assert len(dtypes) == 15 and len(kinds) == 23, (dtypes, kinds)
    assert repeated > 60 and spread > 60
