"""Autocast keys, registrations for any operator, and shape rules of tandem's own operators."""

import ctypes
import ctypes.util

import numpy as np
import pytest
import tandem as td
from tandem import errors

X = td.asarray(np.array([1.0, 2.0]))


@pytest.fixture
def lib():
    with td.Library("contract", "DEF") as found:
        yield found


# --- autocast keys ----------------------------------------------------------------------------------------


def test_autocast_keys_are_separate():
    keys = td.DispatchKeySet("Autocast")
    assert {"AutocastCPU", "AutocastCUDA"} <= {key.name for key in keys}
    half = td.ones(2, dtype=td.bfloat16)
    with td.autocast("cpu"):
        assert td.dispatch_state().include == td.DispatchKeySet("AutocastCPU")
        with td.autocast("cuda"):
            assert td.dispatch_state().include == td.DispatchKeySet("AutocastCPU", "AutocastCUDA")
            assert td.exp(half).dtype is td.float32
        with td.exclude_keys("AutocastCUDA"):
            assert td.exp(half).dtype is td.float32
        with td.exclude_keys("AutocastCPU"):
            assert td.exp(half).dtype is td.bfloat16
    with td.autocast("cuda"):
        assert td.is_autocast_enabled("cuda") and not td.is_autocast_enabled("cpu")
        assert td.exp(half).dtype is td.bfloat16


def test_autocast_kernels_serve_their_device():
    half = td.ones(2, dtype=td.bfloat16)
    with td.Library("td", "IMPL") as lib:
        lib.impl("exp", lambda x: x, "AutocastCUDA")
        with td.autocast("cpu"), td.autocast("cuda"):
            assert td.exp(half) is not half
        lib.impl("exp", lambda x: x, "AutocastCPU")
        with td.autocast("cpu"):
            assert td.exp(half) is half
    table = td.dispatch_table("exp")
    assert table["AutocastCPU"].kind == table["AutocastCUDA"].kind == "fallback"


# --- registrations for any operator -----------------------------------------------------------------------

TARGETS = {"own": "td::exp", "library": "contract::cube", "custom": "contract_any::cube"}


@pytest.fixture(params=TARGETS)
def target(request, lib):
    lib.define("cube(Tensor x) -> Tensor")
    lib.impl("cube", lambda x: td.asarray(x.numpy() ** 3), "CPU")
    custom = td.custom_op("contract_any::cube", lambda x: x * x * x, schema="(Tensor x) -> Tensor")
    name = TARGETS[request.param]
    yield name, {"own": td.exp, "library": td.ops.contract.cube, "custom": custom}[request.param]
    custom.remove()


def test_kernels_and_derivatives_register_for_any_operator(target):
    name, op = target
    before = op(X).tolist()
    for kernel in (td.numpy_kernel(lambda x: x + 1), lambda x: x + 1.0):
        for _ in range(2):
            with td.register_kernel(name, "cpu", kernel):
                for _ in range(40):
                    assert op(X).tolist() == [2.0, 3.0]
            assert op(X).tolist() == before
    with td.register_kernel(name, "cpu", lambda x: None), pytest.raises(errors.KernelResultError):
        op(X)
    with td.register_autograd(name, lambda ctx, g: g * 7.0):
        assert td.grad(lambda x: op(x).sum())(X).tolist() == [7.0, 7.0]
        for _ in range(40):
            x = X.clone().requires_grad_()
            op(x).sum().backward()
            assert x.grad.tolist() == [7.0, 7.0]
        with td.register_fake(name, lambda x: td.empty_like(x)):
            assert op(td.empty(3, device="meta")).shape == (3,)
            assert td.grad(td.jit(lambda x: op(x).sum()))(X).tolist() == [7.0, 7.0]
    with td.register_vmap(name, lambda info, in_dims, x: (x, 0)):
        assert td.vmap(op)(td.ones((2, 2))).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with td.register_autocast(name, "cpu", td.bfloat16), td.autocast("cpu"):
        seen = []
        with td.register_kernel(name, "cpu", lambda x: (seen.append(x.dtype), x * 1)[1]):
            op(td.ones(2))
        assert seen == [td.bfloat16]
    assert op(X).tolist() == before


@pytest.mark.parametrize("first", [False, True])
def test_libraries_take_kernels_in_other_languages(lib, first):
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    kernel = td.c_kernel(libm.cbrt, "double(double)")
    if first:
        lib.impl("root", kernel, "CPU")
    lib.define("root(Tensor x) -> Tensor")
    if not first:
        lib.impl("root", kernel, "CPU")
    x = td.asarray(np.array([8.0, 27.0]))
    for _ in range(40):
        np.testing.assert_allclose(td.ops.contract.root(x).numpy(), [2.0, 3.0], rtol=1e-15)
    np.testing.assert_allclose(
        td.jit(lambda x: td.ops.contract.root(x) + 1)(x).numpy(), [3.0, 4.0], rtol=1e-15
    )
    with td.register_kernel("td::exp", "cpu", kernel, dtypes=[td.float64]):
        for found in (td.exp(x), td.jit(td.exp)(x)):
            np.testing.assert_allclose(found.numpy(), [2.0, 3.0], rtol=1e-15)
    with pytest.raises(errors.SchemaError):
        lib.impl("root", td.c_kernel(libm.pow, "double(double, double)"), "CPU", allow_override=True)
    np.testing.assert_allclose(td.ops.contract.root(x).numpy(), [2.0, 3.0], rtol=1e-15)


# --- shape rules of tandem's own operators ----------------------------------------------------------------


def test_fake_of_a_builtin_operator_holds_under_jit():
    x = td.asarray(np.array([0.1, 0.2, 0.3]))
    compiled = td.jit(lambda x: td.sinh(x) + 1)
    before = compiled(x).numpy()
    fake = td.register_fake("td::sinh", lambda x: td.empty((2,), device="meta"))
    with fake:
        assert td.sinh(td.zeros(3, device="meta")).shape == td.eval_shape(td.sinh, x).shape == (2,)
        with pytest.raises(
            errors.LoweringError, match=r"promises float32\[2\]; its kernel returned float64\[3\]"
        ):
            compiled(x)
        with td.register_kernel("td::sinh", "cpu", lambda x: td.ones(2)):
            assert compiled(x).tolist() == td.jit(td.add)(td.sinh(x), 1).tolist() == [2.0, 2.0]
    np.testing.assert_array_equal(compiled(x).numpy(), before)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("matmul", lambda x: x @ x),
        ("mul", lambda x: x * x),
        ("where", lambda x: td.where(x[0] > 0, x[1] + x[2], x[1])),
        ("add", lambda x: td.where(x[0] > 0, x[1] + x[2], x[1])),
    ],
)
def test_passes_keep_calls_of_registered_kernels(name, function):
    x = td.asarray(np.array([1.0, 2.0, 3.0]))
    operator = {"add": "td::add.Tensor", "mul": "td::mul.Tensor"}.get(name, f"td::{name}")
    calls = []

    def kernel(*args):
        calls.append(args)
        return td.asarray(7.0, dtype=td.float64) if name != "mul" else x

    with td.register_kernel(operator, "cpu", kernel):
        td.jit(function)(x)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "name", ["add", "neg", "reshape", "sum", "matmul", "concat", "index", "cumsum", "where"]
)
def test_wrong_fake_of_builtin_operator_raises(name):
    x = td.asarray(np.arange(4.0))
    calls = {
        "add": lambda x: x + 0,
        "neg": lambda x: td.neg(td.neg(x)),
        "reshape": lambda x: td.reshape(x, (2, 2)) + 1,
        "sum": lambda x: td.sum(x) * 2,
        "matmul": lambda x: td.matmul(x, x),
        "concat": lambda x: td.concat([x, x]),
        "index": lambda x: x[td.asarray([0])],
        "cumsum": lambda x: td.cumsum(x, 0),
        "where": lambda x: td.where(x > 0, x, x),
    }
    with (
        td.register_fake(
            getattr(td.ops.td, name), lambda *a, **k: td.empty((9, 7), dtype=td.float64, device="meta")
        ),
        pytest.raises(errors.LoweringError, match="its shape rule promises"),
    ):
        td.jit(calls[name])(x)
    assert td.jit(calls[name])(x).tolist() == calls[name](x).tolist()


@pytest.mark.parametrize("register", ["kernel", "fake", "autograd", "autocast", "vmap"])
def test_names_of_no_operator_are_refused(register):
    arguments = {"kernel": ("cpu", abs), "autocast": ("cpu", td.float16)}.get(register, (abs,))
    with pytest.raises(errors.RegistrationError, match="an operator is needed"):
        getattr(td, f"register_{register}")("td::no_such_operator", *arguments)
