"""Devices of other packages: names, creation, transfers, gradients and errors."""

import itertools
import pickle

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.eager.tensor.storage import Storage
from tandem.eager.tensor.tensor import EAGER, dtype_of
from tandem.registry.dispatch.keys import BACKEND_OF_DEVICE
from tandem.registry.values import TensorSpec


class Far(td.Tensor):
    """A tensor on the device ``far``: an ndarray that only the transfers look at."""

    __slots__ = ("held",)
    shape = property(lambda self: self.held.shape)
    dtype = property(lambda self: dtype_of(self.held))
    device = property(lambda self: "far")
    spec = property(lambda self: TensorSpec(self.shape, self.dtype, "far"))

    @property
    def _array(self):
        raise errors.UnsupportedError("far away")

    def _alias(self):
        return far(self.held)

    _without_history = _alias


def far(array):
    made = Far.__new__(Far)
    made.held, made._keys, made._meta = array, 1 << td.DispatchKey.PrivateUse2, None
    made._storage = Storage(array)
    return made


def send(tensor, device):
    return far(tensor.detach().numpy().copy())


def fetch(tensor):
    return td.asarray(tensor.held.copy())


@pytest.fixture
def device():
    with td.register_device("far", "PrivateUse2", from_cpu=send, to_cpu=fetch, tensor_class=Far) as handle:
        yield handle
    assert "far" not in BACKEND_OF_DEVICE
    assert Far not in EAGER


def test_round_trip(device):
    x = td.asarray([1.0, 2.0]).to("far")
    assert type(x) is Far
    assert x.to("far") is x
    assert x.to("cpu").tolist() == [1.0, 2.0]
    assert td.asarray([1, 2], device="far").dtype is td.int64
    assert td.asarray(x, device="cpu").tolist() == [1.0, 2.0]
    assert td.asarray([1.0]).to("far:0").device == "far"
    assert td.asarray([1.0]).to(device="far", dtype=td.float64).dtype is td.float64


def test_device_has_type_and_index_in_every_class(device):
    x = td.zeros((2, 2))
    classes = [x, x.to("meta"), x.to_sparse(), x.to("far")]
    seen = [(one.device.type, one.device.index) for one in classes]
    assert seen == [("cpu", None), ("meta", None), ("cpu", None), ("far", None)]
    assert td.jit(lambda x: x + (1 if x.device.type == "cpu" else 2))(x)[0, 0] == 1
    assert td.vmap(lambda x: x + (x.device.index is None))(x)[0, 0] == 1
    assert pickle.loads(pickle.dumps(x.device)).type == "cpu"
    assert repr(x.device) == "'cpu'"


def test_gradients_follow(device):
    x = td.asarray([1.0, 2.0], requires_grad=True)
    y = x.to("far")
    assert y.requires_grad
    (y.to("cpu") * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    leaf = td.asarray([1.0, 2.0], device="far", requires_grad=True)
    (leaf.to("cpu") * td.asarray([1.0, 5.0])).sum().backward()
    assert leaf.grad.device == "far"
    assert leaf.grad.to("cpu").tolist() == [1.0, 5.0]
    found = td.grad(lambda v: (v.to("far").to("cpu") ** 2).sum())(td.asarray([3.0]))
    assert found.tolist() == [6.0]


class Held(td.autograd.Function):
    """The elements on the CPU, with a gradient that somebody holds."""

    @staticmethod
    def forward(ctx, x, gradient):
        ctx.gradient = gradient
        return x.to("cpu")

    @staticmethod
    def backward(ctx, g):
        return ctx.gradient, None


@pytest.mark.parametrize("way", ["by way of the CPU", "shared transfers", "kernel", "fallback"])
def test_grad_never_shares_memory(way):
    used = []

    def clone(x):
        used.append("kernel")
        return far(x.held.copy())

    def fallback(op, keyset, args, kwargs):
        used.append("fallback")
        return far(op(*map(fetch, args), **kwargs).numpy())

    share = way == "shared transfers"
    given = {"from_cpu": (lambda x, device: far(x.detach().numpy())) if share else send}
    given |= {"to_cpu": (lambda x: td.asarray(x.held)) if share else fetch}
    with (
        td.register_device("far", "PrivateUse2", **given, tensor_class=Far),
        td.Library("td", "IMPL") as library,
    ):
        if way == "kernel":
            library.impl("clone", clone, "PrivateUse2")
        elif way == "fallback":
            library.fallback(fallback, "PrivateUse2")
        held = far(np.ones(2))
        x, w = (far(np.zeros(2)).requires_grad_() for _ in "xw")
        (Held.apply(x, held) + Held.apply(w, held)).backward(td.ones(2, dtype=td.float64))
        memory = [one.held for one in (held, x.grad, w.grad)]
        assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(memory, 2))
        assert [array.tolist() for array in memory] == [[1.0, 1.0]] * 3
        assert x.grad.device == "far"
        assert used == [way] * 2 if way in ("kernel", "fallback") else not used


@pytest.mark.parametrize("transfer", [{}, {"from_cpu": send}, {"to_cpu": fetch}])
def test_grad_that_cannot_be_copied_is_refused(transfer):
    with td.register_device("far", "PrivateUse2", **transfer, tensor_class=Far):
        x = far(np.zeros(2)).requires_grad_()
        with pytest.raises(
            errors.NoKernelError, match=r"(?s)backward copies a gradient .* td::clone has no kernel"
        ):
            x.backward(far(np.ones(2)))
        assert x.grad is None


def test_batches_follow(device):
    found = td.vmap(lambda v: v.to("far").to("cpu") * 2)(td.asarray([[1.0], [2.0]]))
    assert found.tolist() == [[2.0], [4.0]]


def test_an_operator_without_a_kernel_there(device):
    with pytest.raises(errors.NoKernelError, match="PrivateUse2"):
        td.exp(td.asarray([1.0]).to("far"))
    with pytest.raises(errors.NoKernelError, match="full"):
        td.zeros(2, device="far")
    with td.Library("td", "IMPL") as library:
        library.impl("exp", lambda x: far(np.exp(x.held)), "PrivateUse2")
        assert td.exp(td.zeros(1).to("far")).to("cpu").tolist() == [1.0]


def test_jitted_function_runs_eagerly_on_foreign_device(device):
    seen = []

    @td.jit
    def f(x):
        seen.append(type(x))
        return x.to("cpu") + 1

    assert f(td.asarray([1.0]).to("far")).tolist() == [2.0]
    assert seen == [Far]
    assert f(td.asarray([1.0])).tolist() == [2.0]
    assert seen[1] is not Far


def test_transfers_are_checked():
    with td.register_device("far", "PrivateUse2"):
        with pytest.raises(errors.UnsupportedError, match="from_cpu"):
            td.zeros(1).to("far")
        with pytest.raises(errors.UnsupportedError, match="to_cpu"):
            far(np.zeros(1)).to("cpu")
    with (
        td.register_device("far", "PrivateUse2", from_cpu=lambda x, device: x),
        pytest.raises(errors.DeviceError, match="from_cpu returned"),
    ):
        td.zeros(1).to("far")
    with pytest.raises(errors.DeviceError, match="unknown device 'far'"):
        td.zeros(1, device="far")


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        (("cpu", "PrivateUse1"), errors.RegistrationError, "already"),
        (("a b", "PrivateUse1"), errors.ValueArgumentError, "one word"),
        ((3, "PrivateUse1"), errors.ArgumentError, "takes a name"),
        (("npu", "CUDA"), errors.ValueArgumentError, "PrivateUse1 and PrivateUse2"),
        (("npu", "Autograd"), errors.ValueArgumentError, "not reserved for external devices"),
        (("npu", "Nothing"), errors.ValueArgumentError, "unknown dispatch key"),
    ],
    ids=["taken", "word", "number", "built in", "alias", "unknown"],
)
def test_names_and_keys_are_checked(arguments, error, what):
    before = dict(BACKEND_OF_DEVICE)
    with pytest.raises(error, match=what):
        td.register_device(*arguments)
    assert before == BACKEND_OF_DEVICE


def test_one_device_for_a_key(device):
    with pytest.raises(errors.RegistrationError, match="key of the device 'far'"):
        td.register_device("other", "PrivateUse2")
    with pytest.raises(errors.ArgumentError, match="transfer"):
        td.register_device("other", "PrivateUse1", from_cpu=3)
    with pytest.raises(errors.ArgumentError, match="tensor_class"):
        td.register_device("other", "PrivateUse1", tensor_class=int)
