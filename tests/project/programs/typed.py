"""A user's program: type checkers accept it, with the types that ``assert_type`` names, and it runs."""

import math
import operator
from typing import NamedTuple, assert_type

import numpy as np
import tandem as td


class Params(NamedTuple):
    """The parameters of a layer."""

    weight: td.Tensor
    bias: td.Tensor


def init(key: td.random.Key, sizes: tuple[int, int]) -> Params:
    """Draw a weight, and set the bias to zero."""
    first, _ = td.random.split(key)
    weight = td.random.normal(first, sizes) * math.sqrt(2 / sizes[0])
    assert_type(weight, td.Tensor)
    return Params(weight, td.zeros(sizes[1]))


def predict(params: Params, x: td.Tensor) -> td.Tensor:
    """A layer and its activation."""
    return td.relu(x @ params.weight + params.bias)


def loss(params: Params, x: td.Tensor, y: td.Tensor) -> td.Tensor:
    """The cross entropy of a batch."""
    return td.cross_entropy(td.log_softmax(predict(params, x)), y)


@td.jit
def step(params: Params, x: td.Tensor, y: td.Tensor) -> tuple[td.Tensor, Params]:
    """A step of gradient descent."""
    value, grads = td.value_and_grad(loss)(params, x, y)
    moved: Params = td.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return value, moved


@td.jit(static_argnames="power")
def norm(x: td.Tensor, power: int = 2) -> td.Tensor:
    """A norm of a vector; the power is fixed for each specialization."""
    return (x.abs() ** power).sum() ** (1 / power)


class Model:
    """A jitted method binds as a function does."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    @td.jit
    def forward(self, x: td.Tensor) -> td.Tensor:
        """Scale a tensor."""
        return x * self.scale


@td.no_grad
def accuracy(params: Params, x: td.Tensor, y: td.Tensor) -> float:
    """The share of right predictions."""
    with td.no_grad():
        hits = predict(params, x).argmax(axis=-1) == y
    return float(hits.astype("float32").mean())


def train() -> float:
    """Train a layer on random data."""
    rng = np.random.default_rng(0)
    params = init(td.random.key(0), (4, 3))
    x, y = td.asarray(rng.normal(size=(8, 4)), dtype="float32"), td.asarray(rng.integers(0, 3, 8))
    values: list[float] = []
    for _ in range(3):
        value, params = step(params, x, y)
        assert_type(value, td.Tensor)
        assert_type(params, Params)
        values.append(value.item())
    assert values[-1] < values[0]
    assert_type(step.cache_info().misses, int)
    return accuracy(params, x, y)


def index() -> td.Tensor:
    """Subscripts, views and updates."""
    x = td.arange(12, dtype=td.float32).reshape((3, 4))
    row, column, item = x[0], x[:, 1], x[1, 2]
    assert_type(row, td.Tensor)
    assert_type(item, td.Tensor)
    assert_type(x[..., None, ::2], td.Tensor)
    assert_type(x[x > 3], td.Tensor)
    updated = x.at[0, 1:].add(1.0).at[td.asarray([1, 2])].set(0, mode="drop")
    assert_type(updated, td.Tensor)
    x[0] = 2.0
    x += 1
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, td.DType)
    first, *rest = td.split(x, 2, axis=1)
    assert_type(first, td.Tensor)
    return td.concat([row, column, item[None], *(part.ravel() for part in rest)])


def loops() -> td.Tensor:
    """Control flow whose bodies are traced."""

    def body(carry: td.Tensor, x: td.Tensor) -> tuple[td.Tensor, td.Tensor]:
        return carry + x, carry * x

    xs = td.ones((4, 2))
    carry, ys = td.scan(body, td.zeros(2), xs)
    total: td.Tensor = td.fori_loop(0, 3, lambda i, value: value + i, carry)
    total = td.while_loop(lambda value: value.sum() < 20, lambda value: value * 2, total + 1)
    total = td.cond(total.sum() > 3, lambda v: v + 1, lambda v: v - 1, total)
    total = td.switch(1, [lambda v: v, lambda v: 2 * v], total)
    sums: td.Tensor = td.associative_scan(operator.add, ys)
    mapped: td.Tensor = td.map(lambda x: x.sum(), xs)
    return total + sums[-1] + mapped[0]


def transforms() -> td.Tensor:
    """Gradients, batches, and their combinations."""

    def energy(x: td.Tensor) -> td.Tensor:
        return td.sum(x**2) / 2 + td.linalg.norm(td.real(td.fft.fft(x)))

    x = td.linspace(0.0, 1.0, 4)
    gradient: td.Tensor = td.jit(td.grad(energy))(x)
    batched: td.Tensor = td.vmap(td.grad(energy), in_axes=0)(td.stack([x, 2 * x]))
    hessian: td.Tensor = td.hessian(energy)(x)
    value, pull_back = td.vjp(energy, x)
    cotangent: td.Tensor = pull_back(td.ones_like(value))[0]
    checkpointed = td.checkpoint(energy)(x)
    assert_type(checkpointed, td.Tensor)
    assert_type(td.stop_gradient(x), td.Tensor)
    w = td.asarray([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    assert w.grad is not None
    assert_type(w.grad, td.Tensor)
    return gradient + batched.sum(axis=0) + hessian.sum(0) + cotangent + td.sum(checkpointed)


def trees() -> float:
    """Nested containers of tensors."""
    tree = {"a": td.ones(2), "b": [td.zeros(3), 2.0]}
    total: td.Tensor = td.tree.reduce(operator.add, td.tree.map(td.sum, tree))
    leaves, definition = td.tree.flatten(tree)
    same: dict[str, object] = td.tree.unflatten(definition, leaves)
    assert same.keys() == tree.keys()
    return float(total)


@td.custom_op("docs::typed_sin", device_types="cpu")
def typed_sin(x: td.Tensor) -> td.Tensor:
    """An operator of NumPy's sine."""
    return td.asarray(np.sin(x.numpy()))


@typed_sin.register_fake
def _(x: td.Tensor) -> td.Tensor:
    return td.empty_like(x)


def main() -> None:
    """Run everything."""
    assert_type(td.zeros((2, 3)) + 1, td.Tensor)
    assert_type(np.float32(2) * td.ones(2), td.Tensor)
    assert 0 <= train() <= 1
    assert index().shape == (14,)
    assert loops().shape == (2,)
    assert transforms().shape == (4,)
    assert trees() == 4.0
    assert Model(2.0).forward(td.ones(2)).tolist() == [2.0, 2.0]
    assert float(norm(td.asarray([3.0, 4.0]))) == 5.0
    typed_sin(td.zeros(2))
    typed_sin.remove()
