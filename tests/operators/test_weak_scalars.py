"""Weak scalars: functions of Python numbers are computed in double precision, eagerly and compiled."""

import copy
import math
import os
import pickle
import zlib

import numpy as np
import pytest
import tandem as td
from tandem import config, errors
from tandem.backends.cpu import fastpath
from tandem.eager.tensor.weak_scalars import number_of
from tandem.operators.declare.declaration import declared_operators
from tandem.registry.dispatch.keys import WEAK_KEYS
from tandem.registry.function import function_of
from tandem.registry.operator import find_operator

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
X = np.array([1.0, 2.5])
NUMBERS = {
    "f": (0.3, 0.7, 0.45),
    "i": (3, 2, 1),
    "b": (True, False, True),
    "c": (0.3 + 0.1j, 0.7j, 0.45 + 0j),
}
FUNCTIONS = sorted(
    (op for op in declared_operators() if op.decl.is_elementwise or op.decl.kind == "reduction"),
    key=lambda op: op.name,
)


def f64(values):
    return td.asarray(values, dtype=td.float64)


def is_weak(value):
    return type(value) is td.Tensor and value._keys == WEAK_KEYS


def numbers_for(op, kind):
    given = list(NUMBERS[kind][: len(op.binder.tensor_positions)])
    for place, argument in enumerate(op.binder.positional[: len(given)]):
        if argument.name in (op.decl.conditions or ()):
            given[place] = True
    return given


def in_double(op, numbers, exact=False):
    """The result on 0-d tensors in double precision; integers become float64 where the operator has no integer form."""
    wide = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
    if exact:
        wide |= {bool: np.float64, int: np.float64}
    found = op(*[td.asarray(wide[type(n)](n)) for n in numbers])
    rounds = any(x.dtype in (td.float32, td.complex64) for x in (found if type(found) is tuple else (found,)))
    return in_double(op, numbers, exact=True) if rounds and not exact else found


def assert_number(found, wanted):
    if type(wanted) is tuple:
        for one, other in zip(found, wanted, strict=True):
            assert_number(one, other)
        return
    assert is_weak(found)
    np.testing.assert_allclose(found.item(), wanted.item(), rtol=1e-14, equal_nan=True)


def sampled(op):
    """An operator that every run tests, or only the full one."""
    chosen = zlib.crc32(f"{SEED} {op.name}".encode()) % 5 == 0
    return pytest.param(op, id=op.name, marks=() if chosen else pytest.mark.full)


# --- every operator ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.name.removeprefix("td::"))
def test_functions_of_numbers_are_in_double(op):
    for kind in NUMBERS:
        numbers = numbers_for(op, kind)
        if not numbers:
            continue
        try:
            narrow = op.decl.shape_rule(*[td.asarray(n) if op.decl.fold else n for n in numbers])
            wanted = in_double(op, numbers)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue
        found = op(*numbers)
        assert_number(found, wanted)
        specs = narrow if type(narrow) is tuple and type(found) is tuple else (narrow,)
        for one, spec in zip(found if type(found) is tuple else (found,), specs, strict=True):
            assert one.dtype is spec.dtype


@pytest.mark.parametrize("op", [sampled(op) for op in FUNCTIONS if op.decl.is_elementwise])
def test_traced_numbers_are_in_double(op):
    for kind in "fi":
        numbers = numbers_for(op, kind)
        try:
            op.decl.shape_rule(*numbers)
        except (TypeError, ValueError, OverflowError):
            continue
        eager, compiled = op(*numbers), td.jit(lambda *n: op(*n))(*numbers)
        assert is_weak(compiled) and compiled.dtype is eager.dtype
        np.testing.assert_allclose(compiled.item(), eager.item(), rtol=1e-14, equal_nan=True)


SPECIAL = [op for op in declared_operators() if op.decl.kind == "special"]


@pytest.mark.parametrize("op", SPECIAL, ids=lambda op: op.name.removeprefix("td::"))
def test_special_functions_of_numbers_are_in_double(op):
    numbers = [
        2 if argument.name == "n" else NUMBERS["f"][i] for i, argument in enumerate(op.binder.positional)
    ]
    wanted = op(*[n if type(n) is int else f64(n) for n in numbers])
    assert wanted.dtype is td.float64
    traced = [n for n in numbers if type(n) is float]
    fixed = numbers[: len(numbers) - len(traced)]
    with config.override(hot_calls=2):
        hot = [op(*numbers) for _ in range(5)][-1]
    jitted = td.jit(lambda: op(*numbers))(), td.jit(lambda *n: op(*fixed, *n))(*traced)
    for found in (op(*numbers), hot, *jitted):
        assert_number(found, wanted)
        assert found.dtype is td.float32
        np.testing.assert_allclose((found * f64(X)).numpy(), wanted.item() * X, rtol=1e-14)


@pytest.mark.parametrize("kind", "fib")
def test_composites_of_numbers_are_in_double(kind):
    first = NUMBERS[kind][0]
    for name in (
        "mean",
        "logsumexp",
        "var",
        "std",
        "softplus",
        "silu",
        "gelu",
        "sum",
        "prod",
        "cos",
        "expm1",
    ):
        function = getattr(td, name)
        try:
            function(td.asarray(first))
        except (TypeError, ValueError):
            continue
        wanted = function(td.asarray(np.float64(first)))
        np.testing.assert_allclose(function(first).item(), wanted.item(), rtol=1e-14)
    assert td.where(td.gt(1, 0), 0.1, first).item() == 0.1
    assert td.clip(0.3, 0.1, 0.2).item() == 0.2
    assert td.div(1, 3).item() == 1 / 3


@pytest.mark.parametrize("op", [sampled(op) for op in FUNCTIONS if op.decl.is_elementwise])
def test_hot_calls_return_the_same_number(op):
    for kind in NUMBERS:
        numbers = numbers_for(op, kind)
        try:
            cold = op(*numbers)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue
        function = function_of(op.name)
        given = [td.mul(n, 1) if place == 1 and type(n) is float else n for place, n in enumerate(numbers)]
        for call in range(100):
            hot = function(*(given if call % 2 else numbers))
        assert is_weak(hot) and hot.dtype is cold.dtype and type(hot.item()) is type(cold.item())
        assert np.asarray(hot.item()).tobytes() == np.asarray(cold.item()).tobytes(), (op.name, kind)
        assert hot.numpy().tobytes() == cold.numpy().tobytes() and hot._array.flags.writeable is False
        assert (hot._storage.version, hot._storage.hold_count) == (0, 0) and hot._storage.owner is hot._array


@pytest.mark.skipif(bool(fastpath.why_off()), reason="native code is off")
def test_hot_calls_on_numbers_run_native():
    x, s = f64(X.copy()), td.sqrt(0.3)
    programs = {
        "sqrt": lambda: td.sqrt(2.0),
        "exp": lambda: td.exp(1),
        "logical_not": lambda: td.logical_not(True),
        "add": lambda: s + 1.0,
        "mul": lambda: s * x,
        "div": lambda: x / s,
        "add_": lambda: x.add_(s),
    }
    for name, program in programs.items():
        for _ in range(100):
            program()
        full_name = "td::add_.Tensor" if name == "add_" else getattr(td, name).operator.name
        stub = fastpath.stubs().by_operator[find_operator(full_name)]
        before = stub.calls
        program()
        assert stub.calls == before + 1, name


def test_hot_integers_are_checked_as_cold_ones():
    for call, number in [(td.div, 2**70), (td.add, 2**63), (td.maximum, -(2**63) - 1)]:
        for _ in range(70):
            assert call(7, 2).item() in (3.5, 9, 7)
        with pytest.raises(errors.ScalarOverflowError):
            call(3, number)


def test_hot_calls_use_registered_kernels():
    for _ in range(70):
        assert td.cosh(0.0).item() == 1.0
    library = td.Library("td", "IMPL")
    library.impl("cosh", lambda x: "mine", "WeakScalar")
    try:
        assert td.cosh(0.0) == "mine"
    except errors.TandemError as fault:
        assert "mine" in str(fault)  # held to the schema
    finally:
        library.close()
    assert td.cosh(0.0).item() == 1.0


def test_noted_and_recorded_calls_with_numbers():
    s = td.sqrt(0.3)
    for _ in range(70):
        x = f64(X).requires_grad_()
        (x * s).sum().backward()
        assert x.grad.tolist() == [math.sqrt(0.3)] * 2
        with td.no_grad():
            assert is_weak(td.sqrt(2.0)) and not (x * s).requires_grad
        assert td.vmap(lambda v: v * td.sqrt(0.3))(f64(X)).tolist() == (X * math.sqrt(0.3)).tolist()


# --- beside tensors ---------------------------------------------------------------------------------------

BESIDE = {
    "mul": lambda s, x: s * x,
    "radd": lambda s, x: x + s,
    "function": lambda s, x: td.maximum(s, x),
    "where": lambda s, x: td.where(x > 2, s, x),
    "clip": lambda s, x: td.clip(x, s, 2.0),
    "pow": lambda s, x: x**s,
    "stack": lambda s, x: td.stack([s, x[0]]),
    "list": lambda s, x: td.asarray([s, x[0], 0.1]),
    "at": lambda s, x: x.at[0].set(s),
    "chain": lambda s, x: (td.exp(-s) + 1) * x - s / 3,
    "methods": lambda s, x: s.exp().log().sum() * x,
    "asarray": lambda s, x: td.asarray(s, dtype=td.float64) * x,
    "full": lambda s, x: td.full((2,), s, dtype=td.float64) * x,
}


def in_place(s, x):
    x = x.clone()
    x[0] = s
    x += s
    return x


@pytest.mark.parametrize("name", [*BESIDE, "in place"])
def test_numbers_keep_precision_with_float64(name):
    function = BESIDE.get(name, in_place)
    wanted = function(f64(math.sqrt(0.3)), f64(X)).numpy()
    programs = {
        "eager": lambda: function(td.sqrt(0.3), f64(X)),
        "constant": td.jit(lambda: function(td.sqrt(0.3), f64(X))),
        "vmap": lambda: td.vmap(lambda x: function(td.sqrt(0.3), x))(f64([X, X]))[0],
    }
    traced = td.jit(lambda a, x: function(td.sqrt(a), x))
    given = td.jit(function)
    programs |= {"traced": lambda: traced(0.3, f64(X)), "argument": lambda: given(td.sqrt(0.3), f64(X))}
    for way, program in programs.items():
        for call in range(1 if way == "vmap" else 40):  # native entries come after 32
            found = program()
            assert found.dtype is td.float64, way
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-14, err_msg=f"{way}, call {call}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "complex64", "bool"])
@pytest.mark.parametrize("number", [0.25, 4, 2j])
def test_dtype_with_tensors_follows_the_number(dtype, number):
    x = td.ones((3,), dtype=dtype)
    wanted = (x * type(number)(1)).dtype
    for _ in range(40):
        assert (td.mul(number, 1) * x).dtype is wanted
    if type(number) is not complex:
        assert td.jit(lambda a: td.sqrt(a) * x)(number).dtype is (x * 1.0).dtype


def test_integers_that_do_not_fit_raise():
    x = td.zeros(2, dtype=td.int8)
    with pytest.raises(errors.ScalarOverflowError, match="200"):
        td.add(100, 100) + x
    with pytest.raises(errors.UnsupportedError, match="fits int8"):
        td.jit(lambda n: td.add(n, n) + x)(100)


def black_scholes(spot, strike, time, rate, sigma):
    d1 = (td.log(spot / strike) + (rate + 0.5 * sigma**2) * time) / (sigma * td.sqrt(time))
    below = [0.5 * (1 + td.erf(d / td.sqrt(2.0))) for d in (d1, d1 - sigma * td.sqrt(time))]
    return spot * below[0] - strike * td.exp(-rate * time) * below[1]


@pytest.mark.parametrize("place", range(6))
def test_black_scholes_in_float64(place):
    numbers = [95.0, 100.0, 0.7, 0.03, 0.21]
    wanted = black_scholes(*map(f64, numbers)).item()
    given = [f64(n) if k == place else n for k, n in enumerate(numbers)]
    compiled = td.jit(black_scholes)
    for _ in range(40):
        assert black_scholes(*given).item() == pytest.approx(wanted, rel=1e-14)
        assert compiled(*given).item() == pytest.approx(wanted, rel=1e-14)


def test_gradients_with_numbers_are_in_double():
    wanted = math.sqrt(0.3)
    losses = [lambda x: (td.sqrt(0.3) * x).sum(), td.jit(lambda x: (td.sqrt(0.3) * x).sum())]
    for loss in losses:
        assert td.grad(loss)(f64(X)).tolist() == [wanted] * 2
        x = f64(X).requires_grad_()
        loss(x).backward()
        assert x.grad.tolist() == [wanted] * 2
    traced = td.jit(lambda x, a: (td.sqrt(a) * x).sum())
    assert td.grad(traced)(f64(X), 0.3).tolist() == pytest.approx([wanted] * 2, rel=1e-15)
    assert td.grad(traced)(f64(X), td.mul(0.3, 1)).tolist() == pytest.approx([wanted] * 2, rel=1e-15)


@pytest.mark.parametrize("start", [0.1, "weak"])
def test_loops_and_branches_keep_numbers(start):
    start, x = td.mul(0.1, 1) if start == "weak" else start, f64(3.0)
    programs = {
        "fori_loop": lambda s: td.fori_loop(0, 2, lambda i, c: c * x, s),
        "while_loop": lambda s: td.while_loop(lambda c: c < 0.5, lambda c: c * x, s),
        "scan": lambda s: td.scan(lambda c, y: (c * y, c), s, f64([3.0, 3.0]))[0],
        "body": lambda s: td.fori_loop(0, 2, lambda i, c: s, x) * 9,
        "cond": lambda s: td.cond(x > 0, lambda: s, lambda: x) * f64(9.0),
    }
    for name, program in programs.items():
        assert program(start).item() == pytest.approx(0.9, rel=1e-15), name
        assert td.jit(program)(start).item() == pytest.approx(0.9, rel=1e-15), name


# --- the object -------------------------------------------------------------------------------------------


def test_scalar_shows_the_default_dtype():
    s = td.sqrt(2)
    assert is_weak(s) and s.dtype is td.float32 and s.shape == () and s.device == "cpu"
    assert repr(s) == repr(td.asarray(math.sqrt(2))) and s.numpy().dtype == np.float32
    assert (float(s), s.item(), s.tolist(), complex(s)) == (math.sqrt(2),) * 4
    assert bool(s) and int(s) == 1 and td.add(1, 2).dtype is td.int64 and td.eq(1, 2).dtype is td.bool_
    assert td.exp(1j).dtype is td.complex64
    assert td.sqrt(2) == math.sqrt(2) and [0, 1, 2][td.add(1, 1)] == 2


def test_copies_and_pickles_keep_the_number():
    s = td.sqrt(2)
    for made in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.clone(), s.detach()):
        assert is_weak(made) and number_of(made) == math.sqrt(2)


def test_asarray_with_a_dtype_makes_a_tensor():
    for dtype in (td.float32, td.float64, td.float16):
        for made in (td.asarray(td.sqrt(2), dtype=dtype), td.sqrt(2).astype(dtype)):
            assert not is_weak(made) and made.dtype is dtype
            assert made.item() == dtype.np.type(math.sqrt(2))
    assert td.reshape(td.sqrt(2), (1,)).dtype is td.float32


def test_scalar_never_changes():
    s = t = td.sqrt(2)
    for _ in range(40):
        for call in (lambda: s.add_(1), lambda: s.fill_(1), lambda: s.zero_(), lambda: td.ops.td.cos_(s)):
            with pytest.raises(errors.ArgumentError, match="weak scalar"):
                call()
    with pytest.raises(errors.ArgumentError, match="weak scalar"):
        s[...] = 1
    s.numpy()[...] = 5
    assert s.item() == math.sqrt(2)
    for _ in range(40):
        t += 1  # a new number, as of Python's
    assert s.item() == math.sqrt(2) and is_weak(t) and t.item() == pytest.approx(40 + math.sqrt(2))


def test_requires_grad_makes_a_leaf():
    s = td.sqrt(4.0).requires_grad_()
    (s * f64(X)).sum().backward()
    assert not is_weak(s) and s.is_leaf and s.grad.item() == 3.5
    s.detach().add_(1)
    assert s.item() == 3.0


def test_random_and_creation_stay_strong():
    assert not is_weak(td.asarray(2.0)) and not is_weak(td.full((), 2.0)) and not is_weak(td.zeros(()))
    assert not is_weak(td.full_like(2.5, 7))


def test_operators_of_tensors_and_numbers_are_strong():
    for x in (td.asarray(2.0), td.ones(1), f64(2.0)):
        assert not is_weak(x * td.sqrt(2)) and not is_weak(td.sqrt(x))


def test_modes_see_one_call():
    seen = []

    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append(op.schema.name)
            return op(*args, **kwargs)

    with Log():
        assert is_weak(td.sqrt(2.0))
    assert seen == ["sqrt"]


def test_excluding_the_key_gives_plain_tensors():
    s = td.sqrt(2)
    with td.exclude_keys("WeakScalar"):
        assert not is_weak(td.sqrt(2.0))
        assert (s * f64(1.0)).item() == np.float32(math.sqrt(2))
