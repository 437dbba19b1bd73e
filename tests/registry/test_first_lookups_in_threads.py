"""Names and native entries that several threads ask for at the same time, for the first time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tandem as td
from rotation import one_each_commit
from tandem import config, lazy
from tandem.backends.cpu import fastpath
from tandem.eager.autograd import engine

PROGRAM = """
import sys, threading
import numpy as np
import tandem as td
sys.setswitchinterval(1e-6)
{setup}
faults, barrier = [], threading.Barrier(8)
def run():
    try:
        barrier.wait()
        for _ in range({rounds}):
            {body}
    except BaseException as fault:
        faults.append(repr(fault))
threads = [threading.Thread(target=run) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(faults, {result})
"""
PROGRAMS = {
    "names": ("", "td.jit(lambda x: td.sin(x) + td.sort(x) + td.cumsum(x))(td.ones(3))", 5, "0", "[] 0"),
    "attributes": ("", "[getattr(td, name) for name in td.__all__[::7]]", 1, "0", "[] 0"),
    "methods": (
        "x = td.ones((3, 3))",
        "x.tanh_(), x.tril(), x.chunk(3), x.median(), x.cross(x)",
        5,
        "0",
        "[] 0",
    ),
    "composites": (
        "from tandem import config; config.flags.hot_composites = 8; x = td.ones((3, 3))",
        "td.percentile(x, 30.0), td.softmax(x), td.cov(x), td.average(x)",
        20,
        "0",
        "[] 0",
    ),
    "reads": (
        "from tandem import config; config.flags.hot_composites = 4; x = td.ones((3, 3))",
        "x.ndim, x.size, x.shape, x.dtype, len(x), float(x[0, 0]), x.T, x.real, x.tolist(), np.add(x, 1), td.size(x)",
        40,
        "0",
        "[] 0",
    ),
    "backward": (
        "x = td.asarray(np.ones(3), requires_grad=True)",
        "(x * 2.0).sum().backward()",
        100,
        "x.grad.tolist()",
        "[] [1600.0, 1600.0, 1600.0]",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("again", one_each_commit(*range(3)))
def test_first_lookups(name, again):
    setup, body, rounds, result, wanted = PROGRAMS[name]
    code = PROGRAM.format(setup=setup, body=body, rounds=rounds, result=result)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, wanted), done.stderr[-2000:]


SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))


FULL = [pytest.param(number, marks=pytest.mark.full) for number in range(1, 100)]


@pytest.mark.parametrize("way", ["eager", "transformed"])
@pytest.mark.parametrize("number", [0, *FULL])
def test_operators_that_become_hot(number, way):
    program = Path(__file__).parents[1] / "harness/operator_threads.py"
    command = [sys.executable, str(program), str(SEED + number), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr[-2000:]


@pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")
def test_entries_keep_their_structs_when_installed_again():
    with config.override(hot_calls=1):
        for _ in range(3):
            (td.asarray([1.0], requires_grad=True) * 2.0).sum().backward()
    stub = engine.node_sources[-1].stub
    record = stub.record
    stub.install()  # as by a thread that found it hot before another thread had installed it
    assert record is not None and stub.record is record
    for function in fastpath.installation._functions:
        function.install()
        record = function.record
        function.install()
        assert record is not None and function.record is record


FAILED_IMPORT = """
import sys
import tandem as td

class Failing:
    def find_spec(self, name, path=None, target=None):
        if name == "tandem.backends.cpu.fastpath.runtime.{module}":
            sys.meta_path.remove(self)
            raise MemoryError("injected")

def call():
    x = td.ones(2).requires_grad_()
    (x * x).sum().backward()
    return x.grad.tolist()

sys.meta_path.insert(0, Failing())
try:
    print(call())
except MemoryError:
    print("failed", call())
"""


@pytest.mark.skipif(
    not config.flags.native, reason="nothing of these modules is imported without native code"
)
@pytest.mark.parametrize("module", ["rt_operands", "rt_saved", "rt_record"])
def test_call_after_an_import_that_failed(module):
    program = FAILED_IMPORT.format(module=module)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert result.stdout == "failed [2.0, 2.0]\n", result.stderr


def test_call_waits_for_the_module_that_registers_the_kernel(monkeypatch):
    """A thread may find an operator that another one is declaring, before its kernel is there."""
    with td.Library("late", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        monkeypatch.setattr(lazy, "wait_for_imports", lambda: library.impl("f", lambda x: x + 1, "CPU"))
        assert td.ops.late.f(td.ones(2)).tolist() == [2.0, 2.0]


def test_call_of_a_dtype_without_kernel_raises():
    with td.Library("late", "DEF") as library:
        library.define("g(Tensor x) -> Tensor")
        library.impl("g", lambda x: x + 1, "CPU", dtypes=[td.float64])
        with pytest.raises(td.errors.NoKernelError, match="float64"):
            td.ops.late.g(td.ones(2))
