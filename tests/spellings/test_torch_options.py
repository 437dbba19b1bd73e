"""Keywords, overloads and dtypes of results that PyTorch's functions have, against recorded values and PyTorch."""

import pickle

import numpy as np
import pytest
import tandem as td
import tandem.torch

try:
    import torch as pytorch
except ImportError:
    pytorch = None

MATRIX = [[1.0, 2.0, 0.0], [4.0, 0.0, 6.0]]
CALLS = {
    "flip": lambda m, x: (m.flip(x, dims=(1,)), m.flip(x, (0, 1)), m.flip(x, dims=[0]), x.flip(dims=(0,))),
    "gradient": lambda m, x: m.gradient(x) + m.gradient(x[0]) + m.gradient(x, dim=0),
    "gradient spacing": lambda m, x: (
        m.gradient(x, spacing=2.0, dim=(0, 1)) + m.gradient(x, spacing=(2.0, 3.0))
    ),
    "gradient positions": lambda m, x: m.gradient(
        x, spacing=[m.tensor([0.0, 2.0]), m.tensor([0.0, 1.0, 3.0])]
    ),
    "nonzero": lambda m, x: x.nonzero(as_tuple=True) + m.nonzero(x, as_tuple=True) + (m.nonzero(x),),
    "type": lambda m, x: (x.type(m.LongTensor), x.type("torch.DoubleTensor"), x.type(m.int32)),
    "softmax": lambda m, x: (
        m.softmax(x, 1, m.float64),
        m.softmax(x, dim=0, dtype=m.float64),
        m.softmax(input=x, dim=-1),
        x.softmax(1, dtype=m.float64),
        m.nn.functional.softmax(x, dim=1, dtype=m.float64),
        m.softmax(x.long(), -1, dtype=m.float32),
    ),
    "log_softmax": lambda m, x: (
        m.log_softmax(x, 1, m.float64),
        x.log_softmax(dim=-1, dtype=m.float64),
        m.nn.functional.log_softmax(x, dim=0, dtype=m.float64),
    ),
}


def run(name, library):
    result = CALLS[name](library, library.tensor(MATRIX))
    return [(str(part.dtype).rpartition(".")[2], part.numpy()) for part in result]


def test_calls_agree_with_recorded_values():
    recorded = {
        "flip": [
            [[0, 2, 1], [6, 0, 4]],
            [[6, 0, 4], [0, 2, 1]],
            [[4, 0, 6], [1, 2, 0]],
            [[4, 0, 6], [1, 2, 0]],
        ],
        "gradient": [[[3, -2, 6]] * 2, [[1, -0.5, -2], [-4, 1, 6]], [1, -0.5, -2], [[3, -2, 6]] * 2],
        "nonzero": [[0, 0, 1, 1], [0, 1, 0, 2]] * 2 + [[[0, 0], [0, 1], [1, 0], [1, 2]]],
        "type": [[[1, 2, 0], [4, 0, 6]]] * 3,
    }
    for name, values in recorded.items():
        assert [array.tolist() for _, array in run(name, td.torch)] == values
    assert [dtype for dtype, _ in run("type", td.torch)] == ["int64", "float64", "int32"]


@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", CALLS)
def test_calls_agree_with_pytorch(name):
    ours, theirs = run(name, td.torch), run(name, pytorch)
    assert [dtype for dtype, _ in ours] == [dtype for dtype, _ in theirs]
    for (_, one), (_, two) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_softmax_keeps_its_gradient_and_compiles():
    x = td.torch.tensor(MATRIX)

    def loss(x):
        return (x.softmax(1, dtype=td.float64) * td.torch.arange(3)).sum()

    expected = td.grad(lambda x: (td.softmax(x.to(td.float64), 1) * td.arange(3)).sum())(x)
    np.testing.assert_allclose(td.grad(loss)(x).numpy(), expected.numpy(), rtol=1e-6)
    np.testing.assert_allclose(td.jit(loss)(x).numpy(), loss(x).numpy(), rtol=1e-12)


def test_finfo_describes_the_default_dtype():
    assert td.torch.finfo() == td.finfo(td.float32) and td.torch.finfo(td.float16) == td.finfo(td.float16)


# -- sums of unsigned integers -----------------------------------------------------------------------------------------
SUMS = {
    "sum": lambda m, x: (m.sum(x), m.sum(x, 0), m.sum(x, dim=(0, 1), keepdim=True)),
    "prod": lambda m, x: (m.prod(x), m.prod(x, 1)),
    "cumsum": lambda m, x: (m.cumsum(x, 0), m.cumsum(x, dim=1)),
    "cumprod": lambda m, x: (m.cumprod(x, 1),),
    "nansum": lambda m, x: (m.nansum(x), m.nansum(x, 1)),
    "trace": lambda m, x: (m.trace(x),),
    "sum of a dtype": lambda m, x: (m.sum(x, 0, dtype=m.uint8), m.sum(x, dtype=m.float32)),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_unsigned_integers_are_int64(name):
    x = td.torch.tensor([[200, 100], [3, 2]], dtype=td.uint8)
    ours = SUMS[name](td.torch, x)
    compiled = td.jit(lambda x: SUMS[name](td.torch, x))(x)
    assert [part.tolist() for part in ours] == [part.tolist() for part in compiled]
    assert [part.dtype for part in ours] == [part.dtype for part in compiled]
    if name != "sum of a dtype":
        assert {part.dtype for part in ours} == {td.int64}
    if pytorch is not None:
        theirs = SUMS[name](pytorch, pytorch.tensor(x.tolist(), dtype=pytorch.uint8))
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


def test_sums_of_other_dtypes_are_those_of_tandem():
    x = td.torch.tensor(MATRIX)
    assert td.torch.sum(x, 1).tolist() == [3.0, 10.0] and td.torch.sum(x, axis=1).tolist() == [3.0, 10.0]
    assert td.torch.sum(x > 1).dtype == td.int64 and td.sum(x.byte()).dtype == td.uint64
    assert pickle.loads(pickle.dumps(td.torch.sum)) is td.torch.sum
    assert pickle.loads(pickle.dumps(td.torch.softmax)) is td.torch.softmax
