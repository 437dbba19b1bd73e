"""A kernel for the CPU registered for a composite: eager and jitted calls run it, in place of the body."""

import numpy as np
import optable
import pytest
import tandem as td
from rotation import rotating

COMPOSITES = {
    name: op
    for name, op in optable.table().items()
    if op.registered("CompositeImplicit") is not None and not op.schema.is_mutable and not op.is_view
}


def has_number(op, args):
    """Whether a number stands for a tensor; a kernel gets it as a tensor, the body as it is."""
    pairs = zip(op.schema.positional, args)
    return any(one.type.core == "Tensor" and isinstance(value, (int, float)) for one, value in pairs)


def first_row(op):
    """The call of the first sample with a tensor whose result's shape does not depend on data, or None."""
    for dtype, sample in optable.rows(op):
        args, kwargs = optable.arrays_of(sample, dtype, optable.generator(op, dtype))
        if optable.depends_on_data(op, args, kwargs) or has_number(op, args):
            continue
        call, tensors = optable.as_function(op, *optable.to_tensors((args, kwargs)))
        if tensors:
            return call, tensors
    return None


@rotating
@pytest.mark.parametrize("name", sorted(COMPOSITES))
def test_eager_and_jitted_calls_run_the_kernel(name):
    op = COMPOSITES[name]
    row = first_row(op)
    if row is None:
        pytest.skip("no sample has a tensor")
    call, tensors = row
    body, seen = op.registered("CompositeImplicit").fn, []

    def kernel(*args, **kwargs):
        seen.append(name)
        return body(*args, **kwargs)

    with td.register_kernel(op.name, "cpu", kernel):
        want = call(*tensors)
        assert seen == [name]
        got = td.jit(call)(*tensors)
        assert len(seen) == 2
    for one, other in zip(td.pytree.leaves(got), td.pytree.leaves(want), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    td.jit(call)(*tensors)
    assert len(seen) == 2


def test_gradients_and_mapped_functions_use_the_body():
    x = td.asarray([1.0, 2.0])
    want = td.grad(lambda x: td.softmax(x)[0])(x).tolist(), td.vmap(td.softmax)(x[None]).tolist()
    with td.register_kernel("td::softmax", "cpu", lambda x, axis=-1: td.full_like(x, 7.0)):
        assert td.jit(td.softmax)(x).tolist() == [7.0, 7.0]
        assert (
            td.grad(lambda x: td.softmax(x)[0])(x).tolist(),
            td.vmap(td.softmax)(x[None]).tolist(),
        ) == want
        with td.register_kernel("td::softmax", "meta", lambda x, axis=-1: td.empty((3,), device="meta")):
            assert td.jit(lambda x: td.softmax(x * 2).shape)(x) == (3,)
    assert td.jit(td.softmax)(x).tolist() == td.softmax(x).tolist()
