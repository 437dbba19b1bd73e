"""cloudpickle, joblib and safetensors: tensors and jitted functions go to other processes and files."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import tandem as td

cloudpickle = pytest.importorskip("cloudpickle")
joblib = pytest.importorskip("joblib")

X = td.asarray([1.0, 2.0])


def make_scaled(factor):
    @td.jit(static_argnames="power")
    def scaled(x, power):
        return factor * x**power

    return scaled


@td.jit
def importable(x):
    return x + 1


def test_jitted_function_is_pickled_by_value_where_it_has_no_name():
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(make_scaled(3))
    again = cloudpickle.loads(cloudpickle.dumps(make_scaled(3)))
    assert type(again) is type(importable) and again(X, power=2).tolist() == [3.0, 12.0]
    assert again.cache_info().specializations == 1
    assert cloudpickle.loads(cloudpickle.dumps(td.jit(lambda x: x + X)))(X).tolist() == [2.0, 4.0]


def test_jitted_function_of_main_is_loaded_by_another_process(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import sys, cloudpickle, tandem as td\n"
        "@td.jit\ndef double(x):\n    return x * 2\n"
        "sys.stdout.buffer.write(cloudpickle.dumps(double))\n"
    )
    written = subprocess.run([sys.executable, path], check=True, capture_output=True).stdout
    assert pickle.loads(written)(X).tolist() == [2.0, 4.0]


def test_other_callables_are_pickled():
    for function in (td.grad(lambda x: (x * x).sum()), td.vmap(lambda x: x * 2)):
        assert cloudpickle.loads(cloudpickle.dumps(function))(X).tolist() == [2.0, 4.0]
    assert cloudpickle.loads(cloudpickle.dumps(td.sum)) is td.sum


def test_joblib_stores_hashes_and_caches_tensors(tmp_path):
    joblib.dump({"x": X}, tmp_path / "x.joblib")
    assert joblib.load(tmp_path / "x.joblib")["x"].tolist() == X.tolist()
    assert joblib.hash(X) == joblib.hash(td.asarray([1.0, 2.0])) != joblib.hash(X + 1)
    calls = []
    cached = joblib.Memory(tmp_path, verbose=0).cache(lambda x: (calls.append(1), x * 2)[1])
    assert cached(X).tolist() == cached(td.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert len(calls) == 1
    results = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(importable)(x) for x in X)
    assert [x.item() for x in results] == [2.0, 3.0]


def test_safetensors_reads_and_writes_tensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    tensors = {"x": X, "m": td.asarray(np.arange(6.0).reshape(2, 3)).T}
    wanted = {name: x.tolist() for name, x in tensors.items()}
    arrays = {name: np.ascontiguousarray(x) for name, x in tensors.items()}
    safetensors.save_file(arrays, tmp_path / "x.safetensors")
    again = td.load_safetensors(tmp_path / "x.safetensors")
    assert {name: x.tolist() for name, x in again.items()} == wanted
    td.save_safetensors(tensors, tmp_path / "y.safetensors")
    arrays = safetensors.load_file(tmp_path / "y.safetensors")
    assert {name: x.tolist() for name, x in arrays.items()} == wanted
