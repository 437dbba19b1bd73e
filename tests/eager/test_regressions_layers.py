"""Layers of dispatch that once went wrong: autograd, layouts, custom operators."""

import ctypes

import numpy as np
import pytest
import tandem as td


# -- quantized ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("zero", [-117, 0, 3])
def test_halves_are_rounded_with_the_zero_point_added(zero):
    x = np.arange(-20, 20, dtype=np.float32) + np.float32(0.5)
    want = np.clip(np.rint(x + zero), -128, 127)
    rows = td.asarray(np.stack([x, x]))
    assert np.array_equal(td.quantize_per_tensor(td.asarray(x), 1.0, zero).int_repr().numpy(), want)
    by_channel = td.quantize_per_channel(rows, [1.0, 1.0], [zero, zero], 0).int_repr()
    assert np.array_equal(by_channel.numpy(), np.stack([want, want]))


@pytest.mark.filterwarnings("ignore:torch.quantize:UserWarning")
def test_halves_are_rounded_as_pytorch_does():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for _ in range(30):
        scale, zero = float(rng.uniform(0.001, 0.5)), int(rng.integers(-128, 128))
        x = ((np.round(rng.normal(size=500) * 60) + 0.5) * scale).astype(np.float32)
        want = torch.quantize_per_tensor(torch.from_numpy(x), scale, zero, torch.qint8).int_repr().numpy()
        assert np.array_equal(td.quantize_per_tensor(td.asarray(x), scale, zero).int_repr().numpy(), want)


def quantized_model(x, channels):
    quantize, axis = td.quantize_per_tensor, td.quantize_per_channel
    w = axis(td.ones_like(x), [0.1] * 3, [0] * 3, 0) if channels else quantize(td.ones_like(x), 0.1, 0)
    y = td.ops.quantized.linear(quantize(x, 0.1, 0), w, td.ones_like(x[0, :3]), 0.5, 3)
    y = td.ops.quantized.add(td.relu(y), y, 0.2, 1)
    return td.ops.quantized.matmul(y, y.T, 1.0, 0).dequantize()


@pytest.mark.parametrize("channels", [False, True])
def test_quantized_models_run_without_data(channels):
    x = td.ones((3, 4))
    want, found = quantized_model(x, channels), quantized_model(x.to("meta"), channels)
    assert (found.device, found.shape, found.dtype) == ("meta", want.shape, want.dtype)


# -- gradients on their way --------------------------------------------------------------------------------------------
def test_retained_gradient_is_result_of_hooks():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    y.retain_grad()
    y.retain_grad()
    y.register_hook(lambda g: g * 10.0)
    (y * 3.0).sum().backward()
    assert y.grad.tolist() == [30.0, 30.0]
    assert x.grad.tolist() == [60.0, 60.0]


# -- fakes of custom operators -----------------------------------------------------------------------------------------
@pytest.fixture
def twice():
    op = td.custom_op("regress::twice", lambda x: x + x, schema="(Tensor x) -> Tensor")
    yield op
    op.remove()


@pytest.mark.parametrize(
    "fake", [lambda x: td.empty(x.shape, dtype=x.dtype), lambda x: x], ids=["cpu", "same"]
)
def test_fake_results_are_new_and_have_no_data(twice, fake):
    twice.register_fake(fake)
    x = td.ones((2, 3), device="meta")
    y = twice(x)
    assert (y.device, y.shape, y.dtype) == ("meta", (2, 3), td.float32)
    assert y is not x
    assert y.storage() is not x.storage()
    assert td.jit(lambda x: twice(x) + 1)(td.ones((2, 3))).tolist() == [[3.0] * 3] * 2


@pytest.mark.parametrize("fake", [lambda x: None, lambda x: (x, x)], ids=["none", "two"])
def test_fake_returns_as_many_results_as_schema(twice, fake):
    twice.register_fake(fake)
    for call in (twice, td.jit(lambda x: twice(x) + 1)):
        with pytest.raises(
            td.errors.ValueArgumentError, match=r"regress::twice: its fake promises \d results"
        ):
            call(td.ones(2, device="meta") if call is twice else td.ones(2))


# -- detach ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("apart", [lambda y: y.detach(), td.stop_gradient], ids=["detach", "stop_gradient"])
def test_write_to_recorded_tensor_with_detached_alias(apart):
    x = td.asarray([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    before = apart(y)
    y *= x
    assert before.tolist() == [2.0, 8.0]
    assert not before.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


@pytest.mark.parametrize(
    "part",
    [lambda y: y.detach(), lambda y: y[0].detach(), td.stop_gradient],
    ids=["whole", "view", "stop_gradient"],
)
def test_detached_alias_stays_without_autograd_graph(part):
    x = td.asarray([1.0, 2.0], requires_grad=True)
    y = td.zeros(2)
    apart, view = part(y), y[1]
    y += x * x
    assert not apart.requires_grad
    assert view.requires_grad
    (y.sum() + view + apart.sum()).backward()
    assert x.grad.tolist() == [2.0, 8.0]


def test_recorded_write_through_detached_tensor_raises():
    x, y = td.asarray([1.0, 2.0], requires_grad=True), td.zeros(2)
    apart = y.detach()
    with pytest.raises(td.errors.UnsupportedError, match="detach"):
        apart += x
    assert y.tolist() == [0.0, 0.0]
    del y
    apart += x
    assert apart.requires_grad


def test_a_detached_tensor_inside_grad():
    def f(a):
        y = td.zeros(2)
        apart = y.detach()
        y[0] = a
        later = y.detach()
        y *= y
        return y.sum() + apart.sum().item() + later.sum().item()

    assert td.grad(f)(3.0).item() == 6.0


# -- C functions that cannot be what they are said to be ---------------------------------------------------------------
DOUBLE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
COPY = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float), ctypes.c_void_p, ctypes.c_int64)


@pytest.mark.parametrize("null", [DOUBLE(0), 1 << 70], ids=["ctypes", "number"])
def test_null_pointer_is_rejected_as_kernel(null):
    with pytest.raises(td.errors.ArgumentError, match="is not the address of a function"):
        td.c_kernel(null, "double(double)")


def test_cffi_null_pointer_is_rejected_as_kernel():
    cffi = pytest.importorskip("cffi")
    with pytest.raises(td.errors.ArgumentError, match="is not the address of a function"):
        td.c_kernel(cffi.FFI().NULL, "double(double)")


@pytest.mark.parametrize(
    ("signature", "match"),
    [
        ("double(double, double)", "2 parameters, but the function takes 1"),
        ("double(float)", "parameter 0 is float32, but the function takes float64"),
        ("float(double)", "the result is float32, but the function returns float64"),
        ("void(float *x)", "parameter 0 is a pointer"),
    ],
)
def test_a_signature_does_not_contradict_the_function(signature, match):
    with pytest.raises(td.errors.SchemaError, match=match):
        td.c_kernel(DOUBLE(lambda x: x), signature)
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    with pytest.raises(td.errors.SchemaError, match=match):
        td.c_kernel(ffi.cast("double (*)(double)", 4096), signature)


def test_a_signature_that_fits_what_the_function_says():
    copy = COPY(lambda x, out, n: None)
    td.c_kernel(copy, "void(const float *x, float *out, int64_t x.size)")
    td.c_kernel(DOUBLE(lambda x: x), "double(double)")
    with pytest.raises(td.errors.SchemaError, match="takes a pointer"):
        td.c_kernel(copy, "void(float x, float *out, int64_t x.size)")


# -- opcheck -----------------------------------------------------------------------------------------------------------
def checked(name, fn, args, schema="(Tensor x) -> Tensor", fake=lambda x: td.empty_like(x), **autograd):
    op = td.custom_op(f"regress::{name}", fn, schema=schema)
    try:
        op.register_fake(fake)
        if autograd:
            op.register_autograd(**autograd)
        return td.opcheck(op, args)
    finally:
        op.remove()


def test_opcheck_names_a_buffer_that_a_kernel_keeps():
    kept = {}

    def copied(x):
        buffer = kept.setdefault((x.shape, x.dtype), td.zeros(x.shape, dtype=x.dtype))
        buffer.numpy()[...] = x.numpy()
        return buffer

    with pytest.raises(td.errors.OpCheckError, match=r"schema: two calls .* same memory.*clone"):
        checked("copied", copied, (td.ones((2, 3)),))


def test_opcheck_names_an_argument_that_is_never_written():
    schema, x = "(Tensor x, Tensor(a!) out) -> ()", td.ones((2, 3))
    options = {"schema": schema, "fake": lambda x, out: None}
    with pytest.raises(td.errors.OpCheckError, match=r"schema: it leaves its argument 'out' as it was"):
        checked("idle", lambda x, out: None, (x, x + 1), **options)

    def clamp(x, out):  # writes nothing where all is well
        np.maximum(out.numpy(), 0, out=out.numpy())

    assert checked("clamp", clamp, (x, x + 1), **options)["schema"] == "SUCCESS"


def test_opcheck_detects_backward_writing_its_gradient():
    with pytest.raises(td.errors.OpCheckError, match=r"autograd: .*writes into its cotangent"):
        checked("treble", lambda x: x * 3.0, (td.ones((2, 3)),), backward=lambda ctx, g: g.mul_(3.0))


# -- derivatives of custom operators -----------------------------------------------------------------------------------
def test_derivative_of_mutating_operator_is_rejected_at_registration():
    op = td.custom_op("regress::fill", lambda x, out: None, schema="(Tensor x, Tensor(a!) out) -> ()")
    try:
        with pytest.raises(
            td.errors.UnsupportedError, match=r"regress::fill writes .* returns the new contents"
        ):
            op.register_autograd(lambda ctx: None)
    finally:
        op.remove()


@pytest.mark.parametrize(
    ("fn", "match"),
    [
        (lambda x: x.numpy() * 2, "ndarray"),
        (lambda x: None, "NoneType"),
        (lambda x: x, "one of its arguments"),
    ],
    ids=["array", "none", "argument"],
)
def test_a_custom_operator_gives_a_new_tensor(fn, match):
    op = td.custom_op("regress::wrong", fn, schema="(Tensor x) -> Tensor")
    try:
        op.register_fake(lambda x: td.empty_like(x))
        op.register_autograd(lambda ctx, g: g)
        for x in (td.ones(2), td.ones(2).requires_grad_()):
            with pytest.raises(td.errors.ArgumentError, match=rf"regress::wrong.*{match}"):
                op(x)
    finally:
        op.remove()
