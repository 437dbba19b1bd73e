"""Functions on trees: map with paths, reduce, transpose, broadcast; registered classes; ``td.tree``."""

import copy
import dataclasses
import functools
import operator
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import tandem as td
from tandem import errors, pytree

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Layer:
    weight: object
    name: str = dataclasses.field(default="", metadata={"static": True})


@pytree.register_pytree_node_class
class Scaled:
    """Registered by its own methods."""

    def __init__(self, value, factor):
        self.value, self.factor = value, factor

    def tree_flatten(self):
        return (self.value,), self.factor

    @classmethod
    def tree_unflatten(cls, factor, children):
        return cls(*children, factor)


@pytree.register_pytree_with_keys_class
class Named:
    """Registered by its own methods, with names for its children."""

    def __init__(self, **parts):
        self.parts = parts

    def tree_flatten_with_keys(self):
        return [(pytree.GetAttrKey(k), v) for k, v in self.parts.items()], tuple(self.parts)

    @classmethod
    def tree_unflatten(cls, names, children):
        return cls(**dict(zip(names, children)))


# -- is_leaf, paths ----------------------------------------------------------------------------------------------------
def test_is_leaf():
    tree = {"a": (1, 2), "b": [3, (4,)], "c": None}
    leaves, treedef = td.tree.flatten(tree, is_leaf=lambda x: type(x) is tuple)
    assert leaves == [(1, 2), 3, (4,)]
    assert treedef.unflatten([0, 1, 2]) == {"a": 0, "b": [1, 2], "c": None}
    assert td.tree.leaves(tree, is_leaf=lambda x: x is None) == [1, 2, 3, 4, None]
    assert td.tree.map(lambda x: 0, tree, is_leaf=lambda x: x is tree) == 0
    assert td.tree.map(lambda x, y: (x, y), [1, None], [2, 3], is_leaf=lambda x: x is None) == [
        (1, 2),
        (None, 3),
    ]


def test_paths():
    tree = {"l": [Layer(1, "n"), Point(2, (3,))], "s": Scaled(4, 5), "n": Named(w=6), 7: deque([8])}
    pairs, treedef = td.tree.flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in pairs] == treedef.paths()
    assert treedef.paths() == [
        "['l'][0].weight",
        "['l'][1].x",
        "['l'][1].y[0]",
        "['s'][0]",
        "['n'].w",
        "[7][0]",
    ]
    assert [leaf for _, leaf in pairs] == [1, 2, 3, 4, 6, 8]
    assert pairs[2][0] == (
        pytree.DictKey("l"),
        pytree.SequenceKey(1),
        pytree.GetAttrKey("y"),
        pytree.SequenceKey(0),
    )
    assert pytree.keystr(pairs[0][0], simple=True, separator="/") == "l/0/weight"
    assert td.tree.leaves_with_path([5]) == [((pytree.SequenceKey(0),), 5)]
    again = td.tree.map_with_path(
        lambda path, x, y: f"{pytree.keystr(path)}={x}{y}", {"a": [1]}, {"a": ["z"]}
    )
    assert again == {"a": ["['a'][0]=1z"]}


def test_other_trees_may_be_deeper_or_reordered():
    found = td.tree.map(lambda x, y: (x, y), {"a": 1, "b": 2}, {"b": [3], "a": {"c": 4}})
    assert found == {"a": (1, {"c": 4}), "b": (2, [3])}
    assert list(found) == ["a", "b"]


# -- reduce, transpose, broadcast --------------------------------------------------------------------------------------
def test_reduce():
    tree = {"a": [1, 2], "b": (3, None)}
    assert td.tree.reduce(operator.add, tree) == 6
    assert td.tree.reduce(operator.add, tree, 10) == 16
    assert td.tree.reduce(lambda n, x: n + len(x), [(1, 2), (3,)], 0, is_leaf=lambda x: type(x) is tuple) == 3
    assert td.tree.reduce(operator.add, [], 5) == 5
    assert td.tree.reduce(operator.add, [], initializer=None) is None
    with pytest.raises(errors.ArgumentError, match="initializer="):
        td.tree.reduce(operator.add, [])
    assert td.tree.reduce_associative(operator.add, list("abcde")) == "abcde"
    assert td.tree.reduce_associative(operator.add, [], identity=0) == 0
    with pytest.raises(errors.ArgumentError, match="identity="):
        td.tree.reduce_associative(operator.add, ())
    assert td.tree.all([True, (1, {"a": "x"})])
    assert not td.tree.all([True, (0,)])
    assert td.tree.all([])


def test_transpose():
    outer, inner = td.tree.structure({"a": 0, "b": 0}), td.tree.structure((0, [0, 0]))
    tree = {"a": (1, [2, 3]), "b": (4, [5, 6])}
    want = ({"a": 1, "b": 4}, [{"a": 2, "b": 5}, {"a": 3, "b": 6}])
    assert td.tree.transpose(outer, inner, tree) == want
    assert td.tree.transpose(outer, None, tree) == want
    assert td.tree.transpose(td.tree.structure([]), inner, []) == ([], [[], []])
    with pytest.raises(errors.ArgumentError, match=r"inner tree at \['b'\] is a list, not a tuple"):
        td.tree.transpose(outer, inner, {"a": (1, [2, 3]), "b": [4, 5]})
    with pytest.raises(errors.ArgumentError, match=r"\['c'\] too many"):
        td.tree.transpose(outer, inner, {"a": 1, "b": 2, "c": 3})
    with pytest.raises(errors.ArgumentError, match="outer_treedef is a TreeDef"):
        td.tree.transpose([0, 0], inner, tree)


def test_broadcast():
    tree = {"w": [1, (2, 3)], "b": 4, "n": None}
    assert td.tree.broadcast(0, tree) == {"w": [0, (0, 0)], "b": 0, "n": None}
    assert td.tree.broadcast({"b": 1, "w": [2, 3], "n": None}, tree) == {"w": [2, (3, 3)], "b": 1, "n": None}
    assert pytree.broadcast_prefix((1, (2, 3)), ([0, 0], (0, [0])), is_leaf=None) == [1, 1, 2, 3]
    pairs = td.tree.broadcast([(1, 2), 3], [[0, 0], 0], is_leaf=lambda x: type(x) is tuple)
    assert pairs == [[(1, 2), (1, 2)], 3]
    with pytest.raises(
        errors.ArgumentError, match=r"\['w'\]\[1\] is a list in the prefix and a tuple in the value"
    ):
        td.tree.broadcast({"w": [1, [2, 3]], "b": 4, "n": None}, tree)
    with pytest.raises(
        errors.ArgumentError, match=r"the root has \['w'\] in the prefix and \['w'\], \['b'\]"
    ):
        td.tree.broadcast({"w": 1}, tree)


# -- TreeDefs ----------------------------------------------------------------------------------------------------------
def test_treedefs_of_treedefs():
    one, two = td.tree.structure([0, 0]), td.tree.structure({"a": 0})
    both = pytree.treedef_tuple([one, two])
    assert both == td.tree.structure(([0, 0], {"a": 0}))
    assert hash(both) == hash(td.tree.structure(([0, 0], {"a": 0})))
    assert pytree.treedef_children(both) == [one, two]
    assert pytree.treedef_is_leaf(td.tree.structure(1))
    assert not pytree.treedef_is_leaf(td.tree.structure(None))
    assert one.compose(two) == td.tree.structure([{"a": 0}, {"a": 0}])
    assert hash(one.compose(two)) == hash(td.tree.structure([{"a": 0}, {"a": 0}]))
    assert (both.num_leaves, both.num_nodes) == (3, 6)
    with pytest.raises(
        errors.TreeError, match=r"^here at \[1\]: dict with \['a'\] missing and \['b'\] too many$"
    ):
        pytree.check_same("here", both, td.tree.structure(([0, 0], {"b": 0})))
    with pytest.raises(ValueError, match="is a list, not a tuple"):  # as JAX has it
        td.tree.map(max, (1, 2), [1, 2])
    assert pytree.all_leaves([1, "x"])
    assert not pytree.all_leaves([1, None])
    assert pytree.all_leaves([1, None], is_leaf=lambda x: x is None)


TREES = [
    1,
    None,
    [1, (2, None), {"a": Point(3, 4)}],
    OrderedDict(b=1, a=2),
    defaultdict(list, {"k": [1]}),
    deque([1, 2], maxlen=3),
    Layer(1, "n"),
]


@pytest.mark.parametrize("number", range(len(TREES)))
def test_treedefs_are_pickled_and_copied(number):
    leaves, treedef = td.tree.flatten(TREES[number])
    for again in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef)):
        assert again == treedef
        assert hash(again) == hash(treedef)
        assert again.unflatten(leaves) == TREES[number]
        assert type(again.unflatten(leaves)) is type(TREES[number])


def test_deque_keeps_its_bound():
    again = td.tree.map(lambda x: -x, deque([1, 2], maxlen=2))
    assert again == deque([-1, -2])
    assert again.maxlen == 2


def test_keys_that_are_equal_but_not_the_same():
    for key in (1, True, 1.0):
        (again,) = td.tree.map(lambda x: x, {key: 5})
        assert type(again) is type(key)


# -- classes of users --------------------------------------------------------------------------------------------------
def test_own_methods():
    made = td.tree.map(lambda x: x + 1, {"s": Scaled(1, 10), "n": Named(w=2, b=3)})
    assert (made["s"].value, made["s"].factor, made["n"].parts) == (2, 10, {"w": 3, "b": 4})
    assert td.tree.structure(Scaled(1, 2)) != td.tree.structure(Scaled(1, 3))
    with pytest.raises(errors.ArgumentError, match="no method tree_unflatten"):

        @pytree.register_pytree_node_class
        class Half:
            def tree_flatten(self):
                return (), None


def test_with_keys():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_with_keys(
        Pair,
        lambda p: (((pytree.GetAttrKey("a"), p.a), ("second", p.b)), None),
        lambda static, children: Pair(*children),
    )
    assert td.tree.structure([Pair(1, 2)]).paths() == ["[0].a", "[0]second"]
    assert td.tree.map(lambda x: x * 2, Pair(1, 2)).b == 4
    with pytest.raises(errors.ArgumentError, match=r"second tree at \[0\] is a leaf"):
        td.tree.map(max, [Pair(1, 2)], [3])


def test_what_an_own_function_gives_is_checked():
    class Bad:
        pass

    pytree.register_pytree_node(Bad, lambda tree: 3, lambda static, children: Bad())
    with pytest.raises(errors.ArgumentError, match=r"takes a .*Bad apart gives \(children, static\), not 3"):
        td.tree.leaves(Bad())
    with pytest.raises(errors.ArgumentError, match="unflatten is a function"):
        pytree.register_pytree_node(type("C", (), {}), lambda tree: ((), None), 3)


def test_children_may_come_from_a_generator():
    class Bag:
        def __init__(self, items):
            self.items = items

    pytree.register_pytree_node(Bag, lambda t: ((x for x in t.items), None), lambda s, c: Bag(list(c)))
    assert td.tree.map(lambda x: x + 1, Bag([1, 2])).items == [2, 3]


def test_dataclass_fields():
    assert td.tree.leaves(Layer([1, 2], "name")) == [1, 2]
    assert td.tree.structure(Layer(1, "a")) != td.tree.structure(Layer(1, "b"))
    assert td.tree.map(lambda x: 2 * x, Layer(3, "dense")) == Layer(6, "dense")

    @functools.partial(pytree.register_dataclass, data_fields=["x"], meta_fields=["y"], drop_fields=["z"])
    @dataclasses.dataclass
    class Three:
        x: object
        y: object = 2
        z: object = dataclasses.field(default_factory=list)

    made = td.tree.map(lambda x: x + 1, Three(1, "m", [5]))
    assert (made.x, made.y, made.z) == (2, "m", [])
    assert td.tree.structure(made).paths() == [".x"]
    with pytest.raises(errors.RegistrationError, match="already") as caught:
        pytree.register_dataclass(Three, ["x", "y", "z"], [])
    assert isinstance(caught.value, ValueError)


def test_dataclass_fields_have_to_fit():
    @dataclasses.dataclass
    class Two:
        x: object
        y: object

    with pytest.raises(errors.ArgumentError, match="has the field y, which is in none of the lists"):
        pytree.register_dataclass(Two, ["x"], [])
    with pytest.raises(errors.ArgumentError, match="has no field q"):
        pytree.register_dataclass(Two, ["x", "y", "q"], [])
    with pytest.raises(errors.ArgumentError, match=r"x of .* is named more than once"):
        pytree.register_dataclass(Two, ["x", "y"], ["x"])
    with pytest.raises(errors.ArgumentError, match="no dataclass"):
        pytree.register_dataclass(type("Plain", (), {}))
    half = object.__new__(Two)
    half.x = 1
    with pytest.raises(errors.ArgumentError, match="no value for its field 'y'"):
        td.tree.leaves(half)


def test_static_classes():
    @pytree.register_static
    @dataclasses.dataclass(frozen=True)
    class Config:
        rate: float

    leaves, treedef = td.tree.flatten({"c": Config(0.5), "x": 1})
    assert leaves == [1]
    assert treedef.unflatten([2]) == {"c": Config(0.5), "x": 2}
    assert treedef != td.tree.structure({"c": Config(0.25), "x": 1})
    assert td.jit(lambda c, x: x * c.rate)(Config(0.5), td.asarray(4.0)).item() == 2.0


def test_partial():
    part = pytree.Partial(lambda w, x, b: w * x + b, 2.0, b=1.0)
    assert td.tree.leaves(part) == [2.0, 1.0]
    assert td.tree.map(lambda x: 10 * x, part)(3.0) == 70.0
    assert td.jit(lambda f, x: f(x))(part, td.asarray(3.0)).item() == 7.0
    assert td.grad(lambda f: f(3.0))(pytree.Partial(lambda w, x: w * x, 2.0)).args[0].item() == 3.0
