"""Benchmarks of start-up: the import, the first call, the first compilation."""

import os
import statistics
import subprocess
import sys
import tempfile

import tandem as td
from rows import Finding, Row, missing, peer
from tandem import config, lazy
from tandem.cli.overhead.compare import make_call_case
from tandem.cli.overhead.workloads import chain, chain_arrays

CLOCK = "from time import perf_counter as clock; start = clock(); "
FIRST_CALLS = (
    CLOCK
    + "import tandem as td; imported = clock(); "
    + "import numpy as np; x = td.asarray(np.ones(16, np.float32)); "
    + "{action}; print(clock() - imported)"
)
BYTECODE = tempfile.TemporaryDirectory(prefix="tandem-bytecode-")
EAGER = "x + x"
JITTED = "td.jit(lambda x: td.tanh(x * 2.0 + 1.0))(x)"


def run(code: str, **environment: str) -> float:
    """Run code in a new interpreter and return the number that it prints; bytecode is cached, as for users."""
    environment = {"PYTHONPYCACHEPREFIX": BYTECODE.name, "PYTHONDONTWRITEBYTECODE": "", **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return float(done.stdout.split()[-1])


def import_time(seconds: float) -> list[Finding]:
    if not lazy.is_installed("jax"):
        return [missing("jax", 0.25)]
    ours, theirs = [], []
    for _ in range(max(8, int(seconds / 2))):
        ours.append(run(CLOCK + "import tandem; print(clock() - start)"))
        theirs.append(run(CLOCK + "import jax; print(clock() - start)"))
    mine, other = statistics.median(ours[1:]), statistics.median(theirs[1:])  # the first wrote the bytecode
    note = f"{1e3 * mine:.0f} ms beside {1e3 * other:.0f} ms"
    return [Finding("import jax", mine / other, 0.25, note)]


def first_calls(seconds: float) -> list[Finding]:
    """Milliseconds of the first eager operation and the first jitted call, on an empty cache and on a filled one."""
    result = []
    for name, action in (("eager", EAGER), ("jitted", JITTED)):
        code = FIRST_CALLS.format(action=action)
        with tempfile.TemporaryDirectory() as cache:
            cold = run(code, TANDEM_CACHE_DIR=cache)
            warm = statistics.median(run(code, TANDEM_CACHE_DIR=cache) for _ in range(5))
        note = f"warm {1e3 * warm:.0f} ms, cold {1e3 * cold:.0f} ms, after the import"
        result.append(Finding(f"100 ms ({name}, warm)", warm / 0.1, 1.0, note))
    return result


def first_jitted_chain(seconds: float) -> list[Finding]:
    """The first compilation of a chain of 100 operations, compared with jax.jit on the same source."""
    jax = peer("jax")
    if jax is None:
        return [missing("jax", 1.0)]
    ours, theirs = [], []
    with config.override(cache=False):
        for variant in range(1, 10):
            arrays = chain_arrays(16)
            first = make_call_case(td.jit(chain(100, variant)), tuple(map(td.asarray, arrays)))
            second = make_call_case(
                jax.prepare(chain(100, variant)), tuple(map(jax.array, arrays)), jax.finish
            )
            ours.append(first.timer().timeit(1))
            theirs.append(second.timer().timeit(1))
    mine, other = statistics.median(ours[2:]), statistics.median(theirs[2:])
    return [
        Finding(
            "jax.jit", mine / other, 1.0, f"{mine / 1e6:.0f} ms beside {other / 1e6:.0f} ms, no disk cache"
        )
    ]


ROWS = [
    Row("import tandem", import_time),
    Row("first call in a fresh process", first_calls),
    Row("first call of a jitted chain of 100", first_jitted_chain),
]
