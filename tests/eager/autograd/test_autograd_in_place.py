"""Gradients of writes in place."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from in_place_programs import F64, POINT, PROGRAMS, buffer, check, leaf, numeric
from tandem import errors

# -- in place ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_in_place_gradients(program):
    check(program, POINT)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_in_place_second_order(program):
    check(lambda x: (td.grad(program)(x) * td.asarray(POINT)).sum(), POINT, 2e-5)


def test_plain_buffer_takes_a_history():
    x, wanted = leaf(POINT), numeric(buffer, POINT)
    buffer(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-6, atol=1e-6)


def test_write_into_a_leaf():
    x = leaf([1.0, 2.0])
    for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 1.0), lambda: x[0].add_(1.0)):
        with pytest.raises(errors.AutogradError, match=r"leaf.*no_grad"):
            write()
    assert x.tolist() == [1.0, 2.0]
    with td.no_grad():
        x -= 0.5
    assert x.tolist() == [0.5, 1.5]
    assert x.requires_grad


def test_views_of_plain_tensors_are_found():
    """A view that nobody has recorded gets its history when a gradient first flows into the memory."""
    w = leaf([1.0, 2.0])
    plain = td.zeros((2, 2), dtype=F64)
    row, turned, first = plain[0], plain.T, plain.T[0][:1]
    row.add_(w)
    turned[1] *= w * 3.0
    assert plain.tolist() == [[1.0, 6.0 * 2.0 / 2], [0.0, 0.0]]
    assert first.requires_grad
    (plain.sum() + 10.0 * first.sum() + turned.sum()).backward()
    assert w.grad.tolist() == [1.0 + 10.0 + 1.0 + 12.0, 6.0]
    orphan = td.zeros((2, 2), dtype=F64)[1]  # the tensor that it was a view of is gone
    orphan.mul_(w).add_(w)
    orphan.sum().backward()
    assert w.grad.tolist() == [25.0, 7.0]


def test_unknown_aliases_are_refused():
    """A view made inside no_grad stays outside of a history."""
    w = leaf([1.0, 2.0])
    y = w * 2
    with td.no_grad():
        hidden = y[:1]
    with pytest.raises(errors.UnsupportedError, match=r"no_grad.*\.at\["):
        y.mul_(w)
    del hidden
    y.mul_(w)
    y.sum().backward()
    assert w.grad.tolist() == [4.0, 8.0]


def test_saved_values_must_not_change():
    x = leaf([1.0, 2.0])
    for make, name in ((lambda: x.exp(), "exp"), (lambda: x * 2, "mul")):
        y = make()
        z = y if name == "exp" else y * x
        y.add_(1.0)
        with pytest.raises(errors.VersionError, match=rf"td::{name}.*(out|self)"):
            z.sum().backward()
    y = x + 1.0  # saves nothing
    y.add_(1.0)
    y.sum().backward()
    w = td.asarray([1.0, 2.0], dtype=F64)
    z = x * w
    w[0] = 5.0
    with pytest.raises(errors.VersionError, match="'other'"):
        z.sum().backward()


WRITE = st.one_of(
    st.tuples(
        st.just("view"), st.integers(0, 5), st.sampled_from([0, -1, slice(1, None), slice(None, None, -2)])
    ),
    st.tuples(st.just("t"), st.integers(0, 5)),
    st.tuples(st.just("scale"), st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.just("add"), st.integers(0, 5), st.integers(0, 5)),
    st.tuples(
        st.just("store"), st.integers(0, 5), st.sampled_from([0, -1, slice(None, 1)]), st.integers(0, 5)
    ),
)


def run_writes(steps, x):
    pool = [x * 1.0]
    for step in steps:
        y = pool[step[1] % len(pool)]
        if not y.size:
            continue
        if step[0] == "view" and y.ndim:
            pool.append(y[step[2]])
        elif step[0] == "t" and y.ndim == 2:
            pool.append(y.T)
        elif step[0] == "scale":
            y *= (
                pool[step[2] % len(pool)].sum().sin()
            )  # bounded: differences of large numbers are no reference
        elif step[0] == "add":
            y += pool[step[2] % len(pool)].sum().cos()
        elif step[0] == "store" and y.ndim:
            y[step[2]] = pool[step[3] % len(pool)].sum().sin()
    return sum((p * (i + 1.0)).sin().sum() for i, p in enumerate(pool))


@settings(max_examples=60)
@given(st.lists(WRITE, max_size=7))
def test_random_writes(steps):
    at = POINT[:2, :3]
    check(lambda x: run_writes(steps, x), at, 1e-3)  # differences of nested sines of sums are no better
