"""Custom operators run eagerly, under jit, grad, vmap and autocast, and on meta tensors, and can be removed."""

import gc
import pickle
import timeit
import weakref

import numpy as np
import pytest
import tandem as td
from custom_harness import X, close, register_derivative, sine, sine_operator
from tandem import errors
from tandem.backends.cpu import fastpath
from tandem.operators.declare.declaration import declared_operators
from tandem.registry.function import functions


@pytest.fixture
def op():
    with sine_operator() as made:
        yield made


@pytest.fixture
def differentiable(op):
    register_derivative(op)
    return op


# --- the object -------------------------------------------------------------------------------------------


def test_it_is_the_operators_function(op):
    assert op.op is td.ops.outside.sine.default.operator
    assert td.ops.outside.sine(X).tolist() == op(X).tolist()
    assert op.__name__ == "sine"
    assert op.__doc__ == "Scaled sine."
    assert str(op.op.schema) == "outside::sine(Tensor x, float scale=1.0) -> Tensor"
    assert repr(op) == "<custom op outside::sine(Tensor x, float scale=1.0) -> Tensor>"
    assert pickle.loads(pickle.dumps(op)) is op
    close(op(X, scale=2.0), 2 * np.sin(X.numpy()))
    close(op(np.float32([1.0])), np.sin([1.0]))  # arrays become tensors, as with any operator


def test_the_op_table_holds_tandems_own_only(op):
    assert op.op not in declared_operators()
    assert op.op.decl.kind == "custom"


def test_arguments_are_checked(op):
    with pytest.raises(errors.ArgumentError, match="scale"):
        op(X, "2")
    with pytest.raises(errors.ArgumentError, match="takes 2 positional"):
        op(X, 1.0, 2.0)


def test_decorator_and_explicit_schema():
    @td.custom_op("outside::plus", schema="(Tensor x, Tensor y, *, int by=1) -> Tensor")
    def plus(x, y, by):
        return x + y * by

    assert plus(X, X, by=2).tolist() == (X * 3).tolist()
    plus.remove()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("sine", "namespace::name"),
        ("td::sine", "tandem's own"),
        ("a b::c", "namespace::name"),
        (3, "takes a name"),
    ],
)
def test_names_are_checked(name, error):
    with pytest.raises((ValueError, TypeError), match=error):
        td.custom_op(name, sine)


def test_bad_definitions_define_nothing():
    def no_hints(x):
        return x

    with pytest.raises(errors.SchemaError, match="x"):
        td.custom_op("outside::bad", no_hints)
    with pytest.raises(errors.SchemaError, match="new tensors"):
        td.custom_op("outside::bad", no_hints, schema="(Tensor(a) x) -> Tensor(a)")
    with pytest.raises(errors.SchemaError, match="mutates_args says y"):
        td.custom_op("outside::bad", no_hints, schema="(Tensor(a!) x, Tensor y) -> ()", mutates_args="y")
    with pytest.raises(errors.ArgumentError, match="takes a function"):
        td.custom_op("outside::bad", 3)
    with pytest.raises(errors.UnknownOperatorError):
        _ = td.ops.outside.bad


def test_a_definition_that_is_run_again_replaces(op):
    compiled = td.jit(lambda x: td.ops.outside.sine(x) + 1)
    close(compiled(X), np.sin(X.numpy()) + 1)
    again = td.custom_op(
        "outside::sine", lambda x, scale: x * scale, schema="(Tensor x, float scale) -> Tensor"
    )
    again.register_fake(lambda x, scale: td.empty_like(x))
    assert functions["outside::sine"] is again
    assert td.ops.outside.sine(X, 3.0).tolist() == (X * 3).tolist()
    with pytest.raises(
        errors.ArgumentError, match="scale"
    ):  # the compiled code of the former one does not run
        compiled(X)
    op.remove()  # takes away only what is its own
    assert td.ops.outside.sine(X, 3.0).tolist() == (X * 3).tolist()
    again.remove()
    with pytest.raises(errors.UnknownOperatorError):
        td.ops.outside.sine(X, 3.0)


def test_an_operator_of_a_library_is_not_replaced():
    with td.Library("outside", "FRAGMENT") as library:
        library.define("held(Tensor x) -> Tensor")
        with pytest.raises(errors.RegistrationError, match="defined already, through a Library"):
            td.custom_op("outside::held", sine, schema="(Tensor x) -> Tensor")


def test_removal_leaves_nothing():
    op = td.custom_op("outside::gone", sine)
    op(X)
    seen = weakref.ref(op.library)
    op.remove()
    assert "outside::gone" not in functions
    with pytest.raises(errors.UnknownOperatorError):
        _ = td.ops.outside.gone
    with pytest.raises(errors.UnknownOperatorError, match="no longer defined"):
        op(X)
    del op
    gc.collect()
    assert seen() is None


def test_removed_operators_are_collected():
    def grow(x: td.Tensor) -> None:
        x.numpy()[...] += 1

    held = []
    for _ in range(3):
        made = [
            td.custom_op("outside::one", sine),
            td.custom_op("outside::two", grow, mutates_args=["x"]),
            td.elementwise_op("outside::three", lambda x: x * 2, derivative={"x": 2}),
            td.composite_op("outside::four(Tensor x) -> Tensor", lambda x: x + x),
        ]
        made[0].register_fake(lambda x, scale: td.empty_like(x))
        for op in made:
            for _ in range(20):  # often enough for a native entry
                op(td.zeros(3))
            td.jit(lambda x, op=op: (y := x + 1, op(y), y)[2])(X)
        td.grad(lambda x, op=made[2]: op(x).sum())(X)
        held += [weakref.ref(op.op) for op in made]
        for op in made:
            op.remove()
    del made, op
    gc.collect()
    assert [ref for ref in held if ref() is not None] == []


@pytest.mark.skipif(bool(fastpath.why_off()), reason="native code is off")
def test_overhead_compared_with_pytorch():
    """Over calling the kernel itself: at most a quarter of torch.library.custom_op, half of Library.define/impl."""
    torch = pytest.importorskip("torch")
    made = td.zeros(4)  # a kernel that costs nothing
    mine = td.custom_op("outside::cost", lambda x, y: made, schema="(Tensor x, Tensor y) -> Tensor")
    x = td.zeros(4)
    library = torch.library.Library("tandem_cost", "DEF")
    library.define("plain(Tensor x, Tensor y) -> Tensor")
    library.impl("plain", lambda x, y: torch.empty_like(x), "CPU")

    @torch.library.custom_op("tandem_cost::custom", mutates_args=())
    def custom(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    def cost(function, argument, count=2000):
        for _ in range(count):
            function(argument, argument)
        return min(timeit.repeat(lambda: function(argument, argument), number=count, repeat=7)) / count

    t = torch.zeros(4)
    own = cost(mine, x) - cost(mine.function, x)
    kernel = cost(lambda x, y: torch.empty_like(x), t)
    assert own <= 0.25 * (cost(custom, t) - kernel)
    assert own <= 0.5 * (cost(torch.ops.tandem_cost.plain.default, t) - kernel)
    mine.remove()


# --- kernels ----------------------------------------------------------------------------------------------


def test_kernels_by_device_and_handles(op):
    handle = op.register_kernel("cpu", lambda x, scale: x + 100)
    assert op(X).tolist() == (X + 100).tolist()
    assert td.dispatch_table("outside::sine")["CPU"].kind == "kernel"
    handle.remove()
    close(op(X), np.sin(X.numpy()))
    assert td.dispatch_table("outside::sine")["CPU"].kind == "composite_explicit"


def test_register_kernel_is_a_decorator(op):
    @op.register_kernel(["cpu", "meta"])
    def kernel(x, scale):
        return x + 1

    assert kernel(X, 1.0).tolist() == op(X).tolist()


def test_kernels_by_dtype(op):
    op.register_kernel("cpu", lambda x, scale: x * 0, dtypes=[td.float64])
    close(op(X), np.sin(X.numpy()))
    assert op(X.astype(td.float64)).tolist() == [0.0, 0.0, 0.0]
    compiled = td.jit(lambda x: op(x) + 1)
    assert compiled(X.astype(td.float64)).tolist() == [1.0, 1.0, 1.0]
    close(compiled(X), np.sin(X.numpy()) + 1)


def test_device_types_limit_the_kernel():
    op = td.custom_op("outside::only", sine, device_types="cuda")
    with pytest.raises(errors.NoKernelError, match="CPU"):
        op(X)
    op.remove()
    with pytest.raises(ValueError, match="tpu"):
        td.custom_op("outside::only", sine, device_types="tpu")


def test_kernels_see_plain_tensors_below_autograd(differentiable):
    seen = []
    differentiable.register_kernel("cpu", lambda x, scale: seen.append(type(x)) or sine(x, scale))
    y = differentiable(td.asarray([1.0], requires_grad=True))
    y.sum().backward()
    td.grad(lambda x: differentiable(x).sum())(X)
    assert set(seen) == {td.Tensor}


# --- jit and meta -----------------------------------------------------------------------------------------


def test_jit_without_a_fake_says_what_to_add():
    op = td.custom_op("outside::faked", sine)
    with pytest.raises(errors.UnsupportedError, match=r"@faked.register_fake\n    def _\(x, scale\)"):
        td.jit(lambda x: op(x))(X)
    with pytest.raises(errors.UnsupportedError, match="register_fake"):
        op(td.empty(3, device="meta"))
    op.register_fake(lambda x, scale: td.empty_like(x))
    close(td.jit(lambda x: op(x))(X), np.sin(X.numpy()))
    op.remove()


def test_jit_calls_back_and_says_so(op):
    compiled = td.jit(lambda x: op(x * 2) + 1)
    close(compiled(X), np.sin(2 * X.numpy()) + 1)
    rows = list(compiled.lower(X).kernels())
    if not fastpath.why_off():
        assert [row.choice for row in rows] == ["fused", "callback", "fused"]
        assert rows[1].why == "its kernel is a Python function"


@pytest.mark.parametrize(
    "wrong", [lambda x: x.astype(td.float64), lambda x: td.concat([x, x]), lambda x: None]
)
def test_results_are_checked_against_the_fake(op, wrong):
    op.register_kernel("cpu", lambda x, scale: wrong(x))
    with pytest.raises(
        (errors.LoweringError, errors.ArgumentError),
        match=r"outside::sine.*(promises float32\[3\]|returned NoneType)",
    ):
        td.jit(lambda x: op(x) + 1)(X)


def test_compiled_functions_see_new_kernel_or_fake(op):
    compiled = td.jit(lambda x: op(x))
    compiled(X)
    with op.register_kernel("cpu", lambda x, scale: x * 0):
        assert compiled(X).tolist() == [0.0, 0.0, 0.0]
    close(compiled(X), np.sin(X.numpy()))


def test_fakes_may_give_specs_and_depend_on_numbers():
    def repeat(x: td.Tensor, times: int) -> td.Tensor:
        return td.asarray(np.tile(x.numpy(), times))

    op = td.custom_op("outside::repeat", repeat)
    op.register_fake(lambda x, times: td.empty((x.shape[0] * times,), dtype=x.dtype))
    assert td.jit(lambda x: op(x, 2).sum())(X).tolist() == op(X, 2).sum().tolist()
    with pytest.raises(errors.ConcretizationError, match="name the argument in static_argnames"):
        td.jit(lambda x, n: op(x, n))(X, 2)
    assert td.jit(lambda x, n: op(x, n), static_argnames="n")(X, 2).shape == (6,)
    op.register_fake(lambda x, times: x.spec._replace(shape=(x.shape[0] * times,)))
    assert op(td.empty(3, device="meta"), 4).shape == (12,)
    op.register_fake(lambda x, times: 7)
    with pytest.raises(errors.UnsupportedError, match="fake kernel of outside::repeat"):
        td.jit(lambda x: op(x, 2))(X)
    op.remove()


def test_fake_is_not_traced(op):
    op.register_fake(lambda x, scale: td.zeros(3, device=x.device) + x)
    names = [node.op.schema.name for node in td.jit(lambda x: op(x)).trace(X).ir.nodes]
    assert names == ["sine"]


def test_several_results_lists_and_none():
    def parts(x: td.Tensor, n: int) -> tuple[td.Tensor, td.Tensor]:
        return x[:n].clone(), x[n:].clone()

    def split(x: td.Tensor) -> list[td.Tensor]:
        return [x[0].clone(), x[1].clone()]

    seen = []

    def tell(x: td.Tensor) -> None:
        seen.append(x.tolist())

    first = td.custom_op("outside::parts", parts)
    first.register_fake(lambda x, n: (td.empty(n), td.empty(x.shape[0] - n)))
    second = td.custom_op("outside::split", split)
    second.register_fake(lambda x: [td.empty(()), td.empty(())])
    third = td.custom_op("outside::tell", tell)
    assert [t.tolist() for t in first(X, 1)] == [[0.5], [-1.0, 2.0]]
    assert isinstance(second(X), tuple)
    assert third(X) is None
    a, b = td.jit(lambda x: first(x, 1))(X)
    assert (a.tolist(), b.tolist()) == ([0.5], [-1.0, 2.0])
    assert td.jit(lambda x: second(x)[0] - second(x)[1])(X).tolist() == 1.5
    compiled = td.jit(lambda x: (third(x * 2), x + 1)[1])
    seen.clear()
    compiled(X)
    compiled(X)
    assert seen == [[1.0, -2.0, 4.0]] * 2  # it gives nothing, so it is there for its effect
    with pytest.raises(errors.ArgumentError, match="2 results"):
        first.register_kernel("cpu", lambda x, n: x)
        first(X, 1)
    for op in (first, second, third):
        op.remove()
