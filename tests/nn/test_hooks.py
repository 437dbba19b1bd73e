"""Hooks of modules, in the forward and backward pass, on saving and loading; against values computed by hand."""

import copy

import numpy as np
import pytest
import tandem as td
from tandem import nn
from tandem.errors import ArgumentError

W = np.array([[1.0, -2.0], [3.0, 0.5], [-1.0, 2.0]], np.float32)
X = np.array([[1.0, 2.0]], np.float32)


@pytest.fixture
def layer():
    layer = nn.Linear(2, 3, bias=False)
    layer.load_state_dict({"weight": W})
    return layer


def assert_close(one, two):
    one = one.detach().numpy() if isinstance(one, td.Tensor) else one
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)


def test_forward_hooks_replace_arguments_and_output(layer):
    first = layer.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    second = layer.register_forward_hook(lambda module, args, output: output + 1)
    layer.register_forward_hook(lambda module, args, output: output * 10)
    assert_close(layer(td.asarray(X)), (2 * X @ W.T + 1) * 10)
    first.remove()
    assert_close(layer(td.asarray(X)), (X @ W.T + 1) * 10)
    layer.register_forward_hook(lambda module, args, output: output * 0 + 7, prepend=True)
    assert_close(layer(td.asarray(X)), np.full((1, 3), 80.0))
    with second:
        pass
    assert_close(layer(td.asarray(X)), np.full((1, 3), 70.0))


def test_forward_hooks_take_keywords():
    class Scale(nn.Module):
        def forward(self, x, factor=1.0):
            if factor == 0:
                raise ZeroDivisionError
            return x * factor

    scale, seen = Scale(), []
    scale.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"factor": 3.0} | kwargs), with_kwargs=True
    )
    scale.register_forward_hook(lambda m, args, kwargs, y: y + kwargs["factor"], with_kwargs=True)
    scale.register_forward_hook(lambda m, args, y: seen.append(y), always_call=True)
    assert scale(td.asarray(2.0)).item() == 9.0
    with pytest.raises(ZeroDivisionError):
        scale(td.asarray(2.0), factor=0)
    assert [value if value is None else value.item() for value in seen] == [9.0, None]


@pytest.mark.parametrize("is_input_differentiated", [False, True])
def test_backward_hooks_see_gradients(layer, is_input_differentiated):
    seen = []
    layer.register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.append((grad_input, grad_output))
    )
    layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 3,))
    x = td.asarray(X, requires_grad=is_input_differentiated)
    (layer(x) ** 2).sum().backward()
    output_gradient = 3 * 2 * X @ W.T
    assert_close(seen[0][1][0], output_gradient)
    assert_close(layer.weight.grad, output_gradient.T @ X)
    if is_input_differentiated:
        assert_close(seen[0][0][0], output_gradient @ W)
    else:
        assert seen[0][0] == (None,)


def test_backward_hook_replaces_gradients(layer):
    handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
    x = td.asarray(X, requires_grad=True)
    layer(x).sum().backward()
    assert_close(x.grad, 10 * W.sum(0, keepdims=True))
    handle.remove()
    assert_close(td.grad(lambda x: layer(x).sum())(td.asarray(X)), W.sum(0, keepdims=True))


def test_hooks_run_under_transforms(layer):
    layer.register_forward_hook(lambda module, args, output: output * 2)
    jitted = td.jit(lambda x: layer(x))
    assert_close(jitted(td.asarray(X)), 2 * X @ W.T)
    handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
    want = 20 * W.sum(0, keepdims=True)
    assert_close(td.grad(lambda x: layer(x).sum())(td.asarray(X)), want)
    assert_close(td.jit(td.grad(lambda x: layer(x).sum()))(td.asarray(X)), want)
    assert_close(td.vmap(lambda x: layer(x))(td.asarray(X)), 2 * X @ W.T)
    handle.remove()
    layer.register_forward_hook(lambda module, args, output: output + 1)
    assert_close(jitted(td.asarray(X)), 2 * X @ W.T + 1)


def test_hooks_belong_to_copies_too(layer):
    layer.register_forward_hook(lambda module, args, output: output * 2)
    other = copy.deepcopy(layer)
    leaves, treedef = td.tree.flatten(layer)
    for module in (other, treedef.unflatten(leaves)):
        assert_close(module(td.asarray(X)), 2 * X @ W.T)
    with pytest.raises(ArgumentError, match="callable"):
        layer.register_forward_hook(3)


def test_state_hooks_change_names(layer):
    net = nn.Sequential(layer)
    net.register_state_dict_post_hook(
        lambda module, state, prefix, metadata: state.update(version=td.asarray(2))
    )
    net[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append(prefix))
    seen = []
    state = net.state_dict()
    assert list(state) == ["0.weight", "version"] and seen == ["0."]

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "weight"] = state.pop("old")

    net[0].register_load_state_dict_pre_hook(rename)
    net.register_load_state_dict_post_hook(lambda module, keys: keys.unexpected_keys.remove("version"))
    given = {"old": 2 * W, "version": 2}
    assert str(net.load_state_dict(given)) == "<All keys matched successfully>" and "old" in given
    assert_close(layer.weight, 2 * W)


def test_extra_state_is_saved():
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    one, two = nn.Sequential(Counter()), nn.Sequential(Counter())
    one[0].count = 5
    assert one.state_dict() == {"0._extra_state": {"count": 5}}
    two.load_state_dict(one.state_dict())
    assert two[0].count == 5
    with pytest.raises(ArgumentError, match=r"0\._extra_state"):
        two.load_state_dict({})


def test_assigned_state_keeps_its_dtype(layer):
    net = nn.Sequential(layer, nn.BatchNorm1d(3))
    state = {name: value.to(td.float64) for name, value in net.state_dict().items()}
    net.load_state_dict(state, assign=True)
    assert net[0].weight.dtype is td.float64 and net[0].weight.requires_grad
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "1.weight", "1.bias"]
    assert net[1].running_mean.dtype is td.float64 and not net[1].running_mean.requires_grad


def test_parts_of_modules_are_found_and_replaced(layer):
    net = nn.Sequential(layer, nn.Sequential(nn.BatchNorm1d(3)))
    assert net.get_parameter("0.weight") is layer.weight
    assert net.get_buffer("1.0.running_mean") is net[1][0].running_mean
    with pytest.raises(ArgumentError, match=r"no parameter '1\.0\.running_mean'"):
        net.get_parameter("1.0.running_mean")
    net.set_submodule("1.0", nn.Identity())
    assert isinstance(net[1][0], nn.Identity)
    assert list(net._modules) == ["0", "1"] and layer._parameters["bias"] is None
    with pytest.raises(TypeError):
        net._modules["0"] = nn.Identity()


def test_casts_of_modules(layer):
    net = nn.Sequential(layer, nn.BatchNorm1d(3))
    assert net.to(td.ones(1, dtype=td.float64)) is net and net[0].weight.dtype is td.float64
    assert net.to("cpu", non_blocking=True, memory_format=None)[0].weight.dtype is td.float64
    assert net.type(td.float32)[1].num_batches_tracked.dtype is td.float32
    assert net.to_empty(device="cpu")[0].weight.shape == (3, 2) and net[0].weight.requires_grad
