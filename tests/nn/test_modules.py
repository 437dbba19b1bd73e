"""Modules: parameters and buffers, state, and modules as pytrees of the transforms."""

import copy
import pickle

import numpy as np
import pytest
import tandem as td
from tandem import nn
from tandem.errors import ArgumentError, OutOfBoundsError, ShapeError, UnsupportedError
from tandem.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 4)
        self.scale = nn.Parameter(td.ones(4))
        self.register_buffer("offset", td.zeros(4))
        self.register_buffer("cache", td.zeros(4), persistent=False)
        self.output = nn.Linear(4, 2, bias=False)
        self.sizes, self.name = [3, 4, 2], "net"

    def forward(self, x):
        return self.output(td.tanh(self.hidden(x)) * self.scale + self.offset)


@pytest.fixture
def net():
    nn.manual_seed(0)
    return Net()


X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)


def loss_of(module, x):
    return (module(x) ** 2).mean()


def assert_close(one, two, tolerance=1e-6):
    np.testing.assert_allclose(np.asarray(one), np.asarray(two), rtol=tolerance, atol=tolerance)


# --- names and state --------------------------------------------------------------------------------------
def test_names_are_those_of_torch(net):
    names = ["scale", "hidden.weight", "hidden.bias", "output.weight"]
    assert [name for name, _ in net.named_parameters()] == names
    assert list(net.state_dict()) == ["scale", "offset", *names[1:]]
    assert [name for name, _ in net.named_buffers()] == ["offset", "cache"]
    assert [name for name, _ in net.named_modules()] == ["", "hidden", "output"]
    assert net.get_submodule("hidden") is net.hidden
    assert len(list(net.parameters())) == 4 and len(list(net.children())) == 2


def test_state_round_trips(net):
    other = Net()
    arrays = {name: value.numpy().copy() for name, value in net.state_dict().items()}
    assert other.load_state_dict(arrays) == ([], [])
    assert_close(other(td.asarray(X)).detach(), net(td.asarray(X)).detach(), 0)
    assert other.hidden.weight.requires_grad


def test_state_shares_memory(net):
    net.state_dict()["scale"][0] = 7.0
    assert net.scale[0].item() == 7.0
    assert net.state_dict(keep_vars=True)["scale"] is net.scale


def test_wrong_state_is_refused_whole(net):
    state = {name: value.numpy() + 1 for name, value in net.state_dict().items()}
    before = net.scale.tolist()
    with pytest.raises(ArgumentError, match=r"no value for scale.*unknown names scales"):
        net.load_state_dict({**{k: v for k, v in state.items() if k != "scale"}, "scales": state["scale"]})
    assert net.load_state_dict({"offset": np.ones(4)}, strict=False).missing_keys[0] == "scale"
    with pytest.raises(RuntimeError, match="no value"):
        net.load_state_dict({})
    with pytest.raises(ShapeError, match=r"output.weight has shape \(2, 4\)"):
        net.load_state_dict({**state, "output.weight": np.ones((4, 2))})
    assert net.scale.tolist() == before


def test_shared_parameter_is_counted_once(net):
    net.again = net.hidden
    net.tied = net.scale
    assert len(list(net.parameters())) == 4
    assert {"tied", "again.weight"} <= set(net.state_dict())
    assert len(list(net.named_parameters(remove_duplicate=False))) == 7
    net.to(td.float64)
    assert net.tied is net.scale and net.again is net.hidden and net.scale.dtype is td.float64


def test_assigned_attributes_are_checked(net):
    with pytest.raises(ArgumentError, match="the parameter 'scale'"):
        net.scale = td.ones(4)
    with pytest.raises(ArgumentError, match="already"):
        net.register_buffer("scale", td.ones(4))
    with pytest.raises(ArgumentError, match="without dots"):
        net.register_parameter("a.b", None)
    with pytest.raises(ArgumentError, match="no submodule 'missing'"):
        net.get_submodule("missing")
    with pytest.raises(ArgumentError, match="no method 'forward'"):
        nn.Module()(1)
    net.scale = None
    assert "scale" not in net.state_dict()
    del net.hidden, net.offset
    assert list(net.state_dict()) == ["output.weight"]


def test_frozen_parameter_stays_a_parameter(net):
    net.fixed = nn.Parameter(td.ones(2), requires_grad=False)
    assert "fixed" in dict(net.named_parameters()) and not net.fixed.requires_grad
    net.requires_grad_(False)
    assert len(list(net.parameters())) == 5 and not any(p.requires_grad for p in net.parameters())
    net.plain = td.ones(2)
    assert "plain" not in net.state_dict()


def test_apply_train_and_zero_grad(net):
    seen = []
    assert net.apply(seen.append) is net
    assert seen == [net.hidden, net.output, net]
    assert not net.eval().hidden.training and net.train().output.training
    loss_of(net, td.asarray(X)).backward()
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0] * 4
    net.zero_grad()
    assert net.scale.grad is None


def test_casts_keep_integers_and_gradients():
    norm = nn.BatchNorm1d(3)
    norm(td.asarray(X)).sum().backward()
    norm.double()
    assert norm.weight.dtype is norm.weight.grad.dtype is norm.running_var.dtype is td.float64
    assert norm.num_batches_tracked.dtype is td.int64 and norm.weight.requires_grad
    assert norm.float() is norm and norm.weight.dtype is td.float32
    assert norm.bfloat16().weight.dtype is td.bfloat16 and norm.half().bias.dtype is td.float16
    parameter = norm.weight
    assert norm.cpu().to("cpu", td.float16).weight is parameter


def test_copies_are_independent(net):
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert_close(other(td.asarray(X)).detach(), net(td.asarray(X)).detach(), 0)
        other.scale.detach()[...] = 3.0
        assert net.scale.tolist() == [1.0] * 4
        assert list(other.state_dict()) == list(net.state_dict())


def test_modules_print_as_in_torch():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Dropout(0.1)))
    assert repr(model).splitlines() == [
        "Sequential(",
        "  (0): Linear(in_features=2, out_features=3, bias=True)",
        "  (1): Sequential(",
        "    (0): ReLU()",
        "    (1): Dropout(p=0.1, inplace=False)",
        "  )",
        ")",
    ]


def test_containers_hold_modules():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    model.append(nn.Linear(3, 1))
    assert len(model) == 3 and model[-1] is list(model)[2] and len(model[:2]) == 2
    model[1] = nn.Tanh()
    assert isinstance(model[1], nn.Tanh) and list(model.state_dict())[-1] == "2.bias"
    with pytest.raises(OutOfBoundsError, match="3 items"):
        model[3]
    modules = nn.ModuleList([nn.Linear(1, 1)]).extend([nn.Linear(1, 2)])
    assert [module.out_features for module in modules] == [1, 2]
    by_name = nn.ModuleDict({"a": nn.ReLU()})
    by_name["b"] = nn.Linear(1, 1)
    by_name["a"] = nn.Tanh()
    assert list(by_name) == list(by_name.keys()) == ["a", "b"] and "b" in by_name and len(by_name) == 2
    assert list(dict(by_name.items())) == ["a", "b"] and len(list(by_name.values())) == 2


# --- pytrees ----------------------------------------------------------------------------------------------
def test_leaves_are_in_the_order_of_attributes(net):
    paths = [td.pytree.keystr(path) for path, _ in td.tree.leaves_with_path(net)]
    assert paths == [".hidden.weight", ".hidden.bias", ".scale", ".offset", ".cache", ".output.weight"]
    doubled = td.tree.map(lambda x: 2 * x, net)
    assert type(doubled) is Net and doubled.sizes == [3, 4, 2] and doubled.name == "net"
    assert td.tree.structure(doubled) == td.tree.structure(net)
    assert list(doubled.state_dict()) == list(net.state_dict())
    axes = td.tree.map(lambda x: 0, net)
    assert td.tree.leaves(axes) == [0] * 6 and td.tree.structure(axes) == td.tree.structure(net)
    assert td.tree.structure(net.eval()) != td.tree.structure(doubled)


def test_module_is_an_argument_of_jit(net):
    jitted = td.jit(loss_of)
    x = td.asarray(X)
    for _ in range(20):
        assert_close(jitted(net, x).detach(), loss_of(net, x).detach())
    with td.no_grad():
        for _ in range(20):
            value = jitted(td.tree.map(lambda p: p * 1, net), x)
    assert_close(value, loss_of(net, x).detach())
    assert jitted.cache_info().misses <= 3
    net.scale.detach()[...] = 0.5
    assert_close(jitted(net, x).detach(), loss_of(net, x).detach())
    net.extra = 1
    jitted(net, x)
    assert jitted.cache_info().misses <= 4


def test_jitted_gradients_agree(net):
    x = td.asarray(X)
    loss_of(net, x).backward()
    expected = [p.grad.numpy().copy() for p in net.parameters()]
    for function in (
        td.jit(loss_of),
        td.jit(lambda net, x: loss_of(net, x)),
        lambda _, x: td.jit(captured)(x),
    ):

        def captured(x):
            return loss_of(net, x)

        net.zero_grad()
        function(net, x).backward()
        for parameter, want in zip(net.parameters(), expected):
            assert_close(parameter.grad, want)
    net.zero_grad()
    (td.jit(net)(x) ** 2).mean().backward()
    assert_close(next(net.parameters()).grad, expected[0])


def test_grad_of_a_module_is_a_module(net):
    x = td.asarray(X)
    loss_of(net, x).backward()
    expected = {name: p.grad.numpy() for name, p in net.named_parameters()}
    net.requires_grad_(False)
    for function in (td.grad(loss_of), td.jit(td.grad(loss_of))):
        gradient = function(net, x)
        assert type(gradient) is Net
        for name, value in gradient.named_parameters():
            assert_close(value, expected[name])


def test_vmap_over_an_ensemble():
    nets = [Net().requires_grad_(False) for _ in range(3)]
    stacked = td.tree.map(lambda *leaves: td.stack(leaves), *nets)
    x = td.asarray(X)
    result = td.vmap(lambda net, x: net(x), in_axes=(0, None))(stacked, x)
    for got, net in zip(result, nets):
        assert_close(got, net(x))
    assert_close(td.vmap(nets[0])(x), nets[0](x))


def test_functional_call_replaces_tensors(net):
    x, params = td.asarray(X), {name: p.detach() * 2 for name, p in net.named_parameters()}
    before = net(x).tolist()
    result = nn.functional_call(net, params, x)
    other = Net()
    other.load_state_dict({**params, "offset": net.offset})
    assert_close(result, other(x).detach())
    assert net(x).tolist() == before
    gradients = td.grad(lambda p: loss_of(lambda x: nn.functional_call(net, p, (x,)), x))(params)
    assert set(gradients) == set(params)
    with pytest.raises(ArgumentError, match="no tensor 'missing'"):
        nn.functional_call(net, {"missing": x}, x)


def test_static_attribute_must_be_hashable(net):
    net.callbacks = {1: {2: [print]}}
    assert td.jit(loss_of)(net, td.asarray(X)).shape == ()
    net.callbacks = {1, 2}
    with pytest.raises(ArgumentError, match="not hashable"):
        td.jit(loss_of)(net, td.asarray(X))


# --- training mode, buffers and random numbers under jit ---------------------------------------------------
def test_captured_module_follows_training_mode():
    drop, x = nn.Dropout(0.5), td.ones(64)
    jitted, whole, method = td.jit(lambda x: drop(x)), td.jit(drop), td.jit(drop.forward)
    for function in (jitted, whole, method):
        for _ in range(12):
            drop.train()
            assert 0 < int((function(x) == 0).sum()) < 64
            drop.eval()
            assert function(x).tolist() == [1.0] * 64
        assert function.cache_info().misses == 2


def test_modules_in_a_captured_container_follow_training_mode():
    parts, x = {"drop": [nn.Dropout(0.5)]}, td.ones(64)
    jitted = td.jit(lambda x: parts["drop"][0](x))
    for _ in range(6):
        parts["drop"][0].train()
        assert 0 < int((jitted(x) == 0).sum()) < 64
        parts["drop"][0].eval()
        assert jitted(x).tolist() == [1.0] * 64


def test_captured_module_follows_replaced_parts(net):
    jitted, x = td.jit(lambda x: net(x)), td.asarray(X)
    with td.no_grad():
        for _ in range(12):
            assert_close(jitted(x), net(x))
        net.hidden = nn.Linear(3, 4)
        assert_close(jitted(x), net(x))
        net.output.weight = nn.Parameter(td.ones((2, 4)))
        assert_close(jitted(x), net(x))
    assert "attribute weight" in jitted.explain(x)


def test_jitted_dropout_draws_new_numbers():
    drop, x = nn.Dropout(0.5), td.ones(64)
    jitted = td.jit(lambda drop, x: drop(x))
    assert jitted(drop, x).tolist() != jitted(drop, x).tolist()
    nn.manual_seed(3)
    first = drop(x).tolist()
    nn.manual_seed(3)
    assert jitted(drop, x).tolist() == first
    generator = td.Generator(3)
    assert F.dropout(x, generator=generator).tolist() == first
    assert td.sum(F.dropout2d(td.ones((2, 8, 3, 3))), (2, 3)).reshape(-1).tolist().count(0.0) > 0


@pytest.mark.parametrize("records", [True, False])
def test_batch_norm_writes_into_an_argument_of_jit(records):
    x = td.asarray(X)
    eager, other = (nn.Sequential(nn.BatchNorm1d(3)).requires_grad_(records) for _ in range(2))
    jitted = td.jit(lambda model, x: model(x))
    for _ in range(3):
        assert_close(jitted(other, x).detach(), eager(x).detach())
    for one, two in zip(eager.buffers(), other.buffers()):
        assert_close(one, two)
    assert other[0].num_batches_tracked.item() == 3


def test_batch_norm_says_where_it_cannot_write():
    model, x = nn.BatchNorm1d(3), td.asarray(X)
    with pytest.raises(UnsupportedError, match="differs between examples"):
        td.vmap(model)(td.ones((2, 5, 3)))
    model.eval()
    assert_close(td.jit(lambda x: model(x))(x).detach(), model(x).detach())
    assert td.vmap(model)(td.ones((2, 5, 3))).shape == (2, 5, 3)


def test_batch_norm_updates_under_grad():
    model, x = nn.BatchNorm1d(3), td.asarray(X)
    params = {name: p.detach() for name, p in model.named_parameters()}
    gradient = td.grad(lambda p: loss_of(lambda x: nn.functional_call(model, p, x), x))(params)
    assert gradient["weight"].shape == (3,) and model.num_batches_tracked.item() == 1
    whole = td.grad(loss_of, allow_int=True)(model.requires_grad_(False), x)
    assert_close(whole.weight, gradient["weight"])
    assert model.num_batches_tracked.item() == 2


def test_recurrent_layer_is_jitted_as_a_loop():
    lstm, x = nn.LSTM(3, 4, 2, bidirectional=True), td.asarray(X).unsqueeze(1)
    jitted = td.jit(lambda lstm, x: lstm(x)[0])
    assert_close(jitted(lstm, x).detach(), lstm(x)[0].detach())
    (jitted(lstm, x) ** 2).sum().backward()
    got = [p.grad.numpy().copy() for p in lstm.parameters()]
    lstm.zero_grad()
    (lstm(x)[0] ** 2).sum().backward()
    for one, parameter in zip(got, lstm.parameters()):
        assert_close(one, parameter.grad, 1e-5)


def test_frozen_parameter_is_written_and_copied_with_its_gradient():
    layer = nn.Linear(2, 3)
    layer(td.ones(2)).sum().backward()
    layer.requires_grad_(False)
    with td.no_grad():
        layer.weight *= 2
    assert list(layer.state_dict()) == ["weight", "bias"]
    other = copy.deepcopy(layer).to(td.float64)
    assert other.weight.grad.tolist() == layer.weight.grad.tolist() == [[1.0, 1.0]] * 3
    assert not other.weight.requires_grad and len(list(other.parameters())) == 2
    holder = nn.Module()
    holder.weight = layer.weight
    assert [name for name, _ in holder.named_parameters()] == ["weight"]
    assert copy.copy(layer.bias).grad.tolist() == [1.0] * 3


def test_gradient_of_a_padded_convolution_can_be_viewed():
    x = td.ones((2, 1, 8, 8)).requires_grad_()
    nn.Conv2d(1, 4, 4, 2, 1)(x).sum().backward()
    (gradient,) = td.autograd.grad(nn.Conv2d(1, 4, 4, 2, 1)(x).sum(), x)
    assert gradient.view(2, -1).shape == (2, 64)


def test_states_of_several_modules_are_stacked():
    nets = [nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval() for _ in range(4)]
    params, buffers = nn.stack_module_state(nets)
    assert params["0.weight"].shape == (4, 2, 3) and params["0.weight"].requires_grad
    assert buffers["1.running_mean"].shape == (4, 2)
    x = td.asarray(X)
    results = td.vmap(lambda p, b: nn.functional_call(nets[0], (p, b), x))(params, buffers)
    for result, net in zip(results.detach().numpy(), nets):
        assert_close(result, net(x).detach())
    with pytest.raises(ArgumentError, match="at least one"):
        nn.stack_module_state([])
    with pytest.raises(ArgumentError, match="one class"):
        nn.stack_module_state([nets[0], nn.Linear(3, 2)])


def test_functional_call_is_strict_and_untied_on_request(net):
    net.again = net.hidden
    values = {"hidden.weight": td.zeros((4, 3))}
    with pytest.raises(ArgumentError, match=r"hidden\.bias"):
        nn.functional_call(net, values, td.asarray(X), strict=True)

    def read(tie_weights):
        seen = []
        handle = net.register_forward_pre_hook(
            lambda module, args: seen.append(module.again.weight.sum().item())
        )
        nn.functional_call(net, values, td.asarray(X), tie_weights=tie_weights)
        handle.remove()
        return seen[0]

    assert (
        read(True) == 0
        and read(False) == pytest.approx(net.hidden.weight.sum().item())
        and net.hidden.weight.sum().item() != 0
    )
