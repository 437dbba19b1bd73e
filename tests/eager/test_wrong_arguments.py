"""What is no operator (transforms, libraries, keys, tables) answers wrong arguments with the project's errors."""

import numpy as np
import pytest
import tandem as td
from tandem.errors import ArgumentError, TandemError, UnknownKeyError, ValueArgumentError


def kind(value):
    """A name that is the same in every process."""
    return type(value).__name__


X = td.asarray([1.0, 2.0])
STRANGE = [None, 2.5, "no", object(), b"x", (1,), [1, "a"], {}, np.int64, td.float32, -1, 99]


@pytest.mark.parametrize("value", STRANGE, ids=kind)
@pytest.mark.parametrize("take", [td.DispatchKey, td.DispatchKeySet, td.include_keys, td.exclude_keys])
def test_no_dispatch_key(take, value):
    with pytest.raises(TandemError, match="dispatch key"):
        take(value)


@pytest.mark.parametrize("value", [None, 2.5, object(), td.float32, len], ids=kind)
def test_options_of_transforms(value):
    with pytest.raises(ArgumentError, match="argnums"):
        td.grad(lambda x: x.sum(), value)
    with pytest.raises(ArgumentError, match="static_argnames"):
        td.jit(lambda x: x, static_argnames=value)
    with pytest.raises(ArgumentError, match="static_argnums"):
        td.jit(lambda x: x, static_argnums=value)
    with pytest.raises(ArgumentError, match="outputs"):
        td.autograd.grad(value, X)


def test_as_many_gradients_as_outputs():
    x = td.asarray([1.0], requires_grad=True)
    with pytest.raises(ArgumentError, match="1 tensors take as many gradients"):
        td.autograd.grad([x * x], x, [X, X])


@pytest.mark.parametrize("value", [3, "a", [1]], ids=kind)
def test_kernels_are_callable(value):
    with td.Library("wrong", "IMPL") as library:
        with pytest.raises(ArgumentError, match="kernel"):
            library.impl("f", value, "CPU")
        with pytest.raises(ArgumentError, match="kernel"):
            library.fallback(value, "Profiler")
    with pytest.raises(ArgumentError, match="each line"), td.show_dispatch_trace(value):
        pass


@pytest.mark.parametrize("key", [[1], {}, 3, None], ids=kind)
def test_kernels_have_a_key(key):
    with td.Library("wrong", "IMPL") as library, pytest.raises(ArgumentError, match="dispatch key"):
        library.impl("f", len, key)


@pytest.mark.parametrize("key", ["no", 3, None, [1]], ids=kind)
def test_rows_of_a_dispatch_table(key):
    table = td.dispatch_table("add")
    with pytest.raises(UnknownKeyError, match="the keys are CPU"):
        table[key]
    assert table.get(key) is None
    assert key not in table


@pytest.mark.parametrize("kind", [np.int64, np.ndarray, td.Tensor], ids=kind)
def test_class_is_rejected_as_value(kind):
    with pytest.raises(ArgumentError, match="class"):
        td.asarray(kind)


def test_zero_dimensions():
    for wrong in (len, iter):
        with pytest.raises(ArgumentError, match="0-d"):
            wrong(td.asarray(1.0))
    with pytest.raises(ValueArgumentError, match="ambiguous"):
        bool(X)
