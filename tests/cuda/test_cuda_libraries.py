"""CUDA libraries installed by pip are loaded from where cupy finds them; no GPU is used."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tandem import lazy

pytestmark = pytest.mark.skipif(not lazy.is_installed("cupy"), reason="cupy is not installed")

LOAD = """
from unittest import mock
from tandem.backends.cuda.blas import cublas
from tandem.backends.cuda.runtime import toolkit
with mock.patch.object(toolkit, "toolkit", lambda: mock.Mock(blas=None)):
    library = cublas._library()
    print(sorted(name for name in cublas.PROTOTYPES if cublas._function(library, name)))
"""
WITHOUT_LIBRARY = """
import cuda.pathfinder as pathfinder
def refuse(name):
    raise pathfinder.DynamicLibNotFoundError(f"Failure finding {name}\\nmany\\nlines")
pathfinder.load_nvidia_dynamic_lib = refuse
"""


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd="/",
        env=os.environ | environment,
    )


def undefined_symbols(binding):
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", binding], capture_output=True, text=True, check=True
    )
    return [word.partition("@")[0] for word in listed.stdout.split() if word.startswith("cublas")]


@pytest.fixture
def toolkit_folder(tmp_path):
    """A CUDA toolkit with a libcublas of empty functions, outside of the loader's search path."""
    if not (shutil.which("g++") and shutil.which("nm")):
        pytest.skip("g++ and nm make the library")
    spec = lazy.module("importlib.util").find_spec("cupy_backends.cuda.libs.cublas")
    needed = subprocess.run(["readelf", "-d", spec.origin], capture_output=True, text=True, check=True).stdout
    (name,) = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "libcublas.so" in line]
    names = dict.fromkeys([*undefined_symbols(spec.origin), "cublasCreate_v2", "cublasSetStream_v2"])
    names |= dict.fromkeys(["cublasGemmEx", "cublasGemmStridedBatchedEx"])
    source = tmp_path / "blas.cpp"
    source.write_text('extern "C" {\n' + "".join(f"int {name}() {{ return 1; }}\n" for name in names) + "}\n")
    folder = tmp_path / "lib64"
    folder.mkdir()
    for library in (name, name.replace("cublas", "cublasLt")):
        script = tmp_path / f"{library}.map"
        script.write_text(f"{library} {{ global: *; }};")
        flags = ["-shared", "-fPIC", f"-Wl,-soname,{library}", f"-Wl,--version-script={script}"]
        subprocess.run(["g++", *flags, str(source), "-o", str(folder / library)], check=True)
    return tmp_path


def test_installed_cublas_outside_loader_path_is_loaded(toolkit_folder):
    found = run(LOAD, CUDA_PATH=str(toolkit_folder), CUDA_HOME=str(toolkit_folder))
    assert found.returncode == 0, found.stderr
    assert "cublasGemmStridedBatchedEx" in found.stdout


def test_missing_cublas_names_the_remedy():
    found = run(WITHOUT_LIBRARY + LOAD)
    last = found.stderr.strip().splitlines()[-1]
    assert "BackendUnavailableError: matmul: cupy cannot load cuBLAS: Failure finding cublas;" in last
    assert 'pip install "tandem-dispatch[cuda]" brings it' in last


def test_no_cuda_binding_is_imported_by_dotted_name():
    """Such an import passes cupy's loading of the installed libraries by."""
    root = Path(lazy.__file__).parent
    files = [path for path in root.rglob("*.py") if "tests" not in path.parts and ".venv" not in path.parts]
    assert len(files) > 200
    assert not [str(path) for path in files if "cupy_backends" in path.read_text()]
