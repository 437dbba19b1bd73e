"""Pytrees as JAX and PyTorch programs use them: containers, key paths, prefixes, errors."""

import collections
import dataclasses
import functools
import pickle

import numpy as np
import pytest
import tandem as td
from tandem import errors, pytree

Point = collections.namedtuple("Point", "x y")


class Deeper(Point):
    """A namedtuple's subclass."""


@dataclasses.dataclass
class Layer:
    w: object
    b: object = None
    name: str = dataclasses.field(default="dense", metadata={"static": True})


@pytree.register_pytree_node_class
class Scaled:
    def __init__(self, value, factor):
        self.value, self.factor = value, factor

    def __eq__(self, other):
        return type(other) is Scaled and (self.value, self.factor) == (other.value, other.factor)

    def tree_flatten(self):
        return (self.value,), self.factor

    @classmethod
    def tree_unflatten(cls, factor, children):
        return cls(*children, factor)


@pytree.register_pytree_with_keys_class
class Named(Scaled):
    def tree_flatten_with_keys(self):
        return ((pytree.GetAttrKey("value"), self.value),), self.factor


@pytree.register_static
class Setting(tuple):
    __slots__ = ()


TREES = [
    None,
    (),
    [()],
    (None, [None]),
    {"a": 1, "b": {}},
    {3: 1, (1, 2): [2, 3]},
    [1, (2, "three"), {"four": 4.0}],
    Point(1, Point([2], None)),
    Deeper("a", 3.5),
    collections.OrderedDict([("z", 1), ("a", [2])]),
    collections.defaultdict(list, {"q": 1, "p": (2,)}),
    collections.deque([1, [2, 3]], maxlen=5),
    Layer([1, 2], Layer(3), "outer"),
    Scaled({"in": 1}, 10),
    [Scaled(1, 2), Setting((7, 8))],
    {"deep": {"deeper": {"deepest": [1, [2, [3, [4]]]]}}},
]
each_tree = pytest.mark.parametrize(
    "tree", TREES, ids=[f"{at} {type(t).__name__}" for at, t in enumerate(TREES)]
)


@each_tree
def test_round_trip(tree):
    leaves, treedef = td.tree.flatten(tree)
    again = td.tree.unflatten(treedef, leaves)
    assert again == tree and type(again) is type(tree)
    assert pytree.all_leaves(leaves) and not pytree.all_leaves([tree])
    assert treedef == td.tree.structure(again) and hash(treedef) == hash(td.tree.structure(again))
    assert treedef.num_leaves == len(leaves) == len(treedef.paths())
    restored = pickle.loads(pickle.dumps(treedef))
    assert restored == treedef and restored.unflatten(leaves) == tree
    assert pytree.flatten_up_to(treedef, tree) == leaves
    assert td.tree.map(lambda x: x, tree) == tree
    with pytest.raises(ValueError, match="leaves"):
        td.tree.unflatten(treedef, [*leaves, 0])
    if getattr(tree, "maxlen", None):
        assert again.maxlen == tree.maxlen


@each_tree
def test_many_times_is_the_same(tree):
    """Trees that are built again and again may be built another way."""
    leaves, treedef = td.tree.flatten(tree)
    for number in range(200):
        found = treedef.unflatten([(number, leaf) for leaf in leaves])
        assert type(found) is type(tree)
        assert pytree.flatten_up_to(treedef, found) == [(number, leaf) for leaf in leaves]
    assert treedef.unflatten(leaves) == tree
    one, two = treedef.unflatten(leaves), treedef.unflatten(leaves)
    assert one is not two or tree is None or tree == ()
    with pytest.raises(ValueError, match="leaves"):
        treedef.unflatten([*leaves, 0])


@each_tree
def test_paths_lead_to_leaves(tree):
    for path, leaf in td.tree.leaves_with_path(tree):
        here = tree
        for key in path:
            if isinstance(key, pytree.GetAttrKey):
                here = getattr(here, key.name)
            elif isinstance(key, pytree.FlattenedIndexKey):
                here = here.tree_flatten()[0][key.key]
            else:
                here = here[key[0]]
        assert here is leaf


@each_tree
def test_compose_transpose_and_broadcast(tree):
    outer, inner = td.tree.structure(tree), td.tree.structure({"p": 0, "q": [0]})
    both = outer.compose(inner)
    assert both.num_leaves == 2 * outer.num_leaves
    assert both.num_nodes == outer.num_nodes - outer.num_leaves + inner.num_nodes * outer.num_leaves
    nested = td.tree.map(lambda x: {"p": x, "q": [x]}, tree)
    assert td.tree.structure(nested) == both
    if outer.num_leaves:
        assert td.tree.transpose(outer, inner, nested) == {"p": tree, "q": [tree]}
        assert td.tree.transpose(outer, None, nested) == {"p": tree, "q": [tree]}
    assert td.tree.broadcast(tree, nested) == nested


def test_none_may_be_a_leaf():
    tree = {"w": 1, "b": None}
    assert td.tree.leaves(tree) == [1]
    assert td.tree.leaves(tree, is_leaf=lambda x: x is None) == [1, None]
    assert td.tree.map(lambda x: x is None, tree, is_leaf=lambda x: x is None) == {"w": False, "b": True}
    assert td.tree.map(lambda x, y: (x, y), {"w": 1}, {"w": None}) == {"w": (1, None)}


def test_is_leaf_may_depend_on_path():
    tree = {"kept": [1, 2], "other": [3, {"kept": (4, 5)}]}

    def is_leaf(path, item):
        return bool(path) and path[-1] == pytree.DictKey("kept")

    pairs, treedef = td.tree.flatten_with_path(tree, is_leaf, is_leaf_takes_path=True)
    assert [(pytree.keystr(path), leaf) for path, leaf in pairs] == [
        ("['kept']", [1, 2]),
        ("['other'][0]", 3),
        ("['other'][1]['kept']", (4, 5)),
    ]
    assert treedef.unflatten([leaf for _, leaf in pairs]) == tree
    assert td.tree.leaves_with_path(tree, is_leaf, is_leaf_takes_path=True) == pairs
    named = td.tree.map_with_path(
        lambda path, x, y: (len(path), x, y), tree, tree, is_leaf=is_leaf, is_leaf_takes_path=True
    )
    assert named == {"kept": (1, [1, 2], [1, 2]), "other": [(2, 3, 3), {"kept": (3, (4, 5), (4, 5))}]}
    plain = td.tree.leaves_with_path(tree, lambda x: type(x) is tuple)
    assert plain[-1][1] == (4, 5)
    assert td.tree.leaves_with_path(tree, is_leaf_takes_path=True) == td.tree.leaves_with_path(tree)


def test_key_paths_of_every_container():
    tree = {
        "a": [Point(1, 2)],
        7: Layer(w=(3,), name="x"),
        "n": Named(4, None),
        "s": Scaled(5, None),
        "d": collections.deque([6]),
    }
    assert [pytree.keystr(path) for path, _ in td.tree.leaves_with_path(tree)] == [
        "['a'][0].x",
        "['a'][0].y",
        "[7].w[0]",
        "['n'].value",
        "['s'][0]",
        "['d'][0]",
    ]


@pytest.mark.parametrize(
    ("one", "two", "where"),
    [
        ([1, 2], [1], "list"),
        ((1, 2), [1, 2], "tuple"),
        ({"a": 1}, {"b": 1}, "'a'"),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"c": 2}]}, r"\['a'\]\[1\]"),
        ([Point(1, (2, 3))], [Point(1, (2, 3, 4))], r"\[0\]\.y"),
        ([1, None], [1, 2], r"\[1\]"),
        (Layer(1, 2, "x"), Layer(1, 2, "y"), "'x'.*'y'|'y'.*'x'"),
        ({"k": Scaled(1, 2)}, {"k": Scaled(1, 3)}, r"\['k'\]"),
        ([Setting((1,))], [Setting((2,))], r"\[0\]"),
        (collections.OrderedDict(a=1), {"a": 1}, "OrderedDict"),
    ],
)
def test_errors_name_the_first_difference(one, two, where):
    """Everything that holds two trees against each other says where they differ, and of which types it is."""
    kinds = (TypeError, ValueError)
    for kind in kinds:
        with pytest.raises(kind, match=where):
            td.tree.map(lambda x, y: x, one, two)
    with pytest.raises(errors.TreeError, match=where):
        pytree.check_same("they differ", td.tree.structure(one), td.tree.structure(two))
    with pytest.raises(errors.TreeError, match=where):
        pytree.flatten_up_to(td.tree.structure(one), two)


def test_reductions():
    tree = [(1, 2), {"x": 3}, None]
    assert td.tree.reduce(lambda total, x: total + x, tree) == 6
    assert td.tree.reduce(lambda total, x: total + x, tree, 10) == 16
    assert td.tree.reduce(
        lambda a, b: a + b, [(1,), (2,)], is_leaf=lambda x: isinstance(x, tuple) and len(x) == 1
    ) == (1, 2)
    assert td.tree.reduce_associative(max, [3, [9, 1]]) == 9
    assert td.tree.reduce_associative(max, [], identity=0) == 0
    assert td.tree.all([True, {"x": 1}]) and not td.tree.all([True, [0]]) and td.tree.all([])
    assert td.tree.all([[0]], is_leaf=lambda x: isinstance(x, list) and len(x) == 1)


def test_partial_is_a_tree():
    fn = functools.partial(divmod, 17)
    part = pytree.Partial(fn, 5)
    leaves, treedef = td.tree.flatten(part)
    assert leaves == [5] and treedef.unflatten(leaves)() == (3, 2)
    assert part.func == fn and part.args == (5,)
    assert td.tree.structure(part) == td.tree.structure(pytree.Partial(fn, 6))
    assert td.tree.leaves(pytree.Partial(part, 7)) == [5, 7]  # of one that is a tree they stay children
    add = pytree.Partial(lambda x, y: x + y, td.ones(2))
    assert td.jit(lambda f, y: f(y))(add, td.ones(2)).tolist() == [2.0, 2.0]
    assert td.grad(lambda f: f(3.0).sum())(add).args[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "tree", [t for t in TREES if not isinstance(t, (Deeper,))], ids=lambda t: type(t).__name__
)
def test_trees_through_transforms(tree):
    numbers = td.tree.map(lambda leaf: td.asarray(float(len(str(leaf)))), tree)
    doubled = td.jit(lambda t: td.tree.map(lambda x: 2 * x, t))(numbers)
    assert td.tree.structure(doubled) == td.tree.structure(numbers)
    want = [2 * x.item() for x in td.tree.leaves(numbers)]
    assert [x.item() for x in td.tree.leaves(doubled)] == want
    if not want:
        return
    slopes = td.grad(lambda t: sum(x * x for x in td.tree.leaves(t)))(numbers)
    assert [x.item() for x in td.tree.leaves(slopes)] == want
    rows = td.tree.map(lambda x: td.stack([x, x + 1]), numbers)
    mapped = td.vmap(lambda t: td.tree.map(lambda x: 3 * x, t))(rows)
    assert td.tree.structure(mapped) == td.tree.structure(numbers)
    carried = td.fori_loop(0, 3, lambda i, t: td.tree.map(lambda x: x + 1, t), numbers)
    np.testing.assert_allclose([x.item() for x in td.tree.leaves(carried)], [w / 2 + 3 for w in want])


def test_a_static_part_that_is_not_hashable():
    tree = [1, (2, Scaled(3, [4, 5]))]
    leaves, treedef = td.tree.flatten(tree)
    assert leaves == [1, 2, 3] and treedef.unflatten(leaves) == tree
    assert treedef == td.tree.structure(tree) and treedef != td.tree.structure([1, (2, Scaled(3, [4]))])
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    with pytest.raises(TypeError, match=r"\[4, 5\].* of a Scaled"):
        hash(treedef)


# -- trees as vectors --------------------------------------------------------------------------------------------------
PARAMS = {"w": td.asarray([[1.0, 2.0], [3.0, 4.0]]), "b": (td.asarray(5.0), None)}


def test_ravel_and_back():
    vector, unravel = td.tree.ravel(PARAMS)
    assert vector.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    again = unravel(vector)
    assert td.tree.structure(again) == td.tree.structure(PARAMS)
    assert [x.tolist() for x in td.tree.leaves(again)] == [[[1.0, 2.0], [3.0, 4.0]], 5.0]
    assert unravel == td.tree.ravel(PARAMS)[1] and hash(unravel) == hash(td.tree.ravel(PARAMS)[1])
    assert unravel != td.tree.ravel(PARAMS["w"])[1] and unravel != 1
    assert unravel(td.zeros(5, dtype=td.int32))["w"].dtype is td.int32


def test_ravel_of_mixed_dtypes():
    tree = [td.ones(2, dtype=td.int8), 2, td.asarray(True), td.ones((1, 1))]
    vector, unravel = td.tree.ravel(tree)
    assert vector.dtype is td.float32 and vector.tolist() == [1.0, 1.0, 2.0, 1.0, 1.0]
    assert [x.dtype for x in unravel(vector)] == [td.int8, td.int64, td.bool_, td.float32]
    with pytest.raises(TypeError, match="vector must be float32, not int64"):
        unravel(td.zeros(5, dtype=td.int64))


def test_ravel_of_nothing():
    vector, unravel = td.tree.ravel({"a": []})
    assert vector.shape == (0,) and unravel(vector) == {"a": []}


def test_ravel_under_transforms():
    def loss(params):
        vector, unravel = td.tree.ravel(params)
        return (vector**2).sum() + unravel(vector)["w"].sum()

    for gradient in (td.grad(loss), td.jit(td.grad(loss)), td.grad(td.jit(loss))):
        found = gradient(PARAMS)
        assert found["w"].tolist() == [[3.0, 5.0], [7.0, 9.0]] and found["b"][0].item() == 10.0
    rows = td.vmap(lambda x: td.tree.ravel({"x": x, "y": 1.0})[0])(td.ones((2, 3)))
    assert rows.shape == (2, 4)
    unravel = td.tree.ravel(PARAMS)[1]
    assert td.vmap(unravel)(td.ones((3, 5)))["w"].shape == (3, 2, 2)
    assert td.hessian(lambda v: loss(unravel(v)))(td.ones(5)).tolist() == (2 * td.eye(5)).tolist()


def test_errors_of_ravel():
    with pytest.raises(TypeError, match=r"tree.ravel: the tree at \[1\]"):
        td.tree.ravel([td.ones(1), "text"])
    unravel = td.tree.ravel(PARAMS)[1]
    for wrong in (td.zeros(4), td.zeros((1, 5)), 1.0):
        with pytest.raises(ValueError, match="the vector must have 5 elements"):
            unravel(wrong)


def test_which_types_are_containers():
    Point = collections.namedtuple("Point", "x y")

    @dataclasses.dataclass
    class Layer:
        w: int

    for kind in (list, tuple, dict, type(None), Point, Layer, pytree.Partial):
        assert pytree.is_tree_node(kind)
    for kind in (int, str, float, object, td.Tensor):
        assert not pytree.is_tree_node(kind)


def test_flatten_up_to_is_a_method():
    treedef = td.tree.structure({"a": 0, "b": [0]})
    assert treedef.flatten_up_to({"b": [(1, 2)], "a": 3}) == [3, (1, 2)]
    with pytest.raises(errors.TreeError, match="'b'"):
        treedef.flatten_up_to({"a": 3, "b": 4})
