"""Benchmarks of reads and writes at integer positions under jit, compared with ``jax.jit`` and numba.

One thread each: run with ``OPENBLAS_NUM_THREADS=1``. A function is given NumPy's functions, those of control flow, and
its arrays; numba's are loops.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, beside, warmed
from tandem import lazy
from tandem.cli.overhead.measure import Case
from tandem.cli.overhead.peers import import_jax

STEPS, WIDTH, VOCABULARY, LONG = 1000, 16, 100_000, 100_000
BOUNDS = {"jax": 1.0, "numba": 1.5}
RANDOM = np.random.default_rng(0)


def rows(np_: Any, control: Any, a: Any) -> Any:
    return control.fori_loop(1, STEPS, lambda i, a: a.at[i].set(a[i - 1] * 0.5 + 1), a)


def columns(np_: Any, control: Any, a: Any) -> Any:
    return control.fori_loop(1, STEPS, lambda i, a: a.at[:, i].set(a[:, i - 1] * 0.5 + 1), a)


def recurrence(np_: Any, control: Any, v: Any, b: Any) -> Any:
    return control.fori_loop(1, v.shape[0], lambda i, v: v.at[i].set(v[i - 1] * 0.5 + b[i, 0]), v)


def histogram(np_: Any, control: Any, counts: Any, numbers: Any) -> Any:
    return counts.at[numbers].add(1.0)


def in_while(np_: Any, control: Any, v: Any) -> Any:
    def step(state: Any) -> Any:
        i, v = state
        return i + 1, v.at[i].multiply(2.0)

    return control.while_loop(lambda state: state[0] < STEPS, step, (np_.asarray(0), v))[1]


def gathered_sum(np_: Any, control: Any, v: Any, numbers: Any) -> Any:
    return control.scan(lambda c, i: (c + v[i], None), v[0] * 0, numbers)[0]


def nested(np_: Any, control: Any, a: Any) -> Any:
    def cell(i: Any, j: Any, a: Any) -> Any:
        return a.at[i, j].set((a[i - 1, j] + a[i, j - 1]) * 0.5)

    n = a.shape[0]
    return control.fori_loop(1, n, lambda i, a: control.fori_loop(1, n, lambda j, a: cell(i, j, a), a), a)


def embedding(np_: Any, control: Any, table: Any, numbers: Any) -> Any:
    return table[numbers]


def scatter_add(np_: Any, control: Any, table: Any, numbers: Any, rows: Any) -> Any:
    return table.at[numbers].add(rows)


def numba_recurrence(v: Any, b: Any) -> Any:
    v = v.copy()
    for i in range(1, v.shape[0]):
        v[i] = v[i - 1] * np.float32(0.5) + b[i, 0]
    return v


def numba_columns(a: Any) -> Any:
    a = a.copy()
    for i in range(1, a.shape[1]):
        for k in range(a.shape[0]):
            a[k, i] = a[k, i - 1] * np.float32(0.5) + np.float32(1)
    return a


def numba_histogram(counts: Any, numbers: Any) -> Any:
    counts = counts.copy()
    for i in range(numbers.shape[0]):
        counts[numbers[i]] += np.float32(1)
    return counts


def numba_rows(a: Any) -> Any:
    a = a.copy()
    for i in range(1, a.shape[0]):
        a[i] = a[i - 1] * np.float32(0.5) + np.float32(1)
    return a


def numba_nested(a: Any) -> Any:
    a = a.copy()
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = (a[i - 1, j] + a[i, j - 1]) * np.float32(0.5)
    return a


def numba_while(v: Any) -> Any:
    v = v.copy()
    i = 0
    while i < v.shape[0]:
        v[i] = v[i] * np.float32(2)
        i += 1
    return v


def case(function: Callable[..., Any], given: list[Any], wait: Callable[[Any], Any] = lambda x: x) -> Case:
    return warmed(Case("wait(f(*given))", {"f": function, "given": given, "wait": wait}), 50)


def compare(
    function: Callable[..., Any], arrays: list[Any], loop: Callable[..., Any] | None, seconds: float
) -> list[Finding]:
    """The time as a multiple of that of ``jax.jit`` and of numba's loop."""
    theirs: dict[str, Case | None] = {"jax": None}
    if lazy.is_installed("jax"):
        jax = import_jax()
        compiled = jax.jit(lambda *given: function(jax.numpy, jax.lax, *given))
        theirs["jax"] = case(compiled, [jax.numpy.asarray(x) for x in arrays], jax.block_until_ready)
    if loop is not None:
        theirs["numba"] = None
        if lazy.is_installed("numba"):
            theirs["numba"] = case(lazy.module("numba").njit(loop), arrays)
    ours = case(td.jit(lambda *given: function(td, td, *given)), [td.asarray(x) for x in arrays])
    return beside(ours, theirs, {name: BOUNDS[name] for name in theirs}, seconds)


def row(
    name: str, function: Callable[..., Any], *shapes: tuple[int, ...], below: int = STEPS, loop: Any = None
) -> Row:
    """A row whose arrays are float32; a shape of one axis after the first one is that of integers below a number."""
    arrays: list[Any] = []
    for at, shape in enumerate(shapes):
        integers = at and len(shape) == 1
        array = RANDOM.integers(0, below, shape, np.int32) if integers else RANDOM.standard_normal(shape)
        arrays.append(array if integers else array.astype(np.float32))
    return Row(name, lambda seconds: compare(function, arrays, loop, seconds))


ROWS = [
    row("row i = row i - 1 * .5 + 1 in a fori_loop, 1,000 rows of 16", rows, (STEPS, WIDTH), loop=numba_rows),
    row("the same with columns", columns, (WIDTH, STEPS), loop=numba_columns),
    row(
        "element i = element i - 1 * .5 + b[i] in a fori_loop of 10^5 steps",
        recurrence,
        (LONG,),
        (LONG, 1),
        loop=numba_recurrence,
    ),
    row("element i *= 2 in a while_loop of 1,000 steps", in_while, (STEPS,), loop=numba_while),
    row("sum of elements i in a scan over 1,000 integers i", gathered_sum, (STEPS,), (STEPS,)),
    row("element i, j from its neighbours in nested loops, 200 x 200", nested, (200, 200), loop=numba_nested),
    row("1,000 rows of a table of 100,000 x 16", embedding, (VOCABULARY, WIDTH), (STEPS,), below=VOCABULARY),
    row("10^5 numbers counted in 256 bins", histogram, (256,), (LONG,), below=256, loop=numba_histogram),
    row("1,000 rows added into a table of 1,000 x 16", scatter_add, (STEPS, WIDTH), (STEPS,), (STEPS, WIDTH)),
]
