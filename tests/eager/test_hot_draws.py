"""Draws from generators are compiled when they are hot: the numbers and the states are those of plain calls."""

import sys

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
import tandem.torch as torch
from tandem import config
from tandem.backends.cpu import fastpath

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")

DRAWS = {
    "normal": lambda g: g.normal((3, 2)),
    "float64": lambda g: g.normal(5, dtype=td.float64),
    "uniform": lambda g: g.uniform(4, minval=-1.0, maxval=2.0),
    "integers": lambda g: g.integers((6,), 2, 9),
    "randint": lambda g: g.randint((6,), td.asarray(2), td.asarray([9] * 6)),
    "bernoulli": lambda g: g.bernoulli(td.asarray([0.2, 0.8]), (5, 2)),
    "permutation": lambda g: g.permutation(td.arange(7)),
    "choice": lambda g: g.choice(5, (4,)),
    "gamma": lambda g: g.gamma(td.asarray([0.5, 3.0]), (3, 2)),
    "poisson": lambda g: g.poisson(td.asarray(4.0), (8,)),
    "categorical": lambda g: g.categorical(td.asarray([0.1, 0.5])),
    "exponential": lambda g: g.exponential((3,)),
    "key": lambda g: g.key().words,
    "split": lambda g: g.split(3).words,
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_and_states_are_those_of_plain_calls(name):
    draw = DRAWS[name]
    plain, hot = td.Generator(7), td.Generator(7)
    with config.override(hot_composites=1 << 30):
        wanted = [draw(plain) for _ in range(6)]
    with config.override(hot_composites=2):
        drawn = [draw(hot) for _ in range(6)]
    for one, two in zip(drawn, wanted, strict=True):
        assert one.dtype is two.dtype
        np.testing.assert_array_equal(one.numpy(), two.numpy())
    assert hot.get_state().tolist() == plain.get_state().tolist()


def test_a_restored_state_repeats_hot_draws():
    with config.override(hot_composites=2):
        g = td.Generator(3)
        for _ in range(5):
            g.normal(4)
        state = g.get_state()
        first = g.normal(4).tolist()
        g.set_state(state)
        assert g.normal(4).tolist() == first
        assert g.manual_seed(3).normal(4).tolist() == td.Generator(3).normal(4).tolist()


def test_draws_in_traces_and_transforms_are_not_those_of_the_hot_function():
    with config.override(hot_composites=2):
        g, other = td.Generator(5), td.Generator(5)
        for _ in range(5):
            g.normal(3), other.normal(3)
        jitted = td.jit(lambda: g.normal(3) * 2.0)
        for _ in range(4):
            assert jitted().tolist() == (other.normal(3) * 2.0).tolist()
        assert g.get_state().tolist() == other.get_state().tolist()
        with pytest.raises(td.errors.UnsupportedError, match="Generator draws under vmap"):
            td.vmap(lambda x: x + g.normal(3))(td.ones((2, 3)))
        different = td.Generator(5, randomness="different")
        rows = td.vmap(lambda x: x + different.normal(3))(td.zeros((2, 3)))
        assert rows[0].tolist() != rows[1].tolist()
        x = td.ones(3).requires_grad_()
        (x * g.normal(3)).sum().backward()
        assert x.grad.tolist() == other.normal(3).tolist()


def test_wrong_arguments_raise_and_draw_nothing_more():
    g = td.Generator(1)
    for _ in range(4):
        with pytest.raises(td.errors.TandemError):
            g.normal(-3)
        with pytest.raises(TypeError):
            g.normal((2,), nonsense=1)


def test_spellings_of_numpy_and_pytorch():
    with config.override(hot_composites=2):
        rng, torch_state = tnp.random.default_rng(0), torch.manual_seed(0)
        for _ in range(5):
            assert rng.normal().shape == () and rng.normal(1.0, 2.0, 3).dtype is td.float64
            assert rng.normal(tnp.asarray([1.0, 2.0]), 1).shape == (2,)
            assert 2 <= float(rng.uniform(2, 3)) < 3 and rng.uniform([1, 2], 3.0).shape == (2,)
            assert rng.exponential(2.0, (2, 2)).shape == (2, 2)
            assert (
                torch.rand(2, 3).dtype is td.float32 and torch.randn(3, dtype=td.float64).dtype is td.float64
            )
            assert torch.zeros(3).uniform_(2, 3).min() >= 2
        assert isinstance(torch_state, td.Generator)


def test_references_do_not_grow():
    with config.override(hot_composites=2):
        g = td.Generator(0)
        for _ in range(10):
            g.normal(4)
        before = sys.getrefcount(g._state), sys.getrefcount(td.float32)
        for _ in range(20_000):
            g.normal(4)
        after = sys.getrefcount(g._state), sys.getrefcount(td.float32)
        assert abs(after[0] - before[0]) <= 2 and abs(after[1] - before[1]) <= 50


def test_functions_of_keys_are_compiled():
    with config.override(hot_composites=2):
        key = td.random.key(11)
        calls = {
            "split": lambda: td.random.split(key),
            "fold_in": lambda: td.random.fold_in(key, 3),
            "normal": lambda: td.random.normal(key, (3,)),
            "bits": lambda: td.random.bits(key, (3,)),
            "randint": lambda: td.random.randint(key, (3,), 0, 5),
            "several": lambda: td.random.uniform(td.random.split(key, 3), (2,)),
        }
        for name, call in calls.items():
            results = [call() for _ in range(6)]
            shown = [getattr(one, "words", one).tolist() for one in results]
            assert all(one == shown[0] for one in shown), name
            assert type(results[0]) is type(results[-1])
        assert [td.random.fold_in(key, n).words.tolist() for n in range(4)] == [
            td.ops.td.random_fold_in(key.words, n).tolist() for n in range(4)
        ]
        first, second = td.random.split(key)
        assert first.words.tolist() != second.words.tolist() and first.shape == ()
        with pytest.raises(td.errors.ArgumentError, match="one key"):
            iter(first)
        for _ in range(4):
            with pytest.raises(td.errors.TandemError):
                td.random.split(td.ones(3))
            with pytest.raises(TypeError):
                td.random.fold_in(key, 0.5)
        jitted = td.jit(lambda key: [td.random.normal(one, (2,)) for one in td.random.split(key)])
        eager = [td.random.normal(one, (2,)).tolist() for one in td.random.split(key)]
        for _ in range(3):
            assert [one.tolist() for one in jitted(key)] == eager
        rows = td.vmap(lambda key: td.random.normal(key, (2,)))(td.random.split(key))
        assert rows.tolist() == eager
