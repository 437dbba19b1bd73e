"""Optimizers: their updates in NumPy, groups, state, and the pure functions."""

import numpy as np
import pytest
import tandem as td
from tandem import optim
from tandem.errors import ArgumentError, ValueArgumentError

START = np.array([1.0, -2.0, 3.0], np.float32)


def adam_in_numpy(gradient, steps, lr=0.1, b1=0.9, b2=0.999, eps=1e-8, decay=0.0):
    x, m, v = START.astype(float), 0.0, 0.0
    for step in range(1, steps + 1):
        g = gradient(x)
        x = x * (1 - lr * decay)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        x = x - lr * (m / (1 - b1**step)) / (np.sqrt(v / (1 - b2**step)) + eps)
    return x


def train(optimizer, x, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        (x**4).sum().backward()
        optimizer.step()
    return x.detach().numpy()


def make_parameter():
    return td.asarray(START.copy(), requires_grad=True)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adamw_computes_its_formula(decay):
    x = make_parameter()
    memory = x.detach()
    got = train(optim.AdamW([x], lr=0.1, weight_decay=decay), x)
    np.testing.assert_allclose(got, adam_in_numpy(lambda x: 4 * x**3, 5, decay=decay), rtol=1e-5)
    assert memory.tolist() == got.tolist()  # written in place
    assert x.requires_grad and x.is_leaf


def test_momentum_computes_its_formula():
    x, want, velocity = make_parameter(), START.astype(float), 0.0
    train(optim.SGD([x], lr=0.01, momentum=0.5), x)
    for _ in range(5):
        velocity = 0.5 * velocity + 4 * want**3
        want = want - 0.01 * velocity
    np.testing.assert_allclose(x.detach().numpy(), want, rtol=1e-5)


def test_groups_have_options_of_their_own():
    one, two, frozen = make_parameter(), make_parameter(), make_parameter()
    optimizer = optim.SGD([{"params": [one]}, {"params": two, "lr": 0.0}], lr=0.1)
    optimizer.add_param_group({"params": [("name", frozen)]})
    (one.sum() + two.sum()).backward()
    optimizer.step()
    np.testing.assert_allclose(one.detach().numpy(), START - 0.1, rtol=1e-6)
    assert two.tolist() == frozen.tolist() == START.tolist()
    optimizer.param_groups[1]["lr"] = 1.0
    optimizer.step()
    np.testing.assert_allclose(two.detach().numpy(), START - 1, rtol=1e-6)
    optimizer.zero_grad(set_to_none=False)
    assert two.grad.tolist() == [0, 0, 0] and frozen.grad is None


def test_closure_computes_the_loss():
    x = make_parameter()
    optimizer = optim.SGD([x], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with td.no_grad():
        assert optimizer.step(closure).item() == 14.0
    np.testing.assert_allclose(x.detach().numpy(), START * 0.8, rtol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_saved_state_goes_on_alike(name):
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {"amsgrad": True}
    x = make_parameter()
    optimizer = getattr(optim, name)([x], lr=0.01, **options)
    train(optimizer, x, 3)
    state, y = optimizer.state_dict(), td.asarray(x.detach().numpy().copy(), requires_grad=True)
    other = getattr(optim, name)([y], lr=0.5)
    other.load_state_dict(state)
    assert train(optimizer, x, 2).tolist() == train(other, y, 2).tolist()
    assert other.param_groups[0]["lr"] == 0.01


def test_wrong_parameters_are_refused():
    x = make_parameter()
    for given, error, message in (
        (x, ArgumentError, r"pass \[parameter\]"),
        ([], ValueArgumentError, "at least one"),
        ([1.0], ArgumentError, "takes tensors"),
        ([x * 2], ValueArgumentError, "leaves"),
        ([x, x], ValueArgumentError, "twice"),
        ([{"params": [x], "rate": 1}], ArgumentError, "unknown option rate"),
    ):
        with pytest.raises(error, match=message):
            optim.SGD(given, lr=0.1)
    with pytest.raises(ValueArgumentError, match="lr must not be negative"):
        optim.Adam([x], lr=-1.0)
    with pytest.raises(ValueArgumentError, match="betas"):
        optim.Adam([x], betas=(0.9, 1.0))
    with pytest.raises(ValueArgumentError, match="nesterov"):
        optim.SGD([x], nesterov=True)
    with pytest.raises(ValueArgumentError, match="other numbers"):
        optim.SGD([x]).load_state_dict(optim.SGD([x, make_parameter()]).state_dict())
    with pytest.raises(ValueArgumentError, match="2 functions for 1"):
        optim.lr_scheduler.LambdaLR(optim.SGD([x]), [abs, abs])


def test_schedule_goes_on_from_its_state():
    optimizer = optim.SGD([make_parameter()], lr=1.0)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for _ in range(4):
        scheduler.step()
    other_optimizer = optim.SGD([make_parameter()], lr=1.0)
    other = optim.lr_scheduler.CosineAnnealingLR(other_optimizer, 3)
    other_optimizer.load_state_dict(optimizer.state_dict())
    other.load_state_dict(scheduler.state_dict())
    scheduler.step()
    other.step()
    assert other.get_last_lr() == scheduler.get_last_lr()


def test_chained_schedules_multiply():
    make = optim.lr_scheduler
    rates = []
    for saves in (False, True):
        optimizer = optim.SGD([make_parameter()], lr=1.0)
        parts = [make.ConstantLR(optimizer, 0.1, 2), make.ExponentialLR(optimizer, 0.5)]
        scheduler = make.ChainedScheduler(parts)
        for _ in range(3):
            scheduler.step()
        if saves:
            state, state_of_optimizer = scheduler.state_dict(), optimizer.state_dict()
            optimizer = optim.SGD([make_parameter()], lr=1.0)
            parts = [make.ConstantLR(optimizer, 0.1, 2), make.ExponentialLR(optimizer, 0.5)]
            scheduler = make.ChainedScheduler(parts)
            optimizer.load_state_dict(state_of_optimizer)
            scheduler.load_state_dict(state)
        scheduler.step()
        rates.append(scheduler.get_last_lr()[0])
    assert rates == pytest.approx([0.0625, 0.0625])
    with pytest.raises(ValueArgumentError, match="several optimizers"):
        make.ChainedScheduler([*parts, make.StepLR(optim.SGD([make_parameter()]), 1)])
    with pytest.raises(ValueArgumentError, match="at least one"):
        make.ChainedScheduler([])


def test_own_schedule_may_be_recursive():
    from tandem.torch.optim.lr_scheduler import _LRScheduler

    class Halve(_LRScheduler):
        def get_lr(self):
            rates = [group["lr"] for group in self.optimizer.param_groups]
            return rates if self.last_epoch == 0 else [rate / 2 for rate in rates]

    optimizer = optim.SGD([make_parameter()], lr=1.0)
    scheduler = Halve(optimizer)
    scheduler.step()
    optimizer.param_groups[0]["lr"] = 8.0
    scheduler.step()
    assert scheduler.get_last_lr() == [4.0]


def test_cycle_changes_the_momentum():
    optimizer = optim.Adam([make_parameter()], lr=1.0)
    scheduler = optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2)
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.3])
    assert optimizer.param_groups[0]["betas"] == pytest.approx((0.85, 0.999))
    with pytest.raises(ValueArgumentError, match="cycle_momentum=False"):
        optim.lr_scheduler.CyclicLR(optim.Adagrad([make_parameter()]), 0.1, 0.5)
    with pytest.raises(ValueArgumentError, match="'square'"):
        optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, mode="square")
    with pytest.raises(ValueArgumentError, match="2 values for 1 groups"):
        optim.lr_scheduler.CyclicLR(optimizer, 0.1, [0.5, 0.6])


def test_schedule_starts_late_from_its_first_rate():
    optimizer = optim.SGD([{"params": [make_parameter()], "lr": 0.5, "initial_lr": 1.0}], lr=1.0)
    assert optim.lr_scheduler.StepLR(optimizer, 2, 0.5, last_epoch=3).get_last_lr() == [0.25]


def test_step_with_many_shapes():
    parameters = [td.ones((n, 2)).requires_grad_() for n in range(1, 9)]
    optimizer = optim.Adam(parameters, lr=0.1)
    td.sum(td.stack([p.sum() for p in parameters])).backward()
    optimizer.step()
    for parameter in parameters:
        np.testing.assert_allclose(parameter.detach().numpy(), 0.9, rtol=1e-5)


# --- pure functions ---------------------------------------------------------------------------------------
PURE = {
    "sgd": (lambda: optim.sgd(0.01), lambda x: optim.SGD([x], lr=0.01)),
    "momentum": (lambda: optim.momentum(0.01, 0.5), lambda x: optim.SGD([x], lr=0.01, momentum=0.5)),
    "nesterov": (
        lambda: optim.sgd(0.01, 0.5, nesterov=True, weight_decay=0.1),
        lambda x: optim.SGD([x], lr=0.01, momentum=0.5, nesterov=True, weight_decay=0.1),
    ),
    "adam": (lambda: optim.adam(0.1, weight_decay=0.2), lambda x: optim.Adam([x], lr=0.1, weight_decay=0.2)),
    "adamw": (lambda: optim.adamw(0.1), lambda x: optim.AdamW([x], lr=0.1)),
}


@pytest.mark.parametrize("jits", [True, False])
@pytest.mark.parametrize("name", PURE)
def test_pure_optimizer_agrees(name, jits):
    make_pure, make_class = PURE[name]
    pure, x = make_pure(), make_parameter()
    want = train(make_class(x), x)

    def step(params, state):
        grads = td.grad(lambda p: (p["x"] ** 4).sum())(params)
        updates, state = pure.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    run = td.jit(step) if jits else step
    params = {"x": td.asarray(START), "nothing": None}
    state = pure.init(params)
    for _ in range(5):
        params, state = run(params, state)
    np.testing.assert_allclose(params["x"].numpy(), want, rtol=1e-5)
    assert state.step.item() == 5
    if jits:
        assert run.cache_info().misses == 1


def test_pure_optimizer_trains_a_module():
    model = td.nn.Sequential(td.nn.Linear(3, 4), td.nn.Tanh(), td.nn.Linear(4, 1)).requires_grad_(False)
    optimizer, x = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(0.05)), td.asarray(START)
    state = optimizer.init(model)

    @td.jit
    def step(model, state, x):
        loss, grads = td.value_and_grad(lambda model: ((model(x) - 1) ** 2).sum())(model)
        updates, state = optimizer.update(grads, state, model)
        return optim.apply_updates(model, updates), state, loss

    losses = []
    for _ in range(30):
        model, state, loss = step(model, state, x)
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0] and step.cache_info().misses == 1
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_clipping_of_trees():
    grads = {"a": td.asarray([3.0, 0.0]), "b": td.asarray([[4.0]])}
    assert optim.global_norm(grads).item() == 5.0
    clip = optim.clip_by_global_norm(1.0)
    clipped, _ = clip.update(grads, clip.init(grads))
    np.testing.assert_allclose(clipped["b"].numpy(), [[0.8]], rtol=1e-5)
    clip = optim.clip_by_value(1.0)
    assert clip.update(grads, clip.init(grads))[0]["a"].tolist() == [1.0, 0.0]


def test_schedules():
    steps = np.arange(0, 25, 5)
    schedules = {
        optim.constant_schedule(0.3): [0.3] * 5,
        optim.linear_schedule(1.0, 0.0, 10): [1, 0.5, 0, 0, 0],
        optim.cosine_decay_schedule(2.0, 10, 0.5): [2, 1.5, 1, 1, 1],
        optim.exponential_decay(1.0, 10, 0.25): [1, 0.5, 0.25, 0.125, 0.0625],
        optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 20): [0, 0.5, 1, 0.5, 0],
    }
    for schedule, want in schedules.items():
        got = [td.jit(schedule)(td.asarray(int(step))).item() for step in steps]
        np.testing.assert_allclose(got, want, atol=1e-6)
        assert schedule(5).item() == pytest.approx(want[1])
    pure = optim.sgd(optim.linear_schedule(1.0, 0.0, 2))
    params, state = td.ones(1), pure.init(td.ones(1))
    for want in (0.0, -0.5, -0.5):
        updates, state = pure.update(td.ones(1), state, params)
        params = optim.apply_updates(params, updates)
        assert params.tolist() == [want]
