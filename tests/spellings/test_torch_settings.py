"""``torch.compile``, and PyTorch's settings: those that ask for what tandem does, and those that it refuses."""

import importlib

import numpy as np
import pytest
import tandem as td
import tandem.torch as torch
from tandem.torch import nn


# -- compile -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "reduce-overhead"},
        {"fullgraph": True, "dynamic": True},
        {"backend": "inductor", "options": {}},
    ],
)
def test_compile_makes_jitted_function(options):
    compiled = torch.compile(lambda x: 2 * x, **options)
    assert isinstance(compiled, td.jit(abs).__class__) and compiled(torch.ones(2)).tolist() == [2.0, 2.0]


def test_compile_decorates():
    @torch.compile(dynamic=False)
    def double(x):
        return 2 * x

    @torch.compile
    def triple(x):
        return 3 * x

    assert triple(double(torch.ones(1))).tolist() == [6.0] and double.__name__ == "double"


def test_compile_returns_function_that_is_not_compiled():
    def double(x):
        return 2 * x

    assert torch.compile(double, backend="eager") is torch.compile(disable=True)(double) is double


@pytest.mark.parametrize(
    "options, text",
    [
        ({"backend": "onnxrt"}, "backend is one of inductor, eager, not 'onnxrt'"),
        ({"mode": "fast"}, "mode is one of default"),
        ({"options": {"triton.cudagraphs": True}}, "leave them out"),
    ],
)
def test_compile_refuses_other_options(options, text):
    with pytest.raises(td.errors.ArgumentError, match=text):
        torch.compile(abs, **options)


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))


def train(model):
    torch.manual_seed(1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    model.eval()
    return model(x).detach()


def test_compiled_module_trains_as_module():
    model, compiled = build(), torch.compile(build(), mode="max-autotune")
    np.testing.assert_allclose(train(compiled).numpy(), train(model).numpy(), rtol=1e-5)
    np.testing.assert_allclose(
        compiled._orig_mod[1].running_mean.numpy(), model[1].running_mean.numpy(), rtol=1e-5
    )


def test_compiled_module_has_parameters_of_module():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.tensor(3.0))

        def forward(self, x):
            return self.factor * x

    model = Scale()
    compiled = torch.compile(model)
    assert compiled.factor is model.factor and compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod.factor"] and not compiled.eval()._orig_mod.training
    with pytest.raises(AttributeError):
        compiled.missing  # noqa: B018
    with pytest.raises(AttributeError):
        compiled._missing  # noqa: B018


# -- settings ----------------------------------------------------------------------------------------------------------
def test_deterministic_algorithms_are_the_only_ones():
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.use_deterministic_algorithms(False)
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()


def test_products_have_highest_precision():
    for precision in ("highest", "high", "medium"):
        torch.set_float32_matmul_precision(precision)
    assert torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(td.errors.ArgumentError, match="precision is one of"):
        torch.set_float32_matmul_precision("low")


def test_default_device_is_the_cpu():
    for device in ("cpu", torch.device("cpu"), None):
        torch.set_default_device(device)
    assert torch.get_default_device() == torch.device("cpu") == torch.zeros(1).device
    for device in ("cuda", "meta", torch.device("cuda", 0)):
        with pytest.raises(td.errors.ArgumentError, match="pass device="):
            torch.set_default_device(device)


def test_number_of_threads_is_refused_with_reason():
    with pytest.raises(AttributeError, match="in the thread of the caller"):
        torch.set_num_threads(4)


def test_settings_of_backends_can_be_set(monkeypatch):
    cudnn = importlib.import_module("tandem.torch.backends.cudnn")
    for name in ("benchmark", "deterministic", "enabled", "allow_tf32"):
        monkeypatch.setattr(torch.backends.cudnn, name, True)
        assert getattr(cudnn, name) is True
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    assert not torch.backends.cudnn.is_available() and torch.backends.cudnn.version() is None
    assert not torch.backends.mps.is_available() and not torch.backends.mps.is_built()
    assert torch.backends.cuda.is_built() == torch.cuda.is_available() == td.cuda.is_available()


def test_seeds_of_cuda_are_those_of_the_generator():
    torch.cuda.manual_seed(3)
    first = torch.rand(2)
    torch.cuda.manual_seed_all(3)
    assert torch.equal(torch.rand(2), first) and torch.initial_seed() == 3
