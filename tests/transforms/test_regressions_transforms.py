"""Regressions: wrong derivatives and batches."""

import numpy as np
import pytest
import tandem as td
from tandem import config


def _noisy(generator):
    return lambda x: (x * generator.normal((3,), dtype=td.float64)).sum()


def _noise_differs(value, gradient, x):
    """Whether the noise of a linear function's value is other than that of its gradient."""
    return abs(float(value.detach()) - float((gradient * x).sum())) > 1e-12


@pytest.mark.parametrize("wrap", ["eager", "jit"])
def test_checkpoint_repeats_random_draws(wrap):
    generator, x = td.Generator(0), td.asarray([1.0, 2.0, 3.0], dtype=td.float64)
    noisy = _noisy(generator)
    light = td.value_and_grad(lambda x: td.checkpoint(noisy)(x) + noisy(x) + td.checkpoint(noisy)(x))
    found = td.jit(light) if wrap == "jit" else light
    assert not _noise_differs(*found(x), x)
    after = generator.get_state()
    generator.manual_seed(0)
    for _ in range(3):
        noisy(x)
    assert (generator.get_state() == after).all()  # the second runs count for nothing


def test_checkpoint_repeats_draws_of_jitted_functions():
    generator, x = td.Generator(0), td.asarray([1.0, 2.0, 3.0], dtype=td.float64)
    draw = td.jit(lambda: generator.normal((3,), dtype=td.float64))
    given = td.jit(lambda x, generator: _noisy(generator)(x))
    light = td.checkpoint(lambda x: (x * draw()).sum() + given(x, generator))
    for _ in range(3):  # the second call of a jitted function may be answered by machine code
        assert not _noise_differs(*td.value_and_grad(light)(x), x)
        leaf = td.asarray(x.numpy(), requires_grad=True)
        value = td.checkpoint(lambda x: (x * draw()).sum())(leaf)
        value.backward()
        assert not _noise_differs(value, leaf.grad, x)


def test_checkpoint_with_a_policy_draws_again_in_step():
    generator, x = td.Generator(0), td.asarray([1.0, 2.0, 3.0], dtype=td.float64)
    policies = td.checkpoint_policies
    for policy in (policies.everything_saveable, policies.nothing_saveable, policies.dots_saveable):
        light = td.checkpoint(_noisy(generator), policy=policy)
        assert not _noise_differs(*td.value_and_grad(light)(x), x)


@pytest.mark.parametrize("argnums", [(0, 0), (0, -2), (1, 0, 1)])
@pytest.mark.parametrize("transform", [td.grad, td.value_and_grad, td.jacfwd, td.jacrev])
def test_an_argument_is_named_once(transform, argnums):
    with pytest.raises(td.errors.ArgumentError, match="twice"):
        transform(lambda x, y: x * y, argnums=argnums)(2.0, 3.0)


def _drawing(wrap, given):
    """A generator, and a function that draws from it: as it is or jitted, given the generator or reaching it."""
    generator = td.Generator(0)

    def noisy(x, generator):
        return (x**3 * generator.normal((3,), dtype=td.float64)).sum()

    if given:
        function = wrap(noisy)
        return generator, lambda x: function(x, generator)
    return generator, wrap(lambda x: noisy(x, generator))


def _gradients_of_gradients(fun):
    return td.value_and_grad(lambda x: td.grad(fun)(x).sum())


def _linearized(fun):
    def both(x):
        value, push = td.linearize(fun, x)
        return value, push(x), push(td.ones(3, dtype=td.float64))

    return both


def _pulled(fun):
    def both(x):
        value, pull = td.vjp(fun, x)
        return value, pull(td.asarray(1.0, dtype=td.float64)), pull(td.asarray(2.0, dtype=td.float64))

    return both


def _recorded(fun):
    def all_of_them(x):
        leaf = td.asarray(x.numpy(), requires_grad=True)
        value = fun(leaf)
        first, again = (td.autograd.grad(value, [leaf], create_graph=True)[0] for _ in range(2))
        (second,) = td.autograd.grad(first.sum(), [leaf])
        return value.detach(), first.detach(), again.detach(), second

    return all_of_them


def _backward(fun):
    def value_and_gradient(x):
        leaf = td.asarray(x.numpy(), requires_grad=True)
        value = fun(leaf)
        value.backward()
        return value.detach(), leaf.grad

    return value_and_gradient


DERIVATIVES = {
    "backward": _backward,
    "create_graph": _recorded,
    "value_and_grad": td.value_and_grad,
    "grad of grad": _gradients_of_gradients,
    "grad of grad of grad": lambda fun: _gradients_of_gradients(lambda x: td.grad(fun)(x).sum()),
    "jvp of grad": lambda fun: lambda x: td.jvp(td.grad(fun), (x,), (x,)),
    "grad of jvp": lambda fun: td.grad(lambda x: td.jvp(fun, (x,), (x,))[1]),
    "linearize": _linearized,
    "vjp": _pulled,
    "jacrev of grad": lambda fun: td.jacrev(td.grad(fun)),
    "grad of checkpoint": lambda fun: _gradients_of_gradients(td.checkpoint(fun)),
    "jit of grad": lambda fun: td.jit(td.value_and_grad(fun)),
}


@pytest.mark.parametrize("given", [True, False], ids=["given", "reached"])
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_a_jitted_function_draws_once_whatever_its_derivatives(derivative, given):
    x = td.asarray([1.0, 2.0, 3.0], dtype=td.float64)
    eager, plain = _drawing(lambda fun: fun, given)
    generator, jitted = _drawing(td.jit, given)
    for _ in range(3):  # later calls are answered by what the first one has made
        wanted = td.tree.leaves(DERIVATIVES[derivative](plain)(x))
        found = td.tree.leaves(DERIVATIVES[derivative](jitted)(x))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)
        assert (generator.get_state() == eager.get_state()).all()


def test_a_jitted_loss_whose_noise_is_an_attribute():
    class Model:
        def __init__(self):
            self.generator = td.Generator(0)
            self.weight = td.asarray([1.0, 2.0, 3.0], dtype=td.float64, requires_grad=True)

        def loss(self, x, count):
            kept = self.generator.bernoulli(0.5, (3,))
            return (td.where(kept, self.weight, 0.0) * x * (count + 1)).sum()

        jitted = td.jit(loss)

    plain, model, x = Model(), Model(), td.asarray([4.0, 5.0, 6.0], dtype=td.float64)
    for count in range(4):
        plain.loss(x, count).backward()
        model.jitted(x, count).backward()
        np.testing.assert_allclose(plain.weight.grad.numpy(), model.weight.grad.numpy())
    assert (plain.generator.get_state() == model.generator.get_state()).all()


def test_a_jitted_function_writes_once_whatever_its_derivatives():
    def counted(x, count):
        count += 1
        return (x**3).sum() * count.detach().sum()

    def second(fun):
        count, x = td.zeros(2, dtype=td.float64), td.asarray([1.0, 2.0], dtype=td.float64)
        twice = td.grad(lambda x: td.grad(fun)(x, count).sum())
        return [item.numpy() for item in (twice(x), twice(x), count)]

    np.testing.assert_allclose(second(td.jit(counted)), second(counted))


def test_generator_with_numbers_computed_from_arguments():
    generator = td.Generator(0)
    noisy = td.jit(lambda x, count: x * (count + 1) + generator.normal((3,)))
    wanted = td.ones(3) * 3 + td.Generator(0).normal((3,))
    np.testing.assert_allclose(noisy(td.ones(3), 2).numpy(), wanted.numpy(), rtol=1e-6)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_jitted_draws_under_vmap_match_gradients_or_raise(randomness):
    def drawing(wrap):
        generator = td.Generator(0, randomness=randomness)
        return wrap(lambda x: (x**3 * generator.normal((3,), dtype=td.float64)).sum())

    x = td.asarray(np.arange(6.0).reshape(2, 3))
    plain, jitted = (td.vmap(_gradients_of_gradients(drawing(wrap))) for wrap in (lambda fun: fun, td.jit))
    for one, other in zip(jitted(x), plain(x), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy())
    plain, jitted = (td.vmap(td.jacrev(drawing(wrap))) for wrap in (lambda fun: fun, td.jit))
    if randomness == "same":
        np.testing.assert_allclose(jitted(x).numpy(), plain(x).numpy())
    else:  # the gradients of a batch are a batch of their own here
        with pytest.raises(td.errors.UnsupportedError, match="batch of keys"):
            jitted(x)


@pytest.mark.parametrize("threshold", [10, 11])
@pytest.mark.parametrize("name", ["dropout", "smooth_l1_loss"])
def test_checkpointed_functions_whose_calls_become_hot(name, threshold):
    """A call that was compiled between the two runs recorded another operator in the second one."""
    function = getattr(td.nn.functional, name)
    f = td.checkpoint(lambda w: function(w, 0.5) * w if name == "dropout" else function(w, w * 2) * w)
    with config.override(hot_composites=threshold, hot_calls=threshold):
        for _ in range(30):
            w = td.asarray(np.ones(5, dtype=np.float32), requires_grad=True)
            y = f(w)
            y.sum().backward()
            assert w.grad.shape == (5,) and (name != "dropout" or w.grad.tolist() == (2 * y).tolist())
