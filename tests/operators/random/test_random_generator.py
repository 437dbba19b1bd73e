"""The stateful generator: eager, as a hidden input of jitted functions, and under vmap."""

import copy
import pickle

import numpy as np
import pytest
import tandem as td
from tandem import errors


def host(x):
    return np.asarray(x._array)


def test_each_draw_is_a_new_key():
    gen, key = td.Generator(3), td.random.key(3)
    for number in range(4):
        want = td.random.normal(td.random.fold_in(key, number), (5,))
        np.testing.assert_array_equal(host(gen.normal((5,))), host(want))


def test_every_sampler_is_a_method():
    left_out = {"Key", "clone", "fold_in", "key", "key_data", "wrap_key_data"}
    for name in set(td.random.__all__) - left_out:
        assert callable(getattr(td.Generator, name)), name
    gen = td.Generator(0)
    assert gen.gamma(2.0, (3,)).shape == (3,)
    assert len(gen.split(4)) == 4
    assert gen.choice(10, (3,), replace=False).shape == (3,)


def test_seed_and_state():
    gen = td.Generator(1)
    first = host(gen.uniform(4))
    state = gen.get_state()
    second = host(gen.uniform(4))
    gen.set_state(state)
    np.testing.assert_array_equal(host(gen.uniform(4)), second)
    assert gen.manual_seed(1) is gen
    np.testing.assert_array_equal(host(gen.uniform(4)), first)
    other = pickle.loads(pickle.dumps(gen))
    twin = copy.deepcopy(gen)
    np.testing.assert_array_equal(host(other.uniform(4)), second)
    np.testing.assert_array_equal(host(twin.uniform(4)), second)
    np.testing.assert_array_equal(host(gen.uniform(4)), second)


def test_what_is_refused():
    gen = td.Generator(0)
    before = host(gen.get_state()).copy()
    for call, kind in (
        (lambda: td.Generator(0.5), TypeError),
        (lambda: td.Generator(2**64), ValueError),
        (lambda: td.Generator(td.asarray([1, 2])), ValueError),
        (lambda: td.Generator(0, randomness="none"), errors.ArgumentError),
        (lambda: gen.set_state(td.zeros(5)), TypeError),
        (lambda: gen.set_state(td.zeros(4, dtype="int64")), ValueError),
        (lambda: gen.set_state(3), TypeError),
    ):
        with pytest.raises(kind):
            call()
    np.testing.assert_array_equal(host(gen.get_state()), before)


@pytest.mark.parametrize("native", [True, False], ids=["native", "portable"])
def test_a_generator_that_a_jitted_function_reaches(native):
    with td.config.override(native=native):
        eager, gen = td.Generator(3), td.Generator(3)
        f = td.jit(lambda x: x + gen.normal((4,)) * gen.uniform((4,)))
        for _ in range(3):
            want = td.zeros(4) + eager.normal((4,)) * eager.uniform((4,))
            np.testing.assert_array_equal(host(f(td.zeros(4))), host(want))
            np.testing.assert_array_equal(host(gen.get_state()), host(eager.get_state()))
        assert f.cache_info().specializations == 1
        gen.manual_seed(3)
        first = host(f(td.zeros(4)))
        eager.manual_seed(3)
        np.testing.assert_array_equal(first, host(eager.normal((4,)) * eager.uniform((4,))))


def test_a_generator_that_is_an_argument():
    eager, gen = td.Generator(3), td.Generator(3)
    f = td.jit(lambda gen, x: x + gen.normal((4,)))
    for _ in range(3):
        np.testing.assert_array_equal(host(f(gen, td.zeros(4))), host(eager.normal((4,))))
    other = td.Generator(9)
    np.testing.assert_array_equal(host(f(other, td.zeros(4))), host(td.Generator(9).normal((4,))))
    assert f.cache_info().specializations == 1


def test_a_generator_of_an_object():
    class Model:
        def __init__(self, seed):
            self.gen = td.Generator(seed)

        @td.jit
        def step(self, x):
            return x + self.gen.uniform((2,))

    model, eager = Model(1), td.Generator(1)
    for _ in range(3):
        np.testing.assert_array_equal(host(model.step(td.zeros(2))), host(eager.uniform((2,))))


def test_two_generators_and_another_argument():
    one, two = td.Generator(1), td.Generator(2)
    f = td.jit(lambda x, n: x * n + one.normal((3,)) - two.normal((3,)))
    want = td.ones(3) * 2 + td.Generator(1).normal((3,)) - td.Generator(2).normal((3,))
    np.testing.assert_array_equal(host(f(td.ones(3), 2)), host(want))
    assert host(one.get_state())[-1] == host(two.get_state())[-1] == 1


def test_a_jitted_gradient():
    gen, eager = td.Generator(3), td.Generator(3)
    f = td.jit(td.grad(lambda x: (x * gen.normal((4,))).sum()))
    for _ in range(2):
        np.testing.assert_array_equal(host(f(td.ones(4))), host(eager.normal((4,))))


def test_a_trace_that_fails_leaves_the_state():
    gen = td.Generator(0)

    @td.jit
    def f(x):
        gen.normal((3,))
        return x.reshape((7, 7))

    with pytest.raises(errors.ShapeError):
        f(td.zeros(3))
    assert host(gen.get_state())[-1] == 0


def test_seeding_inside_a_jitted_function():
    gen, eager = td.Generator(0), td.Generator(5)

    @td.jit
    def f(seed):
        gen.manual_seed(seed)
        own = td.Generator(seed + 1)
        return gen.normal((2,)), gen.normal((2,)), own.normal((2,))

    for _ in range(2):
        eager.manual_seed(5)
        one, two, three = f(5)
        np.testing.assert_array_equal(host(one), host(eager.normal((2,))))
        np.testing.assert_array_equal(host(two), host(eager.normal((2,))))
        np.testing.assert_array_equal(host(three), host(td.Generator(6).normal((2,))))
        np.testing.assert_array_equal(host(gen.get_state()), host(eager.get_state()))


def test_where_the_state_cannot_be_written_back():
    gen = td.Generator(0)
    noisy = td.jit(lambda x: td.fori_loop(0, 3, lambda _, x: x + gen.normal((3,)), x))
    for x in (td.ones(3), td.ones(3).requires_grad_()):
        with pytest.raises(errors.UnsupportedError, match="pass a key"):
            noisy(x)
    assert host(gen.get_state())[-1] == 0


def test_under_vmap():
    strict = td.Generator(0)
    with pytest.raises(errors.UnsupportedError, match="different"):
        td.vmap(lambda x: x + strict.normal())(td.zeros(3))
    assert host(strict.get_state())[-1] == 0
    same, different = td.Generator(0, randomness="same"), td.Generator(0, randomness="different")
    shared = host(td.vmap(lambda x: x + same.normal())(td.zeros(3)))
    assert len(set(shared.tolist())) == 1
    assert shared[0] == host(td.Generator(0).normal())
    own = host(td.vmap(lambda x: x + different.normal())(td.zeros(3)))
    assert len(set(own.tolist())) == 3
    key = td.random.fold_in(td.random.key(0), 0)
    np.testing.assert_array_equal(own, [host(td.random.normal(td.random.fold_in(key, i))) for i in range(3)])
    different.manual_seed(0)
    f = td.jit(lambda x: td.vmap(lambda x: x + different.normal())(x))
    np.testing.assert_array_equal(host(f(td.zeros(3))), own)
    assert (host(f(td.zeros(3))) != own).all()
    nested = host(td.vmap(td.vmap(lambda x: x + different.normal()))(td.zeros((3, 4))))
    assert len(set(nested.ravel().tolist())) == 12
