"""Pytrees: flatten and unflatten every container; errors name the place."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tandem import errors, pytree

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: object
    b: object


TREES = [
    1,
    None,
    [],
    {},
    (1, [2, {"a": 3, "b": (4, None)}]),
    Point(1, [2, 3]),
    Layer([1, 2], {"k": 3}),
    Frozen(Layer(1, 2), (3,)),
    OrderedDict([("z", 1), ("a", 2)]),
    {(1, 2): 3, 4: 5},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip(tree):
    leaves, treedef = pytree.flatten(tree)
    again = treedef.unflatten(leaves)
    assert again == tree
    assert type(again) is type(tree)
    assert treedef.leaf_count == len(leaves) == len(treedef.paths())
    assert pytree.flatten(again)[1] == treedef
    assert hash(pytree.flatten(again)[1]) == hash(treedef)


def test_default_dict_keeps_its_factory():
    again = pytree.map_tree(lambda x: x + 1, defaultdict(list, {"a": 1}))
    assert again == {"a": 2}
    assert again["b"] == []


def test_dict_order_is_kept_and_counts():
    one, two = pytree.flatten({"a": 1, "b": 2})[1], pytree.flatten({"b": 1, "a": 2})[1]
    assert one != two
    assert list(one.unflatten([1, 2])) == ["a", "b"]


def test_paths():
    tree = {"layers": [Layer(1, Point(2, 3))], "n": 4}
    assert pytree.flatten(tree)[1].paths() == [
        "['layers'][0].weight",
        "['layers'][0].bias.x",
        "['layers'][0].bias.y",
        "['n']",
    ]


def test_different_trees_differ():
    defs = [pytree.flatten(tree)[1] for tree in TREES]
    assert len(set(defs)) == len(defs)


def test_dataclass_is_rebuilt_past_its_init():
    @dataclasses.dataclass
    class Positive:
        value: float

        def __post_init__(self):
            if not self.value > 0:
                raise ValueError("not positive")

    assert pytree.map_tree(lambda leaf: "anything", Positive(1.0)).value == "anything"


def test_registered_class():
    class Pair:
        def __init__(self, a, b, name):
            self.a, self.b, self.name = a, b, name

    pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), p.name), lambda name, c: Pair(*c, name))
    leaves, treedef = pytree.flatten([Pair(1, 2, "p")])
    assert leaves == [1, 2]
    assert treedef.unflatten([3, 4])[0].b == 4
    assert treedef.unflatten([3, 4])[0].name == "p"
    assert treedef != pytree.flatten([Pair(1, 2, "q")])[1]
    with pytest.raises(errors.RegistrationError, match="already"):
        pytree.register_pytree_node(Pair, lambda p: ((), None), lambda s, c: None)
    with pytest.raises(errors.ArgumentError, match="class"):
        pytree.register_pytree_node(3, lambda p: ((), None), lambda s, c: None)


def test_errors_name_the_place():
    with pytest.raises(
        errors.ArgumentError, match=r"second tree at \['w'\]\[0\] is a leaf, a int, not a list"
    ):
        pytree.map_tree(max, {"w": [[1], 2]}, {"w": [1, 2]})
    with pytest.raises(errors.ArgumentError, match=r"third tree at \['w'\] is a tuple, not a list"):
        pytree.map_tree(max, {"w": [1, 2]}, {"w": [1, 2]}, {"w": (1, 2)})
    with pytest.raises(errors.ArgumentError, match=r"at \['w'\] is a list of 3, not of 2"):
        pytree.map_tree(max, {"w": [1, 2]}, {"w": [1, 2, 3]})
    with pytest.raises(
        errors.ArgumentError, match=r"at \['p'\] is a dict with \['a'\] missing and \['c'\] too many"
    ):
        pytree.map_tree(max, {"p": {"a": 1, "b": 2}}, {"p": {"b": 1, "c": 2}})
    with pytest.raises(errors.ArgumentError, match=r"in the order \['b'\], \['a'\], not \['a'\], \['b'\]"):
        pytree.map_tree(max, OrderedDict(a=1, b=2), OrderedDict(b=1, a=2))
    with pytest.raises(errors.ArgumentError, match=r"tree is a list, not a tuple"):
        pytree.map_tree(max, (1, 2), [1, 2])
    with pytest.raises(errors.ValueArgumentError, match="2 leaves; 1 were given"):
        pytree.flatten([1, 2])[1].unflatten([1])
    loop = []
    loop.append(loop)
    with pytest.raises(errors.ArgumentError, match="holds itself"):
        pytree.flatten(loop)


TREE = st.recursive(
    st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Point, inner, inner)
        | st.builds(Layer, inner, inner)
    ),
)


@given(TREE)
def test_any_tree(tree):
    leaves, treedef = pytree.flatten(tree)
    assert treedef.unflatten(leaves) == tree
    assert pytree.map_tree(lambda x: x, tree) == tree
