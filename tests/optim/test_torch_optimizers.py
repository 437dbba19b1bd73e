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
    "MultiplicativeLR": {"lr_lambda": lambda epoch: 0.95},
    "ConstantLR": {"factor": 0.5, "total_iters": 3},
    "PolynomialLR": {"total_iters": 7, "power": 1.5},
    "CosineAnnealingWarmRestarts": {"T_0": 3, "T_mult": 2, "eta_min": 0.01},
    "OneCycleLR": {"max_lr": 0.5, "total_steps": 12},
    "OneCycleLR-linear": {"max_lr": 0.5, "total_steps": 12, "three_phase": True, "anneal_strategy": "linear"},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3, "step_size_down": 2},
    "CyclicLR-2": {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 2, "mode": "triangular2"},
    "CyclicLR-exp": {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9},
}


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_learning_rates_agree(name, optimizer):
    mine, other = make_parameters()
    options = {"lr": 0.3, "momentum": 0.7} if optimizer == "SGD" else {"lr": 0.3}
    ours, theirs = (
        getattr(lib.optim, optimizer)(parameters, **options)
        for lib, parameters in ((td, mine), (torch, other))
    )
    one = getattr(td.optim.lr_scheduler, name.partition("-")[0])(ours, **SCHEDULERS[name])
    two = getattr(torch.optim.lr_scheduler, name.partition("-")[0])(theirs, **SCHEDULERS[name])
    for _ in range(10):
        np.testing.assert_allclose(one.get_last_lr(), two.get_last_lr(), rtol=1e-6)
        for key in {"momentum", "betas"} & {*ours.param_groups[0]}:
            np.testing.assert_allclose(ours.param_groups[0][key], theirs.param_groups[0][key], rtol=1e-6)
        theirs.step()
        one.step()
        two.step()


def make_chained(schedulers, optimizer):
    parts = [schedulers.ConstantLR(optimizer, 0.1, 3), schedulers.ExponentialLR(optimizer, 0.9)]
    return schedulers.ChainedScheduler([*parts, schedulers.CosineAnnealingLR(optimizer, 8, 0.001)])


def make_sequence(schedulers, optimizer):
    parts = [schedulers.LinearLR(optimizer, 0.1, 1.0, 3), schedulers.CosineAnnealingLR(optimizer, 6)]
    return schedulers.SequentialLR(optimizer, parts, [3])


@pytest.mark.parametrize("make", [make_chained, make_sequence])
def test_combined_learning_rates_agree(make):
    mine, other = make_parameters()
    ours, theirs = td.optim.SGD(mine, lr=0.3), torch.optim.SGD(other, lr=0.3)
    one, two = make(td.optim.lr_scheduler, ours), make(torch.optim.lr_scheduler, theirs)
    for _ in range(8):
        np.testing.assert_allclose(one.get_last_lr(), two.get_last_lr(), rtol=1e-6)
        theirs.step()
        one.step()
        two.step()


def test_changed_learning_rate_is_scaled():
    mine, other = make_parameters()
    rates = []
    for lib, parameters in ((td, mine), (torch, other)):
        optimizer = lib.optim.SGD(parameters, lr=0.3)
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for step in range(6):
            optimizer.step()
            scheduler.step()
            if step == 2:
                optimizer.param_groups[0]["lr"] = 1.0
        rates.append(scheduler.get_last_lr())
    assert rates[0] == rates[1] == [0.25]


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
