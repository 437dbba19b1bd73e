"""Pytrees in transforms, their properties, and those of other libraries."""

import dataclasses
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest
import tandem as td
from hypothesis import given
from hypothesis import strategies as st
from tandem import pytree

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Layer:
    weight: object
    name: str = dataclasses.field(default="", metadata={"static": True})


# -- in transforms -----------------------------------------------------------------------------------------------------
def test_registered_classes_in_transforms():
    def f(layer, x):
        return Layer(layer.weight * x, layer.name)

    w, x = td.asarray([1.0, 2.0]), td.asarray([3.0, 4.0])
    for call in (f, td.jit(f)):
        for _ in range(3):
            made = call(Layer(w, "first"), x)
            assert (made.weight.tolist(), made.name) == ([3.0, 8.0], "first")
        assert call(Layer(w, "second"), x).name == "second"
    gradient = td.grad(lambda layer: f(layer, x).weight.sum())(Layer(w, "g"))
    assert (gradient.weight.tolist(), gradient.name) == ([3.0, 4.0], "g")
    batched = td.vmap(f)(Layer(w, "v"), x)
    assert (batched.weight.tolist(), batched.name) == ([3.0, 8.0], "v")


def test_compiled_code_sees_changed_static_field():
    @td.jit
    def f(layer, x):
        return x * (2 if layer.name == "two" else 3)

    x = td.asarray([1.0])
    for _ in range(40):
        assert f(Layer(x, "two"), x).item() == 2.0
    for _ in range(40):
        assert f(Layer(x, "three"), x).item() == 3.0
        assert f(Layer(x, "two"), x).item() == 2.0


def native_entry_answers(f, *args):
    """Whether the machine code of a jitted function, where there is any, answers this call."""
    for _ in range(40):
        f(*args)
    hits = [
        record.hits
        for item in f._specializations
        for record in item.records.values()
        if not isinstance(record, str)
    ]
    f(*args)
    now = [
        record.hits
        for item in f._specializations
        for record in item.records.values()
        if not isinstance(record, str)
    ]
    return sum(now) == sum(hits) + 1


def test_machine_code_reads_static_fields():
    f = td.jit(lambda layer, x: x * (2 if layer.name == "two" else 3))
    x = td.asarray([1.0])
    if td.config.flags.native:
        assert native_entry_answers(f, Layer(x, "two"), x)
        assert native_entry_answers(f, Layer(x, "".join(["th", "ree"])), x)
    assert f(Layer(x, "three"), x).item() == 3.0
    assert f(Layer(x, "two"), x).item() == 2.0


def test_machine_code_knows_registered_subclasses_of_tuples():
    class Reversed(tuple):
        """Its leaves come in the other order."""

    pytree.register_pytree_node(
        Reversed, lambda t: (t[::-1], None), lambda static, c: Reversed(tuple(c)[::-1])
    )

    @pytree.register_static
    class Tag(tuple):
        def __new__(cls, name):
            made = super().__new__(cls)
            made.name = name
            return made

        def __eq__(self, other):
            return self.name == other.name

        def __hash__(self):
            return hash(self.name)

    f = td.jit(lambda t, tag: (t[0] - t[1]) * (1 if tag.name == "plus" else -1))
    a, b = td.asarray([5.0]), td.asarray([3.0])
    for _ in range(40):
        assert f(Reversed((a, b)), Tag("plus")).item() == 2.0
        assert f(Reversed((a, b)), Tag("minus")).item() == -2.0


# -- properties --------------------------------------------------------------------------------------------------------
TREE = st.recursive(
    st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Point, inner, inner)
        | st.builds(Layer, inner, st.text(max_size=1))
        | st.builds(lambda items: OrderedDict(items), st.dictionaries(st.text(max_size=2), inner, max_size=3))
        | st.builds(deque, st.lists(inner, max_size=2))
    ),
    max_leaves=12,
)


@given(TREE)
def test_round_trip(tree):
    leaves, treedef = td.tree.flatten(tree)
    assert treedef.unflatten(leaves) == tree
    again = td.tree.flatten(treedef.unflatten(leaves))
    assert again == (leaves, treedef)
    assert hash(again[1]) == hash(treedef)
    assert len(treedef.key_paths()) == treedef.leaf_count == len(leaves)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert td.tree.flatten(tree, is_leaf=lambda x: False) == (leaves, treedef)


@given(TREE)
def test_map_composes(tree):
    def double(x):
        return 2 * x

    def follow(x):
        return x + 1

    once = td.tree.map(lambda x: follow(double(x)), tree)
    assert once == td.tree.map(follow, td.tree.map(double, tree))
    assert td.tree.map(lambda *xs: xs[0], tree, tree, tree) == tree
    assert td.tree.map(
        lambda x, path: path, tree, td.tree.map_with_path(lambda path, x: path, tree)
    ) == td.tree.unflatten(td.tree.structure(tree), td.tree.structure(tree).key_paths())


@given(TREE, TREE)
def test_transpose_turns_back(outer, inner):
    first, second = td.tree.structure(outer), td.tree.structure(inner)
    count = first.leaf_count * second.leaf_count
    tree = first.compose(second).unflatten(range(count))
    turned = td.tree.transpose(first, second, tree)
    assert td.tree.structure(turned) == second.compose(first)
    assert td.tree.transpose(second, first, turned) == tree


@given(TREE)
def test_a_tree_begins_as_itself(tree):
    leaves, treedef = td.tree.flatten(tree)
    assert pytree.broadcast_prefix(tree, tree) == leaves
    assert pytree.flatten_up_to(treedef, tree) == leaves
    assert td.tree.leaves(td.tree.broadcast(7, tree)) == [7] * len(leaves)


# -- others' -----------------------------------------------------------------------------------------------------------
def _sorted_keys(tree):
    """JAX sorts the keys of dicts."""
    if type(tree) in (dict, defaultdict):
        return {key: _sorted_keys(tree[key]) for key in sorted(tree)}
    return tree


@given(
    st.recursive(
        st.integers() | st.none(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3).map(_sorted_keys)
            | st.tuples(inner, inner)
            | st.builds(Point, inner, inner)
            | st.builds(OrderedDict, st.dictionaries(st.text("abc", max_size=2), inner, max_size=3))
        ),
        max_leaves=10,
    )
)
def test_as_jax_does(tree):
    jtu = pytest.importorskip("jax.tree_util")
    leaves, treedef = jtu.tree_flatten(tree)
    assert td.tree.leaves(tree) == leaves
    assert td.tree.structure(tree).leaf_count == treedef.num_leaves
    ours = [pytree.keystr(path) for path, _ in td.tree.leaves_with_path(tree)]
    assert ours == [jtu.keystr(path) for path, _ in jtu.tree_leaves_with_path(tree)]
    assert td.tree.map(lambda x: x + 1, tree) == jtu.tree_map(lambda x: x + 1, tree)

    def is_leaf(x):
        return isinstance(x, tuple) or x is None

    assert td.tree.leaves(tree, is_leaf) == jtu.tree_leaves(tree, is_leaf)
    assert td.tree.broadcast(0, tree) == jtu.tree_broadcast(0, tree)
    assert pytree.all_leaves([tree]) == jtu.all_leaves([tree])


@given(TREE)
def test_as_optree_does(tree):
    optree = pytest.importorskip("optree")
    with optree.dict_insertion_ordered(True, namespace="tandem"):
        leaves = optree.tree_leaves(tree, is_leaf=lambda x: isinstance(x, Layer), namespace="tandem")
    assert td.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Layer)) == leaves


def test_arrays_are_leaves():
    tree = {"t": td.ones(2), "n": np.ones(3), "s": np.float32(2)}
    assert td.tree.structure(tree).leaf_count == 3
    assert td.tree.map(lambda x: x.shape, tree) == {"t": (2,), "n": (3,), "s": ()}
