"""Run calls of a library with arrays of NumPy, array-api-strict and tandem; print those that differ.

Usage: ``python array_api_calls.py calls.txt``; a call on each line. SciPy reads ``SCIPY_ARRAY_API`` at its import, so
that tests run this in another process. A call of tandem may not fail where that of array-api-strict works, or that of
NumPy without ``SCIPY_ARRAY_API``. Its results are those of NumPy, and with ``SCIPY_ARRAY_API`` they are tensors where
the others are arrays of array-api-strict.
"""

import os
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import tandem as td

SCIPY = "cluster fft integrate interpolate linalg ndimage optimize signal special stats"
SKLEARN = (
    "calibration decomposition discriminant_analysis kernel_approximation linear_model metrics mixture model_selection "
    "naive_bayes pipeline preprocessing"
)
MODULES = {
    "scipy.txt": {name: f"scipy.{name}" for name in SCIPY.split()},
    "scikit_learn.txt": {name: f"sklearn.{name}" for name in SKLEARN.split()},
    "array_api_extra.txt": {"xpx": "array_api_extra", "compat": "array_api_compat"},
}


def make_arrays():
    """The arrays that calls use, by name."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(40, 5)), rng.random(40)
    real = X @ np.arange(5.0)
    two = (X[:, 0] > 0).astype(np.int64)
    positive, square = np.abs(real) + 0.1, rng.normal(size=(5, 5))
    return {
        "X": X, "x": rng.normal(size=40), "p": rng.random(40) * 3 + 0.1, "q": rng.random(40) * 2 + 0.2, "u": u,
        "k": rng.integers(0, 9, 40), "m": rng.normal(size=(6, 7)), "spd": square @ square.T + 5 * np.eye(5),
        "a": np.array([1.0, -0.5, 0.2]), "b": np.array([0.2, 0.4, 0.2]), "t": np.arange(40.0), "two": two,
        "three": rng.integers(0, 3, 40), "guess": np.where(u < 0.8, two, 1 - two), "real": real, "score": u,
        "weight": rng.random(40) + 0.5, "positive": positive, "close": positive * np.exp(rng.normal(size=40) / 9),
    }  # fmt: skip


def flatten(result):
    """The results of a call that are not containers."""
    if isinstance(result, list | tuple):
        return [item for part in result for item in flatten(part)]
    parts = [getattr(result, name, None) for name in ("statistic", "pvalue")]
    return [result] if parts[0] is None else parts


def evaluate(call, modules, convert):
    """The results of a call, and an exception if it raises one."""
    arrays = {name: convert(array) for name, array in make_arrays().items()}
    try:
        return flatten(eval(call, {**modules, **arrays})), None
    except Exception as error:  # any fault of a library is a difference
        return None, error


def find_difference(call, modules, strict):
    """What differs in a call; an empty string if nothing does."""
    keeps_type = os.environ.get("SCIPY_ARRAY_API") == "1"
    theirs, refused = evaluate(call, modules, strict.asarray if keeps_type else np.asarray)
    ours, error = evaluate(call, modules, td.asarray)
    if ours is None:
        return "" if refused is not None else f"{type(error).__name__}: {error}"
    wanted, _ = evaluate(call, modules, np.asarray)
    for at, (one, other) in enumerate(zip(ours, wanted or (), strict=True)):
        host = one.numpy() if isinstance(one, td.Tensor) else np.asarray(one)
        if not np.allclose(host, other, rtol=1e-5, atol=1e-7, equal_nan=True):
            return f"result {at} is {host}, not {other}"
        if theirs and isinstance(theirs[at], type(strict.asarray(1))) and not isinstance(one, td.Tensor):
            return f"result {at} is not a tensor but {type(one)}"
    return ""


def main(path):
    import array_api_strict

    warnings.simplefilter("ignore")
    modules = {name: import_module(full) for name, full in MODULES[path.name].items()}
    if path.name == "scikit_learn.txt":
        import_module("sklearn").set_config(array_api_dispatch=True)
    if path.name == "scipy.txt":
        modules["spatial"] = import_module("scipy.spatial")
        for name in ("scipy.cluster.hierarchy", "scipy.spatial.transform"):
            import_module(name)
    for call in path.read_text().splitlines():
        difference = find_difference(call, modules, array_api_strict)
        if difference:
            print(f"{call}\n    {difference}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
