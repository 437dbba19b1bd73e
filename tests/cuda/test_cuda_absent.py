"""Without CUDA none of its modules is imported, and error messages name what is missing."""

import subprocess
import sys

import pytest
import tandem as td
from tandem import errors
from tandem.backends.cuda.runtime import toolkit
from tandem.cli import doctor

PRESENT = not toolkit.missing_requirements()
absent = pytest.mark.skipif(PRESENT, reason="this machine has a GPU that tandem can use")

HIDE_CUPY = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "cupy" else find(name, *rest)
sys.modules["cupy"] = None
"""
HIDE_DRIVER = """
import ctypes
class Missing(ctypes.CDLL):
    def __init__(self, name, *rest, **options):
        if "cuda" in str(name):
            raise OSError(f"{name}: cannot open shared object file")
        super().__init__(name, *rest, **options)
ctypes.CDLL = Missing
"""
# A driver library that finds no GPU, as on a machine whose GPU is taken away.
NO_GPU = """
import ctypes, tandem.backends.cuda.runtime.toolkit as toolkit
from tandem.backends.cuda.runtime.driver import Driver
class Empty(Driver):
    def __init__(self, library): pass
    def get(self, name, kind, *args): return 0
    def __getattr__(self, name): return lambda *args: None
toolkit.open_library, toolkit.Driver = lambda: None, Empty
"""
# A driver library with one GPU, whose cuInit gives a status.
DRIVER = """
import ctypes, tandem.backends.cuda.runtime.toolkit as toolkit
class Library:
    def __getattr__(self, name):
        def function(*args):
            if name == "cuInit":
                return {code}
            if name.startswith("cuGetError"):
                return 1
            ctypes.c_int.from_address(args[0]).value = 1
            return 0
        return function
toolkit.open_library = Library
"""
CUPY = """
import sys
sys.path.insert(0, {folder!r})
"""


def message_of(setup, call="td.zeros(2, device='cuda')"):
    code = f"""
{setup}
import tandem as td
try:
    {call}
except td.errors.BackendUnavailableError as fault:
    print(fault)
else:
    print("nothing was raised")
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd="/")
    assert run.returncode == 0, run.stderr
    return run.stdout


@absent
@pytest.mark.parametrize(
    "call",
    [
        "td.zeros(2, device='cuda')",
        "td.asarray([1.0], device='cuda')",
        "td.asarray([1.0]).to('cuda:0')",
        "td.asarray([1.0]).cuda()",
        "td.asarray([1.0]).pin_memory()",
        "td.ones(2).to(device='cuda', dtype=td.float64)",
        "td.arange(3, device='cuda:1')",
    ],
)
def test_every_device_api_names_missing_package(call):
    with pytest.raises(errors.BackendUnavailableError) as caught:
        eval(call, {"td": td})
    assert 'pip install "tandem-dispatch[cuda]"' in str(caught.value)
    assert any(word in str(caught.value) for word in ("cupy", "driver", "GPU"))


def test_cupy_is_missing():
    assert "the package cupy is not installed" in message_of(HIDE_CUPY)


def test_the_driver_is_missing():
    said = message_of(HIDE_DRIVER)
    assert "no NVIDIA driver" in said
    assert 'pip install "tandem-dispatch[cuda]"' in said


def test_the_gpu_is_missing():
    said = message_of(NO_GPU)
    assert "there is no GPU" in said
    assert "NVIDIA driver" not in said


@pytest.mark.parametrize("code", [34, 100, 803, 999])
def test_the_driver_refuses(code):
    """A stub, no GPU to be seen (``CUDA_VISIBLE_DEVICES=``), parts of two drivers, and what nobody knows."""
    said = message_of(DRIVER.format(code=code))
    assert f"there is no usable GPU (cuInit: unknown error {code}" in said
    assert 'pip install "tandem-dispatch[cuda]"' in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise ImportError('libcudart.so.13: no such file')", "cannot be imported (libcudart.so.13"),
        ("raise RuntimeError('two of them')", "cannot be imported (two of them)"),
        (
            "class cuda:\n  class runtime:\n    def getDeviceCount():\n      raise RuntimeError('driver too old')",
            "cupy cannot use the driver (driver too old)",
        ),
    ],
)
def test_cupy_cannot_be_used(tmp_path, text, words):
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text(text)
    said = message_of(CUPY.format(folder=str(tmp_path)) + DRIVER.format(code=0))
    assert words in said
    assert 'pip install "tandem-dispatch[cuda]"' in said


def test_the_driver_lacks_a_function():
    call = "toolkit.Driver(object()).function('cuGraphLaunch')"
    run = subprocess.run(
        [sys.executable, "-c", f"import tandem.backends.cuda.runtime.toolkit as toolkit\n{call}"],
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert "CudaError: the NVIDIA driver has no cuGraphLaunch; install one for CUDA 12" in run.stderr


def test_several_are_missing():
    said = message_of(HIDE_CUPY + HIDE_DRIVER)
    assert "cupy" in said
    assert "driver" in said


def test_import_loads_nothing_of_cuda():
    code = "import sys, tandem; print([m for m in sys.modules if 'cuda' in m or 'cupy' in m])"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd="/")
    assert run.stdout.strip() == "[]", run.stderr


@absent
def test_questions_are_answered_without_a_device():
    assert not td.cuda.is_available()
    assert td.cuda.device_count() == 0
    assert td.cuda.why_unavailable()
    td.synchronize()
    with pytest.raises(errors.BackendUnavailableError):
        td.cuda.get_device_name()
    with pytest.raises(errors.BackendUnavailableError):
        td.cuda.Stream()
    assert doctor.describe_cuda()["available"] is False
    assert "pip install" in doctor.describe_cuda()["why not"]


@absent
def test_cuda_operator_names_missing_package():
    with pytest.raises(errors.BackendUnavailableError, match="exp"):
        td.ops.td.exp.default.redispatch(td.DispatchKeySet("CUDA"), td.asarray([1.0]))
