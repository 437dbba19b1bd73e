"""Autocast: every operator of the table compared with explicit casts.

Also contexts, the weight cache, gradients, transforms and jit.
"""

import numpy as np
import optable
import pytest
import tandem as td
from rotation import rotating
from tandem.eager.layers import autocast as layer
from tandem.eager.tensor.tensor import Tensor
from tandem.operators.declare.declaration import declared_operators
from tandem.registry.dtypes import bfloat16, float16, float32, float64

TABLE = optable.table()
HALVES = (bfloat16, float16)


def random(*shape, dtype=float32):
    rng = np.random.default_rng(len(shape) + sum(shape))
    return td.asarray(rng.uniform(-1, 1, shape).astype(np.float32)).astype(dtype)


def equal(one, two):
    one, two = (x if isinstance(x, tuple) else (x,) for x in (one, two))
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape
        assert a._array.tobytes() == b._array.tobytes()


# --- the table --------------------------------------------------------------------------------------------


def eligible(value):
    return isinstance(value, Tensor) and value.dtype in (float16, bfloat16, float32)


def by_hand(policy, lower, args, kwargs):
    """The arguments as a person would cast them who has read what the policies mean."""
    seen = []
    optable.replace((args, kwargs), Tensor, lambda x: seen.append(x) if eligible(x) else None)
    if policy == "promote" and seen:
        target = seen[0].dtype if len({x.dtype for x in seen}) == 1 else float32
    else:
        target = {"lower": lower}.get(policy, float32)
    return optable.replace(
        (args, kwargs), Tensor, lambda x: td.astype(x, target, copy=False) if eligible(x) else x
    )


def elu_by_hand(x, alpha=1.0):
    small = td.minimum(x, 0)
    return td.where(x > 0, x, td.expm1(small.astype(float32) if eligible(small) else small) * alpha)


# What is made of operators and has no policy of its own: its parts have theirs.
PARTS = {"elu": elu_by_hand}


@rotating
@pytest.mark.parametrize("name", TABLE)
@td.exclude_keys(
    "Profiler"
)  # both by the Python dispatcher: emitted code may round the last digit differently
def test_is_the_cast_by_hand(name):
    op = TABLE[name]
    function = td.ops.td.__getattr__(op.schema.name).__getattr__(op.schema.overload or "default")
    for dtype in (float32, float16, bfloat16, float64, td.int32, td.bool_):
        rng = optable.generator(op, dtype)
        for sample in optable.samples_of(op, dtype) if dtype in op.decl.dtypes else ():
            args, kwargs = optable.to_tensors(optable.arrays_of(sample, dtype, rng))
            for lower in HALVES:
                wanted = (
                    by_hand(op.decl.autocast, lower, args, kwargs) if op.decl.autocast else (args, kwargs)
                )
                try:
                    expected = PARTS.get(name, function)(*wanted[0], **wanted[1])
                except td.errors.TandemError as fault:
                    with pytest.raises(type(fault)), td.autocast("cpu", lower):
                        function(*args, **kwargs)
                    continue
                with td.autocast("cpu", lower):
                    found = function(*args, **kwargs)
                equal(found, expected)


def test_policies_are_those_of_pytorch():
    lists = pytest.importorskip("torch.testing._internal.autocast_test_lists")
    torch = pytest.importorskip("torch")
    cuda = lists.AutocastTestLists(torch.device("cpu"))
    theirs = {"lower": set(), "float32": set(), "promote": set()}
    for policy, names in (("lower", ("torch_fp16", "nn_fp16")), ("float32", ("torch_fp32", "nn_fp32"))):
        for group in names:
            theirs[policy] |= {row[0] for row in getattr(cuda, group)}
    theirs["promote"] |= {row[0] for row in cuda.torch_need_autocast_promote}
    renamed = {"cat": "concat", "linalg_vecdot": "vecdot"}
    mine = {op.schema.name: op.decl.autocast for op in declared_operators()}
    # tandem's tensordot is a matrix product; PyTorch promotes it and then calls the product
    for policy, names in theirs.items():
        for name in {renamed.get(n, n) for n in names} - {"tensordot"}:
            if name in mine:
                assert mine[name] == policy, name


def test_hot_operators_are_cast_too():
    x, y = random(3, 3, dtype=bfloat16), random(3, 3)
    for _ in range(50):
        with td.autocast("cpu"):
            found = td.exp(x), y @ y, x + x
    equal(found, (td.exp(x.astype(float32)), y.astype(bfloat16) @ y.astype(bfloat16), x + x))


# --- gradients and the cache ------------------------------------------------------------------------------


def casts(run):
    lines = []
    with td.show_dispatch_trace(lines.append):
        run()
    return sum("td::cast" in line and "key=CPU" in line for line in lines)


def test_gradients_flow_through_the_casts():
    x, w = random(4, 3), random(3, 2).requires_grad_()
    with td.autocast("cpu"):
        loss = td.mse_loss(td.tanh(x @ w), random(4, 2))
    loss.backward()
    assert loss.dtype is float32 and w.grad.dtype is float32

    v = w.detach().clone().requires_grad_()
    product = x.astype(bfloat16) @ v.astype(bfloat16)
    td.mse_loss(td.tanh(product).astype(float32), random(4, 2)).backward()
    equal(w.grad, v.grad)

    def by_level(w):
        with td.autocast("cpu"):
            return td.mse_loss(td.tanh(x @ w), random(4, 2))

    equal(td.grad(by_level)(w.detach()), v.grad)
    with td.autocast("cpu"):
        equal(td.grad(lambda w: td.mse_loss(td.tanh(x @ w), random(4, 2)))(w.detach()), v.grad)


@pytest.mark.parametrize("transform", ["grad", "vmap"])
def test_transforms_cast_what_the_user_calls(transform):
    q, mask = random(2, 3, 4), td.asarray(np.tri(3, dtype=bool))

    def loss(q, lower=None):
        parts = (q, q, q) if lower is None else (q.astype(lower), q.astype(lower), q.astype(lower))
        return td.scaled_dot_product_attention(*parts, mask).astype(float32).sum()

    def by_hand(q):
        return loss(q, bfloat16)

    found = getattr(td, transform)(td.autocast("cpu")(loss))(q)
    wanted = getattr(td, transform)(by_hand)(q)
    np.testing.assert_allclose(
        found.numpy(), wanted.numpy(), rtol=1e-6
    )  # the gradients are added in another order
    softmax = td.vmap(td.softmax)
    with td.autocast("cpu"):
        found, wanted = softmax(q.astype(bfloat16)), td.softmax(q.astype(bfloat16).astype(float32))
    assert found.dtype is wanted.dtype is float32
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)  # a hot operator rounds by itself


def test_a_weight_is_cast_once():
    x, w = random(3, 3, dtype=bfloat16), random(3, 3).requires_grad_()

    def twice():
        with td.autocast("cpu"):
            x @ w
            with td.autocast("cpu"):
                return x @ w

    assert casts(twice) == 1
    assert not layer.settings.cache

    def uncached():
        with td.autocast("cpu", cache_enabled=False):
            x @ w
            return x @ w

    assert casts(uncached) == 2
    plain = w.detach()

    def not_a_weight():
        with td.autocast("cpu"):
            x @ plain
            return x @ plain

    assert casts(not_a_weight) == 2


def test_a_weight_written_in_place_is_cast_again():
    x, w = random(3, 3, dtype=bfloat16), random(3, 3).requires_grad_()
    with td.autocast("cpu"):
        x @ w
        with td.no_grad():
            w += 1
        found = x @ w
        with td.no_grad():
            w.detach()[0] = 7.0
        again = x @ w
    with td.no_grad():
        equal(again.detach(), x @ w.astype(bfloat16))
        w[0] = random(3, 3)[0] + 1
        equal(found.detach(), x @ w.astype(bfloat16))


def test_unrecorded_cast_is_not_reused_when_recording():
    x, w = random(3, 3, dtype=bfloat16), random(3, 3).requires_grad_()
    with td.autocast("cpu"):
        with td.no_grad():
            assert not (x @ w).requires_grad
        loss = (x @ w).sum()
    loss.backward()
    assert w.grad is not None


def test_weight_cache_holds_no_reference_to_weight():
    import gc
    import weakref

    x = random(3, 3, dtype=bfloat16)
    with td.autocast("cpu"):
        w = random(3, 3).requires_grad_()
        x @ w
        ref = weakref.ref(w)
        del w
        gc.collect()
        assert ref() is None
        w = random(3, 3).requires_grad_()
        (x @ w).sum().backward()
        first = w.grad.clone()
        (x @ w).sum().backward()
        equal(w.grad, first + first)


# --- jit, custom operators, overriding --------------------------------------------------------------------


def test_jit_around_and_inside():
    f = td.jit(lambda x, w: (x @ w, td.exp(x)))
    x, w = random(2, 3), random(3, 4)
    assert f(x, w)[0].dtype is float32
    for dtype in HALVES:
        with td.autocast("cpu", dtype):
            product, exponential = f(x, w)
        assert product.dtype is dtype and exponential.dtype is float32
        equal(product, x.astype(dtype) @ w.astype(dtype))
    assert f(x, w)[0].dtype is float32
    assert f.cache_info().specializations == 3
    g = td.jit(lambda x: td.exp(x))
    with td.autocast("cpu"):
        g(x)
    with td.autocast("cpu", td.float16):
        assert "autocast was bfloat16 on cpu, and is float16 on cpu" in g.explain(x)

    @td.jit
    def g(x, w):
        with td.autocast("cpu"):
            y = x @ w
        return y, y.sum(), x @ w

    y, total, full = g(x, w)
    assert (y.dtype, total.dtype, full.dtype) == (bfloat16, bfloat16, float32)
    equal(y, x.astype(bfloat16) @ w.astype(bfloat16))


def test_a_policy_for_an_operator_from_outside():
    with td.Library("autocast_test", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x + x, "CPU")
        op = td.ops.autocast_test.twice.default
        x = random(3)
        with td.autocast("cpu"):
            assert op(x).dtype is float32
            td.autocast.set_policy(op, "lower")
            assert op(x).dtype is bfloat16
            td.autocast.set_policy(op, "")
            assert op(x).dtype is float32


def test_overridden_for_one_operator():
    x = random(3, dtype=bfloat16)

    def precise(x):
        with td.exclude_keys("Autocast"):
            return td.exp(x.astype(float64))

    with td.autocast("cpu"):
        assert td.exp(x).dtype is float32
        with td.Library("td", "IMPL") as lib:
            lib.impl("exp", precise, "Autocast")
            assert td.exp(x).dtype is float64
            assert td.grad(lambda x: td.exp(x).sum().astype(float32))(random(3)).dtype is float32
        with td.Library("td", "IMPL") as lib:
            lib.impl("exp", td.fallthrough, "Autocast")
            assert td.exp(x).dtype is bfloat16
            assert td.log(x).dtype is float32
        assert td.exp(x).dtype is float32


def test_a_changed_policy_is_seen_by_jit():
    f = td.jit(lambda x: td.hypot(x, x))
    x = random(3, dtype=bfloat16)
    with td.autocast("cpu"):
        assert f(x).dtype is bfloat16
        td.autocast.set_policy(td.hypot, "float32")
        assert f(x).dtype is float32
        td.autocast.set_policy(td.hypot, "")
        assert f(x).dtype is bfloat16


@pytest.mark.parametrize("bias", [True, False])
def test_linear_layers_run_in_the_lower_precision(bias):
    layer, x = td.nn.Linear(3, 2, bias=bias), td.ones((4, 3))
    with td.autocast("cpu", dtype=td.bfloat16):
        y = layer(x)
        z = td.jit(lambda layer, x: layer(x))(layer, x)
        assert layer(y @ td.ones((2, 3))).dtype is td.bfloat16
        assert td.nn.MultiheadAttention(4, 2)(*[td.ones((3, 2, 4))] * 3)[0].dtype is td.bfloat16
    assert y.dtype is z.dtype is td.bfloat16 and layer(x).dtype is td.float32
    y.sum().backward()
    assert layer.weight.grad.dtype is td.float32
    assert td.nn.functional.linear(x, layer.weight.detach(), td.ones(2, dtype=td.float64)).dtype is td.float64
