"""Tensors that a traced function makes of numbers: constants of the graph, which the function may also write."""

import numpy as np
import pytest
import tandem as td
import tandem.jax as jax
import tandem.jax.numpy as jnp
from tandem.jax import lax

X = td.asarray([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "number",
    [
        *[np.float16(1.5), np.float32(-0.0), np.float64(np.nan), np.complex64(1 + 2j), np.bool_(True)],
        *[np.uint64(2**63 + 5), np.int8(-3)],
    ],
    ids=repr,
)
def test_numbers_of_all_dtypes_keep_their_bits(number):
    ones = td.asarray(np.ones(2, number.dtype))
    dtype = td.asarray(number).dtype
    for make in (lambda: number, lambda: dtype(number), lambda: td.asarray(number)):
        result = jax.jit(lambda x, make=make: (td.where(x == x, make(), x), make()))(ones)
        for part, shape in zip(result, ((2,), ()), strict=True):
            wanted = np.full(shape, number)
            assert td.asarray(part).numpy().tobytes() == wanted.tobytes()


def test_numbers_are_constants_and_not_captured():
    program = jax.jit(lambda x: x * jnp.float32(2) + jnp.asarray(3.0) - np.float32(1))
    assert program(X).tolist() == [4, 6, 8]
    assert not program.trace(X).ir.constants
    loop = jax.jit(lambda n: lax.fori_loop(0, 9, lambda i, x: x ^ (x << jnp.uint64(3)), n))
    plain = jax.jit(lambda n: lax.fori_loop(0, 9, lambda i, x: x ^ (x << 3), n))
    assert loop(jnp.uint64(5)).item() == plain(jnp.uint64(5)).item()


def test_a_number_is_still_known_to_python():
    assert jax.jit(lambda x: x[: int(jnp.int32(2))])(X).tolist() == [1, 2]

    def with_view(x):
        number = jnp.int32(2)
        row = number.reshape(1)
        return x[: int(number)] + row

    assert jax.jit(with_view)(X).tolist() == [3, 4]


def test_written_numbers_are_traced():
    def total(x):
        result = jnp.float32(0.0)
        other = result
        for k in range(3):
            result += x[k]
        return result, other, result * 2

    def loop(x):
        def body(i, s):
            c = jnp.float32(0.5)
            c += x[i]
            c *= 2
            return s + c

        return lax.fori_loop(0, 3, body, jnp.float32(0))

    program = jax.jit(total)
    for scale in (1, 2, 1):
        assert [part.item() for part in program(X * scale)] == [6 * scale, 6 * scale, 12 * scale]
    assert jax.jit(loop)(X).item() == loop(X).item() == 15


def test_loops_and_branches_see_what_was_written_before_them():
    def program(x):
        number = jnp.float32(1.0)

        def body(i, s):
            return s + number

        first = lax.fori_loop(0, 3, body, jnp.float32(0))
        number += x.sum()
        second = lax.fori_loop(0, 3, body, jnp.float32(0))
        branch = lax.cond(x.sum() > 0, lambda: number * 2, lambda: number)
        nested = lax.fori_loop(0, 2, lambda i, s: lax.fori_loop(0, 2, body, s), jnp.float32(0))
        return (
            first,
            second,
            branch,
            nested,
            jax.jit(lambda y: y[0] * number)(x),
            jax.vmap(lambda v: v * number)(x)[2],
        )

    assert [part.item() for part in jax.jit(program)(X)] == [3, 21, 14, 28, 7, 21]


def test_views_of_written_numbers_share_their_contents():
    def view(x):
        number = jnp.float32(1.0)
        row = number.reshape(1)
        row[0] = x.sum()
        return number, row

    assert [part.tolist() for part in jax.jit(view)(X)] == [6, [6]]


def test_python_cannot_read_a_number_that_the_trace_has_written():
    def branch(x):
        number = jnp.float32(0.0)
        number += x.sum()
        return x if number > 0 else -x

    def item(x):
        number = jnp.float32(0.0)
        number += x.sum()
        return x * number.item()

    for function in (branch, item):
        with pytest.raises(td.errors.ConcretizationError):
            jax.jit(function)(X)


def test_numbers_in_transforms():
    loss = jax.jit(jax.grad(lambda x: (x * jnp.float32(2) + jnp.float32(3)).sum()))
    assert loss(X).tolist() == [2, 2, 2]
    assert jax.jit(jax.vmap(lambda x: x * jnp.float32(2)))(td.ones((2, 1))).tolist() == [[2], [2]]
    with pytest.raises(td.errors.UnsupportedError):  # a level of a transform holds the number

        def total(x):
            result = jnp.float32(0.0)
            result += x.sum()
            return result

        jax.jit(jax.grad(total))(X)
