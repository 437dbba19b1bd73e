"""``opcheck`` accepts correct operators, and reports each planted fault with its remedy."""

import itertools

import numpy as np
import optable
import pytest
import tandem as td
from rotation import rotating
from tandem.custom.opcheck import TESTS
from tandem.errors import ArgumentError, OpCheckError, ValueArgumentError

X = td.asarray([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
Y = td.asarray([[1.0, 2.0, -3.0], [0.5, 4.0, 1.0]])
_names = itertools.count()


@pytest.fixture
def define():
    """Defines an operator ``checked::op<n>`` that is gone after the test."""
    made = []

    def make(fn, fake="like", **options):
        op = td.custom_op(f"checked::op{next(_names)}", fn, **options)
        made.append(op)
        if fake == "like":
            op.register_fake(lambda x, *rest: td.empty_like(x))
        elif fake is not None:
            op.register_fake(fake)
        return op

    yield make
    for op in made:
        op.remove()


def cube(x: td.Tensor) -> td.Tensor:
    return td.asarray(x.numpy() ** 3)


def save(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def fails(op, test, match, args=(X,)):
    """The one test fails, with such a message; it says so too when all are run."""
    with pytest.raises(OpCheckError, match=match):
        td.opcheck(op, args, tests=test)
    found = td.opcheck(op, args, raise_exception=False)
    assert isinstance(found[test], OpCheckError)
    with pytest.raises(OpCheckError) as caught:
        td.opcheck(op, args)
    assert test in caught.value.failures


# --- good operators ---------------------------------------------------------------------------------------


def test_a_good_operator_passes(define):
    op = define(cube)
    op.register_autograd(lambda ctx, g: 3 * g * td.square(ctx.saved_tensors[0]), save)
    assert set(td.opcheck(op, (X,)).values()) == {"SUCCESS"}
    op.register_vmap(lambda info, dims, x: (op(x), 0))
    assert td.opcheck(op, (X,))["vmap"] == "SUCCESS"


def test_operator_without_gradient_passes_with_note(define):
    found = td.opcheck(define(cube), (X,))
    assert "no derivative" in found.pop("autograd")
    assert set(found.values()) == {"SUCCESS"}


def test_declared_mutation_passes(define):
    def scale(x: td.Tensor, by: float) -> None:
        x.numpy()[...] *= by

    op = define(scale, fake=None, mutates_args={"x"})
    found = td.opcheck(op, (X, 2.0))
    assert found["schema"] == found["jit"] == found["fake"] == found["strided"] == "SUCCESS"
    np.testing.assert_array_equal(X.numpy()[0], np.float32([0.5, -1.25, 2.0]))  # the caller's is as it was


def test_several_results_pass(define):
    def both(x: td.Tensor, y: td.Tensor) -> tuple[td.Tensor, td.Tensor]:
        return x + y, (x * y).sum(0)

    op = define(both, fake=lambda x, y: (td.empty_like(x), td.empty(x.shape[1:], dtype=x.dtype)))
    found = td.opcheck(op, (X, Y))
    assert found["schema"] == found["fake"] == found["jit"] == found["vmap"] == "SUCCESS"


def test_a_list_of_tensors_passes(define):
    def add_all(xs: list[td.Tensor]) -> td.Tensor:
        return td.asarray(sum(x.numpy() for x in xs))

    op = define(add_all, fake=lambda xs: td.empty_like(xs[0]))
    op.register_autograd(lambda ctx, g: [g, g], None)
    assert set(td.opcheck(op, ([X, Y],)).values()) == {"SUCCESS"}


def test_elementwise_and_composite_operators_pass():
    bend = td.elementwise_op(
        "checked::bend",
        lambda x, y: x * td.scalar.exp(-y),
        derivative={"x": lambda y: td.exp(-y), "y": lambda out: -out},
    )
    half = td.composite_op("checked::half(Tensor x) -> Tensor", lambda x: x * 0.5)
    found = td.opcheck(bend, (X, Y))
    assert set(found.values()) == {"SUCCESS"}
    found = td.opcheck(half, (X,))
    assert "decomposes" in found.pop("fake")
    assert set(found.values()) == {
        "SUCCESS",
        "SKIPPED: its fake refuses, or does not know, arguments without elements",
    }
    bend.remove()
    half.remove()


# --- planted faults ---------------------------------------------------------------------------------------


def test_undeclared_mutation(define):
    def kernel(x: td.Tensor) -> td.Tensor:
        x.numpy()[...] += 1
        return x.clone()

    fails(define(kernel), "schema", r"writes into its argument 'x'.*mutates_args=\{\"x\"\}")


def test_undeclared_mutation_in_a_list(define):
    def kernel(xs: list[td.Tensor]) -> td.Tensor:
        xs[1].numpy()[...] = 0
        return xs[0].clone()

    fails(define(kernel, fake=lambda xs: td.empty_like(xs[0])), "schema", r"xs\[1\]", ([X, Y],))


def test_undeclared_alias(define):
    def kernel(x: td.Tensor) -> td.Tensor:
        return x[::-1]

    fails(define(kernel), "schema", r"shares memory with the argument 'x'.*clone")


def test_the_argument_itself_is_an_alias(define):
    def kernel(x: td.Tensor) -> td.Tensor:
        return x

    fails(define(kernel), "schema", "shares memory")


def test_results_that_share_memory(define):
    def kernel(x: td.Tensor) -> tuple[td.Tensor, td.Tensor]:
        out = x.clone()
        return out, out[0]

    op = define(kernel, fake=lambda x: (td.empty_like(x), td.empty(x.shape[1:], dtype=x.dtype)))
    fails(op, "schema", "results 0 and 1 share memory")


@pytest.mark.parametrize("wrong", [None, 1.0, np.ones((2, 3))], ids=["None", "number", "array"])
def test_result_that_is_not_a_tensor(define, wrong):
    def kernel(x: td.Tensor) -> td.Tensor:
        return wrong

    fails(define(kernel), "schema", "but the schema returns Tensor")


def test_wrong_fake_shape(define):
    op = define(cube, fake=lambda x: td.empty(x.shape[:1], dtype=x.dtype))
    fails(op, "fake", r"promises float32\[2\].*gives float32\[2,3\].*shape is wrong")


def test_wrong_fake_dtype(define):
    op = define(cube, fake=lambda x: td.empty(x.shape, dtype=td.float64))
    fails(op, "fake", r"promises float64\[2,3\].*dtype is wrong.*dtype=td.float32")


def test_wrong_number_of_results_in_the_fake(define):
    fails(define(cube, fake=lambda x: (td.empty_like(x), td.empty_like(x))), "fake", "promises 2 results")


def test_no_fake(define):
    fails(define(cube, fake=None), "fake", r"has no fake[\s\S]*register_fake[\s\S]*td.empty_like\(x\)")


def test_a_fake_that_reads_elements(define):
    fails(define(cube, fake=lambda x: td.empty(int(x.sum()))), "fake", "never elements")


def test_a_fake_for_one_dtype_only(define):
    op = define(cube, fake=lambda x: td.empty(x.shape))
    fails(op, "dtypes", "for float16.*dtype is wrong")


def test_missing_gradient_for_an_argument(define):
    def kernel(x: td.Tensor, y: td.Tensor) -> td.Tensor:
        return td.asarray(x.numpy() * y.numpy())

    op = define(kernel)
    op.register_autograd(
        lambda ctx, g: (g * ctx.saved_tensors[0], None),
        lambda ctx, inputs, output: ctx.save_for_backward(inputs[1]),
    )
    fails(op, "autograd", "gradient for 'y' is wrong: there is none", (X, Y))


def test_wrong_gradient(define):
    op = define(cube)
    op.register_autograd(lambda ctx, g: 2 * g * td.square(ctx.saved_tensors[0]), save)
    fails(op, "autograd", "gradient for 'x' is wrong")


def test_gradients_in_the_wrong_order(define):
    def kernel(x: td.Tensor, y: td.Tensor) -> td.Tensor:
        return td.asarray(x.numpy() * y.numpy() ** 2)

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 2 * g * x * y, g * y * y

    op = define(kernel)
    op.register_autograd(backward, lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    fails(op, "autograd", "is wrong", (X, Y))


def test_a_backward_that_raises(define):
    op = define(cube)
    op.register_autograd(lambda ctx, g: g / 0, save)
    op2 = define(cube)
    op2.register_autograd(lambda ctx: None, save)
    fails(op2, "autograd", "its backward fails")


def test_a_gradient_that_gets_lost(define):
    """A kernel registered for the Autograd keys that passes autograd by."""
    op = define(cube)
    op.library.impl(op.op.schema.name, lambda x: cube(x.detach()), "Autograd")
    fails(op, "autograd", "require no gradient")


def test_wrong_batching_rule(define):
    def kernel(x: td.Tensor) -> td.Tensor:
        return x.sum(0)

    op = define(kernel, fake=lambda x: td.empty(x.shape[1:], dtype=x.dtype))
    assert td.opcheck(op, (X,))["vmap"] == "SUCCESS"
    op.register_vmap(lambda info, dims, x: (op(x), 0))  # sums the batch away
    fails(op, "vmap", "register_vmap")


def test_batching_rule_ignoring_unbatched_argument_is_reported(define):
    def kernel(x: td.Tensor, y: td.Tensor) -> td.Tensor:
        return x @ y

    op = define(kernel, fake=lambda x, y: td.empty((x.shape[0], y.shape[1]), dtype=x.dtype))
    op.register_vmap(lambda info, dims, x, y: (x @ td.permute(y, (0, 1, 2)), 0))
    fails(op, "vmap", "batch of", (X, Y.mT))


def test_a_kernel_that_reads_python_state(define):
    state = {"calls": 0}

    def kernel(x: td.Tensor) -> td.Tensor:
        state["calls"] += 1
        return x + state["calls"]

    fails(define(kernel), "determinism", "no argument")


def test_uninitialised_or_random_results(define):
    rng = np.random.default_rng(0)

    def kernel(x: td.Tensor) -> td.Tensor:
        return td.asarray(rng.standard_normal(x.shape, dtype=np.float32))

    fails(define(kernel), "determinism", "random numbers")


def test_a_kernel_that_takes_memory_as_contiguous(define):
    def kernel(x: td.Tensor) -> td.Tensor:
        array = x.numpy()
        flat = np.lib.stride_tricks.as_strided(array, (array.size,), (array.itemsize,))
        return td.asarray(flat.reshape(array.shape).copy())

    fails(define(kernel), "strided", "contiguous")


def test_a_kernel_that_fails_on_nothing(define):
    def kernel(x: td.Tensor) -> td.Tensor:
        return td.asarray(x.numpy() * np.float32(6 // x.size))

    fails(define(kernel), "empty", "without elements")


def test_a_compiled_kernel_that_is_another_function():
    eager = td.custom_op(
        "checked::twofold", schema="(Tensor x) -> Tensor", device_types="cpu", fn=lambda x: x + 1
    )
    eager.register_fake(lambda x: td.empty_like(x))
    assert td.opcheck(eager, (X,))["jit"] == "SUCCESS"
    eager.library.impl("twofold", lambda x: x + 2, "Tracer")
    fails(eager, "jit", "compiled result differs")
    eager.remove()


# --- arguments of opcheck ---------------------------------------------------------------------------------


def test_unknown_test_and_no_operator(define):
    with pytest.raises(ValueArgumentError, match="the tests are schema, fake"):
        td.opcheck(td.exp, (X,), tests="shape")
    with pytest.raises(ArgumentError, match="takes an operator"):
        td.opcheck(np.exp, (X,))
    assert td.opcheck(td.ops.td.exp, (X,), tests=["schema", "fake"]) == {
        "schema": "SUCCESS",
        "fake": "SUCCESS",
    }


def test_the_call_itself_fails(define):
    def kernel(x: td.Tensor) -> td.Tensor:
        raise KeyError("no")

    found = td.opcheck(define(kernel), (X,), raise_exception=False)
    assert "KeyError" in str(found["schema"])


# --- tandem's own operators -------------------------------------------------------------------------------

TABLE = optable.table()


def first_sample(name):
    """The first sample of an operator, drawn in float32, or in the first dtype that it takes."""
    op = TABLE[name]
    found = list(optable.rows(op))
    dtype, sample = next((row for row in found if row[0] is td.float32), found[0])
    args, kwargs = optable.arrays_of(sample, dtype, optable.generator(op, dtype))
    return op, optable.to_tensors(args), optable.to_tensors(kwargs)


# What differences of calls cannot show: the slopes of draws are implicit, or drowned in float32, and a gather over
# the examples of a batch is one only there. Their own tests compare them otherwise.
IMPLICIT = {"random_draw_loggamma", "random_dirichlet", "random_multivariate_normal", "axis_gather"}


@rotating
@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.decl.samples])
def test_own_operators_pass(name):
    op, args, kwargs = first_sample(name)
    tests = [test for test in TESTS if test != "autograd" or name not in IMPLICIT]
    found = td.opcheck(op, args, kwargs, tests=tests)
    assert all(result == "SUCCESS" or result.startswith("SKIPPED") for result in found.values())
    assert found["schema"] == "SUCCESS"
