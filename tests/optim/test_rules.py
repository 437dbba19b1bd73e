"""The rules of optimizers: their formulas in NumPy, and the pure forms against the classes."""

import inspect
import math

import numpy as np
import pytest
import tandem as td
from tandem import optim
from tandem.errors import ArgumentError, ValueArgumentError
from tandem.optim.rules import RULES

START = np.array([[1.0, -2.0, 3.0], [0.5, 0.1, -0.7]])
STEPS = 50


def gradient_at(step):
    return np.random.default_rng(step).standard_normal(START.shape)


# Each takes (x, gradient, step, slots) and returns the new x.
def adagrad(x, g, t, s, lr=0.1, lr_decay=0.01, eps=1e-10):
    s["sum"] = s.get("sum", 0.5) + g * g
    return x - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def adadelta(x, g, t, s, lr=0.5, rho=0.8, eps=1e-6):
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g**2
    change = np.sqrt(s.get("u", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["u"] = rho * s.get("u", 0) + (1 - rho) * change**2
    return x - lr * change


def adamax(x, g, t, s, lr=0.01, b1=0.9, b2=0.999, eps=1e-8):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["u"] = np.maximum(b2 * s.get("u", 0), np.abs(g) + eps)
    return x - lr / (1 - b1**t) * s["m"] / s["u"]


def nadam(x, g, t, s, lr=0.01, b1=0.9, b2=0.999, eps=1e-8, psi=0.004):
    mu, following = (b1 * (1 - 0.5 * 0.96 ** (n * psi)) for n in (t, t + 1))
    s["product"] = s.get("product", 1) * mu
    s["m"], s["v"] = b1 * s.get("m", 0) + (1 - b1) * g, b2 * s.get("v", 0) + (1 - b2) * g * g
    ahead = (1 - mu) * g / (1 - s["product"]) + following * s["m"] / (1 - s["product"] * following)
    return x - lr * ahead / (np.sqrt(s["v"] / (1 - b2**t)) + eps)


def radam(x, g, t, s, lr=0.01, b1=0.9, b2=0.99, eps=1e-8):
    s["m"], s["v"] = b1 * s.get("m", 0) + (1 - b1) * g, b2 * s.get("v", 0) + (1 - b2) * g * g
    longest = 2 / (1 - b2) - 1
    rho = longest - 2 * t * b2**t / (1 - b2**t)
    average = s["m"] / (1 - b1**t)
    if rho <= 5:
        return x - lr * average
    r = math.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho))
    return x - lr * average * r * math.sqrt(1 - b2**t) / (np.sqrt(s["v"]) + eps)


def rprop(x, g, t, s, lr=0.01):
    turns = g * s.get("prev", 0)
    factor = np.where(turns > 0, 1.2, np.where(turns < 0, 0.5, 1.0))
    s["size"] = np.clip(s.get("size", lr) * factor, 1e-6, 50.0)
    s["prev"] = np.where(turns < 0, 0, g)
    return x - np.sign(s["prev"]) * s["size"]


def asgd(x, g, t, s, lr=0.1, lambd=0.01, alpha=0.75):
    eta = lr / (1 + lambd * lr * (t - 1)) ** alpha
    return x * (1 - lambd * eta) - eta * g


def rmsprop(x, g, t, s, lr=0.01, alpha=0.9, eps=1e-8):
    s["v"], s["m"] = alpha * s.get("v", 0) + (1 - alpha) * g * g, alpha * s.get("m", 0) + (1 - alpha) * g
    s["b"] = 0.5 * s.get("b", 0) + g / (np.sqrt(s["v"] - s["m"] ** 2) + eps)
    return x - lr * s["b"]


CASES = {
    "Adagrad": (adagrad, {"lr": 0.1, "lr_decay": 0.01, "initial_accumulator_value": 0.5}),
    "Adadelta": (adadelta, {"lr": 0.5, "rho": 0.8}),
    "Adamax": (adamax, {"lr": 0.01}),
    "NAdam": (nadam, {"lr": 0.01}),
    "RAdam": (radam, {"lr": 0.01, "betas": (0.9, 0.99)}),
    "Rprop": (rprop, {"lr": 0.01}),
    "ASGD": (asgd, {"lr": 0.1, "lambd": 0.01}),
    "RMSprop": (rmsprop, {"lr": 0.01, "alpha": 0.9, "centered": True, "momentum": 0.5}),
}


def expected(name):
    formula, _ = CASES[name]
    x, slots = START.copy(), {}
    for step in range(1, STEPS + 1):
        x = formula(x, gradient_at(step), step, slots)
    return x


@pytest.mark.parametrize("name", CASES)
def test_class_computes_its_formula(name):
    x = td.asarray(START.copy(), requires_grad=True)
    optimizer = getattr(optim, name)([x], **CASES[name][1])
    for step in range(1, STEPS + 1):
        x.grad = td.asarray(gradient_at(step))
        optimizer.step()
    np.testing.assert_allclose(x.detach().numpy(), expected(name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("jits", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_pure_form_computes_the_formula(name, jits):
    options = dict(CASES[name][1])
    pure = getattr(optim, name.lower())(options.pop("lr"), **options)

    def step(params, state, g):
        updates, state = pure.update({"x": g}, state, params)
        return optim.apply_updates(params, updates), state

    run = td.jit(step) if jits else step
    params = {"x": td.asarray(START)}
    state = pure.init(params)
    for count in range(1, (STEPS if jits else 7) + 1):
        params, state = run(params, state, td.asarray(gradient_at(count)))
    if jits:
        np.testing.assert_allclose(params["x"].numpy(), expected(name), rtol=1e-9, atol=1e-12)
        assert run.cache_info().misses == 1
    assert state.step.item() == count


def test_average_of_asgd_starts_at_its_step():
    x = td.asarray([1.0], requires_grad=True)
    optimizer, seen = optim.ASGD([x], lr=0.1, lambd=0.0, t0=2), []
    for _ in range(5):
        x.grad = td.ones(1)
        optimizer.step()
        seen.append(x.item())
    np.testing.assert_allclose(optimizer.state[x]["ax"].item(), np.mean(seen[3:]), rtol=1e-6)


def test_rate_of_a_pure_form_follows_a_schedule():
    pure = optim.adagrad(optim.linear_schedule(1.0, 0.0, 2))
    params = td.ones(1)
    state = pure.init(params)
    for want in (0.0, 0.0 - 0.5 / math.sqrt(2), 0.0 - 0.5 / math.sqrt(2)):
        updates, state = pure.update(td.ones(1), state, params)
        params = optim.apply_updates(params, updates)
        assert params.item() == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("name", RULES)
def test_constructors_have_the_typed_options_of_the_rule(name):
    parameters = dict(inspect.signature(getattr(optim, name)).parameters)
    del parameters["params"], parameters["implementation"]
    assert {key: one.default for key, one in parameters.items()} == RULES[name].defaults
    assert all(one.annotation is not inspect.Parameter.empty for one in parameters.values())
    assert [key for key, one in parameters.items() if one.kind is one.KEYWORD_ONLY] == ["maximize"]


def test_options_are_bound_as_by_pytorch():
    x = td.ones(1).requires_grad_()
    optimizer = optim.Adam([x], 0.1, (0.8, 0.9), 1e-3, foreach=True, differentiable=False)
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.9) and optimizer.param_groups[0]["eps"] == 1e-3
    assert optim.AdamW([x]).param_groups[0]["decoupled_weight_decay"] is True
    for options, message in (
        ({"rate": 1}, "unexpected keyword argument 'rate'"),
        ({"differentiable": True}, "td.optim.adam"),
    ):
        with pytest.raises(ArgumentError, match=message):
            optim.Adam([x], **options)
    with pytest.raises(TypeError, match="multiple values for argument 'lr'"):
        optim.Adam([x], 0.1, lr=0.1)
    with pytest.raises(TypeError, match="positional arguments"):
        optim.SGD([x], 0.1, 0.0, 0.0, 0.0, False, True)
    with pytest.raises(ArgumentError, match="nadam got an unexpected keyword argument 'rate'"):
        optim.nadam(0.1, rate=1)
    for make in (
        lambda: optim.Rprop([x], etas=(1.5, 2.0)),
        lambda: optim.rprop(etas=(1.5, 2.0)),
        lambda: optim.radam(-1.0),
        lambda: optim.SGD([{"params": [x], "lr": -1.0}]),
    ):
        with pytest.raises(ValueArgumentError):
            make()


def test_hooks_run_around_each_step():
    x = td.ones(1).requires_grad_()
    seen = []

    class Halve(optim.Optimizer):
        def step(self, closure=None):
            seen.append("step")

    for optimizer in (optim.SGD([x], lr=0.1), Halve([x], {})):
        seen.clear()
        first = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: seen.append("before"))
        optimizer.register_step_post_hook(lambda optimizer, args, kwargs: seen.append("after"))
        optimizer.step()
        first.remove()
        optimizer.step()
        assert [event for event in seen if event != "step"] == ["before", "after", "after"]


# -- LBFGS -------------------------------------------------------------------------------------------------------------
def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("line_search", ["strong_wolfe", None])
def test_lbfgs_minimizes(line_search):
    x = td.asarray([-1.2, 1.0, 0.5], dtype=td.float64, requires_grad=True)
    rate = 1.0 if line_search else 1e-2
    optimizer = optim.LBFGS([x], lr=rate, max_iter=60, line_search_fn=line_search)

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(x)
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    assert first == pytest.approx(rosenbrock(x.detach() * 0 + td.asarray([-1.2, 1.0, 0.5])).item())
    if line_search:
        np.testing.assert_allclose(x.detach().numpy(), 1.0, atol=1e-5)
    assert rosenbrock(x).item() < (1e-9 if line_search else 0.5) * first


def test_lbfgs_goes_on_from_its_state():
    def make(start):
        x = td.asarray(start, dtype=td.float64, requires_grad=True)
        optimizer = optim.LBFGS([x], max_iter=4, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = rosenbrock(x)
            loss.backward()
            return loss

        return x, optimizer, closure

    x, optimizer, closure = make([-1.2, 1.0, 0.5])
    optimizer.step(closure)
    y, other, other_closure = make(x.tolist())
    other.load_state_dict(optimizer.state_dict())
    optimizer.step(closure)
    other.step(other_closure)
    assert x.tolist() == y.tolist()


def test_lbfgs_refuses_what_it_cannot_do():
    x, y = td.ones(1).requires_grad_(), td.ones(1).requires_grad_()
    with pytest.raises(ValueArgumentError, match="one group"):
        optim.LBFGS([{"params": [x]}, {"params": [y]}])
    with pytest.raises(ValueArgumentError, match="strong_wolfe"):
        optim.LBFGS([x], line_search_fn="armijo")
    with pytest.raises(ArgumentError, match="closure"):
        optim.LBFGS([x]).step()


# -- GradScaler, averages ----------------------------------------------------------------------------------------------
def test_scaler_leaves_out_infinite_steps():
    x = td.ones(2).requires_grad_()
    optimizer = optim.SGD([x], lr=0.25)
    scaler = optim.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for factor, scale, want in ((float("inf"), 2.0, 1.0), (1.0, 2.0, 0.75), (1.0, 4.0, 0.5)):
        optimizer.zero_grad()
        scaler.scale((x * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == scale and x.tolist() == [want, want]
    other = optim.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0
    scaler.unscale_(optimizer)
    for call in (scaler.unscale_, lambda optimizer: (scaler.step(optimizer), scaler.step(optimizer))):
        with pytest.raises(RuntimeError, match="since the last update"):
            call(optimizer)
    scaler.update(8.0)
    with pytest.raises(RuntimeError, match="follows step"):
        scaler.update()
    off = optim.GradScaler("cpu", enabled=False)
    assert off.scale(x) is x and off.state_dict() == {} and off.get_scale() == 1.0


def test_averages_of_models():
    swa = optim.swa_utils
    model = td.nn.Sequential(td.nn.Linear(2, 2), td.nn.BatchNorm1d(2))
    mean, decayed = swa.AveragedModel(model), swa.AveragedModel(model, avg_fn=swa.get_ema_avg_fn(0.75))
    for value in (0.0, 4.0, 8.0):
        td.nn.init.constant_(model[0].weight, value)
        mean.update_parameters(model)
        decayed.update_parameters(model)
    assert mean.module[0].weight[0, 0].item() == 4.0 and int(mean.n_averaged) == 3
    assert decayed.module[0].weight[0, 0].item() == 2.75
    assert mean(td.ones((3, 2))).shape == (3, 2)
    batches = [(td.asarray([[1.0, 2.0], [3.0, 2.0]]), 0), (td.asarray([[5.0, 2.0], [7.0, 2.0]]), 1)]
    model[0] = td.nn.Identity()
    swa.update_bn(batches, model)
    np.testing.assert_allclose(model[1].running_mean.numpy(), [4.0, 2.0])
    assert model[1].momentum == 0.1


def test_swa_rate_goes_to_its_value():
    optimizer = optim.SGD([td.ones(1).requires_grad_()], lr=1.0)
    scheduler = optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    rates = [scheduler.get_last_lr()[0]]
    for _ in range(3):
        scheduler.step()
        rates.append(scheduler.get_last_lr()[0])
    assert rates == [1.0, 0.75, 0.5, 0.5]


@pytest.mark.parametrize("jits", [True, False])
def test_pure_lbfgs_makes_the_steps_of_the_class(jits):
    start = {"a": td.asarray([-1.2, 1.0], dtype=td.float64), "b": td.asarray([[0.5]], dtype=td.float64)}

    def loss_of(params):
        return rosenbrock(td.concat([params["a"], params["b"].reshape(-1)]))

    pure = optim.lbfgs(0.02, history_size=3)

    def step(params, state):
        updates, state = pure.update(td.grad(loss_of)(params), state, params)
        return optim.apply_updates(params, updates), state

    run = td.jit(step) if jits else step
    params, state = start, pure.init(start)
    ours = {name: td.asarray(x.numpy().copy(), requires_grad=True) for name, x in start.items()}
    optimizer = optim.LBFGS(ours.values(), lr=0.02, max_iter=1, history_size=3)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(ours)
        loss.backward()
        return loss

    for _ in range(12):
        params, state = run(params, state)
        optimizer.step(closure)
    for name, x in ours.items():
        np.testing.assert_allclose(params[name].numpy(), x.detach().numpy(), rtol=1e-8)
    with pytest.raises(ValueArgumentError, match="history_size"):
        optim.lbfgs(history_size=0)
