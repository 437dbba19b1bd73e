"""Layers that learn the size of their input from the first call."""

import pytest
import tandem as td
from tandem import nn
from tandem.errors import UnsupportedError

CASES = [
    ("Linear", (4,), (2, 3), 3),
    ("Conv1d", (4, 3), (2, 3, 5), 3),
    ("Conv2d", (4, 3), (3, 5, 5), 3),
    ("ConvTranspose2d", (4, 3), (2, 3, 5, 5), 3),
    ("BatchNorm1d", (), (2, 3), 3),
    ("InstanceNorm2d", (), (2, 3, 4, 4), 3),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_layer_takes_the_size_of_its_input(case):
    name, args, shape, size = case
    layer = getattr(nn, f"Lazy{name}")(*args, **({"bias": False} if args else {}))
    assert not list(layer.parameters()) and repr(layer).startswith(f"Lazy{name}(")
    seen = []
    layer.register_forward_hook(lambda module, input, output: seen.append(module))
    layer.eval()
    result = layer(td.ones(shape))
    assert type(layer) is getattr(nn, name) and seen == [layer] and not layer.training
    expected = getattr(nn, name)(size, *args, **({"bias": False} if args else {}))
    assert [(n, t.shape) for n, t in layer.state_dict().items()] == [
        (n, t.shape) for n, t in expected.state_dict().items()
    ]
    assert result.shape == expected(td.ones(shape)).shape and repr(layer) == repr(expected)


def test_parameters_are_not_created_in_a_trace():
    net = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(1))
    for transform in (td.jit, td.vmap):
        with pytest.raises(UnsupportedError, match="call the module once outside"):
            transform(lambda x: net(x))(td.ones((2, 4)))
    net(td.ones((2, 4)))
    assert td.jit(net)(td.ones((2, 4))).shape == (2, 1)
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
