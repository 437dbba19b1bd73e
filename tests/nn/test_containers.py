"""Lists and dicts of modules and of parameters."""

import numpy as np
import pytest
import tandem as td
from tandem import nn
from tandem.errors import ArgumentError, OutOfBoundsError


def make(*sizes):
    return [nn.Linear(size, size) for size in sizes]


def sizes(modules):
    return [module.in_features for module in modules]


@pytest.mark.parametrize("build", [nn.ModuleList, lambda modules: nn.Sequential(*modules)])
def test_lists_of_modules_change_as_lists(build):
    layers = build(make(1, 2, 3))
    layers.insert(1, nn.Linear(9, 9))
    assert sizes(layers) == [1, 9, 2, 3] and list(layers._modules) == ["0", "1", "2", "3"]
    assert layers.pop().in_features == 3 and layers.pop(0).in_features == 1
    del layers[0]
    layers.extend(make(4, 5))
    layers += make(6)
    assert sizes(layers) == [2, 4, 5, 6] and sizes(layers[1:3]) == [4, 5] and sizes(layers + make(7))[-1] == 7
    layers[-1:] = make(8)
    del layers[0:2]
    assert sizes(layers) == [5, 8] and list(layers.state_dict()) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
    ]
    assert layers[0] in layers and nn.Linear(5, 5) not in layers and type(layers[:1]) is type(layers)
    with pytest.raises(OutOfBoundsError, match="2 items"):
        layers[2]


def test_parts_of_sequential_keep_their_names():
    net = nn.Sequential(td.nn.containers.OrderedDict(first=nn.Linear(1, 2), second=nn.Linear(2, 3)))
    assert list(net[1:]._modules) == ["second"] and net.first is net[0]


def test_module_dict_changes_as_dict():
    layers = nn.ModuleDict({"a": nn.Linear(1, 1)})
    layers.update([("b", nn.Linear(2, 2))])
    layers["a"] = nn.Linear(3, 3)
    assert sizes(layers.values()) == [3, 2] and dict(layers.items())["b"] is layers.b
    assert layers.pop("a").in_features == 3 and "a" not in layers and list(layers) == ["b"]
    with pytest.raises(KeyError):
        del layers["c"]
    with pytest.raises(ArgumentError, match="holds modules, not"):
        layers["d"] = 3
    layers.clear()
    assert len(layers) == 0 and not layers.state_dict()


def test_parameter_list_registers_parameters():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = nn.ParameterList([nn.Parameter(td.ones(2)), td.full((2,), 3.0)])

        def forward(self, x):
            for scale in self.scales:
                x = x * scale
            return x

    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["scales.0", "scales.1"]
    net.scales.append(nn.Parameter(td.full((2,), 2.0)))
    x = td.asarray([1.0, 2.0])
    assert net(x).tolist() == td.jit(net)(x).tolist() == [6.0, 12.0]
    gradients = td.grad(lambda net: net(x).sum())(net)
    np.testing.assert_allclose(gradients.scales[1].detach().numpy(), [2.0, 4.0])
    net.scales[0] = td.zeros(2)
    assert net.scales[0].requires_grad and net.scales[:2][1] is net.scales[1]
    assert len(net.scales) == 3 and list(net.state_dict()) == ["scales.0", "scales.1", "scales.2"]
    assert "(0): Parameter containing: [float32 of size 2]" in repr(net)


def test_parameter_dict_registers_parameters():
    values = nn.ParameterDict({"left": td.ones(2), "name": "text"})
    values.update({"right": td.zeros(3)})
    assert list(values.state_dict()) == ["left", "right"] and values["left"].requires_grad
    assert values["name"] == "text" and values.get("other") is None and "left" in values
    assert values.setdefault("right").shape == (3,) and values.setdefault("more", td.ones(1)).requires_grad
    assert list(values.copy().keys()) == list(values) and len(values) == 4
    assert values.pop("left").shape == (2,) and list(values.state_dict()) == ["right", "more"]
    assert "(right): Parameter containing: [float32 of size 3]" in repr(values)
