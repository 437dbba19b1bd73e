"""Methods and functions that draw from generators, as a whole compiled code: the numbers, and what sees each draw."""

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
import tandem.torch as torch
from tandem import config
from tandem.eager.autograd.recompute import watch_draws
from tandem.eager.tensor.generator import default_generator
from tandem.errors import TandemError

CALLS = config.flags.hot_composites + 16

SAMPLERS = {
    "uniform": ((4,),),
    "normal": ((2, 3), td.float64),
    "bits": ((5,),),
    "randint": ((3,), 0, 10),
    "permutation": (7,),
    "exponential": ((),),
    "bernoulli": (0.3, (4,)),
    "choice": (9, (2,)),
}


def next_words(state):
    """Return the words of the next key of a state, from the documented construction."""
    return td.random.fold_in(td.astype(state[:4], td.uint32), state[4])


@pytest.mark.parametrize("name", SAMPLERS)
def test_hot_draws_use_the_next_key_each(name):
    generator, sampler = td.Generator(5), getattr(td.random, name)
    for _ in range(CALLS):
        words = next_words(generator.get_state())
        drawn = getattr(generator, name)(*SAMPLERS[name])
        np.testing.assert_array_equal(drawn, sampler(words, *SAMPLERS[name]))
    assert generator.get_state().tolist() == [5, 0, 0, 0, CALLS]


METHODS = {
    "random": lambda rng: rng.random(3),
    "standard_normal": lambda rng: rng.standard_normal(),
    "normal": lambda rng: rng.normal(2.0, 0.5, (2, 2)),
    "integers": lambda rng: rng.integers(3, 9, 4),
    "gamma": lambda rng: rng.gamma(2.0, 1.0, 3),
    "choice": lambda rng: rng.choice([1.0, 5.0, 7.0], 2),
    "out": lambda rng: rng.random(out=td.zeros(3, dtype=td.float64)),
}


@pytest.mark.parametrize("name", METHODS)
def test_hot_methods_draw_as_in_python(name):
    hot, cold = tnp.random.default_rng(3), tnp.random.default_rng(3)
    for _ in range(CALLS):
        drawn = METHODS[name](hot)
        with watch_draws():  # draws that are watched run the Python code
            expected = METHODS[name](cold)
        assert drawn.dtype is expected.dtype
        np.testing.assert_array_equal(drawn, expected)
    assert hot.get_state().tolist() == cold.get_state().tolist()


def test_numbers_that_change_from_call_to_call():
    rng, other = tnp.random.default_rng(3), tnp.random.default_rng(3)
    for k in range(CALLS):
        value = rng.normal(float(k), 0.5)
        assert float(value) == float(other.standard_normal() * 0.5 + float(k))
        np.testing.assert_array_equal(rng.integers(k + 1, k + 20, 3), other.integers(k + 1, k + 20, 3))
    assert rng.get_state().tolist() == other.get_state().tolist()


def test_hot_methods_that_fill_a_tensor():
    x, whole = torch.zeros(3), torch.zeros(6)
    part = whole[1:4]
    for _ in range(CALLS):
        before = default_generator.get_state()
        assert x.normal_() is x
        default_generator.set_state(before)
        np.testing.assert_array_equal(x, torch.randn(3))
        default_generator.set_state(before)
        part.normal_()
        np.testing.assert_array_equal(part, x)
    assert whole[0] == 0 and whole[4] == 0
    leaf = torch.zeros(3, requires_grad=True)
    with pytest.raises(TandemError, match="leaf"):
        leaf.normal_()
    with torch.no_grad():
        leaf.normal_()
    y = (x * leaf).sum()
    x.normal_()
    with pytest.raises(td.errors.VersionError):
        y.backward()


def test_levels_see_hot_draws():
    generators = {kind: td.Generator(0, randomness=kind) for kind in ("error", "same", "different")}
    for generator in generators.values():
        for _ in range(CALLS):
            generator.normal((2,))
    x = td.zeros((3, 2))

    def shift(row, generator):
        return row + generator.normal((2,))

    with pytest.raises(TandemError, match="randomness"):
        td.vmap(lambda row: shift(row, generators["error"]))(x)
    same = td.vmap(lambda row: shift(row, generators["same"]))(x)
    assert len({tuple(row) for row in same.tolist()}) == 1
    different = td.vmap(lambda row: shift(row, generators["different"]))(x)
    assert len({tuple(row) for row in different.tolist()}) == 3


def test_checkpointed_functions_repeat_hot_draws():
    generator, x = td.Generator(0), td.asarray([1.0, 2.0])
    for _ in range(CALLS):
        generator.normal((2,))
    noises = []

    def scale(x):
        noises.append(generator.normal((2,)))
        return (td.sin(x) * noises[-1]).sum()

    before = generator.get_state()
    gradient = td.grad(td.checkpoint(scale))(x)
    expected = np.cos([1.0, 2.0]) * np.asarray(noises[0])
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)
    assert generator.get_state()[4] == before[4] + 1


def test_parameters_that_require_gradients():
    generator = td.Generator(0)
    for _ in range(CALLS):
        generator.gamma(td.full((3,), 2.0))
    alpha = td.full((3,), 2.0).requires_grad_()
    for _ in range(CALLS):
        sample = generator.gamma(alpha)
        assert sample.requires_grad
    sample.sum().backward()
    assert bool((alpha.grad > 0).all())


def test_wrong_calls_of_hot_draws_raise():
    generator, rng = td.Generator(0), tnp.random.default_rng(0)
    for _ in range(CALLS):
        generator.uniform((2,))
        rng.random(2)
    before = generator.get_state().tolist(), rng.get_state().tolist()
    for call in (
        lambda: generator.uniform((-1,)),
        lambda: generator.uniform((2,), td.int32),
        lambda: generator.uniform((2,), nothing=1),
        lambda: rng.random("2"),
        lambda: rng.random(2, td.int32),
    ):
        with pytest.raises((TandemError, TypeError, ValueError)):
            call()
    assert generator.get_state()[:4].tolist() == before[0][:4]
    assert rng.get_state()[:4].tolist() == before[1][:4]
