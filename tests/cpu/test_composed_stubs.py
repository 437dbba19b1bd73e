"""Composites with a native entry of their own: calls that the entry leaves are compiled when they are hot."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import config, errors
from tandem.backends.cpu import fastpath
from tandem.eager.hot_calls import COMPILED
from tandem.registry.library import Library
from tandem.registry.operator import operators

X = np.arange(12.0, dtype=np.float32).reshape(4, 3)
KEY = np.array([2, 0, 2, -1])
CALLS = {
    "stack": lambda x, k: td.stack([x, x * 2], 1),
    "take": lambda x, k: td.take(x, k, 0),
    "x[i]": lambda x, k: x[k],
    "x[i, j]": lambda x, k: x[k.reshape(2, 2)],
}


@pytest.fixture(autouse=True)
def hot_after_few_calls():
    with config.override(hot_calls=2, hot_composites=3):
        yield


@pytest.mark.parametrize("name", CALLS)
def test_recorded_calls_stay_what_they_are(name):
    call, results = CALLS[name], []
    for _ in range(12):
        x = td.asarray(X, requires_grad=True)
        out = call(x, td.asarray(KEY))
        (out * td.arange(out.size, dtype=td.float32).reshape(out.shape)).sum().backward()
        results.append((out.detach().numpy(), x.grad.numpy()))
    plain = call(td.asarray(X), td.asarray(KEY)).numpy()
    for out, gradient in results:
        np.testing.assert_array_equal(out, plain)
        np.testing.assert_array_equal(gradient, results[0][1])


@pytest.mark.parametrize("name", ["take", "x[i]", "x[i, j]"])
def test_positions_out_of_bounds_raise_when_compiled(name):
    x, k = td.asarray(X, requires_grad=True), td.asarray(KEY)
    bad = td.asarray(np.where(KEY == 0, 9, KEY))
    with pytest.raises(errors.OutOfBoundsError) as first:
        CALLS[name](x, bad)
    for _ in range(12):
        CALLS[name](x, k)
    with pytest.raises(errors.OutOfBoundsError) as later:
        CALLS[name](x, bad)
    assert str(later.value) == str(first.value)
    assert CALLS[name](x, k).shape == CALLS[name](td.asarray(X), k).shape


@needs_native
@pytest.mark.parametrize("name", ["stack", "take"])
def test_recorded_calls_are_compiled(name):
    x = td.asarray(X.reshape(2, 6), requires_grad=True)
    stub = fastpath.stubs().by_operator[getattr(td, name).operator]
    for _ in range(12):
        CALLS[name](x, td.asarray([1, 0]))
    counts = stub.hot_calls.counts
    assert COMPILED in counts.values(), (counts, stub.usable, stub.hot_calls.is_enabled)


@needs_native
def test_replaced_kernels_are_called():
    x, seen = td.asarray(X, requires_grad=True), []
    for _ in range(12):
        wanted = td.stack([x, x]).tolist()
    original = operators["td::concat"].table[td.DispatchKey.CPU].fn

    def counted(*args, **kwargs):
        seen.append(args)
        return original(*args, **kwargs)

    with Library("td", "IMPL") as library:
        library.impl("concat", counted, "CPU", allow_override=True)
        assert td.stack([x, x]).tolist() == wanted
    assert seen
    seen.clear()
    assert td.stack([x, x]).tolist() == wanted
    assert not seen


INDEX_PUT = td.ops.td.index_put


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", [(6,), (6, 3)])
def test_writes_at_positions_stay_what_they_are(accumulate, shape):
    x, value = td.zeros(shape), td.asarray(np.arange(4 * np.prod(shape[1:], dtype=int), dtype=np.float32))
    value = value.reshape(4, *shape[1:])
    results = [INDEX_PUT(x, [td.asarray(KEY)], value, accumulate=accumulate).tolist() for _ in range(12)]
    assert all(one == results[0] for one in results)
    with pytest.raises(errors.OutOfBoundsError):
        INDEX_PUT(x, [td.asarray([0, 1, 2, 6])], value, accumulate=accumulate)
    assert not x.numpy().any()


@needs_native
def test_writes_at_positions_are_compiled():
    for _ in range(12):
        INDEX_PUT(td.zeros((7, 2)), (td.asarray(KEY),), td.ones((4, 2)), accumulate=True)
    assert fastpath.stubs().kernels[operators["td::index_put"]].hot_calls.compiled_kinds
