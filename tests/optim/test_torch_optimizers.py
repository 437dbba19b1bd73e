"""Optimizers and learning rates against PyTorch."""

import numpy as np
import pytest
import tandem as td

torch = pytest.importorskip("torch")

SHAPES = [(3, 4), (4,), ()]
OPTIMIZERS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True},
    ],
    "Adam": [{}, {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1}, {"amsgrad": True, "maximize": True}],
    "AdamW": [{"lr": 0.02}, {"amsgrad": True, "eps": 1e-3}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True}, {"alpha": 0.5, "weight_decay": 0.1}],
    "Adagrad": [
        {},
        {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2, "maximize": True},
    ],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1}],
    "Adamax": [{}, {"betas": (0.8, 0.9), "weight_decay": 0.1}],
    "NAdam": [{}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [
        {},
        {"betas": (0.8, 0.9), "weight_decay": 0.1},
        {"decoupled_weight_decay": True, "weight_decay": 0.1},
    ],
    "Rprop": [{}, {"etas": (0.4, 1.3), "step_sizes": (1e-3, 0.02)}],
    "ASGD": [{}, {"lr": 0.1, "lambd": 0.1, "t0": 3, "weight_decay": 0.1}],
}
CASES = [(name, options) for name, cases in OPTIMIZERS.items() for options in cases]


def make_parameters():
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    mine = [td.asarray(array.copy(), requires_grad=True) for array in arrays]
    return mine, [torch.tensor(array.copy(), requires_grad=True) for array in arrays]


def set_gradients(mine, other, seed):
    rng = np.random.default_rng(seed)
    for one, two in zip(mine, other):
        array = rng.standard_normal(one.shape).astype(np.float32)
        one.grad, two.grad = td.asarray(array), torch.tensor(array.copy())


def assert_parameters_agree(mine, other):
    for one, two in zip(mine, other):
        np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps_agree(name, options):
    mine, other = make_parameters()
    ours, theirs = getattr(td.optim, name)(mine, **options), getattr(torch.optim, name)(other, **options)
    for seed in range(50):
        set_gradients(mine, other, seed)
        ours.step()
        theirs.step()
    assert_parameters_agree(mine, other)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_state_of_torch_loads(name, options):
    mine, other = make_parameters()
    theirs = getattr(torch.optim, name)(other, **options)
    for seed in range(3):
        set_gradients(mine, other, seed)
        theirs.step()
    for one, two in zip(mine, other):
        one.detach()[...] = two.detach().numpy()
    state = theirs.state_dict()
    state["state"] = {
        number: {key: None if value is None else np.asarray(value) for key, value in slots.items()}
        for number, slots in state["state"].items()
    }
    ours = getattr(td.optim, name)(mine)
    ours.load_state_dict(state)
    set_gradients(mine, other, 7)
    ours.step()
    theirs.step()
    assert_parameters_agree(mine, other)


SCHEDULERS = {
    "StepLR": {"step_size": 3, "gamma": 0.5},
    "MultiStepLR": {"milestones": [2, 5], "gamma": 0.5},
    "ExponentialLR": {"gamma": 0.9},
    "LinearLR": {"total_iters": 4},
    "CosineAnnealingLR": {"T_max": 6, "eta_min": 0.01},
    "LambdaLR": {"lr_lambda": lambda epoch: 0.95**epoch},
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_learning_rates_agree(name):
    mine, other = make_parameters()
    ours, theirs = td.optim.SGD(mine, lr=0.3), torch.optim.SGD(other, lr=0.3)
    one = getattr(td.optim.lr_scheduler, name)(ours, **SCHEDULERS[name])
    two = getattr(torch.optim.lr_scheduler, name)(theirs, **SCHEDULERS[name])
    for _ in range(10):
        np.testing.assert_allclose(one.get_last_lr(), two.get_last_lr(), rtol=1e-6)
        theirs.step()
        one.step()
        two.step()


@pytest.mark.parametrize(
    ("max_norm", "norm_type"), [(1.0, 2.0), (100.0, 2.0), (0.5, float("inf")), (1.0, 1.0)]
)
def test_clipped_norms_agree(max_norm, norm_type):
    mine, other = make_parameters()
    set_gradients(mine, other, 0)
    ours = td.nn.utils.clip_grad_norm_(mine, max_norm, norm_type)
    theirs = torch.nn.utils.clip_grad_norm_(other, max_norm, norm_type)
    np.testing.assert_allclose(ours.item(), theirs.item(), rtol=1e-5)
    for one, two in zip(mine, other):
        np.testing.assert_allclose(one.grad.numpy(), two.grad.numpy(), rtol=1e-5, atol=1e-7)


def test_clipped_values_agree():
    mine, other = make_parameters()
    set_gradients(mine, other, 0)
    td.nn.utils.clip_grad_value_(mine, 0.3)
    torch.nn.utils.clip_grad_value_(other, 0.3)
    for one, two in zip(mine, other):
        np.testing.assert_allclose(one.grad.numpy(), two.grad.numpy())
