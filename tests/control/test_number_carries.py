"""Python numbers that nested loops carry and branches take: they have the dtypes of the tensors that they meet."""

import numpy as np
import pytest
import tandem as td
from tandem.errors import ArgumentError, BodyDTypeError

DTYPES = ["float32", "float64", "complex128"]


def total_by_scans(x, start):
    def add(c, v):
        return c + v, c

    return td.scan(lambda c, row: td.scan(add, c, row), start, x)[0]


def total_by_while(x, start):
    def row(state):
        i, total = state
        return i + 1, td.fori_loop(0, x.shape[1], lambda j, c: c + x[i, j], total)

    return td.while_loop(lambda state: state[0] < x.shape[0], row, (0, start))[1]


def total_by_inner_while(x, start):
    def row(i, total):
        def element(state):
            return state[0] + 1, state[1] + x[i, state[0]]

        return td.while_loop(lambda state: state[0] < x.shape[1], element, (0, total))[1]

    return td.fori_loop(0, x.shape[0], row, start)


def total_of_some(x, start):
    def add(i, c):
        return td.cond(x[i, 0].real > 0, lambda c: c + x[i].sum(), lambda c: c, c)

    return td.fori_loop(0, x.shape[0], add, start)


def total_by_switch(x, start):
    def add(i, c):
        return td.switch(i % 3, [lambda c: c, lambda c: c + x[i, 0], lambda c: c * 2], c)

    return td.fori_loop(0, x.shape[0], add, start)


def branch(x, start):
    return td.cond(x[0, 0].real > 0, lambda c: (c, c + 1), lambda c: (c * x[0, 1], x[0, 2]), start)[0]


FUNCTIONS = [total_by_scans, total_by_while, total_by_inner_while, total_of_some, total_by_switch, branch]


@pytest.fixture
def x():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(5, 6)) + 1j * rng.normal(size=(5, 6))

    def make(dtype, sign=1):
        values.real[0, 0] = sign
        return td.asarray((values if dtype.startswith("complex") else values.real).astype(dtype))

    return make


def as_tensor(x, start):
    return td.asarray(np.asarray(start).astype(x.dtype.name))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("start", [0, 2.0])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_number_is_a_tensor_of_their_dtype(function, dtype, start, sign, x):
    given = x(dtype, sign)
    expected = function(given, as_tensor(given, start)).numpy()
    for run in (function, td.jit(function), td.jit(lambda x: function(x, start))):
        found = run(given) if run.__name__ == "<lambda>" else run(given, start)
        found = td.asarray(found, dtype=given.dtype) if isinstance(found, (int, float)) else found
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
        assert found.dtype == given.dtype


def forward_derivative(f):
    return lambda x: td.jvp(f, (x,), (x * 0.3,))[1]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives_and_batches(function, x):
    given = x("float64")
    for derive in (forward_derivative,) if "while" in function.__name__ else (forward_derivative, td.grad):
        expected = derive(lambda x: function(x, as_tensor(x, 0.5)))(given).numpy()
        derivative = derive(lambda x: function(x, 0.5))
        for run in (derivative, td.jit(derivative)):
            np.testing.assert_allclose(run(given).numpy(), expected)
    batch = td.stack([given, given * 2, -given])
    rows = [function(row, as_tensor(row, 0.5)).numpy() for row in batch]
    for transform in (td.vmap, lambda f: td.jit(td.vmap(f))):
        np.testing.assert_allclose(transform(lambda x: function(x, 0.5))(batch).numpy(), rows)


def test_later_step_widens_the_number():
    x = td.asarray([-1.0, 2.0, 3.0], dtype=td.float64)

    def add(i, c):
        return td.cond(x[i] > 0, lambda c: c + x[i], lambda c: c, c)

    for run in (td.fori_loop, td.jit(td.fori_loop, static_argnums=(0, 1, 2))):
        total = run(0, 3, add, 0.1)
        assert total.dtype == td.float64
        assert total.item() == 0.1 + 2.0 + 3.0


def test_number_keeps_its_precision():
    x = td.asarray([[1.0]], dtype=td.float64)
    for function in FUNCTIONS[:4]:
        for run in (function, td.jit(function)):
            assert run(x, 0.1).item() == 1.1


@pytest.mark.parametrize("run", [lambda f: f, td.jit])
def test_tensors_are_not_cast(run):
    x, start = td.ones((2, 3), dtype=td.float64), td.zeros((), dtype=td.float32)
    with pytest.raises(BodyDTypeError, match="scan: the carry that the body takes"):
        run(total_by_scans)(x, start)
    with pytest.raises(ArgumentError, match="float32"):
        run(lambda x, s: td.fori_loop(0, 2, lambda i, c: (c[0] + x[i, 0], c[1]), (s, 0)))(x, start)
    with pytest.raises(ArgumentError, match="the carry"):
        run(lambda x: td.fori_loop(0, 2, lambda i, c: td.fori_loop(0, 2, lambda j, c: x, c), 0.0))(x)


def test_traced_positions_stay_integers():
    x, j = td.asarray(np.arange(30.0).reshape(5, 6)), td.asarray(1)

    def read(x, n):
        return x[td.add(n, 1), j], x.at[td.add(n, 1), j].set(td.add(n, 7))

    for one, other in zip(td.jit(read)(x, 2), read(x, 2)):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), strict=True)


# -- counters, and the keys of dicts -----------------------------------------------------------------------------------
COUNTED = {
    "sum": lambda a: td.fori_loop(0, 3, lambda k, c: c + k, a),
    "product": lambda a: td.fori_loop(1, 5, lambda k, c: c * (k * 2 + 1), a),
    "branch": lambda a: td.fori_loop(
        0, 3, lambda k, c: td.cond(k % 2 == 0, lambda c: c + k, lambda c: c, c), a
    ),
    "nested": lambda a: td.fori_loop(0, 3, lambda k, c: td.fori_loop(0, 4, lambda j, c: c + j * k, c), a),
    "positions": lambda a: td.fori_loop(0, 2, lambda k, c: c.at[k].add(k) + c[k] + k, a),
    "batch": lambda a: td.vmap(lambda a: td.fori_loop(0, 3, lambda k, c: c + k, a))(a),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32"])
@pytest.mark.parametrize("name", COUNTED)
def test_counters_take_the_dtype_of_integers(name, dtype):
    a, function = td.asarray([1, 2], dtype=dtype), COUNTED[name]
    expected = function(td.asarray([1, 2]))
    for found in (function(a), td.jit(function)(a)):
        assert found.dtype is a.dtype
        assert found.tolist() == expected.astype(dtype).tolist()


def test_counters_wrap_eagerly_as_in_compiled_code():
    for start, stop, dtype in ((0, 1000, td.int8), (-3, 3, td.uint8)):
        x = td.zeros((), dtype=dtype)
        compiled = td.jit(lambda x, a=start, b=stop: td.fori_loop(a, b, lambda i, c: c + i * 2, x))
        for _ in range(3):
            assert td.fori_loop(start, stop, lambda i, c: c + i * 2, x).item() == compiled(x).item()


def test_numbers_are_not_narrowed_to_the_dtype_of_another_branch():
    with pytest.raises(BodyDTypeError, match="the results of the branches differ"):
        td.jit(lambda c: td.cond(c > 0, lambda c: 2.5, lambda c: c, c))(td.asarray(1))
    assert td.jit(lambda c: td.cond(c > 0, lambda c: 1, lambda c: 2.5, c))(td.asarray(0)).item() == 2.5


@pytest.mark.parametrize("run", [lambda f: f, td.jit])
def test_dicts_may_list_their_keys_in_another_order(run):
    a = td.asarray([1.0, 2.0])
    start = {"a": a, "b": a * 2}
    swapped = run(lambda s: td.fori_loop(0, 3, lambda k, c: {"b": c["a"], "a": c["b"]}, s))(start)
    assert list(swapped) == ["a", "b"] and swapped["a"].tolist() == [2.0, 4.0]
    carry, rows = run(lambda s: td.scan(lambda c, _: ({"b": c["b"], "a": c["a"] + 1}, c), s, None, length=2))(
        start
    )
    assert carry["a"].tolist() == [3.0, 4.0] and rows["b"].shape == (2, 2)
    chosen = run(lambda a: td.cond(a[0] > 5, lambda: {"a": a, "b": a * 2}, lambda: {"b": a * 3, "a": a}))(a)
    assert chosen["b"].tolist() == [3.0, 6.0]
    grown = run(
        lambda s: td.while_loop(lambda c: c["a"][0] < 5, lambda c: {"b": c["b"], "a": c["a"] + c["b"]}, s)
    )(start)
    assert grown["a"].tolist() == [5.0, 10.0]


def test_other_structures_are_refused():
    for body in (
        lambda k, c: {"a": c["a"]},
        lambda k, c: {"a": c["a"], "b": (c["b"],)},
        lambda k, c: [c["a"]],
    ):
        for run in (td.fori_loop, td.jit(td.fori_loop, static_argnums=(0, 1, 2))):
            with pytest.raises(ArgumentError, match="differ in structure"):
                run(0, 2, body, {"a": td.ones(2), "b": td.ones(2)})
