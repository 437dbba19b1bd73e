"""The cost of starting: bytecode instructions and modules of the import and of the first calls of a process.

Counts do not depend on how busy the machine is. The instructions are those of the main thread; lazy imports run on
another one, and their modules are counted, but not packages, which hold docstrings. A bound is a few percent above
what was counted on CPython 3.11. If a change needs more, load what the first calls do not use at its first use, or
raise the bound and say why.
"""

import os
import subprocess
import sys

import pytest

COUNT = """
import sys, numpy
{before}
executed, loaded = 0, set(sys.modules)
def count(frame, event, argument):
    global executed
    frame.f_trace_opcodes, frame.f_trace_lines = True, False
    executed += event == "opcode"
    return count
sys.settrace(count)
{code}
sys.settrace(None)
loaded = set(sys.modules) - loaded
own = [sys.modules[name] for name in loaded if name.startswith("tandem")]
print(executed, sum(not hasattr(module, "__path__") for module in own), "llvmlite" in loaded)
"""
IMPORT = "import tandem as td"
EAGER = "import tandem as td; x = td.asarray(numpy.ones(16, numpy.float32)); x + x"
JITTED = "td.jit(lambda x: td.tanh(x * 2.0 + 1.0))(td.asarray(numpy.ones(16, numpy.float32)))"


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """Counts of a code in a new process whose bytecode and machine code are in warm caches."""
    folder = tmp_path_factory.mktemp("caches")
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
        "TANDEM_CACHE_DIR": str(folder / "code"),
    }

    def measure(code, before=""):
        program = COUNT.format(code=code, before=before)
        for _ in range(2):  # the first run fills the caches
            done = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
            )
        executed, modules, llvmlite = done.stdout.split()
        return int(executed), int(modules), llvmlite == "True"

    return measure


@pytest.mark.parametrize(
    ("code", "before", "instructions", "modules"),
    [(IMPORT, "", 905_000, 93), (EAGER, "", 1_290_000, 144), (JITTED, IMPORT, 149_000, 118)],
    ids=["import", "first eager call", "first jitted call"],
)
def test_start_executes_few_instructions(counts, code, before, instructions, modules):
    executed, loaded, llvmlite = counts(code, before)
    assert not llvmlite
    assert loaded <= modules
    if sys.version_info[:2] == (3, 11):
        assert executed <= instructions


BFLOAT16 = """
import sys, numpy as np, tandem as td
x = td.ones(3)
td.jit(lambda x: td.tanh(x * 2.0 + 1.0))(x + x)
assert "ml_dtypes" not in sys.modules
filled = [td.full(3, 1.5, dtype=td.bfloat16) for _ in range(5)]  # the first loads it, native calls follow
summed = [filled[0] + value for value in filled]
assert all(value.dtype is td.bfloat16 and value.tolist() == [3.0] * 3 for value in summed)
array = filled[0].numpy()
assert all((x + array).tolist() == [2.5] * 3 for _ in range(5))
"""


def test_first_calls_do_not_load_ml_dtypes():
    subprocess.run([sys.executable, "-c", BFLOAT16], check=True)
