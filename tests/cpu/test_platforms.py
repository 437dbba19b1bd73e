"""Platforms without native code: ``doctor`` states the reason, and NumPy's kernels run everything."""

import os
import subprocess
import sys

import pytest
from tandem.registry import native_type

# Each entry: what is changed before tandem is imported, and words of the reason that `tandem doctor` prints.
PRETENDED = {
    "sys.version_info = (3, 14, 0, 'final', 0)": "Python 3.14 has never been tested",
    "sys.version_info = (3, 15, 0, 'alpha', 1)": "Python 3.15 has never been tested",
    "sys.platform = 'darwin'": "tested on Linux, not on darwin",
    "sys.platform = 'win32'; del sys.abiflags": "tested on Linux, not on win32",
    "sys.abiflags = 't'": "free-threaded",
    "sys.abiflags = 'd'; sys.gettotalrefcount = int": "debug build",
    "sys.byteorder = 'big'": "little-endian",
}
PROGRAM = """
import subprocess, sys, numpy
import platform, networkx, scipy.linalg.cython_blas  # read sys.version_info and sys.platform themselves
{change}
import tandem as td
from tandem.cli import doctor
x = td.asarray(numpy.arange(6.0).reshape(2, 3), requires_grad=True)
for _ in range(100):
    y = (td.exp(x) * 2 + x).sum()
y.backward()
x = x.detach()
f = td.jit(lambda x: td.tanh(x @ x.mT).sum())
assert abs(f(x).item() - numpy.tanh(x.numpy() @ x.numpy().T).sum()) < 1e-12
td.vmap(td.grad(lambda x: (x * x).sum()))(x)
assert "llvmlite" not in sys.modules and "interpreted" in str(f.lower(x).kernels())
print(doctor.describe_native())
"""


@pytest.mark.parametrize("change", PRETENDED)
def test_doctor_says_why_native_code_is_off(change):
    environment = {**os.environ, "TANDEM_NATIVE": "1", "TANDEM_CACHE": "0"}
    code = PROGRAM.format(change=change)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "'on': False" in done.stdout
    assert PRETENDED[change] in done.stdout


def test_fault_is_empty_only_on_tested_interpreters():
    if sys.platform == "linux" and sys.version_info[:2] in [(3, minor) for minor in (11, 12, 13)]:
        assert native_type.find_build_fault() == ""
    else:
        assert native_type.find_build_fault()
