"""``jit``: arguments and results, guards, cache, ``explain``, stages, methods, threads, memory."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import tandem as td
from jit_arguments import check, tensor
from tandem import config, errors
from tandem.jit.api import jit

Pair = namedtuple("Pair", "first second")


@dataclass
class Model:
    w: object
    b: object


# --- arguments --------------------------------------------------------------------------------------------


def test_containers_in_and_out():
    @jit
    def f(tree, rest):
        model, pair = tree["model"], tree["pair"]
        y = model.w * pair.first + model.b
        return {"model": Model(y, pair.second), "list": [y, None], "pair": Pair(rest[0], 1.5), "text": "ok"}

    x = tensor(3)
    for _ in range(3):
        out = f({"model": Model(x, 2.0), "pair": Pair(x, x)}, (x, None))
        assert isinstance(out["model"], Model)
        assert isinstance(out["pair"], Pair)
        check(out["model"].w, [3.0, 6.0, 11.0])
        assert out["list"][1] is None
        assert out["text"] == "ok"
        assert out["pair"].first is x
        assert out["model"].b is x
    assert f.cache_info() == (2, 1, 1)


def test_keywords_and_positions_share_one_specialization():
    f = jit(lambda x, scale=2.0, *, shift=0.0: x * scale + shift)
    x = tensor(2)
    check(f(x), [2.0, 4.0])
    check(f(x, 2.0), [2.0, 4.0])
    check(f(x=x, scale=3.0), [3.0, 6.0])
    assert f.cache_info().specializations == 2
    check(f(x, shift=1.0, scale=2.0), [3.0, 5.0])
    check(f(shift=1.0, scale=3.0, x=x), [4.0, 7.0])
    check(f(x), [2.0, 4.0])
    assert f.cache_info().specializations == 3


def test_variable_arguments():
    f = jit(lambda *xs, **named: sum(xs) + named["a"])
    x = tensor(2)
    check(f(x, x, a=x), [3.0, 6.0])
    check(f(x, a=x), [2.0, 4.0])
    assert f.cache_info().specializations == 2


def test_positional_only():
    check(jit(eval("lambda x, /, y: x - y"))(tensor(2), y=1), [0.0, 1.0])


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1})], ids=str
)
def test_arguments_that_do_not_fit_the_signature(args, kwargs):
    f = jit(lambda x, y: x)
    with pytest.raises(TypeError, match="argument"):
        f(*args, **kwargs)
    assert f.cache_info() == (0, 0, 0)


def test_numpy_arguments():
    f = jit(lambda x: x * 2)
    check(f(np.ones(3, np.float32)), [2.0, 2.0, 2.0])
    check(f(np.arange(3)[::-1]), [4, 2, 0])
    check(f(np.float64(2.5)), 5.0)
    check(f(np.ones(2, ">f4")), [2.0, 2.0])
    with pytest.raises(errors.DTypeError):
        f(np.array([object()]))


def test_static_arguments():
    f = jit(lambda x, axis, keep=False: x.sum(axis=axis, keepdims=keep), static_argnames=("axis", "keep"))
    x = tensor(2, 3)
    check(f(x, 0), [5.0, 7.0, 9.0])
    check(f(x, 1), [6.0, 15.0])
    check(f(x, axis=1, keep=True), [[6.0], [15.0]])
    check(f(x, (0, 1)), 21.0)
    assert f.cache_info() == (0, 4, 4)
    check(f(x, 1), [6.0, 15.0])
    assert f.cache_info().hits == 1


def test_static_by_number_and_by_one_name():
    check(jit(lambda x, n: x * n, static_argnums=1)(tensor(2), 3), [3.0, 6.0])
    check(jit(lambda x, n: x * n, static_argnums=(-1,))(tensor(2), 3), [3.0, 6.0])
    check(jit(lambda x, name: x * len(name), static_argnames="name")(tensor(2), "ab"), [2.0, 4.0])


def test_static_values_of_different_types_differ():
    f = jit(lambda n: type(n).__name__, static_argnames="n")
    assert [f(n) for n in (1, True, 1.0, (1,), (1.0,), 0.0, -0.0)] == [
        "int",
        "bool",
        "float",
        "tuple",
        "tuple",
        "float",
        "float",
    ]
    assert f.cache_info().specializations == 7


def test_static_tensor():
    with pytest.raises(errors.ArgumentError, match="is a tensor"):
        jit(lambda x: x, static_argnames="x")(tensor(2))


def test_static_that_is_not_hashable():
    f = jit(lambda x, sizes: x, static_argnames="sizes")
    with pytest.raises(TypeError, match="'sizes' must be hashable, list is not; pass a tuple"):
        f(tensor(2), [1])


@pytest.mark.parametrize("options", [{"static_argnames": "z"}, {"static_argnums": 5}])
def test_static_name_that_is_not_a_parameter(options):
    with pytest.raises(errors.ArgumentError, match="is not a parameter of"):
        jit(lambda x: x, **options)


def test_strings_and_functions_are_fixed():
    f = jit(lambda x, how, g: g(x) if how == "call" else x)
    x = tensor(2)
    check(f(x, "call", td.exp), np.exp([1.0, 2.0]))
    assert f(x, "skip", td.exp) is x
    assert f.cache_info().specializations == 2


@pytest.mark.parametrize("bad", [object(), {1, 2}, iter([1]), 1j.conjugate])
def test_arguments_that_jit_does_not_take(bad):
    f = jit(lambda x, y: x)
    if callable(bad):
        pytest.skip("a function is taken")
    with pytest.raises(errors.ArgumentError, match="static_argnames"):
        f(tensor(2), bad)


def test_not_a_function():
    with pytest.raises(errors.ArgumentError, match="takes a function"):
        jit(3)


# --- layouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "view",
    [lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[:0], lambda a: a[0, 0]],
)
def test_layouts(view):
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    given = view(base)
    f = jit(lambda x: td.exp(x * 0.1) + x.sum())
    for leaf in (td.asarray(given), np.asarray(given)):
        check(f(leaf), np.exp(given * np.float32(0.1)) + given.sum())


def test_contiguity_is_a_specialization():
    f = jit(lambda x: x + 1)
    x = tensor(3, 3)
    f(x), f(x.T), f(x)
    assert f.cache_info() == (1, 2, 2)


# --- results ----------------------------------------------------------------------------------------------


def test_a_returned_argument_is_the_same_object():
    f = jit(lambda x, y: (y, x, x + y))
    x, y = tensor(2), tensor(2)
    for _ in range(3):
        out = f(x, y)
        assert out[0] is y
        assert out[1] is x
        check(out[2], [2.0, 4.0])


def test_a_returned_captured_tensor_is_the_same_object():
    w = tensor(2)
    f = jit(lambda x: (w, x + w))
    assert f(tensor(2))[0] is w
    assert f(tensor(2))[0] is w


@pytest.mark.parametrize(
    "view", [lambda x: x.T, lambda x: x[1], lambda x: x.reshape((-1,)), lambda x: x[::-1, 1:].T]
)
def test_returned_view_of_argument_shares_its_storage(view):
    x = tensor(3, 4)
    f = jit(lambda x: (view(x), x.sum()))
    for _ in range(3):
        found = f(x)[0]
        np.testing.assert_array_equal(found.numpy(), view(x).numpy())
        assert np.shares_memory(found.numpy(), x.numpy())
    found += 1
    np.testing.assert_array_equal(found.numpy(), view(x).numpy())


def test_a_view_of_an_intermediate():
    f = jit(lambda x: ((x * 2).T, (x * 2)[0]))
    turned, row = f(tensor(2, 3))
    check(turned, [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]])
    check(row, [2.0, 4.0, 6.0])
    turned += 1
    check(row, [2.0, 4.0, 6.0])


def test_one_result_twice_is_one_object():
    def f(x):
        y = x * 2
        return y, {"again": y}

    one, two = jit(f)(tensor(2))
    assert two["again"] is one


@pytest.mark.parametrize(
    "same", [lambda x: x * 1, lambda x: +x, lambda x: x + 0, lambda x: x.astype(x.dtype)]
)
def test_new_result_shares_no_memory_with_arguments(same):
    f = jit(same)
    for dtype in (np.float32, np.int32):
        x = tensor(4, dtype=dtype)
        for _ in range(3):
            y = f(x)
            y.add_(1)
            np.testing.assert_array_equal(x.numpy(), [1, 2, 3, 4])


def test_results_are_fresh_at_each_call():
    f = jit(lambda x: (x + 1, td.ones((2,))))
    one, two = f(tensor(2)), f(tensor(2))
    one[0].add_(5)
    one[1].add_(5)
    check(two[0], [2.0, 3.0])
    check(two[1], [1.0, 1.0])
    check(f(tensor(2))[1], [1.0, 1.0])


def test_constants_and_no_tensors():
    f = jit(lambda n: (n, n + 1, "x", None, 2.5))
    assert f(3) == (3, 4, "x", None, 2.5)
    assert f(5) == (5, 6, "x", None, 2.5)
    assert jit(lambda: None)() is None
    check(jit(lambda: td.zeros((2,)) + 1)(), [1.0, 1.0])


def test_zero_d_results_are_tensors():
    assert jit(lambda x: x.sum())(tensor(3)).shape == ()


# --- variables --------------------------------------------------------------------------------------------

SCALE = 2.0
WEIGHT = td.asarray(np.ones(2, np.float32))


def helper(x):
    return x * SCALE


def test_global_number_is_guarded(monkeypatch):
    f = jit(lambda x: helper(x))
    check(f(tensor(2)), [2.0, 4.0])
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert "global SCALE was 2.0, now 3.0" in f.explain(tensor(2))
    check(f(tensor(2)), [3.0, 6.0])


def test_global_tensor_is_read_at_each_call(monkeypatch):
    f = jit(lambda x: x + WEIGHT)
    check(f(tensor(2)), [2.0, 3.0])
    WEIGHT.add_(1)
    check(f(tensor(2)), [3.0, 4.0])
    assert f.cache_info() == (1, 1, 1)
    WEIGHT.sub_(1)
    monkeypatch.setitem(globals(), "WEIGHT", tensor(2))
    check(f(tensor(2)), [2.0, 4.0])
    assert f.cache_info().misses == 2


def test_closure_variable_is_guarded():
    rate = 1.0

    @jit
    def f(x):
        return x * rate

    check(f(tensor(2)), [1.0, 2.0])
    rate = 10.0
    check(f(tensor(2)), [10.0, 20.0])
    rate = 1.0


def test_captured_tensor_that_starts_to_need_a_gradient():
    w = tensor(2)
    f = jit(lambda x: x * w)
    f(tensor(2))
    w.requires_grad_()
    f(tensor(2)).sum().backward()
    check(w.grad, [1.0, 2.0])
    with td.no_grad():
        assert not f(tensor(2)).requires_grad


def test_side_effects_on_a_global_do_not_retrace(monkeypatch):
    monkeypatch.setitem(globals(), "COUNT", 0)

    def f(x):
        global COUNT
        COUNT += 1
        return x + 1

    g = jit(f)
    g(tensor(2)), g(tensor(2))
    assert g.cache_info() == (1, 1, 1)


# --- gradients --------------------------------------------------------------------------------------------


def loss(w, x):
    return ((x @ w) ** 2).sum()


def test_grad_inside():
    w, x = tensor(3, 2), tensor(4, 3)
    value, gradient = jit(lambda w, x: td.value_and_grad(loss)(w, x))(w, x)
    check(value, loss(w, x).numpy())
    check(gradient, td.grad(loss)(w, x).numpy())


def test_a_jitted_function_inside_a_jitted_gradient():
    inner = jit(loss)
    w, x = tensor(3, 2), tensor(4, 3)
    check(jit(lambda w, x: td.grad(inner)(w, x))(w, x), td.grad(loss)(w, x).numpy())


def test_tensor_that_requires_grad():
    f = jit(lambda x: x * 2)
    x = td.asarray([1.0, 2.0], requires_grad=True)
    assert f(x).requires_grad and not f(x.detach()).requires_grad
    assert f.cache_info() == (0, 2, 2)
    check(f(x.detach()), [2.0, 4.0])
    with td.no_grad():
        assert not f(x).requires_grad


def test_under_an_outer_grad():
    x = tensor(2)
    assert td.grad(jit(lambda w: (w * w).sum()))(x).tolist() == (2 * x).tolist()


def test_result_that_belongs_to_an_outer_grad():
    def outer(v):
        return jit(lambda x: (x * v).sum())(tensor(2))

    assert td.grad(outer)(tensor(2)).tolist() == tensor(2).tolist()


def test_write_after_save_is_noticed():
    def f(w):
        y = td.exp(w)
        y += 1
        return (y * y).sum()

    for g in (td.grad(f), jit(lambda w: td.grad(f)(w))):
        with pytest.raises(errors.VersionError, match="exp"):
            g(tensor(2))


# --- the cache --------------------------------------------------------------------------------------------


def test_hits_and_misses():
    f = jit(lambda x: x + 1)
    for shape in ((2,), (2,), (3,), (2,), (2, 2)):
        f(tensor(*shape))
    assert f.cache_info() == (2, 3, 3)
    f.cache_clear()
    assert f.cache_info() == (0, 0, 0)
    check(f(tensor(2)), [2.0, 3.0])


def test_limit_of_specializations():
    f = jit(lambda x: x + 1)
    with config.override(specializations=3):
        for n in range(1, 8):
            f(tensor(n))
        assert f.cache_info() == (0, 7, 3)
        f(tensor(7)), f(tensor(1))
        assert f.cache_info() == (1, 8, 3)


def test_failing_call_leaves_cache_unchanged():
    f = jit(lambda x, y: x + y)
    f(tensor(2), tensor(2))
    before = f.cache_info()
    with pytest.raises(ValueError, match="broadcast"):
        f(tensor(2), tensor(3))
    assert f.cache_info() == before
    check(f(tensor(2), tensor(2)), [2.0, 4.0])


def test_registering_a_kernel_retraces():
    f = jit(lambda x: td.exp(x))
    check(f(tensor(2)), np.exp([1.0, 2.0]))
    with td.Library("td", "IMPL") as library:
        library.impl("exp", lambda x: x * 0.0, "CompositeImplicit")
        library.impl("exp", td.ops.td.exp.default.registered(td.DispatchKey.CPU).fn, "CPU")
        f(tensor(2))
        assert f.cache_info().misses == 2
    check(f(tensor(2)), np.exp([1.0, 2.0]))


def test_registering_elsewhere_does_not_retrace():
    f = jit(lambda x: td.exp(x))
    f(tensor(2))
    with td.Library("jittest", "DEF") as library:
        library.define("other(Tensor x) -> Tensor")
        library.impl("other", lambda x: x, "CPU")
        f(tensor(2))
    f(tensor(2))
    assert f.cache_info() == (2, 1, 1)


def test_no_grad_is_another_dispatch_state():
    f = jit(lambda x: x + 1)
    f(tensor(2))
    with td.no_grad():
        assert "dispatch state was" in f.explain(tensor(2))
        check(f(tensor(2)), [2.0, 3.0])


# --- explain ----------------------------------------------------------------------------------------------


def test_explain():
    w = tensor(3)

    def step(params, x, rate=0.1):
        return params["w"] * x * rate + w

    f = jit(step)
    args = {"w": tensor(3)}, tensor(3)
    assert "has not been called yet" in f.explain(*args)
    f(*args)
    text = f.explain(*args)
    assert "specialization 1 of 1 would answer" in text
    assert "captured tensors" in text
    assert "closure variable w = float32[3]" in text
    assert "argument params['w']: shape was (3,), now (1,)" in f.explain({"w": tensor(1)}, tensor(3))
    assert "argument x: shape was (3,), now (2, 3), dtype was float32, now float64" in f.explain(
        {"w": tensor(3)}, tensor(2, 3, dtype=np.float64)
    )
    assert "argument rate was left to its default 0.1, now a Python int" in f.explain(*args, rate=1)
    assert "argument params: the structure was and is" in f.explain({"v": tensor(3)}, tensor(3))
    assert f.cache_info() == (0, 1, 1)


def test_explain_static():
    f = jit(lambda x, n: x * n, static_argnames="n")
    f(tensor(2), 3)
    assert "static argument n was 3, now 4" in f.explain(tensor(2), 4)


# --- stages -----------------------------------------------------------------------------------------------


def test_stages():
    f = jit(lambda x, a: td.exp(x) * a)
    x = tensor(3)
    lowered = f.lower(x, 2.0)
    assert "td::exp" in str(lowered.kernels())
    if config.flags.native:
        assert "define" in lowered.llvm_ir()
    compiled = lowered.compile()
    check(compiled(x, 3.0), np.exp([1.0, 2.0, 3.0]) * 3)
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis()["output"] == 12
    with pytest.raises(errors.ArgumentError, match=r"shape was \(3,\), now \(4,\)"):
        compiled(tensor(4), 3.0)
    assert f.cache_info() == (0, 0, 0)
    assert "jitted" in repr(f)


def test_stages_of_a_function_that_computes_nothing():
    lowered = jit(lambda x: x).lower(tensor(2))
    x = tensor(2)
    assert lowered.compile()(x) is x
    with pytest.raises(errors.LoweringError, match="nothing to compute"):
        lowered.kernels()
