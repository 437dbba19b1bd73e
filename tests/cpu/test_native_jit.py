"""The native entry of jitted functions: guards, results, references, failed allocations, changes of the registry."""

import dataclasses
import gc
import random
import sys
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import tandem as td
from native_calls import check_native, native_calls
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.jit.native_record import make_native_specialization

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


@pytest.fixture(autouse=True)
def hot():
    """The entry is compiled at once, also where the disk cache is cold."""
    with config.override(hot_calls=1):
        f = td.jit(lambda x: x + 1.0)
        for _ in range(3):
            f(tensor(1.0))
        yield


Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class State:
    position: object
    velocity: object
    step: int = 0


def tensor(*values, dtype=np.float32):
    return td.asarray(np.array(values, dtype))


def test_structures_in_and_out():
    @td.jit
    def f(tree, state, pair, none):
        x = tree["w"][0] + tree["b"]
        return {
            "list": [x, x * 2.0],
            "tuple": (x - 1.0, None),
            "state": State(state.position + x, state.velocity * 2.0, state.step),
            "pair": Pair(pair.b * 3.0, pair.a * 4.0),
            7: x / 2.0,
        }

    tree = {"w": [tensor(1.0, 2.0)], "b": tensor(0.5)}
    got = check_native(f, tree, State(tensor(1.0), tensor(2.0), 3), Pair(tensor(1.0), tensor(5.0)), None)
    assert isinstance(got["state"], State) and got["state"].step == 3
    assert got["pair"].a.tolist() == [15.0]
    assert list(got) == ["list", "tuple", "state", "pair", 7]


def test_scalars_are_read_at_each_call():
    @td.jit
    def f(x, scale, shift=1, flip=False, *, extra=0.5):
        y = td.where(flip, -x, x)
        return y * (scale / 2) + shift * 3 + extra

    x = tensor(1.0, 2.0)
    for scale in (2.0, -0.0, 1e300, float("inf")):
        with np.errstate(over="ignore"):
            expected = x.numpy() * np.float32(scale / 2) + 3 + np.float32(0.5)
        np.testing.assert_array_equal(check_native(f, x, scale).numpy(), expected)
    assert check_native(f, x, 2.0, 4, True, extra=1.0).tolist() == [12.0, 11.0]
    assert check_native(f, x, extra=1.0, scale=2.0).tolist() == [5.0, 6.0]


def test_division_by_a_zero_scalar_is_pythons_error():
    f = td.jit(lambda x, a: x * (1.0 / a))
    x = tensor(1.0)
    check_native(f, x, 2.0)
    with pytest.raises(ZeroDivisionError):
        f(x, 0.0)
    assert f(x, 4.0).tolist() == [0.25]


def test_integer_scalars_keep_their_range():
    f = td.jit(lambda x, n: x + n)
    x = tensor(1, 2, dtype=np.int8)
    check_native(f, x, 100)
    assert f(x, -128).tolist() == [-127, -126]
    for wrong in (128, -129, 10**30):
        with pytest.raises(OverflowError):
            f(x, wrong)


def test_returned_argument_is_the_object():
    f = td.jit(lambda x, n: (x, x + 1.0, n, "text"))
    x = tensor(1.0)
    got = check_native(f, x, 5)
    assert got[0] is x and got[2] == 5 and got[3] == "text"


def test_static_arguments_and_strings():
    f = td.jit(
        lambda x, how, axis: x.sum(axis) if how == "sum" else x.max(axis), static_argnames=("how", "axis")
    )
    x = td.asarray(np.arange(6.0).reshape(2, 3))
    axis = 0
    assert check_native(f, x, "sum", axis).tolist() == [3.0, 5.0, 7.0]
    assert check_native(f, x, "".join(["m", "ax"]), 1).tolist() == [2.0, 5.0]


def test_numpy_arrays_as_arguments():
    f = td.jit(lambda x, y: x + y)
    assert check_native(f, np.array([1.0, 2.0], np.float32), tensor(1.0, 1.0)).tolist() == [2.0, 3.0]
    assert f(np.array([1.0, 2.0], ">f4"), tensor(1.0, 1.0)).tolist() == [2.0, 3.0]


def test_guards_choose_the_specialization():
    f = td.jit(lambda x: x + 1.0)
    cases = [
        tensor(1.0),
        tensor(1.0, 2.0),
        tensor(1.0, dtype=np.float64),
        td.asarray(np.ones((2, 3), np.float32)),
    ]
    cases += [td.asarray(np.ones((3, 2), np.float32).T), td.asarray(np.float32(3.0))]
    for _ in range(3):
        for x in cases:
            got = f(x)
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got.numpy(), x.numpy() + 1)


def test_captured_values_are_read_at_each_call():
    w = tensor(1.0)
    factor = 2.0

    @td.jit
    def f(x):
        return x * w * factor

    check_native(f, tensor(3.0))
    w[0] = 5.0
    assert f(tensor(3.0)).tolist() == [30.0]
    w = tensor(7.0)
    assert check_native(f, tensor(3.0)).tolist() == [42.0]
    factor = 10.0
    assert check_native(f, tensor(3.0)).tolist() == [210.0]


def test_methods_do_not_keep_their_object():
    class Model:
        def __init__(self, w):
            self.w = w

        @td.jit
        def __call__(self, x):
            return x * self.w

    one, two = Model(tensor(2.0)), Model(tensor(3.0))
    for _ in range(3):
        assert one(tensor(1.0)).tolist() == [2.0]
        assert two(tensor(1.0)).tolist() == [3.0]
    gone = weakref.ref(one)
    del one
    Model.__call__.cache_clear()
    gc.collect()
    assert gone() is None


def test_a_jitted_closure_is_collected():
    def make():
        w = tensor(1.0)

        def body(x):
            return x + w if f is not None else x

        f = td.jit(body)
        check_native(f, tensor(1.0))
        return weakref.ref(f)

    gone = make()
    gc.collect()
    assert gone() is None


def test_a_removed_kernel_never_runs_again():
    with td.Library("jitkernels", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 2.0, "CompositeImplicit")
        f = td.jit(lambda x: td.ops.jitkernels.f(x))
        x = tensor(3.0)
        assert check_native(f, x).tolist() == [6.0]
        with lib.impl("f", lambda x: x * 10.0, "CompositeImplicit", allow_override=True):
            assert check_native(f, x).tolist() == [30.0]
        assert check_native(f, x).tolist() == [6.0]


def test_calls_traced_under_no_grad_stay_native():
    x, v, w = tensor(1.0, 2.0), tensor(2.0, 3.0), tensor(2.0, 3.0).requires_grad_()
    f = td.jit(lambda x, w: x * w)
    with td.no_grad():
        check_native(f, x, v)
    calls = native_calls(f)
    f(x, v)  # outside it is traced once more
    assert (native_calls(f), len(f._specializations)) == (calls, 2)
    y = f(x, w)
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 2.0]
    with td.no_grad():
        assert not f(x, w).requires_grad
        calls = native_calls(f)
        f(x, w)
        assert native_calls(f) == calls + 1
        with td.autocast("cpu"):
            f(x, v)
        assert native_calls(f) == calls + 1


def test_no_grad_and_other_states():
    f = td.jit(lambda x: x + 1.0)
    x = tensor(1.0)
    check_native(f, x)
    with td.no_grad():
        assert f(x).tolist() == [2.0]
        assert f(td.asarray([1.0], requires_grad=True)).tolist() == [2.0]
    assert f(td.asarray([1.0], requires_grad=True)).requires_grad
    g = td.jit(lambda x: f(x) * 2.0)
    assert check_native(g, x).tolist() == [4.0]


def test_unsupported_calls_fall_back_to_python():
    f = td.jit(lambda d: d["a"] + 1.0)
    x = tensor(1.0)
    for _ in range(3):
        assert f(OrderedDict(a=x)).tolist() == [2.0]
    (why,) = f._specializations[0].records.values()
    assert "OrderedDict" in why
    assert why == make_native_specialization(f._specializations[0], f._arguments, (1, ()))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.permute((0, 2, 1)).reshape(-1),  # copies the argument
        lambda x: td.repeat(x, 2, 1),
        lambda x: (x + 1).permute((2, 0, 1)),
        lambda x: (x * 2).reshape(4, 3, 2).permute((1, 2, 0)),
        lambda x: (x + 1)[:, None].T,
        lambda x: (x[:0] + 1).permute((1, 2, 0)),
    ],
)
def test_results_with_all_elements_of_their_memory_are_native(f):
    x = td.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    wanted = f(x)  # before the trace: a module that it loads changes the registry
    result = check_native(td.jit(f), x)
    np.testing.assert_array_equal(result.numpy(), wanted.numpy())
    assert result.strides == wanted.strides


def test_a_changed_registry_or_cache_between_calls():
    f = td.jit(lambda x: x + 1.0)
    for _ in range(5):
        check_native(f, tensor(1.0))
        f.cache_clear()
        assert f.cache_info().specializations == 0


def test_references_do_not_drift():
    @td.jit
    def f(tree, n):
        return {"y": [tree["x"] + n, tree["x"]], "z": State(tree["x"] * 2.0, None)}

    x, key = tensor(1.0, 2.0), "y"
    f({"x": x}, 1.5), f({"x": x}, 1.5)
    watched = [x, x._array, None, key, State, x._array.dtype, td.Tensor]
    for _ in range(10):
        f({"x": x}, 1.5)
    gc.collect()  # tensors of earlier tests refer to td.Tensor
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(20_000):
        f({"x": x}, 1.5)
    gc.collect()
    after = [sys.getrefcount(o) for o in watched]
    assert all(abs(a - b) <= 10 for a, b in zip(before, after)), list(zip(before, after))


def test_bad_input_leaves_no_trace():
    f = td.jit(lambda d, n: d["x"] + n)
    x = tensor(1.0)
    f({"x": x}, 1.0), f({"x": x}, 1.0)
    bad = [((), {}), (({"x": x},), {}), (({"y": x}, 1.0), {}), ((x, 1.0), {}), ((None, None), {}),
           (({"x": object()}, 1.0), {}), (({"x": x}, 1.0, 2), {}), (({"x": x}, 1.0), {"n": 2}),
           (({"x": x, 3: x}, "s"), {}), (({}, 1.0), {}), (([x], 1.0), {}), (({"x": x}, 1.0), {"zz": 1})]  # fmt: skip
    random.seed(0)
    count = sys.getrefcount(x)
    for _ in range(50):
        args, kwargs = random.choice(bad)
        with pytest.raises(Exception):  # noqa: B017 - any exception, no crash
            f(*args, **kwargs)
    del args, kwargs
    gc.collect()
    assert abs(sys.getrefcount(x) - count) <= 30
    assert f({"x": x}, 1.0).tolist() == [2.0]


class Spiteful:
    """A dict key that empties the dict while it is being looked at."""

    def __init__(self, target):
        self.target = target

    def __hash__(self):
        return hash("x")

    def __eq__(self, other):
        self.target.clear()
        return False


def test_a_dict_that_changes_while_it_is_read():
    f = td.jit(lambda d: d["x"]["w"] + 1.0)
    f({"x": {"w": tensor(1.0)}}), f({"x": {"w": tensor(1.0)}})
    for _ in range(100):
        outer = {}
        outer[Spiteful(outer)] = 1
        try:
            outer["x"] = {"w": tensor(1.0)}
            f(outer)
        except Exception:
            continue


def test_each_failing_allocation_is_a_memory_error():
    hooks = pytest.importorskip("_testcapi")

    @td.jit
    def f(tree):
        y = td.softmax(tree["x"] @ tree["x"])
        return {"y": [y, (y + 1.0, y * 2.0)], "n": None}

    tree = {"x": td.asarray(np.ones((4, 4), np.float32))}
    expected = f(tree)["y"][1][0].numpy()
    f(tree)
    failures = 0
    for k in range(60):
        gc.collect()
        hooks.set_nomemory(k, k + 1)
        try:
            f(tree)
        except MemoryError:
            failures += 1
        finally:
            hooks.remove_mem_hooks()
    assert failures >= 5
    np.testing.assert_array_equal(f(tree)["y"][1][0].numpy(), expected)
