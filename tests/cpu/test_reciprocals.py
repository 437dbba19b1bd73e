"""Quotients of integers as products with reciprocals: exact for all operands, with divisors that are fixed and not."""

import numpy as np
import pytest
import tandem as td

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
OPERATORS = {
    "floor_divide": (np.floor_divide, lambda x, y: x // y),
    "remainder": (np.remainder, lambda x, y: x % y),
    "fmod": (np.fmod, td.fmod),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def edges(dtype):
    limits = np.iinfo(dtype)
    powers = [2**k + d for k in range(limits.bits) for d in (-1, 0, 1)]
    values = [*powers, *(-p for p in powers), limits.min, limits.max // 3, limits.max - 1]
    return np.array(sorted({v for v in values if limits.min <= v <= limits.max}), dtype)


def dividends(dtype, divisor, rng):
    """Integers of all sizes, and the multiples of a divisor with their neighbours."""
    limits = np.iinfo(dtype)
    some = rng.integers(limits.min, limits.max, 200, dtype=dtype, endpoint=True)
    shifts = rng.integers(0, limits.bits - 1, 200).astype(dtype)
    values = np.concatenate([edges(dtype), some, some >> shifts])
    if divisor == 0:
        return values
    with np.errstate(over="ignore"):
        multiples = values // divisor * divisor
        return np.concatenate([values, multiples, multiples + dtype(1), multiples - dtype(1)])


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")
def test_quotients_are_exact(name, operator, rng):
    dtype, (reference, function) = np.dtype(name).type, OPERATORS[operator]
    jitted, limits = td.jit(function), np.iinfo(dtype)
    random = rng.integers(limits.min, limits.max, 12, dtype=dtype, endpoint=True)
    divisors = np.concatenate([rng.choice(edges(dtype), 12), random >> dtype(limits.bits // 2), [0, 1, 3]])
    for divisor in divisors.astype(dtype):
        x = dividends(dtype, divisor, rng)
        with np.errstate(all="ignore"):
            wanted = reference(x, divisor)
        tensor, one = td.asarray(x), td.asarray(np.asarray(divisor))
        each = td.asarray(np.full_like(x, divisor))
        for found in (
            jitted(tensor, one),
            jitted(tensor, each),
            function(tensor, one),
            function(tensor, each),
        ):
            assert found.dtype.np == wanted.dtype
            np.testing.assert_array_equal(found.numpy(), wanted, err_msg=f"divisor {divisor}")


@pytest.mark.parametrize("name", ["int32", "int64"])
def test_a_divisor_that_a_loop_changes(name, rng):
    x = rng.integers(-(10**6), 10**6, 300).astype(name)

    def count_divisors(x):
        def step(i, total):
            return total + td.where(x % i.astype(x.dtype) == 0, 1, 0).astype(total.dtype)

        return td.fori_loop(1, 40, step, td.zeros(300, dtype=td.int64))

    wanted = sum((x % i == 0).astype(np.int64) for i in range(1, 40))
    np.testing.assert_array_equal(td.jit(count_divisors)(td.asarray(x)).numpy(), wanted)


POSITIONS = {
    "of a loop": (20000, lambda i: i),
    "far": (300, lambda i: i * 10**11),
    "near the limit": (64, lambda i: i * 2**42),
    "negative": (500, lambda i: i - 250),
}


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_quotients_of_counted_numbers(name, operator):
    """Of numbers that are known to be near, a quotient is one product; they are counted where they are divided."""
    (count, place), (reference, function) = POSITIONS[name], OPERATORS[operator]
    numbers, jitted = place(np.arange(count)), td.jit(lambda d: function(place(td.arange(count)), d))
    for divisor in (1, -1, 2, 3, -7, 10, 141, 2**31 - 1, -(2**40), 2**62 + 1, -(2**63), 0):
        with np.errstate(all="ignore"):
            wanted = reference(numbers, divisor)
        np.testing.assert_array_equal(jitted(td.asarray(divisor)).numpy(), wanted, err_msg=f"by {divisor}")


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_remainders_that_are_zero(dtype):
    """Whether a remainder is zero does not depend on its sign, which is then not computed."""
    x = np.concatenate([edges("int32"), np.arange(-30, 30)]).astype(dtype)
    jitted = td.jit(lambda x, d: (x % d == 0, x % d != 0, (x % d == 0) & (x % d < 1), x % d))
    for divisor in (1, -1, 2, 3, -7, 12, 2**20):
        rest = x % np.array(divisor, dtype)
        found = jitted(td.asarray(x), td.asarray(np.array(divisor, dtype)))
        for value, wanted in zip(found, (rest == 0, rest != 0, (rest == 0) & (rest < 1), rest), strict=True):
            np.testing.assert_array_equal(value.numpy(), wanted)


def test_sieve_by_masks():
    def sieve(count):
        numbers = td.arange(count)

        def step(i, prime):
            return td.where(prime[i] & (numbers >= i * i) & (numbers % i == 0), False, prime)

        return td.fori_loop(2, int(count**0.5) + 1, step, numbers > 1)

    wanted = np.array([k > 1 and all(k % d for d in range(2, int(k**0.5) + 1)) for k in range(3000)])
    np.testing.assert_array_equal(td.jit(lambda: sieve(3000))().numpy(), wanted)
