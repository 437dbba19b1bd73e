"""The elementary functions of emitted code against long double: at most 1.5 ulp in float32, 1 ulp in float64.

The inverse of the error function and its complement: at most 2.7 ulp in float32, 1.1 ulp in float64.
"""

import os

import numpy as np
import pytest
import scipy.special as scipy_special
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.kernels import node_functions
from tandem.operators.scalar_ir.expr import NODES, apply, arg
from tandem.registry import dtypes as dt

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
LONG = np.longdouble
BOUNDS = {dt.float32: 1.5, dt.float64: 1.0}
WIDER = {("erfinv", dt.float32): 2.0, ("erfc", dt.float32): 2.7, ("erfc", dt.float64): 1.1}
# remainders are exact, and tested as such; powers with one exponent for all elements: tests/operators/test_powers.py
ELSEWHERE = ("floordiv", "remainder", "fmod", "uniform_pow")
NAMES = [name for name, row in NODES.items() if "f" not in row.exact and name not in ELSEWHERE]
NUMPY = {name: NODES[name].numpy for name in NAMES} | {"pow": "power"}
# where a function changes, or stops being finite; without an entry: everywhere
RANGES = {
    "exp": (-760, 720), "exp2": (-1100, 1030), "expm1": (-60, 720), "sinh": (-720, 720), "cosh": (-720, 720),
    "tanh": (-25, 25), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1), "log1p": (-1, 1e30), "erf": (-7, 7),
    "erfc": (-7, 28), "portable_erfc": (-7, 28), "erfinv": (-1, 1), "sin": (-1e6, 1e6), "cos": (-1e6, 1e6),
    "tan": (-1e6, 1e6),
}  # fmt: skip

pytestmark = [
    pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"),
    pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="long double is no wider than float64"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


def exp_of_minus_square(x):
    """exp(-x**2) with x split so that its squares are exact."""
    high = x.astype(np.float32).astype(LONG)
    low = x - high
    return np.exp(-high * high) * np.exp(-low * (2 * high + low))


def erf_series(x):
    """erf by a series of positive terms, for |x| < 3."""
    term = total = x
    for n in range(1, 120):
        term = term * (2 * x * x / (2 * n + 1))
        total = total + term
    return 2 / np.sqrt(LONG(4) * np.arctan(LONG(1))) * exp_of_minus_square(x) * total


def erfc_fraction(x):
    """erfc by a continued fraction, for x >= 1."""
    value = x
    for n in range(400, 0, -1):
        value = x + LONG(n) / 2 / value
    return exp_of_minus_square(x) / value / np.sqrt(LONG(4) * np.arctan(LONG(1)))


def erf(x):
    size = np.minimum(np.abs(x), 40)
    found = np.where(size < 2.5, erf_series(np.minimum(size, 3)), 1 - erfc_fraction(np.maximum(size, 2)))
    return np.where(np.isnan(x), x, np.copysign(found, x))


def erfc(x):
    size = np.clip(x, -40, 40)
    far = erfc_fraction(np.maximum(np.abs(size), 1))
    near = 1 - erf_series(np.clip(size, -3, 3))
    found = np.where(size > 1, far, np.where(size < -1, 2 - far, near))
    return np.where(np.isnan(x), x, found)


def erfinv(x):
    """erfinv by steps of Halley's method, from a value in float64."""
    size = np.abs(x)
    y = scipy_special.erfinv(size.astype(np.float64)).astype(LONG)
    y = np.where(np.isfinite(y), y, LONG(0))
    half_root = np.sqrt(np.arctan(LONG(1)))
    for _ in range(2):
        far = (1 - size) - erfc_fraction(np.maximum(y, LONG(0.7)))
        rest = np.where(size > 0.75, far, erf_series(np.minimum(y, LONG(2.4))) - size)
        step = rest * half_root * np.exp(y * y)
        y = y - step / (1 + y * step)
    y = np.where(size < 1e-10, size * half_root, y)
    ends = np.where(size == 1, LONG(np.inf), LONG(np.nan))
    return np.copysign(np.where(size < 1, y, ends), x)


OWN = {"erf": erf, "erfc": erfc, "portable_erfc": erfc, "erfinv": erfinv}


def reference(name, *operands):
    wide = [x.astype(LONG) for x in operands]
    return (OWN.get(name) or getattr(np, NUMPY[name]))(*wide)


def drawn(name, dtype, count, rng):
    """Arguments from all of the domain, from its interesting part, near 0 and 1, and special ones."""
    kind, info = dtype.np.type, np.finfo(dtype.np)
    low, high = RANGES.get(name, (-100, 100))
    anything = rng.integers(0, 2**dtype.bits - 1, count, dtype=f"u{dtype.itemsize}").view(dtype.np)
    parts = [
        anything,
        rng.uniform(low, high, count),
        rng.uniform(max(low, -10), min(high, 10), count),
        rng.uniform(max(low, -1), 1, count),
        1 + rng.uniform(-1, 1, count) * 10.0 ** rng.uniform(-10, 0, count),
        rng.integers(-1000, 1000, count) * (np.pi / 2),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, 3, 10, 100, 1024, -1022, 2.0**31],
        [info.tiny, info.max, -info.max, info.smallest_subnormal, info.eps],
    ]
    return np.concatenate([np.asarray(part).astype(kind) for part in parts])


def arguments(name, dtype, count, rng):
    first = drawn(name, dtype, count, rng)
    if NODES[name].arity == 1:
        return [first]
    second = rng.permutation(drawn(name, dtype, count, rng))
    if name == "pow":
        first = np.concatenate([first, np.exp(rng.uniform(-5, 5, count))]).astype(dtype.np)
        second = np.concatenate([second, rng.uniform(-150, 150, count)]).astype(dtype.np)
    grid = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e30], dtype.np)
    one, two = (part.ravel() for part in np.meshgrid(grid, grid))
    return [np.concatenate([first, one]), np.concatenate([second, two])]


def errors(got, exact, dtype):
    """Distances in units in the last place of the rounded exact value."""
    info = np.finfo(dtype.np)
    rounded = exact.astype(dtype.np)
    unit = np.spacing(np.clip(np.abs(rounded), info.tiny, info.max)).astype(LONG)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    distance = np.abs(got.astype(LONG) - np.clip(exact, -LONG(info.max), LONG(info.max))) / unit
    return np.where(same & ~np.isfinite(rounded), 0, np.where(np.isfinite(distance), distance, np.inf))


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1_000, pytest.param(50_000, marks=pytest.mark.full)])
def test_error_is_below_bound(name, dtype, count):
    rng = np.random.default_rng(SEED)
    function = node_functions.find_ufunc(apply(name, *[arg(k, dtype) for k in range(NODES[name].arity)]))
    operands = arguments(name, dtype, count, rng)
    got, exact = function(*operands), reference(name, *operands)
    assert got.dtype == dtype.np
    error = errors(got, exact, dtype)
    worst = int(np.argmax(error))
    bound = WIDER.get((name, dtype), BOUNDS[dtype])
    assert error[worst] <= bound, ([x[worst] for x in operands], got[worst], exact[worst])
    signs = np.isnan(got) | (np.signbit(got) == np.signbit(exact.astype(dtype.np)))
    assert signs.all(), [x[~signs][:4] for x in operands]
