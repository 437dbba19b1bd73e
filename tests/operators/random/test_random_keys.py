"""Typed keys, and the random bits that they produce, compared with an independent Philox."""

import copy
import pickle

import numpy as np
import pytest
import tandem as td
from tandem import errors


def host(x):
    return np.asarray(getattr(x, "words", x)._array)


# -- the bits, with Python's integers and the paper's names alone ------------------------------------------------------
def philox(counter, key):
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        product0, product1 = 0xD2511F53 * x0, 0xCD9E8D57 * x2
        x0, x1, x2, x3 = (
            (product1 >> 32) ^ x1 ^ k0,
            product1 & 0xFFFFFFFF,
            (product0 >> 32) ^ x3 ^ k1,
            product0 & 0xFFFFFFFF,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [x0, x1, x2, x3]


def stream(words, count, use=0):
    found = []
    for block in range(-(-count // 4)):
        found += philox((block & 0xFFFFFFFF, block >> 32 | use << 30, words[2], words[3]), words[:2])
    return found[:count]


@pytest.mark.parametrize("native", [True, False], ids=["native", "portable"])
@pytest.mark.parametrize("run", ["eager", "jit"])
@pytest.mark.parametrize("count", [0, 1, 5, 31, 32, 33, 130])
def test_bits_are_philox(run, native, count):
    with td.config.override(native=native):
        for words in ([0, 0, 0, 0], [20, 11, 3, 4000000000], [2**32 - 1] * 4):
            key = td.random.wrap_key_data(td.asarray(words, dtype="uint32"))

            def draw(key):
                return (
                    td.random.bits(key, count),
                    td.random.bits(key, (2, count), bits=64),
                    td.random.split(key, 3),
                )

            narrow, wide, keys = (td.jit(draw) if run == "jit" else draw)(key)
            assert host(narrow).tolist() == stream(words, count)
            long = stream(words, 4 * count)
            pairs = [low | high << 32 for low, high in zip(long[0::2], long[1::2])]
            assert host(wide).ravel().tolist() == pairs
            assert host(keys).ravel().tolist() == stream(words, 12, use=1)


def test_large_draws_have_the_same_bits():
    """From some size on they are written by machine code."""
    keys = td.random.split(td.random.key(1), 3)
    found = host(td.random.bits(keys, 30001))
    with td.config.override(native=False):
        np.testing.assert_array_equal(host(td.random.bits(keys, 30001)), found)
    assert found[1, :40].tolist() == stream(host(keys)[1].tolist(), 40)
    assert found[2, -5:].tolist() == stream(host(keys)[2].tolist(), 30001)[-5:]


def test_fold_in_is_the_block_of_its_number():
    key = td.random.key(7)
    for data in (0, 5, -1, 2**40):
        number = data % 2**62
        want = philox((number & 0xFFFFFFFF, number >> 32 | 2 << 30, 0, 0), (7, 0))
        assert host(td.random.fold_in(key, data)).tolist() == want


# -- the value ---------------------------------------------------------------------------------------------------------
def test_a_key_is_a_value_of_its_own():
    key = td.random.key(42)
    assert repr(key) == "Key([42, 0, 0, 0])"
    assert (key.shape, key.ndim, key.size, key.device) == ((), 0, 1, "cpu")
    keys = td.random.split(key, 6).reshape(2, 3)
    assert keys.shape == (2, 3)
    assert len(keys) == 2
    assert [row.shape for row in keys] == [(3,), (3,)]
    assert keys[1, 2].shape == ()
    assert keys[..., 0].shape == (2,)
    assert keys[:, 1:].shape == (2, 2)
    np.testing.assert_array_equal(host(keys[1, 2]), host(keys)[1, 2])
    shown = []
    td.jit(lambda k: (shown.append(repr(k)), k)[1])(key)
    assert shown == ["Key(uint32[4])"]
    for call in (lambda: key[0], lambda: key[..., 0]):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(errors.ArgumentError, match="one key"):
        len(key)


def test_keys_take_no_part_in_arithmetic():
    key = td.random.key(0)
    for call in (lambda: key + 1, lambda: td.add(key, 1), lambda: td.exp(key), lambda: 1 * key):
        with pytest.raises(TypeError):
            call()


def test_words_go_in_and_out():
    key = td.random.key(3)
    words = td.random.key_data(key)
    assert words.dtype is td.uint32
    again = td.random.wrap_key_data(words)
    np.testing.assert_array_equal(host(td.random.bits(again, 4)), host(td.random.bits(key, 4)))
    np.testing.assert_array_equal(host(td.random.bits(words, 4)), host(td.random.bits(key, 4)))
    assert isinstance(td.random.split(words), td.Tensor)
    assert isinstance(td.random.fold_in(words, 1), td.Tensor)
    for bad in (td.ones(4), td.zeros(3, dtype="uint32"), 5):
        with pytest.raises((errors.DTypeError, errors.ShapeError)):
            td.random.wrap_key_data(bad)
        with pytest.raises((errors.DTypeError, errors.ShapeError)):
            td.random.key_data(bad)
    with pytest.raises(errors.DTypeError, match="not NoneType None"):
        td.random.wrap_key_data(None)
    with pytest.raises(errors.DTypeError, match="already"):
        td.random.wrap_key_data(key)


def test_keys_are_copied_and_pickled():
    keys = td.random.split(td.random.key(3), 2)
    for again in (copy.copy(keys), copy.deepcopy(keys), pickle.loads(pickle.dumps(keys))):
        np.testing.assert_array_equal(host(again), host(keys))


def test_key_is_container_of_its_bits():
    key = td.random.key(0)
    leaves, treedef = td.pytree.flatten({"rng": key})
    assert [leaf.shape for leaf in leaves] == [(4,)]
    assert isinstance(treedef.unflatten(leaves)["rng"], td.random.Key)


# -- through transforms ------------------------------------------------------------------------------------------------
def test_keys_through_jit():
    @td.jit
    def step(state, x):
        key, now = td.random.split(state["key"])
        return {"key": key}, x + td.random.normal(now, (3,))

    state, key = {"key": td.random.key(1)}, td.random.key(1)
    for _ in range(3):
        state, x = step(state, td.zeros(3))
        key, now = td.random.split(key)
        np.testing.assert_array_equal(host(x), host(td.random.normal(now, (3,))))
        np.testing.assert_array_equal(host(state["key"]), host(key))
    assert step.cache_info().specializations == 1
    assert step.cache_info().hits == 2


def test_captured_key_is_read_at_each_call():
    key = td.random.key(1)
    f = td.jit(lambda x: x + td.random.uniform(key, (3,)))
    one = host(f(td.zeros(3)))
    key = td.random.key(2)
    two = host(f(td.zeros(3)))
    np.testing.assert_array_equal(two, host(td.random.uniform(key, (3,))))
    assert (one != two).any()


def test_a_traced_seed_and_traced_data():
    f = td.jit(lambda seed, data: td.random.fold_in(td.random.key(seed), data))
    for seed, data in ((1, 2), (5, 2**40), (td.asarray(9), td.asarray(3))):
        np.testing.assert_array_equal(host(f(seed, data)), host(td.random.fold_in(td.random.key(seed), data)))


def test_keys_through_vmap():
    keys = td.random.split(td.random.key(0), 4)
    found = td.vmap(lambda key: td.random.split(key, 3))(keys)
    assert found.shape == (4, 3)
    np.testing.assert_array_equal(host(found), np.stack([host(td.random.split(key, 3)) for key in keys]))
    nested = td.vmap(td.vmap(lambda key: td.random.uniform(key, (2,))))(keys.reshape(2, 2))
    want = np.stack([host(td.random.uniform(key, (2,))) for key in keys]).reshape(2, 2, 2)
    np.testing.assert_array_equal(host(nested), want)
    seeds = td.vmap(td.random.key)(td.arange(3))
    np.testing.assert_array_equal(host(seeds), [[n, 0, 0, 0] for n in range(3)])


def test_grad_of_a_function_of_a_key():
    key = td.random.key(0)
    slope = td.grad(lambda scale, key: (scale * td.random.normal(key, (5,))).sum())(td.asarray(2.0), key)
    assert abs(float(slope) - host(td.random.normal(key, (5,))).sum()) < 1e-5


def test_dropout_takes_a_key():
    x, key = td.ones(50), td.random.key(0)
    np.testing.assert_array_equal(host(td.dropout(x, key)), host(td.dropout(x, td.random.key_data(key))))
