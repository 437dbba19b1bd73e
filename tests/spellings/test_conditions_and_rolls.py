"""Numbers as conditions, and traced numbers of positions, in the words of NumPy and JAX."""

import numpy
import pytest
import tandem as td
import tandem.jax as jax
import tandem.jax.numpy as jnp
import tandem.numpy as np
from tandem.jax import lax

X = td.asarray([1.0, 2.0, 3.0])
NUMBERS = td.asarray([1, 0, 2])


def test_numbers_other_than_zero_are_true_hot_and_cold():
    for _ in range(40):
        assert np.where(NUMBERS, X, 0.0).tolist() == jnp.where(NUMBERS, X, 0.0).tolist() == [1, 0, 3]
        assert (
            np.where(numpy.array([1, 0, 2]), X, 0).tolist() == np.where([1, 0, 2], X, 0).tolist() == [1, 0, 3]
        )
        assert np.where(1, X, 0.0).tolist() == [1, 2, 3]
        assert np.where(NUMBERS > 0, X, 0.0).tolist() == [1, 0, 3]
        assert lax.select(NUMBERS, X, -X).tolist() == [1, -2, 3]
    with pytest.raises(td.errors.DTypeError):
        td.where(NUMBERS, X, 0.0)


def test_traced_numbers_are_conditions():
    assert jax.jit(lambda c, x: lax.select(c, x, -x))(NUMBERS, X).tolist() == [1, -2, 3]
    assert jax.jit(lambda k: jnp.where(k, 1.0, 2.0))(3).item() == 1
    assert jax.jit(lambda k: jnp.where(k, 1.0, 2.0))(0).item() == 2
    assert jax.jit(lambda k: jnp.where(k, 1.0, 2.0))(True).item() == 1


@pytest.mark.parametrize("shift", [1, -2, 0, 7, td.asarray(5)])
@pytest.mark.parametrize("namespace", [np, jnp])
def test_traced_shifts_roll_as_known_ones(namespace, shift):
    rows, known = td.arange(12).reshape(3, 4), int(shift)
    for axis in (None, 0, 1, -1, (0, 1)):
        wanted = numpy.roll(rows.numpy(), known, axis).tolist()
        assert jax.jit(lambda x, n, axis=axis: namespace.roll(x, n, axis))(rows, shift).tolist() == wanted
        assert namespace.roll(rows, shift, axis).tolist() == wanted
    wanted = numpy.roll(rows.numpy(), (known, 1), (0, 1)).tolist()
    assert jax.jit(lambda x, n: namespace.roll(x, (n, 1), (0, 1)))(rows, shift).tolist() == wanted
    assert (
        jax.jit(lambda x, n: namespace.roll(x, [n], 0))(rows, shift).tolist()
        == numpy.roll(rows.numpy(), [known], 0).tolist()
    )


def test_shifts_in_loops_transforms_and_of_no_elements():
    rolled = jax.jit(lambda x: lax.fori_loop(0, 4, lambda i, x: jnp.roll(x, i), x))
    assert rolled(X).tolist() == [1, 2, 3]
    assert jax.vmap(lambda n: jnp.roll(X, n))(jnp.arange(3)).tolist() == [[1, 2, 3], [3, 1, 2], [2, 3, 1]]
    loss = jax.jit(jax.grad(lambda x, n: (jnp.roll(x, n) * jnp.arange(3.0)).sum()))
    assert loss(X, 1).tolist() == [1, 2, 0]
    assert jax.jit(jnp.roll)(jnp.zeros(0), 2).shape == (0,)
    with pytest.raises(td.errors.ValueArgumentError):
        jax.jit(lambda x, n: jnp.roll(x, (n, n), 0))(X, 1)


def test_traced_numbers_have_the_methods_of_tensors():
    assert td.jit(lambda n: n.astype(td.int32) + 1)(3).dtype is td.int32
    assert td.jit(lambda n, x: n.reshape(1) * x)(2.5, X).tolist() == [2.5, 5, 7.5]
    with pytest.raises(AttributeError):
        td.jit(lambda n: n.nonsense)(3)
