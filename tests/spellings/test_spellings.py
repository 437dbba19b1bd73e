"""Other spellings of calls: names of NumPy and PyTorch, sizes one by one, options by position, ``out``."""

import gc
import inspect
import sys

import numpy as np
import pytest
import tandem as td
from hypothesis import given
from hypothesis import strategies as st
from tandem.operators.declare.declaration import declared_operators
from tandem.registry.respelled_calls import spellings_of
from tandem.registry.schemas.spellings import SPELLINGS

X = td.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def same(one, two):
    assert one.dtype is two.dtype and one.shape == two.shape
    assert np.array_equal(one.numpy(), two.numpy())


@pytest.mark.parametrize("op", declared_operators(), ids=lambda op: op.name)
def test_every_alias_is_the_operator_itself(op):
    for alias in op.decl.aliases:
        assert getattr(td, alias) is getattr(td, op.schema.name)
        if hasattr(td.Tensor, op.schema.name):
            assert getattr(td.Tensor, alias) is getattr(td.Tensor, op.schema.name)


@pytest.mark.parametrize("op", declared_operators(), ids=lambda op: op.name)
def test_spellings_stand_for_arguments_of_the_schema(op):
    spellings = spellings_of(op)
    assert set(spellings.names.values()) <= op.binder.names
    assert not set(spellings.names) & op.binder.names
    for name, others in SPELLINGS.items():
        if name in op.binder.names:
            assert all(other in spellings.names or other in op.binder.names for other in others)


# max, min, var and std with ``dim`` return what PyTorch returns: test_torch_overloads.py
REDUCTIONS = ("sum", "prod", "any", "all", "mean", "argmax", "argmin", "logsumexp")


@given(st.sampled_from(REDUCTIONS), st.integers(-2, 1), st.booleans(), st.booleans())
def test_reductions_take_the_names_of_pytorch(name, axis, keepdims, method):
    function, method_of = getattr(td, name), getattr(X, name)
    wanted = function(X, axis=axis, keepdims=keepdims)
    same(wanted, (method_of if method else lambda **k: function(input=X, **k))(dim=axis, keepdim=keepdims))


def test_overload_takes_out():
    out = td.zeros((2, 3))
    assert td.add(X, X, alpha=3, out=out) is out and td.sub(X, X, alpha=3, out=out) is out
    same(out, X * -2)
    assert td.add(X, X, out=out) is out


def test_options_are_taken_by_position():
    same(td.sum(X, 0, td.float64), td.sum(X, axis=0, dtype=td.float64))
    same(X.sum(1, True), td.sum(X, axis=1, keepdims=True))
    same(td.zeros((2, 3), td.int8), td.zeros((2, 3), dtype=td.int8))
    same(td.full((2,), 7, "int16"), td.full((2,), 7, dtype=td.int16))
    same(td.arange(0, 4, 1, float), td.arange(0, 4, 1, dtype=td.float32))
    same(td.eye(2, 3, 1), td.eye(2, 3, k=1))
    same(td.tril(X, -1), td.tril(X, k=-1))
    same(td.sum(X, 0, None, None, True), td.sum(X, axis=0, keepdims=True))


def test_round_takes_decimals_by_position():
    x = td.asarray([1.26, -123.45, 2.5])
    for call in (lambda x: x.round(1), lambda x: td.round(x, 1), lambda x: td.round(x, decimals=1)):
        same(td.asarray(np.round(x.numpy(), 1)), call(x))
        same(call(x), td.jit(call)(x))
    same(td.round(x, -2), td.asarray(np.round(x.numpy(), -2)))
    assert td.round(x).tolist() == np.round(x.numpy()).tolist()
    with pytest.raises(TypeError):
        x.round(1, 2)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_sizes_are_taken_one_by_one(name):
    function = getattr(td, name)
    assert function(2, 3).shape == function((2, 3)).shape == function(size=(2, 3)).shape == (2, 3)
    assert function(2, 3, dtype=td.int8).dtype is td.int8
    with pytest.raises(TypeError):
        function(2, "3")


def test_axes_are_taken_one_by_one():
    x = td.asarray(np.arange(24.0).reshape(2, 3, 4))
    same(x.reshape(4, -1), td.reshape(x, (4, -1)))
    same(td.reshape(x, 4, 6), td.reshape(x, (4, 6)))
    same(x.permute(2, 0, 1), td.permute(x, (2, 0, 1)))
    same(x.transpose(2, 0, 1), td.permute(x, (2, 0, 1)))
    same(x.flip(0, 1), td.flip(x, (0, 1)))
    same(x.tile(2, 1, 1), td.tile(x, (2, 1, 1)))


def test_hot_calls_with_sizes_one_by_one_hold_no_references():
    x, leaf = td.asarray(np.arange(6.0).reshape(2, 3)), td.asarray(np.ones((2, 3)), requires_grad=True)
    calls = [
        lambda: x.reshape(3, 2),
        lambda: x.permute(1, 0),
        lambda: td.reshape(x, 1, -1),
        lambda: leaf.reshape(6, 1),
    ]
    calls += [lambda: x.broadcast_to(4, 2, 3)]
    wanted = [(3, 2), (3, 2), (1, 6), (6, 1), (4, 2, 3)]
    for call, shape in zip(calls, wanted):
        for _ in range(20):
            assert call().shape == shape
        gc.collect()
        before = [sys.getrefcount(value) for value in (x, leaf, x.numpy(), td.Tensor, 1_000_003)]
        for _ in range(5_000):  # each that keeps a reference would count
            call()
        gc.collect()
        after = [sys.getrefcount(value) for value in (x, leaf, x.numpy(), td.Tensor, 1_000_003)]
        assert all(abs(one - two) < 20 for one, two in zip(after, before))
    (leaf.reshape(3, 2) * 2.0).sum().backward()
    assert leaf.grad.tolist() == [[2.0] * 3] * 2
    for _ in range(20):
        with pytest.raises(ValueError, match="reshape"):
            x.reshape(4, 2)
        with pytest.raises(TypeError):
            x.reshape(2, "3")


def test_axes_and_sizes_may_be_none_at_all():
    one = td.asarray(3.0)
    for result in (one.permute(*one.shape), one.reshape(*one.shape), td.ones((1, 1)).reshape(), one.tile()):
        assert result.shape == ()
    with pytest.raises(TypeError, match="needs argument 'shape'"):
        td.zeros()


def test_out_is_written_and_returned():
    out = td.zeros((2,))
    assert td.sum(X, axis=1, out=out) is out and out.tolist() == [6.0, 15.0]
    whole = td.zeros((2, 3))
    assert td.add(X, X, whole) is whole and whole.tolist() == (X + X).tolist()
    assert td.add(X, X, out=None).tolist() == whole.tolist()
    assert td.add(X, X, out=(whole,)) is whole
    wide = td.zeros((2, 3), dtype=td.float64)
    assert td.exp(X, out=wide) is wide and wide.dtype is td.float64
    with pytest.raises(TypeError, match="cannot be written"):
        td.add(X, X, out=td.zeros((2, 3), dtype=td.int32))
    with pytest.raises(ValueError, match="shape"):
        td.add(X, X, out=td.zeros((3,)))
    with pytest.raises(TypeError, match="must be a Tensor"):
        td.add(X, X, out=np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: td.sum(X, axis=0, dim=0), "twice"),
        (lambda: td.sum(X, 0, dim=0), "twice"),
        (lambda: td.sum(X, input=X), "twice"),
        (lambda: td.sum(X, axs=0), "did you mean 'axis'"),
        (lambda: td.sum(X, 0, "rows"), "fits no option"),
        (lambda: X.cumsum(0, order="F"), "no argument 'order'"),
    ],
)
def test_wrong_spellings_raise(call, text):
    for _ in range(4):
        with pytest.raises(TypeError, match=text):
            call()


def test_jitted_calls_take_the_same_spellings():
    function = td.jit(lambda x: td.concatenate([x.sum(dim=0, keepdim=True), x.reshape(2, -1)], dim=0))
    same(function(X), td.concat([X.sum(axis=0, keepdims=True), X], axis=0))
    assert "dim=" not in str(function.lower(X).graph if hasattr(function.lower(X), "graph") else "")


def test_unknown_names_are_answered_with_near_ones():
    for wrong, right in (
        ("concatnate", "td.concatenate"),
        ("arg_max", "td.argmax"),
        ("randn", "td.random.normal"),
    ):
        with pytest.raises(AttributeError, match=right.replace(".", r"\.")):
            getattr(td, wrong)
    assert not hasattr(td, "no_such_thing_at_all")


def test_namespaces_have_the_names_of_tandem():
    import tandem.jax
    import tandem.numpy
    import tandem.torch

    for namespace in (tandem.numpy, tandem.torch, tandem.jax):
        assert getattr(namespace.sin, "__wrapped__", td.sin) in (td.sin, td.sin.__wrapped__)
        assert "sin" in dir(namespace) and "concatenate" in dir(namespace)
        with pytest.raises(AttributeError, match="concatenate"):
            namespace.concatnate  # noqa: B018
        assert inspect.ismodule(namespace) and namespace.__name__.startswith("tandem.")


VIEWS = {
    "flip": lambda x, y: td.flip(x, 0, y),
    "permute": lambda x, y: td.permute(x, (1, 0), y),
    "squeeze": lambda x, y: td.squeeze(x, 0, y),
    "broadcast_to": lambda x, y: td.broadcast_to(x, (1, 3), y),
    "expand_dims": lambda x, y: td.expand_dims(x, 0, y),
}


@pytest.mark.parametrize("name", VIEWS)
def test_tensor_after_the_arguments_of_a_view_is_not_out(name):
    x, y = td.ones((1, 3)), td.zeros((1, 3))
    with pytest.raises(TypeError, match="positional arguments"):
        VIEWS[name](x, y)
    assert not y.any()


@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_atleast_nd_takes_several_tensors(name):
    for arrays in (
        [np.array(3.0)],
        [np.ones(2), np.array(1)],
        [np.ones((2, 3)), np.ones(4), np.ones((1, 1, 1, 1))],
    ):
        wanted = getattr(np, name)(*arrays)
        for namespace in (td, np, td.numpy):
            result = getattr(namespace, name)(*map(td.asarray, arrays))
            assert type(result) is type(wanted) or len(arrays) == 1
            pairs = [(result, wanted)] if len(arrays) == 1 else zip(result, wanted, strict=True)
            assert all(type(one) is td.Tensor and one.tolist() == other.tolist() for one, other in pairs)
    assert td.jit(getattr(td, name))(td.ones(2)).tolist() == getattr(np, name)(np.ones(2)).tolist()
