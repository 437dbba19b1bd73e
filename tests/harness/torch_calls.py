"""Calls of PyTorch's functions and methods, for tandem and PyTorch alike.

Each line of ``tests/spellings/names/*_calls.txt`` is a name and an expression, in which ``m`` is the namespace,
``torch`` or ``tandem.torch``, and the other variables are those of :func:`make_inputs`.
"""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "spellings" / "names"


def read_names(kind):
    return (FOLDER / f"torch_{kind}s.txt").read_text().split()


def read_calls(kind):
    lines = (FOLDER / f"torch_{kind}_calls.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def make_inputs(m, path):
    """The variables of calls: tensors with the same elements in all namespaces, and a path for a file."""
    rng = np.random.default_rng(0)

    def uniform(low, high, *shape):
        return m.tensor(rng.uniform(low, high, shape).astype(np.float32))

    square = rng.uniform(-1, 1, (3, 3)).astype(np.float32)
    return {
        "m": m,
        "path": path,
        "x": uniform(-2, 2, 2, 3),
        "y": uniform(-2, 2, 2, 3),
        "p": uniform(0.1, 0.9, 2, 3),
        "big": uniform(1.1, 3, 2, 3),
        "v": uniform(-1, 1, 3),
        "w": uniform(-1, 1, 3),
        "a": m.tensor(square + 2 * np.eye(3, dtype=np.float32)),
        "s": m.tensor(square @ square.T + np.eye(3, dtype=np.float32)),
        "k": uniform(-1, 1, 3, 3, 3),
        "wave": uniform(-1, 1, 32),
        "i": m.tensor([[1, 2, 6], [4, 9, 3]]),
        "j": m.tensor([[2, 2, 4], [1, 3, 5]]),
        "b": m.tensor([[True, False, True], [False, True, True]]),
        "c": m.tensor(np.array([[1 + 2j, -1j, 3], [0.5, 2 - 1j, 1 + 1j]], np.complex64)),
        "e": m.tensor([0.0, 1.0, 2.0]),
        "f": m.tensor([float("nan"), float("inf"), -float("inf"), 1.0]),
        "at": m.tensor([0, 2]),
        "rows": m.tensor([[0, 1, 1]]),
    }


def evaluate(expression, m, path):
    """The result of a call, with NumPy arrays for tensors, and texts for dtypes."""
    with np.printoptions():
        return _plain(eval(expression, make_inputs(m, path)))


def _plain(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(_plain, value))
    if hasattr(value, "detach"):
        value = value.detach()
        return getattr(value, "resolve_conj", lambda: value)().numpy()
    return (
        value
        if value is None or isinstance(value, (bool, int, float, str))
        else str(value).rpartition(".")[2]
    )


def assert_alike(ours, theirs):
    """Check types, shapes, dtypes and elements of two results of :func:`evaluate`."""
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for one, two in zip(ours, theirs):
            assert_alike(one, two)
    elif isinstance(theirs, np.ndarray):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-5)
    else:
        assert type(ours) is type(theirs) and ours == theirs
