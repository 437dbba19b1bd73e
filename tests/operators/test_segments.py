"""Segment reductions: the meaning of ``jax.ops.segment_sum``, and operators made from any fold."""

import numpy as np
import pytest
import tandem as td
from tandem.operators.reductions.segments import segment_reduction
from tandem.operators.scalar_ir import nodes as s
from tandem.operators.scalar_ir.fold import Fold, lowest
from tandem.registry import dtypes as dt

IDS = td.asarray([2, 0, 2, -1, 7, 1, 2])
ROWS = td.asarray(np.arange(14.0).reshape(7, 2))
OPERATORS = (td.segment_sum, td.segment_prod, td.segment_max, td.segment_min)


def test_number_of_segments_follows_from_the_largest_id():
    assert td.segment_sum(ROWS, IDS).shape == (8, 2)
    assert td.segment_sum(ROWS, IDS).tolist() == td.segment_sum(ROWS, IDS, 8).tolist()
    assert td.segment_max(td.ones(2), td.asarray([-3, -1])).shape == (0,)
    assert td.segment_min(td.ones((0, 3)), td.asarray(np.zeros(0, np.int32))).shape == (0, 3)


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_traced_ids_need_a_number_of_segments(function):
    text = f"{function.__name__}: the number of segments .* pass num_segments=n"
    with pytest.raises(NotImplementedError, match=text):
        td.jit(function)(ROWS, IDS)
    with pytest.raises(NotImplementedError, match=text):
        td.vmap(function, in_axes=(None, 0))(ROWS, td.stack([IDS, IDS]))
    with pytest.raises(NotImplementedError, match=text):
        function(ROWS.to("meta"), IDS.to("meta"))
    assert function(ROWS.to("meta"), IDS.to("meta"), 3).shape == (3, 2)


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_transforms_agree_with_eager_calls(function):
    x = td.asarray(np.random.default_rng(0).normal(size=(7, 2)))
    want = function(x, IDS, 4)
    assert td.jit(function, static_argnums=2)(x, IDS, 4).numpy().tobytes() == want.numpy().tobytes()
    by_column = td.vmap(lambda column: function(column, IDS, 4), in_axes=1, out_axes=1)
    assert by_column(x).tolist() == want.tolist()
    ids = td.stack([IDS, td.flip(IDS, 0)])
    both = td.vmap(lambda ids: function(x, ids, 4))(ids)
    assert both.tolist() == [want.tolist(), function(x, td.flip(IDS, 0), 4).tolist()]

    def total(x):
        return (td.where(td.isfinite(function(x, IDS, 4)), function(x, IDS, 4), 0) ** 2).sum()

    np.testing.assert_allclose(td.jit(td.grad(total))(x).numpy(), td.grad(total)(x).numpy())
    assert td.grad(total)(x).numpy()[3:5].tolist() == [[0, 0], [0, 0]]  # dropped rows


def test_halves_are_combined_in_float32():
    x = td.ones(5000, dtype=td.float16)
    assert td.segment_sum(x, td.zeros(5000, dtype=td.int64), 1).tolist() == [5000]


def test_unsigned_ids_and_integer_identities():
    ids = td.asarray(np.array([0, 2**63, 1], np.uint64))
    assert td.segment_sum(td.asarray([1, 2, 4]), ids, 2).tolist() == [1, 4]
    for dtype in (np.int8, np.uint64):
        limits = np.iinfo(dtype)
        x = td.asarray(np.ones(1, dtype))
        assert td.segment_max(x, td.asarray([1]), 2).tolist() == [limits.min, 1]
        assert td.segment_min(x, td.asarray([1]), 2).tolist() == [limits.max, 1]


def test_any_plain_fold_makes_an_operator():
    def combine(a, b):
        return s.select(a == b, a + np.log(2.0), s.maximum(a, b) + s.log1p(s.exp(-abs(a - b))))

    parity = segment_reduction(
        "segment_parity",
        Fold("parity", lambda a, b: a ^ b, lambda dtype: 0),
        doc="The parity of each segment.",
        dtypes=dt.INTEGERS,
        reference="numpy.bitwise_xor",
        empty="0",
    )
    log_sum = segment_reduction(
        "segment_log_sum",
        Fold("log_sum", combine, lambda dtype: -np.inf),
        doc="The logarithm of the sum of exponentials of each segment.",
        dtypes=dt.FLOATS,
        reference="numpy.logaddexp",
        empty="-inf",
    )
    numbers = td.asarray(np.random.default_rng(0).integers(0, 99, (7, 3)))
    want = [np.bitwise_xor.reduce(numbers.numpy()[IDS.numpy() == k], 0).tolist() for k in range(4)]
    assert parity(numbers, IDS, 4).tolist() == td.jit(lambda x: parity(x, IDS, 4))(numbers).tolist() == want
    found = log_sum(ROWS, IDS, 4).numpy()
    for k in range(4):
        rows = ROWS.numpy()[IDS.numpy() == k]
        np.testing.assert_allclose(found[k], np.logaddexp.reduce(rows, 0), rtol=1e-12)


def test_folds_that_do_more_than_combine_are_rejected():
    fold = Fold("norm", lambda a, b: a + b, lambda dtype: 0, finish=s.sqrt)
    for one in (fold, Fold("position", s.maximum, lowest, returns_index=True)):
        with pytest.raises(ValueError, match="more than combine"):
            segment_reduction("bad", one, doc="-", dtypes=dt.FLOATS, reference="-", empty="0")
