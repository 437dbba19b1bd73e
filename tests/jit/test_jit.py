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
