"""Formulas for usual arguments and those for all arguments return the same bits; so do vectors and scalars."""

import os

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.codegen.functions import table
from tandem.backends.cpu.kernels import node_functions
from tandem.operators.scalar_ir.expr import NODES, apply, arg
from tandem.registry import dtypes as dt

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
UNUSUAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 5e-324, -1.0, 1.7e308, 1e-310, 800.0, -760.0]

pytestmark = [
    pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


def drawn(rng, count, dtype):
    spread = rng.choice([0.1, 1.0, 30.0, 700.0], count)
    return (np.abs(rng.standard_normal(count)) * spread).astype(dtype)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
@pytest.mark.parametrize("name", [*table.RARE, "sin", "cos", "tan"])
def test_neighbours_do_not_change_bits(name, dtype):
    rng = np.random.default_rng(SEED)
    arity = NODES[name].arity
    function = node_functions.find_ufunc(apply(name, *[arg(k, dtype) for k in range(arity)]))
    operands = [drawn(rng, 4_000, dtype.np) for _ in range(arity)]
    alone = function(*operands)
    mixed = [np.repeat(x, 2) for x in operands]
    for x in mixed:
        x[1::2] = rng.choice(UNUSUAL, 4_000).astype(dtype.np)
    np.testing.assert_array_equal(function(*mixed)[::2], alone)


@pytest.mark.parametrize(
    "name", ["exp", "log", "log2", "log10", "exp2", "atan", "erf", "tanh", "pow", "atan2"]
)
def test_scalars_and_vectors_have_the_same_bits(name):
    rng = np.random.default_rng(SEED + 1)
    function = getattr(td, name)
    arrays = [td.asarray(drawn(rng, 400, np.float64)) for _ in range(NODES[name].arity)]

    @td.jit
    def one_by_one(*arrays):
        def step(i, out):
            return out.at[i].set(function(*[x[i] for x in arrays]))

        return td.fori_loop(0, 400, step, td.zeros(400, dtype=td.float64))

    np.testing.assert_array_equal(one_by_one(*arrays).numpy(), td.jit(function)(*arrays).numpy())
