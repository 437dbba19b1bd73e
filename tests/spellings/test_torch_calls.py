"""PyTorch's calls of methods and modules under ``tandem.torch``: the meaning is PyTorch's where NumPy has none."""

import copy
import importlib
import io
import pickle

import numpy as np
import pytest
import tandem as td
import tandem.torch as torch
from tandem.torch import optim


def test_size_is_number_and_method():
    x = td.zeros((2, 3))
    assert x.size == 6 and isinstance(x.size, int) and x.size() == (2, 3)
    assert [x.size(dim) for dim in (0, 1, -1)] == [2, 3, 3]
    for copied in (copy.copy(x.size), copy.deepcopy(x.size), pickle.loads(pickle.dumps(x.size))):
        assert type(copied) is int and copied == 6
    with pytest.raises(IndexError, match="size: axis 2"):
        x.size(2)


@pytest.mark.parametrize("transform", [td.jit, td.grad, td.vmap], ids=["jit", "grad", "vmap"])
def test_size_under_transforms(transform):
    def f(x, n=2):
        rows, columns = x.size() if x.ndim == 2 else (1, x.size(0))
        return (x.reshape(rows, columns) * x.size / n).sum()

    x = td.ones((2, 3))
    expected = {td.jit: np.float32(18.0), td.grad: np.full((2, 3), 3.0), td.vmap: [4.5, 4.5]}[transform]
    np.testing.assert_array_equal(transform(f)(x).numpy(), expected)


def test_size_is_jitted_argument():
    x = td.ones((2, 3))
    assert td.jit(lambda x, n: x * n)(x, x.size).tolist() == [[6.0] * 3] * 2
    assert td.jit(lambda x, d: x + d["n"])(x, {"n": x.size})[0, 0].item() == 7


@pytest.mark.parametrize("size", [6, (3, 2), (3, -1), [1, 6]])
def test_shape_assignment_makes_view(size):
    x = td.arange(6)
    memory = x.numpy()
    x.shape = size
    expected = np.arange(6).reshape(size)
    assert x.shape == expected.shape
    x[...] = x + 1
    np.testing.assert_array_equal(x.numpy(), expected + 1)
    assert memory[0] == 1


def test_shape_assignment_keeps_gradient():
    x = td.ones(4).requires_grad_()
    y = x * 2
    y.shape = 2, 2
    (y * y).sum().backward()
    assert x.grad.tolist() == [8.0] * 4


def test_shape_assignment_refuses_copies_and_leaves():
    x = td.zeros((2, 3)).T
    with pytest.raises(ValueError, match="copy"):
        x.shape = 6
    with pytest.raises(TypeError, match=r"use x\.reshape"):
        td.zeros(4).requires_grad_().shape = (2, 2)


# -- calls whose number of ints or keywords selects PyTorch's meaning --------------------------------------------------
TRANSFORMS = [lambda f: f, td.jit, lambda f: lambda x: td.vmap(f)(x[None])[0]]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=["eager", "jit", "vmap"])
@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: x.transpose(1, 2), lambda x: x.swapaxes(1, 2)),
        (lambda x: x.transpose(-2, -1), lambda x: x.swapaxes(1, 2)),
        (lambda x: x.transpose(dim0=0, dim1=2), lambda x: x.swapaxes(0, 2)),
        (lambda x: x.transpose(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
        (lambda x: x[0].transpose(0, 1), lambda x: x[0]),
        (lambda x: x[0].transpose(dim0=0, dim1=1), lambda x: x[0].T),
        (lambda x: x.repeat(2, 1, 3), lambda x: np.tile(x, (2, 1, 3))),
        (lambda x: x.repeat(2, 1, 1, 3), lambda x: np.tile(x, (2, 1, 1, 3))),
        (lambda x: x.repeat(2, 1), lambda x: x.repeat(2, 1)),
        (lambda x: x.split(3, dim=2)[1], lambda x: x[:, :, 3:]),
        (lambda x: x.split([1, 3], dim=-1)[1], lambda x: x[:, :, 1:]),
        (lambda x: x.split(split_size=1)[1], lambda x: x[1:]),
        (lambda x: x.split(2, axis=2)[1], lambda x: x[:, :, 2:]),
    ],
)
def test_overload_follows_ints_and_keywords(transform, call, expected):
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(transform(call)(td.asarray(x)).numpy(), expected(x))


def test_overload_errors_name_call():
    x = td.zeros((2, 3, 4))
    with pytest.raises(IndexError, match="axis 3"):
        x.transpose(1, 3)
    with pytest.raises(ValueError, match="permutation"):
        x[0].transpose(1, 1)
    with pytest.raises(TypeError, match="fits no option"):
        x.repeat(1, 1, 1.5)
    with pytest.raises(ValueError, match="add up to 4"):
        x.split([1, 2], dim=2)


def test_strict_names_refuse_ambiguous_calls_only():
    x = td.zeros((2, 3, 4))
    with td.debug.strict_names():
        assert x.transpose(1, 2).shape == (2, 4, 3) and len(x.split(2, dim=2)) == 2
        with pytest.raises(td.errors.AmbiguousNameError):
            x[0].transpose(0, 1)
        with pytest.raises(td.errors.AmbiguousNameError):
            x.split(2)


# -- modules and names -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, member",
    [
        ("autograd", "grad"),
        ("autograd", "Variable"),
        ("cuda", "is_available"),
        ("fft", "rfft"),
        ("func", "functional_call"),
        ("func", "jacrev"),
        ("linalg", "norm"),
        ("nn.functional", "relu"),
        ("nn.init", "zeros_"),
        ("nn.modules", "Linear"),
        ("nn.modules.batchnorm", "_BatchNorm"),
        ("nn.modules.module", "Module"),
        ("nn.modules.utils", "_pair"),
        ("nn.parameter", "Parameter"),
        ("nn.utils", "clip_grad_norm_"),
        ("nn.utils.parametrizations", "weight_norm"),
        ("nn.utils.parametrize", "is_parametrized"),
        ("nn.utils.rnn", "pad_sequence"),
        ("optim.lr_scheduler", "OneCycleLR"),
        ("special", "erf"),
    ],
)
def test_module_of_torch_is_importable(name, member):
    assert callable(getattr(importlib.import_module(f"tandem.torch.{name}"), member))


def test_device_is_name_with_type_and_index():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.zeros(2, device=device).to(device).device == device
    assert (torch.device("cuda", 1).type, torch.device("cuda:1").index, torch.device(1)) == (
        "cuda",
        1,
        "cuda:1",
    )
    assert torch.device("cpu").index is None and str(torch.device("cpu")) == "cpu"
    for wrong in (("gpu",), ("cuda:1", 2)):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            torch.device(*wrong)


def test_typed_constructors_take_data_or_sizes():
    assert torch.LongTensor([1, 2]).dtype is torch.long
    assert torch.FloatTensor(2, 3).shape == (2, 3) and torch.BoolTensor([0, 1]).tolist() == [False, True]
    array = np.zeros(2, np.float32)
    torch.FloatTensor(array)[0] = 1
    assert array[0] == 0
    assert torch.Size([2, 3]) == torch.zeros(2, 3).size()


def test_func_takes_dims():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(torch.sum, in_dims=1)(x).tolist() == [3.0, 5.0, 7.0]
    assert torch.func.vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1)(x, 2.0).shape == (3, 2)
    gradient, value = torch.func.grad_and_value(lambda x: (x * x).sum())(x)
    assert value.item() == 55 and gradient.tolist() == (2 * x).tolist()


# -- files -------------------------------------------------------------------------------------------------------------
def test_save_and_load_take_open_files(tmp_path):
    tree = {"model": {"weight": torch.ones(2)}, "epoch": 3, "losses": [0.5, None]}
    buffer = io.BytesIO()
    torch.save(tree, buffer)
    buffer.seek(0)
    with open(tmp_path / "state.pt", "wb") as file:
        torch.save(tree, file)
    for f in (buffer, tmp_path / "state.pt", str(tmp_path / "state.pt")):
        again = torch.load(f, map_location=torch.device("cpu"), weights_only=True)
        assert again["model"]["weight"].tolist() == [1.0, 1.0]
        assert again["epoch"] == 3 and again["losses"] == [0.5, None]
    with pytest.raises(ValueError, match="not an npz file"):
        torch.load(io.BytesIO(b"no file"))
    assert torch.load(tmp_path / "state.pt", map_location="meta")["model"]["weight"].device == "meta"


# -- schedulers --------------------------------------------------------------------------------------------------------
SCHEDULERS = {
    "constant": lambda s, o: s.ConstantLR(o, 0.5, 3),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9 + epoch / 100),
    "polynomial": lambda s, o: s.PolynomialLR(o, 8, 2.0),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=12),
    "one cycle, linear": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=4, steps_per_epoch=3, pct_start=0.5, anneal_strategy="linear"
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)], milestones=[4]
    ),
}
PLATEAUS = [
    {"patience": 1},
    {"mode": "max", "patience": 0, "factor": 0.5},
    {"patience": 0, "threshold_mode": "abs", "threshold": 0.3, "cooldown": 2, "min_lr": 0.02},
]
METRICS = [3.0, 2.0, 1.9, 2.1, 2.0, 2.0, 1.0, 1.2, 1.1, 1.1, 1.1]


def rates(library, make, count=11):
    optimizer = library.optim.SGD([library.zeros(1).requires_grad_()], lr=0.1)
    scheduler, result = make(library.optim.lr_scheduler, optimizer), []
    for at in range(count):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step(METRICS[at]) if hasattr(scheduler, "patience") else scheduler.step()
    return result


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULERS)
def test_scheduler_follows_torch(name):
    library = pytest.importorskip("torch")
    expected = rates(library, SCHEDULERS[name])
    np.testing.assert_allclose(rates(torch, SCHEDULERS[name]), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("options", PLATEAUS, ids=str)
def test_plateau_scheduler_follows_torch(options):
    library = pytest.importorskip("torch")

    def make(schedulers, optimizer):
        return schedulers.ReduceLROnPlateau(optimizer, **options)

    np.testing.assert_allclose(rates(torch, make), rates(library, make), rtol=1e-6)


def test_schedulers_reach_their_ends():
    first, *_, last = rates(torch, SCHEDULERS["one cycle"])
    assert first == pytest.approx(0.02) and last < 0.02
    assert rates(torch, SCHEDULERS["sequential"])[:6] == pytest.approx([0.01] * 3 + [0.1, 0.1, 0.09])
    plateau = rates(torch, lambda s, o: s.ReduceLROnPlateau(o, patience=1))
    assert plateau[0] == 0.1 and plateau[-1] == pytest.approx(0.001)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_optimizer_takes_options_of_implementations(name):
    results = []
    for options in ({}, {"foreach": False, "capturable": False}, {"fused": None}):
        x = torch.ones(2, requires_grad=True)
        optimizer = getattr(optim, name)([x], lr=0.1, **options)
        (x * x).sum().backward()
        optimizer.step()
        results.append(x.tolist())
    assert results[0] == results[1] == results[2] != [1.0, 1.0]
    with pytest.raises(TypeError, match="unexpected keyword argument 'momentums'"):
        getattr(optim, name)([x], lr=0.1, momentums=0.9)


def test_scheduler_mistakes_are_refused():
    optimizer = optim.SGD([torch.zeros(1).requires_grad_()], lr=0.1)
    with pytest.raises(ValueError, match="total_steps"):
        optim.lr_scheduler.OneCycleLR(optimizer, 0.1)
    with pytest.raises(ValueError, match="milestones"):
        optim.lr_scheduler.SequentialLR(optimizer, [], [1])
    with pytest.raises(ValueError, match="mode"):
        optim.lr_scheduler.ReduceLROnPlateau(optimizer, "least")
    with pytest.raises(TypeError, match="metric"):
        optim.lr_scheduler.ReduceLROnPlateau(optimizer).step()


# -- recurrent cells ---------------------------------------------------------------------------------------------------
CELLS = ["RNNCell", "LSTMCell", "GRUCell"]


@pytest.mark.parametrize("name", CELLS)
def test_cell_is_step_of_layer(name):
    cell = getattr(torch.nn, name)(3, 4)
    layer = getattr(torch.nn, name.removesuffix("Cell"))(3, 4)
    layer.load_state_dict({f"{key}_l0": value for key, value in cell.state_dict().items()})
    x = torch.randn(5, 2, 3)
    state, outputs = None, []
    for step in x:
        state = cell(step, state)
        outputs.append(state[0] if name == "LSTMCell" else state)
    np.testing.assert_allclose(torch.stack(outputs).detach().numpy(), layer(x)[0].detach().numpy(), rtol=1e-5)
    assert (cell(x[0, 0])[0] if name == "LSTMCell" else cell(x[0, 0])).shape == (4,)
    with pytest.raises(ValueError, match="of size 3"):
        cell(torch.zeros(2, 5))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_cell_agrees_with_torch(name, bias):
    library = pytest.importorskip("torch")
    ours, theirs = (getattr(one.nn, name)(3, 4, bias) for one in (torch, library))
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    result, expected = ours(torch.tensor(x)), theirs(library.tensor(x))
    pairs = zip(result, expected) if name == "LSTMCell" else [(result, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


# -- torch.autograd.functional -----------------------------------------------------------------------------------------
FUNCTIONAL = ["jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"]


def evaluate(library, name, pair):
    def f(x, y):
        return (x * y).sum() + (x**3).sum()

    function = getattr(library.autograd.functional, name)
    x, y, v = (library.tensor(values) for values in ([1.0, 2.0], [3.0, 4.0], [1.0, -2.0]))
    vector = () if name in FUNCTIONAL[:3] else ((v, v),) if pair else (v,)
    return function(f, (x, y), *vector) if pair else function(lambda x: f(x, x), x, *vector)


def to_lists(value):
    return [to_lists(item) for item in value] if isinstance(value, tuple) else value.tolist()


@pytest.mark.parametrize("pair", [False, True], ids=["one", "two"])
@pytest.mark.parametrize("name", FUNCTIONAL)
def test_functional_derivative_agrees_with_torch(name, pair):
    library = pytest.importorskip("torch")
    assert to_lists(evaluate(torch, name, pair)) == to_lists(evaluate(library, name, pair))


def test_functional_derivatives_of_square():
    x = torch.tensor([1.0, 2.0])
    assert torch.autograd.functional.jacobian(lambda x: x**2, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, x)[1].tolist() == [6.0, 24.0]


def test_once_differentiable_backward_is_not_recorded():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = torch.tensor([3.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert gradient.tolist() == [6.0] and not gradient.requires_grad


def test_number_of_elements_is_plain_int():
    x = td.zeros((2, 3))
    for count in (x.numel(), x.nelement(), td.numel(x), td.size(x), torch.numel(x), x.nbytes, x.size * 1):
        assert type(count) is int


def test_order_of_elements_is_accepted():
    x = torch.arange(6.0).reshape(1, 2, 3, 1)
    for call in (
        x.contiguous,
        x.clone,
        x.to,
        lambda memory_format: torch.clone(x, memory_format=memory_format),
    ):
        result = call(memory_format=torch.channels_last)
        assert result.tolist() == x.tolist() and result.stride() == x.stride()
    assert x.to("cpu", torch.float64, memory_format=torch.preserve_format).dtype is torch.float64
    assert repr(torch.channels_last_3d) == "torch.channels_last_3d"
    assert isinstance(torch.contiguous_format, torch.memory_format)
    with pytest.raises(TypeError, match="memory_format"):
        td.exp(x, memory_format=torch.channels_last)


def test_gradients_of_inputs_only_are_computed():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(outputs=(x * x).sum(), inputs=x, only_inputs=True)
    assert gradient.tolist() == [2.0, 4.0]
    with pytest.raises(td.errors.ArgumentError, match="only_inputs"):
        torch.autograd.grad(x.sum(), x, only_inputs=False)


def test_least_squares_are_named():
    result = torch.linalg.lstsq(td.asarray([[1.0], [1.0]]), td.asarray([[1.0], [3.0]]))
    np.testing.assert_allclose(result.solution.numpy(), [[2.0]], rtol=1e-6)
    assert result.rank.item() == 1 and result.solution is result[0] and len(result) == 4


def test_whole_modules_are_saved_as_pickles(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    path = tmp_path / "net.pth"
    torch.save(net, path)
    with pytest.raises(ValueError, match="weights_only=False"):
        torch.load(path)
    other = torch.load(path, map_location=lambda storage, location: storage, weights_only=False)
    assert other(torch.ones(2)).tolist() == net(torch.ones(2)).tolist()
    torch.save({"model_state_dict": net.state_dict(), "epoch": 3}, path)
    assert torch.load(path, map_location="cpu", weights_only=True)["epoch"] == 3
    buffer = io.BytesIO()
    torch.save([torch.ones(2)], buffer)
    buffer.seek(0)
    assert torch.load(buffer)[0].tolist() == [1.0, 1.0]


def test_diagonals_of_bools_are_filled_with_numbers():
    assert torch.ones((2, 2), dtype=bool).fill_diagonal_(0).tolist() == [[False, True], [True, False]]
    assert torch.zeros(2, 2).fill_diagonal_(True).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_base_classes_of_layers_are_found():
    from tandem.torch.nn.modules.batchnorm import _BatchNorm
    from tandem.torch.nn.modules.conv import Conv2d, _ConvNd
    from tandem.torch.nn.modules.utils import _pair, _triple

    assert Conv2d is torch.nn.Conv2d and isinstance(Conv2d(1, 1, 1), _ConvNd)
    assert isinstance(torch.nn.BatchNorm2d(1), _BatchNorm) and not isinstance(
        torch.nn.LayerNorm(1), _BatchNorm
    )
    assert _pair(3) == (3, 3) and _triple([1, 2, 3]) == (1, 2, 3)
    assert torch.nn.modules.loss.MSELoss is torch.nn.MSELoss and torch.nn.init.normal is torch.nn.init.normal_
