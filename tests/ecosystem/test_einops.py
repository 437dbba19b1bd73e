"""einops finds the backend of tensors, whichever package is imported first, eager, traced and under transforms."""

import subprocess
import sys

import numpy as np
import pytest
import tandem as td

einops = pytest.importorskip("einops")

A = np.arange(24.0).reshape(2, 3, 4)
CALLS = {
    "rearrange": lambda x: einops.rearrange(x, "a b c -> c (a b)"),
    "split": lambda x: einops.rearrange(x, "a b (c d) -> (a c) b d", d=2),
    "repeat": lambda x: einops.repeat(x, "a b c -> a (b r) c s", r=2, s=3),
    "einsum": lambda x: einops.einsum(x, x, "a b c, a b d -> c d"),
    "list": lambda x: einops.rearrange([x[0], x[1]], "n b c -> b (n c)"),
    "pack": lambda x: einops.pack([x, x[..., 0]], "a b *")[0],
    "unpack": lambda x: einops.unpack(x, [[2], [2]], "a b *")[1],
    **{
        name: lambda x, name=name: einops.reduce(x, "a (b d) c -> b c", name, d=3)
        for name in ("mean", "sum", "min", "max", "prod")
    },
}


@pytest.mark.parametrize("run", [lambda f: f, td.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_agree_with_numpy(name, run):
    result = run(CALLS[name])(td.asarray(A))
    assert type(result) is td.Tensor
    np.testing.assert_allclose(result.numpy(), CALLS[name](A))


def test_calls_are_differentiated_and_batched():
    x = td.asarray(A)
    grad = td.grad(lambda x: einops.reduce(x**2, "a b c -> a", "sum").sum())(x)
    np.testing.assert_array_equal(grad.numpy(), 2 * A)
    assert td.vmap(lambda x: einops.rearrange(x, "b c -> c b"))(x).tolist() == A.transpose(0, 2, 1).tolist()
    y = td.asarray(A, requires_grad=True)
    einops.repeat(y, "a b c -> a b c 3").sum().backward()
    assert y.grad.tolist() == np.full(A.shape, 3.0).tolist()


@pytest.mark.parametrize("imports", ["import tandem as td, einops", "import einops, tandem as td"])
def test_order_of_imports_does_not_matter(imports):
    code = f"{imports}\nassert einops.rearrange(td.ones((2, 3)), 'a b -> b a').shape == (3, 2)"
    subprocess.run([sys.executable, "-c", code], check=True)
