"""``tandem.torch`` and PyTorch's overloads compared with PyTorch, where it is installed."""

import numpy as np
import pytest
import tandem as td
import tandem.torch

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X = RNG.permutation(24).reshape(2, 3, 4).astype(np.float32)
WITH_NAN = np.array([[1.0, np.nan, 2.0, 5.0], [3.0, 4.0, 1.0, 2.0]], np.float32)
TIES = np.array([[2, 1, 2, 1, 3], [0, 0, 1, 1, 1]])

METHODS = {
    "max": lambda x: x.max(dim=1),
    "max keepdim": lambda x: x.max(0, keepdim=True),
    "min": lambda x: x.min(dim=-1, keepdim=True),
    "median": lambda x: x.median(dim=-1),
    "nanmedian": lambda x: x.nanmedian(dim=-1),
    "sort": lambda x: x.sort(dim=1, descending=True),
    "sort stable": lambda x: x.sort(dim=-1, stable=True),
    "std": lambda x: x.std(dim=1),
    "var": lambda x: x.var(dim=(0, 1), unbiased=False, keepdim=True),
    "var correction": lambda x: x.var(dim=-1, correction=2),
    "topk": lambda x: x.topk(2, dim=-1),
    "topk smallest": lambda x: x.topk(2, dim=-1, largest=False),
    "kthvalue": lambda x: x.kthvalue(2, dim=1, keepdim=True),
    "cummax": lambda x: x.cummax(dim=-1),
    "cummin": lambda x: x.cummin(dim=0),
    "aminmax": lambda x: x.aminmax(dim=-1, keepdim=True),
}
FUNCTIONS = {
    "max": lambda m, x: m.max(x, 1),
    "max of all": lambda m, x: m.max(x),
    "max of two": lambda m, x: m.max(x, x * 0.5 + 3.0),
    "min": lambda m, x: m.min(x, -1, True),
    "median": lambda m, x: m.median(x),
    "median along": lambda m, x: m.median(x, -1),
    "nanmedian": lambda m, x: m.nanmedian(x),
    "std": lambda m, x: m.std(x),
    "std of population": lambda m, x: m.std(x, False),
    "var": lambda m, x: m.var(x, 1, True, True),
    "std_mean": lambda m, x: m.std_mean(x, -1),
    "var_mean": lambda m, x: m.var_mean(x, -1, correction=0),
    "sort": lambda m, x: m.sort(x, 1, True),
    "argsort": lambda m, x: m.argsort(x, 0),
    "topk": lambda m, x: m.topk(x, 1, 0, False),
    "kthvalue": lambda m, x: m.kthvalue(x, 2, -1, True),
    "split": lambda m, x: m.split(x, 2, -1),
    "split sizes": lambda m, x: m.split(x, [1, 3], -1),
    "chunk": lambda m, x: m.chunk(x, 3, -1),
    "tensor_split": lambda m, x: m.tensor_split(x, 3, -1),
    "transpose": lambda m, x: m.transpose(x, 0, 1),
    "tile": lambda m, x: m.tile(x, (2, 1, 1)),
    "repeat_interleave": lambda m, x: m.repeat_interleave(x, 2, 0),
    "nonzero": lambda m, x: m.nonzero(x > 2),
    "nonzero as tuple": lambda m, x: m.nonzero(x > 2, as_tuple=True),
    "argwhere": lambda m, x: m.argwhere(x > 2),
    "where": lambda m, x: m.where(x > 2),
    "where of three": lambda m, x: m.where(x > 2, x, -x),
    "masked_select": lambda m, x: m.masked_select(x, x > 2),
    "index_select": lambda m, x: m.index_select(x, -1, m.tensor([2, 0])),
    "gather": lambda m, x: m.gather(x, 0, m.zeros(x.shape, dtype=m.int64)),
    "narrow": lambda m, x: m.narrow(x, -1, 1, 2),
    "meshgrid": lambda m, x: m.meshgrid(x.reshape(-1)[:3], x.reshape(-1)[:2], indexing="ij"),
    "sum": lambda m, x: m.sum(x, 1, True),
    "mean": lambda m, x: m.mean(x, dim=-1, keepdim=True),
    "prod": lambda m, x: m.prod(x, 1),
    "logsumexp": lambda m, x: m.logsumexp(x, -1),
    "cumsum": lambda m, x: m.cumsum(x, dim=1),
    "flatten": lambda m, x: m.flatten(x, 1),
    "add": lambda m, x: m.add(x, x, alpha=2),
    "div": lambda m, x: m.div(x, -3.0, rounding_mode="trunc"),
    "div floor": lambda m, x: m.div(x, -3.0, rounding_mode="floor"),
    "unique": lambda m, x: m.unique(x[x == x], return_inverse=True, return_counts=True),
    "quantile": lambda m, x: m.quantile(x, 0.3, -1),
    "cross": lambda m, x: m.cross(x.reshape(-1)[:3], x.reshape(-1)[1:4], dim=0),
}


def as_parts(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def check(ours, theirs):
    assert len(as_parts(ours)) == len(as_parts(theirs))
    for one, two in zip(as_parts(ours), as_parts(theirs)):
        assert one.shape == tuple(two.shape)
        assert np.allclose(one.numpy(), two.numpy(), rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("array", [X, WITH_NAN], ids=["numbers", "with NaN"])
def test_methods_agree_with_pytorch(name, array):
    if name == "var" and array is WITH_NAN:
        array = array[None]
    ours, theirs = METHODS[name](td.asarray(array)), METHODS[name](torch.from_numpy(array))
    check(ours, theirs)
    if hasattr(ours, "_fields") and hasattr(theirs, "indices"):
        assert ours._fields == ("values", "indices")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("array", [X, WITH_NAN], ids=["numbers", "with NaN"])
def test_functions_agree_with_pytorch(name, array):
    check(FUNCTIONS[name](tandem.torch, td.asarray(array)), FUNCTIONS[name](torch, torch.from_numpy(array)))


def test_ties_agree_with_pytorch():
    ours, theirs = td.asarray(TIES), torch.from_numpy(TIES)
    for name in ("cummax", "cummin"):
        check(getattr(ours, name)(dim=1), getattr(theirs, name)(dim=1))
    check(ours.mode(dim=1).values, theirs.mode(dim=1).values)
    check(ours.max(dim=1), theirs.max(dim=1))


@pytest.mark.parametrize(
    "name", ["max", "median", "sort", "topk", "kthvalue", "cummax", "cummin", "std", "var"]
)
def test_gradients_agree_with_pytorch(name):
    theirs = torch.from_numpy(X).clone().requires_grad_()
    first = METHODS[name](theirs)
    weights = RNG.normal(size=tuple((first if name in ("std", "var") else first[0]).shape)).astype(np.float32)
    ((first if name in ("std", "var") else first[0]) * torch.from_numpy(weights)).sum().backward()

    def loss(x):
        result = METHODS[name](x)
        return ((result if name in ("std", "var") else result[0]) * td.asarray(weights)).sum()

    assert np.allclose(td.grad(loss)(td.asarray(X)).numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)
