"""Subprocess program: declare views by their rules alone, and run them on every path.

``python declared_views.py`` exits with an error if a path differs from NumPy.
"""

import numpy as np
import tandem as td
from tandem.backends.cpu import fastpath
from tandem.errors import OutOfBoundsError
from tandem.operators.declare.derivatives import Linear
from tandem.operators.declare.kinds import array_op, view
from tandem.operators.declare.shape_rules import spec_of
from tandem.operators.declare.view_spec import ViewLayout
from tandem.registry.dtypes import ALL


def declare(schema, rule, transpose):
    fields = {"doc": "A view of a test.", "dtypes": ALL, "reference": "numpy.flip"}
    batched = {"batching": lambda info, in_dims, x, *args: (info.call(x, *args), 0)}
    return view(schema, rule, derivative=Linear({"self": transpose}), **fields, **batched)


def flip_rule(x):
    last = x.strides[-1]
    return ViewLayout(x.sizes, (*x.strides[:-1], -last), x.offset + (x.sizes[-1] - 1) * last)


def every_rule(x, step):
    sizes, strides = (*x.sizes[:-1], -(-x.sizes[-1] // step)), (*x.strides[:-1], step * x.strides[-1])
    return ViewLayout(sizes, strides, x.offset)


def scatter_every(g, self_spec, step):
    wide = td.zeros(self_spec.shape, dtype=g.dtype)
    return wide.at[..., ::step].set(g)


FLIP = declare("flip_last(Tensor(a) self) -> Tensor(a)", flip_rule, lambda g: FLIP(g))
EVERY = declare("every(Tensor(a) self, int step) -> Tensor(a)", every_rule, scatter_every)
OUTSIDE = declare(
    "outside(Tensor(a) self) -> Tensor(a)",
    lambda x: ViewLayout(x.sizes, x.strides, x.offset + x.strides[-1]),
    lambda g: g,
)
WITHOUT_RULE = array_op(
    "view",
    "without_rule(Tensor(a) self) -> Tensor(a)",
    lambda self: spec_of(self),
    lambda xp, self: self[::-1],
    doc="A view of a test.",
    dtypes=ALL,
    reference="numpy.flip",
    derivative=Linear({"self": lambda g: WITHOUT_RULE(g)}),
)
CASES = [
    (lambda x: FLIP(x), lambda a: a[..., ::-1]),
    (lambda x: EVERY(x, 2), lambda a: a[..., ::2]),
    (lambda x: EVERY(FLIP(x), 3), lambda a: a[..., ::-1][..., ::3]),
    (lambda x: FLIP(x.T).T, lambda a: a[::-1]),
]


def check(call, reference, dtype):
    array = np.arange(15).reshape(3, 5).astype(dtype)
    x = td.asarray(array)
    want = reference(x.numpy())
    jitted, on_meta = td.jit(call), call(td.zeros((3, 5), dtype=x.dtype, device="meta"))
    for result in (*(call(x) for _ in range(6)), jitted(x), td.functionalize(call)(x)):
        np.testing.assert_array_equal(result.numpy(), want)
    strides = tuple(step // array.itemsize for step in reference(array).strides)
    assert (on_meta.shape, on_meta.stride()) == (want.shape, strides)
    assert "callback" not in str(jitted.lower(x).kernels())
    view_of = call(x)
    view_of[...] = False
    np.testing.assert_array_equal(reference(x.numpy()), np.zeros_like(want))  # the memory is shared


def check_transforms(call, reference):
    array = np.arange(15.0).reshape(3, 5)
    x = td.asarray(array)
    weights = np.arange(reference(array).size, dtype=float).reshape(reference(array).shape)
    expected = np.zeros_like(array)
    reference(expected)[...] = weights

    def loss(x):
        return (call(x) * td.asarray(weights)).sum()

    for gradient in (td.grad(loss)(x), td.jit(td.grad(loss))(x)):
        np.testing.assert_array_equal(gradient.numpy(), expected)
    if reference(array[0]).shape == reference(array)[0].shape and reference(array).shape[0] == 3:
        np.testing.assert_array_equal(td.vmap(call)(x).numpy(), reference(array))
    text = (
        td.jit(lambda x: call(x) + 1).lower(x, device="cuda").cuda_source() if td.config.flags.native else ""
    )
    assert not td.config.flags.native or "__global__" in text


def check_native():
    """The entry of views answers hot calls, also recorded ones."""
    x, leaf = td.zeros((2, 4)), td.asarray(np.zeros((2, 4)), requires_grad=True)
    for function, args in ((FLIP, ()), (EVERY, (2,))):
        stub = fastpath.stubs().by_operator[function.operator]
        for one in (x, leaf):
            for _ in range(2 * td.config.flags.hot_calls):
                function(one, *args)
            before = stub.calls
            assert function(one, *args).requires_grad == one.requires_grad
            assert stub.calls == before + 1


def check_functionalized_writes():
    def program(x):
        y = FLIP(x)
        y.add_(10)
        EVERY(y, 2).mul_(2)
        return y

    eager = td.asarray(np.arange(10.0).reshape(2, 5))
    result = program(eager)
    x = td.asarray(np.arange(10.0).reshape(2, 5))
    np.testing.assert_array_equal(td.functionalize(program)(x).numpy(), result.numpy())
    np.testing.assert_array_equal(x.numpy(), eager.numpy())


def check_view_without_rule():
    """Compiled code copies its elements, says why, and uses no memory to find out its strides."""
    x = td.asarray(np.arange(6.0).reshape(2, 3))
    jitted = td.jit(lambda x: WITHOUT_RULE(x * 2) + 1)
    np.testing.assert_array_equal(jitted(x).numpy(), (x.numpy() * 2)[::-1] + 1)
    if td.config.flags.native:
        text = str(jitted.lower(x).kernels())
        assert "it declares no rule of a view (operators.declare.kinds.view)" in text, text


def main():
    check_view_without_rule()
    for call, reference in CASES:
        for dtype in ("f4", "i2", "?", "c16"):
            check(call, reference, dtype)
    for call, reference in CASES[:3]:
        check_transforms(call, reference)
    check_functionalized_writes()
    if not fastpath.why_off():
        check_native()
    for run in (OUTSIDE, td.jit(OUTSIDE)):
        try:
            run(td.zeros((2, 3)))
        except OutOfBoundsError as fault:
            assert "outside" in str(fault)
        else:
            raise AssertionError("memory outside of the tensor was addressed")
    half = FLIP(td.asarray([[1, 0, 2]], dtype=td.bfloat16))
    assert half.tolist() == [[2, 0, 1]]


main()
