"""Reads and updates at integer positions under jit: values, errors, what is done in place, and no callbacks."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import config, errors

ROWS, COLUMNS = 6, 7
A = td.asarray(np.random.default_rng(0).normal(size=(ROWS, COLUMNS)))
ROW = A[2] * 0.5
POSITION = td.asarray(3)
J = td.asarray([4, 0, -1])
native = pytest.mark.skipif(not config.flags.native, reason="native code is off")


def loop(start, stop, body):
    return lambda a: td.fori_loop(start, stop, body, a)


def branch(*branches):
    return lambda a: td.cond(a[0, 0] < 100, *branches, a)


def nested_branches(a, depth):
    if not depth:
        return a * 1.5
    return td.cond(
        a[0, 0] > depth, lambda a: a.at[depth].set(0.0), lambda a: nested_branches(a, depth - 1), a
    )


PROGRAMS = {
    "row": lambda a: a[POSITION] + 1,
    "element": lambda a: a[POSITION, POSITION - 1] * 2,
    "column": lambda a: a[:, POSITION] * a[:, POSITION - 1],
    "rows": lambda a: a[J] * 2 - a[J - 1],
    "columns": lambda a: a[:, J],
    "diagonal": lambda a: a[J, J + 1],
    "outer": lambda a: a[J[:, None], J[None, :]],
    "reduced": lambda a: (a[J].sum(0), a[:, J].max(1), td.softmax(a[J], axis=-1)),
    "of a computed value": lambda a: (a * 2)[J] + (a * 2)[POSITION],
    "twice": lambda a: a[J][td.asarray([2, 2, 0])],
    "own index": lambda a: J[J % 3],
    "view": lambda a: a[1:5, ::-2][J % 3],
    "along": lambda a: td.take_along_axis(a, td.argsort(a, axis=1), axis=1),
    "set row": lambda a: a.at[POSITION].set(ROW),
    "set column": lambda a: a.at[:, POSITION].set(a[:, 0] * 2),
    "add element": lambda a: a.at[POSITION, 2].add(2.0),
    "repeated add": lambda a: a.at[td.asarray([1, 1, 2])].add(ROW),
    "last of repeated": lambda a: a.at[td.asarray([1, 1, 1])].set(td.stack([ROW, ROW + 1, ROW + 2])),
    "combined": lambda a: (a.at[J].max(0.5), a.at[J].min(a[:3]), a.at[:, J].multiply(2.0)),
    "half": lambda a: a.astype(td.float16).at[J, J].add(0.1),
    "bytes": lambda a: td.zeros(9, dtype=td.int8).at[J].add(100),
    "bools": lambda a: (a > 0).at[J].set(True),
    "complex": lambda a: td.real((a + 2j)[J]) + td.imag((a + 2j).at[J].set(1j))[:3],
    "kept": lambda a: (lambda b: (b.at[POSITION].set(0.0), b))(a * 2),
    "two": lambda a: (lambda b: (b.at[POSITION].set(0.0), b.at[POSITION].set(1.0)))(a * 2),
    "chain": lambda a: a.at[0].set(1.0).at[1:3].set(2.0).at[POSITION].set(3.0),
    "reads itself": lambda a: (lambda b: b.at[J].set(b[J - 1]).at[POSITION].add(b[0]))(a * 2),
    "view is written": lambda a: (lambda b: b.at[POSITION].set(b[0]))((a * 2).T),
    "loop over rows": loop(1, ROWS, lambda k, a: a.at[k].set(a[k - 1] * 0.5 + 1)),
    "loop over columns": loop(1, COLUMNS, lambda k, a: a.at[:, k].set(a[:, k - 1] * 0.5 + 1)),
    "loop over elements": loop(0, ROWS, lambda k, a: a.at[k, k].add(a[k, 0])),
    "nested": loop(0, ROWS, lambda k, a: loop(0, COLUMNS, lambda m, a: a.at[k, m].set(a[k, m - 1] + 1))(a)),
    "reversed": loop(0, ROWS, lambda k, a: a.at[k].set(a[ROWS - 1 - k])),
    "two positions": loop(0, 3, lambda k, a: a.at[td.asarray([1, 2]) + k].add(a[td.asarray([2, 1]) + k])),
    "swapped": lambda a: td.fori_loop(0, 5, lambda k, c: (c[1].at[k].set(0.0), c[0]), (a, a * 2)),
    "old and new": lambda a: td.fori_loop(0, 5, lambda k, c: (c[0].at[k].set(0.0), c[0]), (a, a * 2)),
    "carry is stacked": lambda a: td.scan(lambda c, k: (c.at[k].add(c[k].sum()), c), a, td.arange(ROWS)),
    "counts down": lambda a: td.scan(lambda c, k: (c.at[k].add(1.0), c[k]), a, td.arange(5, -1, -1)),
    "reads the argument": lambda a: td.scan(lambda c, k: (c.at[k].set(a[5 - k]), None), a, td.arange(6))[0],
    "small carry": lambda a: td.fori_loop(0, 4, lambda k, c: c.at[k % 2].add(1.0), a[0, :2]),
    "while": lambda a: td.while_loop(
        lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1].at[s[0]].set(s[1][s[0] + 1])), (td.asarray(0), a)
    ),
    "no step": lambda a: td.while_loop(lambda a: a[0, 0] > 100, lambda a: a.at[0].set(0.0), a),
    "one branch writes": branch(lambda a: a.at[POSITION].set(0.0), lambda a: a),
    "other branch computes": branch(lambda a: a.at[POSITION].set(0.0), lambda a: a * 2),
    "branch in a loop": loop(
        0,
        ROWS,
        lambda k, a: td.cond(k % 2 == 0, lambda a: a.at[k].set(a[k] * 2), lambda a: a.at[k, 0].add(1.0), a),
    ),
    "argument is given twice": lambda a: td.cond(
        a[0, 0] < 100, lambda a, b: a.at[POSITION].set(b[0]), lambda a, b: a, a, a
    ),
    "item becomes carry": lambda a: td.scan(lambda c, x: (x, c.at[0].add(1.0).sum()), a[0], a),
    "captured becomes carry": lambda a: td.fori_loop(
        0, 3, lambda k, c: (ROW, c[1] + c[0].at[k].add(1.0).sum()), (a[0], a[0, 0])
    ),
    "other carry becomes carry": lambda a: td.scan(
        lambda c, k: ((c[0], c[0]), c[1].at[k].add(1.0)), (a[0], a[1]), td.arange(3)
    ),
    "carry and stacked": lambda a: td.scan(
        lambda c, k: (lambda v: (v, v))(c.at[k].set(5.0) * 2), a, td.arange(3)
    ),
    "rows of a range": lambda a: td.scan(
        lambda c, x: (c + x.sum(), None), a[0, 0], td.arange(20000).reshape(10000, 2)
    ),
    "python integers": lambda a: (td.ops.td.index(a, [1]), td.ops.td.index_put(a, [1, 2], 3.0)),
    "nested branches": lambda a: nested_branches(a, 4),
    "zeros of both signs": lambda a: ((a * 0).astype(td.float16).at[J].max(0), (-a * 0).at[J].min(0)),
    "gradient": td.grad(lambda a: (loop(1, ROWS, lambda k, a: a.at[k].set(a[k - 1] * a[k]))(a) ** 2).sum()),
    "gradient of reads": td.grad(lambda a: (a[J] * a.at[POSITION].multiply(2.0)[1:4]).sum()),
    "batched": td.vmap(loop(0, COLUMNS, lambda k, a: a.at[k].set(a[k - 1] + 1))),
    "batched reads": lambda a: td.vmap(lambda row, k: row[k])(a, td.arange(ROWS)),
    "tangents": lambda a: td.jvp(
        loop(1, ROWS, lambda k, a: a.at[k].set(a[k - 1] * a[k])), (a,), (a * 0 + 1,)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_return_what_eager_calls_return(name):
    program = PROGRAMS[name]
    argument = td.asarray(A.numpy().copy())
    compiled = td.jit(program)
    for _ in range(2):
        found, wanted = td.tree.leaves(compiled(argument)), td.tree.leaves(program(argument))
        for one, two in zip(found, wanted, strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one.numpy(), two.numpy())
    np.testing.assert_array_equal(argument.numpy(), A.numpy())


@native
@pytest.mark.parametrize(
    "name", [name for name in PROGRAMS if name not in ("along", "own index", "zeros of both signs")]
)
def test_programs_have_no_callbacks(name):
    assert "callback: " not in str(td.jit(PROGRAMS[name]).lower(A).kernels())


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bad", [ROWS, -ROWS - 1, 10**12])
@pytest.mark.parametrize(
    "program",
    [
        lambda a, k: a[k] + 1,
        lambda a, k: a[td.stack([k * 0, k])].sum(),
        lambda a, k: a[:, k * 2],
        lambda a, k: a.at[k].set(0.0),
        lambda a, k: a.at[td.stack([k * 0, k]), 0].add(1.0),
        lambda a, k: loop(0, 2, lambda n, a: a.at[n * k].set(a[k * n]))(a),
        lambda a, k: td.cond(k == k, lambda a: a[k], lambda a: a[0], a),
    ],
)
def test_index_out_of_bounds_raises(program, bad):
    with pytest.raises(errors.OutOfBoundsError) as eager:
        program(A, td.asarray(bad))
    compiled = td.jit(program)
    for _ in range(2):
        with pytest.raises(errors.OutOfBoundsError) as fault:
            compiled(A, td.asarray(bad))
        assert str(fault.value) == str(eager.value)
    assert compiled(A, td.asarray(0)) is not None


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0,)])
@pytest.mark.parametrize(
    "program", [lambda a, k: a[k], lambda a, k: a.at[k].set(1.0), lambda a, k: a.at[k].add(1.0)]
)
def test_indices_into_empty_tensors_are_checked(program, shape):
    for call in (program, td.jit(program)):
        with pytest.raises(errors.OutOfBoundsError):
            call(td.zeros(shape), td.asarray([7]))


# -- memory ------------------------------------------------------------------------------------------------------------
BIG = td.zeros((100, 1000))
NBYTES = 100 * 1000 * 4


def temporary_bytes(function):
    return td.jit(function).lower(BIG).compile().memory_analysis()["temp"]


@native
@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (loop(1, 100, lambda k, a: a.at[k].set(a[k - 1] + 1)), 0),
        (loop(1, 100, lambda k, a: loop(0, 9, lambda m, a: a.at[k, m].set(a[k - 1, m]))(a)), 0),
        (loop(0, 9, lambda k, a: td.cond(k > 3, lambda a: a.at[k].set(0.0), lambda a: a, a)), 0),
        (loop(0, 1000, lambda k, a: a * 0.5 + td.roll(a, 1, 0)), 2),
        (lambda a: [a := a.at[k].set(k) for k in range(100)][-1], 0),
    ],
)
def test_updates_need_no_second_array(function, arrays):
    assert temporary_bytes(function) < (arrays + 0.2) * NBYTES


@native
def test_loops_count_their_own_items():
    total = td.jit(lambda a: td.fori_loop(0, 10**6, lambda k, s: s + k * 2, a))
    steps = total.lower(td.asarray(0)).kernels().steps
    assert steps == ["loop: control::scan"]


# -- random programs ---------------------------------------------------------------------------------------------------
POSITIONS = st.sampled_from(
    ["k", "2 * k % 5", "ROWS - 1 - k", "J + 0 * k", "(J + k) % 5", "J[:, None] + 0 * k"]
)
COMBINED = st.sampled_from(["set", "add", "multiply", "max", "min"])
READS = st.sampled_from(["a[{0}]", "b[{0}]", "a[{0}, {0}]", "a[:, {0}].sum(0)", "b[{0}].mean(0)", "c"])


@st.composite
def bodies(draw):
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        target = draw(st.sampled_from("ab"))
        value = f"td.sum({draw(READS).format(draw(POSITIONS))} * 0.5) + {draw(READS).format(draw(POSITIONS))}.mean()"
        where = draw(st.sampled_from(["[{0}]", "[:, {0}]", "[{0}, {0}]"])).format(draw(POSITIONS))
        lines.append(f"{target} = {target}.at{where}.{draw(COMBINED)}({value})")
        if draw(st.booleans()):
            lines.append(f"c = c * 0.5 + {draw(READS).format(draw(POSITIONS))}.sum()")
    return "\n    ".join(lines)


@settings(max_examples=25, deadline=None)
@given(bodies(), st.sampled_from(["float32", "float64", "int32"]))
def test_random_loops_return_what_eager_loops_return(body, dtype):
    scope = {"td": td, "ROWS": 5, "J": td.asarray([3, 0, -1])}
    exec(f"def step(k, carry):\n    a, b, c = carry\n    {body}\n    return a, b, c", scope)
    a = td.asarray(np.arange(25.0).reshape(5, 5) % 7 - 3).astype(dtype)
    carry = (a, a.T * 1, a[0, 0] + 0.25 if dtype != "int32" else td.asarray(0.25))
    if dtype == "int32":
        carry = (a.astype(td.float32), a.astype(td.float32).T * 1, td.asarray(0.25))
    function = lambda carry: td.fori_loop(0, 5, scope["step"], carry)  # noqa: E731
    for one, two in zip(td.jit(function)(carry), function(carry), strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy(), err_msg=body)
