"""``tandem.jax``: names and arguments of JAX; test_jax_compared.py compares results with JAX."""

import inspect

import numpy as np
import pytest
import tandem as td
import tandem.jax
from tandem.jax import lax, nn

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_elementwise_functions_have_the_meaning_of_jax():
    ints = td.asarray([-7, 7])
    assert lax.div(ints, 2).tolist() == [-3, 3] and lax.rem(ints, 4).tolist() == [-3, 3]
    assert lax.div(td.asarray([1.0]), 2.0).tolist() == [0.5] and lax.clamp(0, ints, 3).tolist() == [0, 3]
    assert lax.select_n(td.asarray([0, 2, 1]), *(td.full(3, n) for n in (5, 6, 7))).tolist() == [5, 7, 6]
    assert (
        lax.integer_pow(ints, 2).tolist() == [49, 49]
        and lax.convert_element_type(ints, td.int8).dtype is td.int8
    )
    with pytest.raises(TypeError, match="at least one case"):
        lax.select_n(ints)


def test_reductions_keep_the_dtype():
    x = td.asarray(X.astype(np.int32))
    assert lax.reduce_sum(x, (0,)).dtype is lax.cumsum(x).dtype is td.int32
    assert lax.reduce_sum(x, (0, 1)).item() == 66 and lax.reduce_max(x, (1,)).tolist() == [3, 7, 11]
    assert lax.cummax(td.asarray([1, 3, 2]), 0, True).tolist() == [3, 3, 2]
    assert lax.top_k(x, 2).indices.tolist() == [[3, 2]] * 3 and lax.argmin(x, 1, td.int8).dtype is td.int8


def test_blocks_are_read_and_written():
    x = td.asarray(X)
    assert lax.slice(x, (0, 1), (3, 4), (2, 2)).tolist() == [[1.0, 3.0], [9.0, 11.0]]
    assert lax.index_in_dim(x, -1, 1, False).tolist() == [3.0, 7.0, 11.0]
    assert lax.dynamic_slice(x, (2, 3), (2, 2)).tolist() == [[6.0, 7.0], [10.0, 11.0]]
    written = td.jit(lambda x, i: lax.dynamic_update_slice(x, td.zeros((1, 2)), (i, 1)))(x, td.asarray(-1))
    assert written[2].tolist() == [8.0, 0.0, 0.0, 11.0]
    assert lax.dynamic_update_index_in_dim(x, td.zeros(3), 1, 1)[:, 1].tolist() == [0.0] * 3
    assert lax.broadcast_in_dim(td.arange(3), (2, 3), (1,)).tolist() == [[0, 1, 2]] * 2
    assert lax.broadcasted_iota(td.int32, (2, 3), 0).tolist() == [[0] * 3, [1] * 3]


def test_activations_have_the_defaults_of_jax():
    x = td.asarray([-1.0, 2.0])
    assert nn.gelu(x).tolist() == td.gelu(x, approximate="tanh").tolist() != td.gelu(x).tolist()
    assert nn.relu6(x * 4.0).tolist() == [0.0, 6.0] and nn.glu(x).tolist() == pytest.approx([-0.880797])
    assert nn.one_hot(td.asarray([0, 5]), 2).tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_traced_positions_are_moved_into_the_tensor():
    sliced = td.jit(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2)))
    mapped = td.vmap(lambda i: lax.dynamic_slice_in_dim(td.asarray(X), i, 1, 0))(td.asarray([0, 5, -1]))
    for i, row in ((0, 0), (1, 1), (9, 1), (-1, 1)):
        assert sliced(td.asarray(X), td.asarray(i)).tolist() == X[row : row + 2, :2].tolist()
    assert mapped.tolist() == X[[0, 2, 2]][:, None].tolist()
    assert td.grad(lambda x: lax.dynamic_slice(x, (1, 1), (1, 2)).sum())(td.asarray(X)).numpy().sum() == 2.0


def test_wrong_blocks_raise():
    x = td.asarray(X)
    for call in (
        lambda: lax.dynamic_slice(x, (0, 0), (4, 1)),
        lambda: lax.dynamic_slice(x, (0,), (1,)),
        lambda: lax.slice(x, (0, 0), (4, 4)),
        lambda: lax.index_in_dim(x, 3),
        lambda: lax.broadcast_in_dim(x, (4, 3), (1, 0)),
    ):
        with pytest.raises(ValueError, match=r"shape|axis|within"):
            call()
    with pytest.raises(ValueError, match="num_keys"):
        lax.sort([x, x], num_keys=3)


def test_modules_have_the_names_of_jax():
    jnp = tandem.jax.numpy
    key = tandem.jax.random.PRNGKey(0)
    assert tandem.jax.random.normal(key, (2,)).shape == (2,) and tandem.jax.random.split is td.random.split
    assert jnp.array([1.0]).dtype is td.float32 and jnp.concatenate is td.concatenate
    assert {"solve", "norm", "eigh"} <= {*dir(jnp.linalg)}
    assert tandem.jax.tree_util.tree_map(lambda x: x + 1, {"a": 1}) == {"a": 2}
    assert (
        type(tandem.jax.jit(abs)) is type(td.jit(abs))
        and tandem.jax.Array is td.Tensor
        and tandem.jax.grad is td.grad
    )
    assert tandem.jax.device_get({"a": td.ones(2)})["a"].tolist() == [1.0, 1.0]
    assert tandem.jax.device_put([1.0])[0].tolist() == 1.0 and tandem.jax.block_until_ready(key) is key
    for module in (lax, nn, jnp, tandem.jax.random, tandem.jax.tree_util):
        assert inspect.ismodule(module) and module.__name__.startswith("tandem.jax.")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lax.linspace, "td.linspace"),
        (lambda: lax.dynamc_slice, "td.jax.lax.dynamic_slice"),
        (lambda: nn.dropout, "td.dropout"),
        (lambda: tandem.jax.tree_util.tree_mapp, "td.pytree.tree_map"),
        (lambda: tandem.jax.random.nomal, "td.random.normal"),
        (lambda: tandem.jax.numpy.concatnate, "td.concatenate"),
        (lambda: lax._private, "no attribute '_private'"),
    ],
)
def test_unknown_names_are_answered_with_near_ones(call, text):
    with pytest.raises(AttributeError, match=text.replace(".", r"\.")):
        call()


def test_keys_are_leaves_of_trees():
    jax, jnp = tandem.jax, tandem.jax.numpy
    parameters = {"w": jnp.ones((2, 3)), "b": jnp.ones(3)}
    leaves, structure = jax.tree.flatten(parameters)
    keys = jax.tree.unflatten(structure, list(jax.random.split(jax.random.key(0), len(leaves))))
    drawn = jax.tree.map(lambda key, x: jax.random.normal(key, x.shape), keys, parameters)
    assert jax.tree.map(jnp.shape, drawn) == {"w": (2, 3), "b": (3,)}
    key = jax.random.key(1)
    assert jax.tree.leaves({"a": key, "b": 1}) == [key, 1]
    assert jax.tree_util.tree_leaves([key, (2,)], lambda node: isinstance(node, tuple)) == [key, (2,)]
    paths = jax.tree_util.tree_map_with_path(lambda path, _: jax.tree_util.keystr(path), {"a": key, "b": [1]})
    assert paths == {"a": "['a']", "b": ["['b'][0]"]}
    assert jax.jit(lambda tree: jax.tree.map(jax.random.key_data, tree))({"a": key})["a"].shape == (4,)
