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
# A driver library, of which nothing is called before cupy has been asked.
DRIVER = """
import ctypes
class Library(ctypes.CDLL):
    def __init__(self, name, *rest, **options):
        if "cuda" not in str(name):
            super().__init__(name, *rest, **options)
ctypes.CDLL = Library
"""
CUPY = """
import sys
sys.path.insert(0, {folder!r})
"""
COUNT = """
class cuda:
    class runtime:
        def getDeviceCount():
            {body}
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


def message_with_cupy(folder, text):
    """The message with a driver and with a package cupy of this text."""
    (folder / "cupy").mkdir()
    (folder / "cupy" / "__init__.py").write_text(text)
    said = message_of(CUPY.format(folder=str(folder)) + DRIVER)
    assert 'pip install "tandem-dispatch[cuda]"' in said
    return said


def test_the_gpu_is_missing(tmp_path):
    said = message_with_cupy(tmp_path, COUNT.format(body="return 0"))
    assert "there is no GPU" in said
    assert "NVIDIA driver" not in said


@pytest.mark.parametrize(
    "fault",
    [
        "cudaErrorStubLibrary: CUDA driver is a stub library",
        "cudaErrorNoDevice: no CUDA-capable device is detected",
        "cudaErrorSystemDriverMismatch: system has unsupported display driver / cuda driver combination",
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
        "cudaErrorUnknown: unknown error",
    ],
)
def test_the_driver_refuses(tmp_path, fault):
    """A stub, no GPU (``CUDA_VISIBLE_DEVICES=``), parts of two drivers, an old one, and what nobody knows."""
    said = message_with_cupy(tmp_path, COUNT.format(body=f"raise RuntimeError({fault!r})"))
    assert f"there is no usable GPU ({fault})" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise ImportError('libcudart.so.13: no such file')", "cannot be imported (libcudart.so.13"),
        ("raise RuntimeError('two of them')", "cannot be imported (two of them)"),
    ],
)
def test_cupy_cannot_be_used(tmp_path, text, words):
    assert words in message_with_cupy(tmp_path, text)


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
