"""Benchmarks of gradients: backward of an eager chain, a jitted loss and its backward pass, per-example gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, beside, warmed
from tandem import lazy
from tandem.cli.overhead.measure import Case, interleave
from tandem.cli.overhead.peers import import_jax
from tandem.cli.overhead.workloads import chain, chain_arrays

SIZE, LENGTH, BATCH, EXAMPLES = 16, 10, 32, 256


def torch() -> Any:
    module = lazy.module("torch")
    module.set_num_threads(1)
    return module


def backward_case(function: Callable[..., Any], leaves: list[Any], *args: Any) -> Case:
    """A call and its backward pass, from leaves without gradients."""

    def run() -> None:
        for leaf in leaves:
            leaf.grad = None
        result = function()
        result.backward(*args)

    return warmed(Case("run()", {"run": run}))


def chain_case(leaf: Callable[[np.ndarray], Any], one: Any) -> Case:
    function, leaves = chain(LENGTH), [leaf(array) for array in chain_arrays(SIZE)]
    return backward_case(lambda: function(*leaves), leaves, one)


def eager_backward(seconds: float) -> list[Finding]:
    ours = chain_case(lambda array: td.asarray(array, requires_grad=True), td.ones(SIZE))
    theirs = None
    if lazy.is_installed("torch"):
        th = torch()
        theirs = chain_case(lambda array: th.tensor(array, requires_grad=True), th.ones(SIZE))
    return beside(ours, {"torch": theirs}, {"torch": 0.5}, seconds)


# --- the network of examples/digits.py ----------------------------------------------------------------------


def digits_arrays(count: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    params = {
        "w1": random.standard_normal((64, 128)).astype(np.float32) * np.float32((2 / 64) ** 0.5),
        "b1": np.zeros(128, np.float32),
        "w2": random.standard_normal((128, 10)).astype(np.float32) * np.float32((2 / 128) ** 0.5),
        "b2": np.zeros(10, np.float32),
    }
    return params, random.random((count, 64)).astype(np.float32), random.integers(0, 10, count)


def loss_with(tanh: Callable[[Any], Any], cross_entropy: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def loss(params: dict[str, Any], x: Any, y: Any) -> Any:
        hidden = tanh(x @ params["w1"] + params["b1"])
        return cross_entropy(hidden @ params["w2"] + params["b2"], y)

    return loss


def loss_case(function: Callable[..., Any], leaf: Callable[[Any], Any], array: Callable[[Any], Any]) -> Case:
    params, x, y = digits_arrays(BATCH)
    placed, x, y = {name: leaf(value) for name, value in params.items()}, array(x), array(y)
    return backward_case(lambda: function(placed, x, y), list(placed.values()))


def jitted_loss(seconds: float) -> list[Finding]:
    ours = td.jit(loss_with(td.tanh, td.cross_entropy))
    cases: dict[str, Case | None] = {"torch.compile": None, "PyTorch, eager": None}
    if lazy.is_installed("torch"):
        th = torch()
        theirs = loss_with(th.tanh, th.nn.functional.cross_entropy)

        def leaf(array: Any) -> Any:
            return th.tensor(array, requires_grad=True)

        cases = {
            "torch.compile": loss_case(th.compile(theirs), leaf, th.tensor),
            "PyTorch, eager": loss_case(theirs, leaf, th.tensor),
        }
    bounds = {"torch.compile": 0.5, "PyTorch, eager": 0.7}
    case = loss_case(ours, lambda array: td.asarray(array, requires_grad=True), td.asarray)
    present = {name: other for name, other in cases.items() if other is not None}
    times = interleave({"tandem": case, **present}, seconds=seconds)
    return [
        Finding(
            name, times["tandem"].median / times[name].median, bound, f"{times[name].median / 1e3:.0f} us"
        )
        if name in present
        else Finding(name, None, bound, "torch is not installed")
        for name, bound in bounds.items()
    ]


def examples_case(
    function: Callable[..., Any], array: Callable[[Any], Any], wait: Callable[[Any], Any]
) -> Case:
    params, x, y = digits_arrays(EXAMPLES)
    names = {"p": {name: array(value) for name, value in params.items()}, "x": array(x), "y": array(y)}
    return warmed(Case("wait(f(p, x, y))", {"f": function, "wait": wait, **names}), 10)


def gradients_of_examples(seconds: float) -> list[Finding]:
    axes = (None, 0, 0)
    ours = td.jit(td.vmap(td.grad(loss_with(td.tanh, td.cross_entropy)), axes))
    theirs = None
    if lazy.is_installed("jax"):
        module = import_jax()
        loss = loss_with(module.numpy.tanh, lambda logits, y: -module.nn.log_softmax(logits)[y])
        function = module.jit(module.vmap(module.grad(loss), axes))
        theirs = examples_case(function, module.numpy.asarray, module.block_until_ready)
    return beside(examples_case(ours, td.asarray, lambda tree: tree), {"jax": theirs}, {"jax": 1.0}, seconds)


ROWS = [
    Row("eager chain of 10 and its backward pass, float32[16]", eager_backward),
    Row("jitted loss of the digits network and backward(), batch 32", jitted_loss),
    Row("gradients of each example of the digits network, jitted, batch 256", gradients_of_examples),
]
