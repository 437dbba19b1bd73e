"""In-place operators without a native entry of their own: their functional form's entry, and a copy."""

import numpy as np
import pytest
import tandem as td
import tandem.torch as torch
from tandem.registry.dispatch.keys import DispatchKey, below

CALLS = {
    "clamp_": lambda x, y, m: x.clamp_(-0.5, 0.5),
    "masked_fill_": lambda x, y, m: x.masked_fill_(m, 3.0),
    "nan_to_num_": lambda x, y, m: x.nan_to_num_(),
    "lerp_": lambda x, y, m: x.lerp_(y, 0.25),
    "add_ with alpha": lambda x, y, m: torch.Tensor.add_(x, y, alpha=2),
    "tril_": lambda x, y, m: x.tril_(),
    "lt_": lambda x, y, m: x.lt_(y),
    "cumsum_": lambda x, y, m: x.cumsum_(1),
    "addcmul_": lambda x, y, m: x.addcmul_(y, y, value=2),
    "index_fill_": lambda x, y, m: x.index_fill_(1, td.asarray([0, 2]), 7.0),
}
X, Y = np.array([[1.5, -2.0, 0.25], [np.nan, -0.1, 4.0]]), np.array([[0.5, 1.0, 0.0], [2.0, -0.5, 1.0]])
M = np.array([[True, False, True], [False, True, False]])


def make():
    return td.asarray(X.copy()), td.asarray(Y.copy()), td.asarray(M)


@pytest.mark.parametrize("name", CALLS)
def test_each_call_writes_what_the_dispatched_one_does(name):
    call = CALLS[name]
    with td.profiler.profile():  # operators that are observed are dispatched
        x, y, m = make()
        wanted = call(x, y, m).numpy().copy()
    for _ in range(5):
        x, y, m = make()
        version = x._version
        assert call(x, y, m) is x and x._version > version
        np.testing.assert_array_equal(x.numpy(), wanted)
        x, y, m = make()
        view = td.asarray(np.zeros((3, 2))).T
        view.copy_(x)
        np.testing.assert_array_equal(call(view, y, m).numpy(), wanted)


def test_recorded_calls_are_recorded():
    for _ in range(4):
        x = td.asarray([0.2, -3.0, 0.4]).requires_grad_()
        y = x * 1.0
        y.clamp_(-1.0, 1.0)
        y.sum().backward()
        assert x.grad.tolist() == [1, 0, 1]
        base = td.zeros(3)
        base.lerp_(x, 0.5)
        base.sum().backward()
        assert x.grad.tolist() == [1.5, 0.5, 1.5]


def test_wrong_calls_raise_in_their_own_name():
    for _ in range(3):
        x = td.ones(3)
        with pytest.raises(ValueError, match=r"clip_|broadcast"):
            x.clamp_(td.ones(4))
        with pytest.raises(td.errors.UnsupportedError, match=r"the memory of .* is read-only"):
            td.broadcast_to(td.ones(1), (3,)).clamp_(0.0, 1.0)
        with pytest.raises(TypeError, match=r"cannot be written"):
            td.arange(3).lerp_(td.ones(3), 0.5)
        assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "name", ["tril_", "triu_", "nan_to_num_", "sinc_", "clip_", "addcmul_", "masked_scatter_"]
)
def test_arguments_beyond_the_schema_are_not_written(name):
    for _ in range(4):
        x, y = td.ones((3, 3)), td.full((3, 3), 7.0)
        mask = td.ones((3, 3), dtype=bool)
        given = (mask, y) if name == "masked_scatter_" else (y, y) if name in ("clip_", "addcmul_") else ()
        extra = (
            (2, y) if name in ("tril_", "triu_") else (0.0, 1.0, 2.0, y) if name == "nan_to_num_" else (y, y)
        )
        with pytest.raises(td.errors.TandemError):
            getattr(x, name)(*given, *extra)
        assert y.tolist() == [[7.0] * 3] * 3


def test_traces_and_transforms_see_the_calls():
    def function(x):
        y = x * 2.0
        y.clamp_(-1.0, 1.0)
        return y

    x = td.asarray([0.2, -3.0, 0.6])
    for _ in range(3):
        assert td.jit(function)(x).tolist() == function(x).tolist()
        assert td.vmap(function)(x).tolist() == function(x).tolist()
        assert td.grad(lambda x: function(x).sum())(x).tolist() == [2, 0, 0]
        held = td.zeros(3)

        def write(x, held=held):
            held.copy_(x)
            return held.clamp_(-1.0, 1.0) + 0.0

        assert td.jit(write)(x).tolist() == held.tolist()


def test_registered_kernels_run():
    x, calls = td.zeros(4), []
    for _ in range(3):
        x.clamp_(-1.0, 1.0)

    def kernel(op, keyset, args, kwargs):
        calls.append(op.schema.name)
        return op.dispatch(keyset & below(DispatchKey.ADInplaceOrView), args, kwargs)

    with td.Library("td", "IMPL") as library:
        library.impl("clip_", kernel, "ADInplaceOrView", boxed=True)
        for _ in range(2):
            x.clamp_(-1.0, 1.0)
        assert calls == ["clip_"] * 2
    x.clamp_(-1.0, 1.0)
    assert len(calls) == 2


def test_modes_see_the_calls():
    seen = []

    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append(op.name)
            return op(*args, **kwargs)

    x = td.ones(3)
    x.clamp_(0.0, 2.0)
    with Log():
        x.clamp_(0.0, 2.0)
    assert any("clip" in name for name in seen)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "float16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 100, 1023, 4097, 30_000])
def test_fills(dtype, count):
    for value in (
        0,
        1,
        *((-0.0, 2.5) if dtype[0] in "fc" else ()),
        *((1.5 - 2j,) if dtype[0] == "c" else ()),
    ):
        x, want = td.asarray(np.ones(count + 2, dtype)), np.ones(count + 2, dtype)
        x[1:-1], want[1:-1] = value, value
        assert x.numpy().tobytes() == want.tobytes()
        y, other = td.asarray(np.ones((3, count), dtype)), np.ones((3, count), dtype)
        y[1], other[1] = value, value
        y[:, ::2], other[:, ::2] = value, value
        assert y.numpy().tobytes() == other.tobytes()
        assert (
            td.full((count,), value, dtype=x.dtype).numpy().tobytes()
            == np.full(count, value, dtype).tobytes()
        )
        assert td.zeros((count,), dtype=x.dtype).numpy().tobytes() == np.zeros(count, dtype).tobytes()


def test_integers_are_written_into_bools_as_their_truth():
    for _ in range(3):
        x = td.zeros(4, dtype=bool)
        x[0], x[1:3] = 1, 7
        assert x.tolist() == [True, True, True, False]
        x[td.asarray([0, 3])], x[x] = 0, 1
        assert x.fill_(2).tolist() == [True] * 4
        assert (
            x.at[1].set(0).tolist()
            == td.jit(lambda x: x.at[1].set(0))(x).tolist()
            == [True, False, True, True]
        )
        with pytest.raises(TypeError, match="does not go into bool"):
            x[0] = 0.5j


def test_creation_in_the_words_of_pytorch():
    data = np.arange(3.0)
    for _ in range(3):
        assert torch.tensor([1, 2]).dtype is td.int64 and torch.tensor(1.5, device="cpu").dtype is td.float32
        assert torch.tensor([1.5], dtype=td.float64, requires_grad=True).requires_grad
        copied, shared = torch.tensor(data), torch.from_numpy(data)
        shared[0] = 7.0
        assert data[0] == 7.0 and copied[0] == 0.0 and torch.as_tensor(data, device="cpu")[0] == 7.0
        data[0] = 0.0
        swapped = data.astype(data.dtype.newbyteorder())
        assert torch.as_tensor(swapped).tolist() == [0, 1, 2]
        with pytest.raises(td.errors.TandemError):
            torch.from_numpy(swapped)
        x = torch.zeros(2, 3, device="cpu", dtype=td.float64)
        assert x.new_ones(2).dtype is td.float64 and x.new_full((2,), 3).tolist() == [3, 3]
        assert x.new_zeros(2, device="meta").device == "meta" and torch.eye(2, device="cpu").shape == (2, 2)
        assert td.jit(lambda x: x.new_zeros(2, 3) + 1.0)(x).tolist() == [[1.0] * 3] * 2
