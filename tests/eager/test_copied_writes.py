"""``x.at[key].set(v)`` of plain tensors writes into a copy; the operators that trace are the reference."""

import itertools

import numpy as np
import pytest
import tandem as td
from tandem.eager.tensor import copied_writes
from tandem.operators.indexing.subscript import put

KEYS = {
    "number": 0,
    "last": -1,
    "beyond": 7,
    "slice": slice(1, 3),
    "reversed": slice(None, None, -1),
    "none": None,
    "dots": (Ellipsis, 0),
    "pair": (0, 1),
    "column": (slice(None), 1),
    "too_many": (0, 0, 0),
    "positions": td.asarray([0, -2, 0]),
    "out_of_bounds": td.asarray([9]),
    "mixed": (0, td.asarray([1, 0])),
    "pairs": (td.asarray([0, 1]), td.asarray([1, 1])),
    "rows": td.asarray([True, False, True]),
    "mask": td.asarray(np.arange(12).reshape(3, 4) % 3 == 0),
    "list": [0, 1],
}
VALUES = [1, 2.5, True, 1j, td.asarray(2), td.asarray([1.0, 2.0, 3.0, 4.0]), td.asarray(np.ones((1, 1, 4)))]
KINDS = ["", "add", "multiply", "divide", "power", "minimum", "maximum"]


def outcome(call):
    try:
        with np.errstate(all="ignore"):
            result = call()
    except td.errors.TandemError:
        return "error"
    if result is None:
        return None
    return result.dtype, result.shape, result.strides, result.numpy().tobytes()


@pytest.mark.parametrize("dtype", [td.float32, td.float64, td.int32, td.bool, td.complex64])
@pytest.mark.parametrize("key", KEYS)
def test_copies_are_written_as_the_operators_write(key, dtype):
    x = td.asarray(np.arange(12).reshape(3, 4) % 5).astype(dtype)
    before, taken = x.numpy().copy(), 0
    for value, combine in itertools.product([*VALUES, x, x[:1]], KINDS):
        written = outcome(lambda v=value, c=combine: copied_writes.write_into_copy(x, KEYS[key], v, c))
        if written is not None:
            taken += 1
            assert written == outcome(lambda v=value, c=combine: put(x, KEYS[key], v, combine=c))
    np.testing.assert_array_equal(x.numpy(), before)
    assert taken or key in ("list", "beyond", "too_many", "out_of_bounds")


def test_recorded_and_batched_updates_call_operators():
    x, i = td.asarray([1.0, 2.0, 3.0]), td.asarray([0, 2])
    rows = td.vmap(lambda k: x.at[k].set(9.0))(i)
    assert rows.tolist() == [[9, 2, 3], [1, 2, 9]]
    assert td.vmap(lambda v: x.at[1].add(v))(x[:2]).tolist() == [[1, 3, 3], [1, 4, 3]]
    assert td.grad(lambda v: (x.at[0].set(v) ** 2).sum())(td.asarray(3.0)).item() == 6
    assert td.grad(lambda x: (x.at[0].set(5.0) ** 2).sum())(x).tolist() == [0, 4, 6]
    assert td.jit(lambda x: x.at[i].add(1.0))(x).tolist() == [2, 2, 4]
    parameter = x.clone().requires_grad_()
    parameter.at[i].multiply(2.0).sum().backward()
    assert parameter.grad.tolist() == [2, 1, 2]
    with td.no_grad():
        assert parameter.at[0].set(0.0).tolist() == [0, 2, 3]


def test_modes_see_the_operators_of_an_update():
    class Names(td.DispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __tandem_dispatch__(self, op, types, args, kwargs):
            self.names.append(op.name)
            return op(*args, **kwargs)

    x = td.asarray([1.0, 2.0, 3.0])
    for _ in range(30):
        x.at[0].set(1.0)
    with Names() as mode:
        x.at[0].set(4.0)
    assert [name for name in mode.names if "basic_put" in name]


def test_a_replaced_kernel_is_called():
    x = td.asarray([1.0, 2.0, 3.0])
    for _ in range(30):
        x.at[0].set(1.0)
    with td.Library("td", "IMPL") as library:
        library.impl("basic_put", lambda x, *_args, **_options: x * 0, "CPU", allow_override=True)
        assert x.at[0].set(9.0).tolist() == [0, 0, 0]
    assert x.at[0].set(9.0).tolist() == [9, 2, 3]
