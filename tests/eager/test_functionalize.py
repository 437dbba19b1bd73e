"""td.functionalize: every in-place operator, and random programs of views and writes against NumPy.

Also aliases of arguments and captured tensors, gradients and transforms, and operators from outside.
"""

import numpy as np
import optable
import pytest
import tandem as td
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tandem.eager.layers.functionalize_memory import FunctionalTensor
from tandem.eager.tensor.inplace import functional
from tandem.registry.function import functions
from write_programs import Program

INPLACE = {op.name.partition("::")[2]: op for op in functional}


class Log(td.DispatchMode):
    """Notes what reaches the backends."""

    below = "Autograd"

    def __init__(self):
        super().__init__()
        self.seen = []

    def __tandem_dispatch__(self, op, types, args, kwargs):
        assert not any(type(x) is FunctionalTensor for x in args)
        self.seen.append(op)
        return op(*args, **kwargs)

    @property
    def names(self):
        return [op.schema.name for op in self.seen]


def tensor(*shape, dtype=np.float32):
    return td.asarray(np.arange(1, 1 + np.prod(shape, dtype=int), dtype=dtype).reshape(shape))


def check_same(f, *arrays, remove="mutations", order="C"):
    """Functionalized = in place: results, arguments, and who shares memory with whom."""
    eager, pure = ([td.asarray(a.copy(order)) for a in arrays] for _ in range(2))
    wanted = f(*eager)
    with Log() as log:
        found = td.functionalize(f, remove=remove)(*pure)
    writes = [op.schema.name for op in log.seen if op.schema.is_mutable]
    assert set(writes) <= {"basic_put_"} and len(writes) <= len(arrays), log.names
    for one, two in zip((*eager, *wanted), (*pure, *found), strict=True):
        assert one.dtype is two.dtype and one.shape == two.shape
        np.testing.assert_array_equal(one.numpy(), two.numpy())
    if remove == "mutations":
        for i, one in enumerate((*eager, *wanted)):
            for j, other in enumerate((*eager, *wanted)):
                theirs = (*pure, *found)
                assert np.shares_memory(one._array, other._array) == np.shares_memory(
                    theirs[i]._array, theirs[j]._array
                ), (i, j)


# --- every in-place operator ------------------------------------------------------------------------------


def samples(op):
    inner = functional[op]
    for dtype, sample in optable.rows(inner):
        yield sample, dtype, optable.generator(inner, dtype)


@pytest.mark.parametrize("name", INPLACE)
@td.exclude_keys("Profiler")  # both by the Python dispatcher
def test_is_the_in_place_operator(name):
    op = INPLACE[name]
    function = functions[op.name]
    compared = 0
    for sample, dtype, rng in samples(op):
        args, kwargs = optable.arrays_of(sample, dtype, rng)
        if not isinstance(args[0], np.ndarray):
            continue
        eager, pure = (optable.to_tensors((np.copy(args[0]), *args[1:])) for _ in range(2))
        try:
            function(*eager, **kwargs)
        except td.errors.TandemError as fault:
            named = optable.to_tensors(kwargs)
            with pytest.raises(type(fault)):
                td.functionalize(function)(*pure, **named)
            assert pure[0]._array.tobytes() == np.copy(args[0]).tobytes()
            continue

        def program(target, *rest, kwargs=kwargs):
            assert function(target, *rest, **optable.to_tensors(kwargs)) is target
            return target

        with Log() as log:
            out = td.functionalize(program)(*pure)
        assert out is pure[0] and [n for n in log.names if n.endswith("_")] == ["basic_put_"]
        assert pure[0]._array.tobytes() == eager[0]._array.tobytes()
        assert pure[0].storage().version == 1
        compared += 1
    assert compared


# --- random programs --------------------------------------------------------------------------------------


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from([(4,), (2, 3), (2, 2, 3), (6, 1)]), st.booleans())
def test_random_programs(data, shape, transposed):
    program = Program(data.draw)
    array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    if transposed:
        array = np.ascontiguousarray(array.T).T
    other = np.arange(5, dtype=np.int64)
    theirs = array.copy(order="K"), other.copy()
    with np.errstate(all="ignore"):
        wanted = program.run(np, *theirs)
    for remove in ("mutations", "mutations_and_views"):
        mine = td.asarray(array.copy(order="K")), td.asarray(other.copy())
        with Log() as log:
            found = td.functionalize(lambda *a: program.run(td, *a), remove=remove)(*mine)
        assert all(op.schema.name == "basic_put_" for op in log.seen if op.schema.is_mutable)
        for one, two in zip((*wanted, *theirs), (*found, *mine), strict=True):
            np.testing.assert_array_equal(one, two.numpy())
        if remove == "mutations":
            for i, one in enumerate(wanted):
                for j, other_one in enumerate(wanted):
                    shared = np.shares_memory(one, other_one)
                    assert shared == np.shares_memory(found[i]._array, found[j]._array), (i, j, program.steps)


# --- views and writes by hand -----------------------------------------------------------------------------


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_views_of_views(remove):
    def f(x):
        y = x.T
        z = y[1:]
        z[0] += 10
        w = x.reshape(-1)
        w[2:4].mul_(3)
        x.mT.sub_(1)
        flat = y.reshape(-1)  # a copy: y is not contiguous
        flat.zero_()
        return y, z, w, flat

    check_same(f, np.arange(6, dtype=np.float32).reshape(2, 3), remove=remove)


def test_no_two_tensors_share_memory_without_views():
    def f(x):
        y = x * 1
        z = y[1:]
        z += 1
        return y, z

    x = tensor(3)
    y, z = td.functionalize(f, remove="mutations_and_views")(x)
    assert y.tolist() == [1.0, 3.0, 4.0] and z.tolist() == [3.0, 4.0]
    assert not np.shares_memory(y._array, z._array)
    y, z = td.functionalize(f)(x)
    assert np.shares_memory(y._array, z._array)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_copies_have_strides_of_views(remove):
    """Whether a reshape is a view follows from the strides of what a view was taken for."""

    def columns_first(x):
        y = x[0:1] + 1
        z = y.reshape(6)  # a copy: y keeps the order of x
        y += 1
        return y, z

    def repeated(x, y):
        z = td.broadcast_to(x, (3, 3)) + y
        w = z.reshape(9)
        z += 1
        return z, w

    def written(x, y):
        x.mT.add_(y)
        z = x * 2
        w = z.mT.reshape(6)
        z += 1
        return z, w

    x = np.arange(12).reshape(3, 2, 2).T
    check_same(columns_first, x, remove=remove, order="K")
    check_same(repeated, np.arange(3), np.arange(9).reshape(3, 3).T, remove=remove, order="K")
    check_same(written, np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2), remove=remove, order="K")
    check_same(written, np.arange(6).reshape(3, 2).T, np.arange(6).reshape(3, 2), remove=remove, order="K")


def test_an_argument_that_comes_back_is_itself():
    x = tensor(2, 2)
    out, row = td.functionalize(lambda x: (x.add_(1), x[0]))(x)
    assert out is x and row._storage is x._storage and x.storage().version == 1
    assert row.tolist() == [2.0, 3.0]


def test_what_is_only_read_is_not_written():
    x = tensor(2)
    td.functionalize(lambda x: x + 1)(x)
    assert x._storage is None or x.storage().version == 0


def test_nothing_is_written_if_the_function_raises():
    x = tensor(2)

    def f(x):
        x += 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        td.functionalize(f)(x)
    assert x.tolist() == [1.0, 2.0]
    assert (x + 1).tolist() == [2.0, 3.0]


def test_captured_tensors_are_written_back():
    total = td.zeros(2)

    def f(x):
        total.add_(x)
        total[0] = 7.0
        return total * 1

    assert td.functionalize(f)(tensor(2)).tolist() == [7.0, 2.0]
    assert total.tolist() == [7.0, 2.0]


def test_trees_and_other_arguments():
    def f(state, by, *, name):
        state["x"] += by
        return {"name": name, "both": (state["x"], state["x"] * 2)}

    state = {"x": tensor(2)}
    out = td.functionalize(f)(state, 3, name="n")
    assert out["name"] == "n" and out["both"][0] is state["x"]
    assert out["both"][1].tolist() == [8.0, 10.0]
    assert td.functionalize(f).__name__ == "f"


def test_two_arguments_in_the_same_memory():
    x = tensor(4)

    def f(a, b):
        a += 1
        return b * 1

    assert td.functionalize(f)(x, x).tolist() == [2.0, 3.0, 4.0, 5.0]
    with pytest.raises(NotImplementedError, match="shares its memory"):
        td.functionalize(f)(x, x[1:])
    assert td.functionalize(f)(x[:2], x[2:]).tolist() == [4.0, 5.0]
    assert td.functionalize(lambda a, b: a * b)(x, x).shape == (4,)
    part = x[1:]

    def g(a):
        a += 1
        return part * 1

    with pytest.raises(TypeError, match="shares its memory, was written"):
        td.functionalize(g)(x)


def test_what_cannot_be_written():
    with pytest.raises(NotImplementedError, match="read-only"):
        td.functionalize(lambda x: x.expand((3, 2)).add_(1))(tensor(2))
    frozen = np.ones(2, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(NotImplementedError, match="read-only"):
        td.functionalize(lambda x: x.add_(1))(td.asarray(frozen))
    with pytest.raises(TypeError, match="cannot be written into"):
        td.functionalize(lambda x: x.add_(1.5))(tensor(2, dtype=np.int64))
    with pytest.raises(ValueError, match="does not fit"):
        td.functionalize(lambda x: x.add_(tensor(3, 2)))(tensor(2))


def test_data_can_be_looked_at():
    def f(x):
        x += 1
        if x.sum() > 3 and float(x[0]) == 2.0:
            x *= int(x[1])
        assert x.numpy().tolist() == x.tolist()
        with pytest.raises(ValueError, match="read-only"):
            x.numpy()[0] = 1
        assert "functionalized tensor" in repr(x)
        assert (x.requires_grad, x.is_leaf, x.stride(), x.is_contiguous(), x.device) == (
            False,
            True,
            (1,),
            True,
            "cpu",
        )
        return x

    assert td.functionalize(f)(tensor(2)).tolist() == [6.0, 9.0]


def test_bad_arguments_and_leaks():
    with pytest.raises(TypeError, match="takes a function"):
        td.functionalize(3)
    with pytest.raises(ValueError, match="mutations_and_views"):
        td.functionalize(len, remove="views")
    kept = []
    td.functionalize(lambda x: kept.append(x))(tensor(2))
    with pytest.raises(td.errors.LeakedTracerError, match="after the function has ended"):
        kept[0] + 1
    with pytest.raises(NotImplementedError, match=r"backward\(\) inside"):
        td.functionalize(lambda x: (x * x).sum().backward())(tensor(2).requires_grad_())


# --- gradients and transforms -----------------------------------------------------------------------------


def program(x):
    y = x * 2
    y[0] = y[1] * 3
    y.T.mul_(y)
    y[1].exp_()
    return y.sum()


def test_gradients():
    x = tensor(2, 2) / 10
    one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
    program(one).backward()
    td.functionalize(program)(two).backward()
    np.testing.assert_allclose(one.grad.numpy(), two.grad.numpy(), rtol=1e-6)
    for f in (td.grad(td.functionalize(program)), td.functionalize(td.grad(program))):
        np.testing.assert_allclose(f(x).numpy(), one.grad.numpy(), rtol=1e-6)


def test_an_argument_with_a_history_is_written():
    def step(y):
        y *= y
        y[0] += 1
        return y

    x = tensor(2).requires_grad_()
    y = x * 2
    td.functionalize(step)(y)
    (y * 1).sum().backward()
    assert x.grad.tolist() == [8.0, 16.0]
    with pytest.raises(RuntimeError, match="leaf"):
        td.functionalize(step)(tensor(2).requires_grad_())
    leaf = tensor(2).requires_grad_()
    with td.no_grad():
        td.functionalize(step)(leaf)
    assert leaf.tolist() == [2.0, 4.0]


def test_vmap_jit_autocast_and_itself():
    x = tensor(3, 2, 2) / 10
    rows = [float(program(x[i])) for i in range(3)]
    np.testing.assert_allclose(td.vmap(td.functionalize(program))(x).numpy(), rows, rtol=1e-5)
    np.testing.assert_allclose(td.functionalize(td.vmap(program))(x).numpy(), rows, rtol=1e-5)
    np.testing.assert_allclose(float(td.jit(td.functionalize(program))(x[0])), rows[0], rtol=1e-5)
    np.testing.assert_allclose(float(td.functionalize(td.functionalize(program))(x[0])), rows[0], rtol=1e-5)

    def mixed(x):
        y = td.zeros((2, 2), dtype=td.bfloat16)
        y += x.astype(td.bfloat16) @ x
        y.exp_()
        return y

    with td.autocast("cpu"):
        assert td.functionalize(mixed)(x[0]).dtype is td.bfloat16
        np.testing.assert_array_equal(td.functionalize(mixed)(x[0])._array, mixed(x[0])._array)

    def nested(x):
        y = x * 1
        td.functionalize(lambda v: v[0].add_(1))(y)
        return y

    assert td.functionalize(nested)(x[0]).tolist() == nested(x[0]).tolist()


# --- operators from outside, and overriding ---------------------------------------------------------------


def test_operators_from_outside():
    def fill(x, other, value):
        x._array[...] = value
        other._array[...] = value + 1

    with td.Library("functest", "DEF") as lib:
        lib.define("fill_two(Tensor(a!) x, Tensor(b!) other, float value) -> ()")
        lib.impl("fill_two", fill, "CPU")
        lib.define("double_(Tensor(a!) self) -> Tensor(a!)")
        lib.define("double(Tensor self) -> Tensor")
        lib.impl("double", lambda self: self * 2, "CPU")
        lib.define("tail(Tensor(a) self) -> Tensor(a)")
        lib.impl("tail", lambda self: self[1:], "CPU")

        def f(x, y):
            td.ops.functest.fill_two(x[0], y, 5.0)
            td.ops.functest.double_(x)
            return td.ops.functest.tail(y) * 1

        x, y = tensor(2, 2), tensor(3)
        assert td.functionalize(f)(x, y).tolist() == [6.0, 6.0]
        assert x.tolist() == [[10.0, 10.0], [6.0, 8.0]] and y.tolist() == [6.0] * 3
        with pytest.raises(NotImplementedError, match="functest::tail"):
            td.functionalize(lambda y: td.ops.functest.tail(y).add_(1))(y)


def test_a_custom_operator_that_writes():
    @td.custom_op("functest_custom::add_one", mutates_args=("x",))
    def add_one(x: td.Tensor) -> None:
        x._array[...] += 1

    def f(x):
        add_one(x[0])
        add_one(x)
        return x.sum()

    one, two, three = (td.zeros((2, 2)) for _ in range(3))
    assert f(one).item() == td.functionalize(f)(two).item() == td.jit(f)(three).item() == 6.0
    assert one.tolist() == two.tolist() == three.tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_overridden_for_one_operator():
    seen = []

    def kernel(op, keyset, args, kwargs):
        seen.append(op.name)
        return op.redispatch(
            td.DispatchKeySet("CPU"), *(a.value if type(a) is FunctionalTensor else a for a in args)
        )

    with td.Library("td", "IMPL") as lib:
        lib.impl("exp", kernel, "Functionalize", boxed=True)
        out = td.functionalize(lambda x: td.exp(x.add_(1)))(tensor(2))
    assert seen == ["td::exp"] and out.shape == (2,)


# -- loops whose bodies are traced -------------------------------------------------------------------------------------
def _write_then_scan(length, x):
    x[0] = 5.0
    state, rows = td.scan(lambda c, _: (c + x, c * 2), x * 1, None, length=length)
    x += state
    return x, state, rows


@pytest.mark.parametrize("length", [0, 2])
def test_scans_of_any_length_use_written_tensors(length):
    wanted = _write_then_scan(length, td.asarray([1.0, 2.0]))
    x = td.asarray([1.0, 2.0])
    result = td.functionalize(lambda x: _write_then_scan(length, x))(x)
    for one, other in zip((*result, x), (*wanted, wanted[0])):
        assert one.shape == other.shape
        assert one.tolist() == other.tolist()


def test_loops_without_steps():
    x = td.asarray([1.0, 2.0])
    assert td.functionalize(lambda x: td.fori_loop(0, 0, lambda i, c: c + 1, x))(x).tolist() == [1.0, 2.0]
    assert td.functionalize(lambda x: td.map(lambda row: row * x, td.zeros((0, 2))))(x).shape == (0, 2)
    jitted = td.jit(td.functionalize(lambda x: td.fori_loop(0, 0, lambda i, c: c + x, x.add_(1))))
    assert jitted(x).tolist() == [2.0, 3.0]
