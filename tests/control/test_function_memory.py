"""Results of functions that are not operators share no memory with arguments: loops, collectives, nn.functional."""

import inspect
import itertools

import numpy as np
import pytest
import tandem as td
from tandem.transforms import collectives

F = td.nn.functional
SHAPES = [(1,), (3,), (1, 1), (1, 3), (3, 1), (2, 2), (1, 1, 1), (1, 4, 1, 1), (2, 1, 2, 2)]


def leaf(x):
    return td.associative_scan(td.add, x)


def tree(x):
    return td.associative_scan(lambda a, b: (a[0] + b[0], a[1] * b[1]), (x, x))


# functions that return their argument for some sizes or some numbers of steps
CONTROL = {
    "associative_scan": leaf,
    "associative_scan reverse": lambda x: td.associative_scan(td.mul, x, reverse=True),
    "associative_scan last axis": lambda x: td.associative_scan(td.mul, x, axis=-1),
    "associative_scan tree": tree,
    "cond": lambda x: td.cond(x.sum() > -1e9, lambda a: a, lambda a: -a, x),
    "cond bool": lambda x: td.cond(True, lambda a: a, lambda a: -a, x),
    "cond view": lambda x: td.cond(x.sum() > -1e9, lambda a: a[:1], lambda a: -a[:1], x),
    "cond tree": lambda x: td.cond(
        x.sum() > -1e9, lambda a: {"y": a["x"]}, lambda a: {"y": -a["x"]}, {"x": x}
    ),
    "switch": lambda x: td.switch(td.asarray(1), [lambda a: -a, lambda a: a], x),
    "switch int": lambda x: td.switch(1, [lambda a: -a, lambda a: a], x),
    "switch one": lambda x: td.switch(td.asarray(0), [lambda a: a], x),
    "while_loop no step": lambda x: td.while_loop(lambda h: h.sum() < -1e9, lambda h: h + 1, x),
    "fori_loop no step": lambda x: td.fori_loop(0, 0, lambda i, h: h + 1, x),
    "scan no step": lambda x: td.scan(lambda c, r: (c + r, c), x, td.ones(0))[0],
    "scan rows": lambda x: td.scan(lambda c, r: (c, r), 0.0, x)[1],
    "map": lambda x: td.map(lambda r: r, x),
}


def tensors_in(result):
    return [x for x in td.tree.leaves(result) if isinstance(x, td.Tensor)]


def make(shape, dtype="float32"):
    return td.asarray(np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype))


def check(name, call, x):
    found = tensors_in(call(x))
    for y in found:
        assert y is not x and not np.shares_memory(y._array, x._array), f"{name} of {x.shape}"
    before = [y.tolist() for y in found]
    x[...] = 0
    assert [y.tolist() for y in found] == before
    return len(found)


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_results_of_control_flow_own_their_memory(name, way):
    for shape in SHAPES:
        check(name, way(CONTROL[name]), make(shape))


@pytest.mark.parametrize("name", CONTROL)
def test_write_after_control_flow_leaves_its_result(name):
    def program(x):
        y = CONTROL[name](x)
        x[...] = 99
        return tensors_in(y)

    want = [y.tolist() for y in tensors_in(CONTROL[name](make((1, 3))))]
    for way in (lambda f: f, td.jit):
        x = make((1, 3))
        assert [y.tolist() for y in way(program)(x)] == want
        assert x.tolist() == [[99.0] * 3]


def test_gradients_go_through_copies_of_control_flow():
    for name in (
        "associative_scan",
        "cond",
        "switch",
        "fori_loop no step",
        "scan no step",
        "while_loop no step",
    ):
        x = make((1, 3)).requires_grad_()
        (CONTROL[name](x) * 3).sum().backward()
        assert x.grad.tolist() == [[3.0] * 3]
        assert td.grad(lambda x, name=name: (CONTROL[name](x) * 3).sum())(make((1, 3))).tolist() == [
            [3.0] * 3
        ]


def public_collectives():
    return {
        name: f
        for name, f in vars(collectives).items()
        if inspect.isfunction(f) and f.__module__ == collectives.__name__ and hasattr(td, name)
        if list(inspect.signature(f).parameters)[:2] == ["tree", "axis_name"]
    }


@pytest.mark.parametrize("name", public_collectives())
def test_results_of_collectives_own_their_memory(name):
    """Along no axis, and along an axis of one example."""
    f, checked = public_collectives()[name], 0
    for rest, shape in itertools.product([(), (0,), (0, 0), ([(0, 0)],)], SHAPES):
        for tiled in ({}, {"tiled": True}):
            for call in (
                lambda x, rest=rest, tiled=tiled: f(x, (), *rest, **tiled),
                lambda x, rest=rest, tiled=tiled: td.vmap(lambda r: f(r, "i", *rest, **tiled), axis_name="i")(
                    x
                ),
                lambda x, rest=rest, tiled=tiled: td.vmap(
                    lambda r: f(r, ("i",), *rest, **tiled), axis_name="i"
                )(x),
            ):
                try:
                    checked += check(name, call, make(shape))
                except (td.errors.TandemError, TypeError):
                    continue
    assert checked


def public_functions():
    return [
        name
        for name, f in vars(F).items()
        if callable(f) and not name.startswith("_") and not name.endswith("_") and not inspect.isclass(f)
        # dropout returns its argument when it drops nothing, as in PyTorch; its docstring says so
        if "dropout" not in name and name not in ("Tensor", "no_grad")
    ]


def is_in_place(f, args):
    try:
        return bool(inspect.signature(f).bind(*args).arguments.get("inplace"))
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize("name", public_functions())
@pytest.mark.filterwarnings("ignore")
def test_results_of_nn_functions_own_their_memory(name):
    f = getattr(F, name)
    for shape, dtype in itertools.product(SHAPES, ("float32", "int32")):
        for rest in ((), (0,), (1,), (2,), (0, 1), (1, 1), (0, 0), ((0, 0),), ((1, 1),), (None,)):
            x = make(shape, dtype)
            if is_in_place(f, (x, *rest)):
                continue
            try:
                found = tensors_in(f(x, *rest))
            except Exception:  # not a call of this function
                continue
            for y in found:
                assert y is not x and not np.shares_memory(y._array, x._array), (
                    f"{name} {shape} {dtype} {rest}"
                )


@pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_shuffles_of_one_pixel_own_their_memory(way):
    for call, shape in (
        (lambda x: F.pixel_shuffle(x, 1), (1, 2, 2, 2)),
        (lambda x: F.pixel_shuffle(x, 2), (1, 4, 1, 1)),
        (lambda x: F.pixel_unshuffle(x, 1), (1, 2, 2, 2)),
        (lambda x: F.pixel_unshuffle(x, 2), (1, 1, 2, 2)),
        (lambda x: F.channel_shuffle(x, 1), (1, 2, 2)),
        (lambda x: F.channel_shuffle(x, 2), (1, 2, 2)),
    ):
        assert check("shuffle", way(call), make(shape))
