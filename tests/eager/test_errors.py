"""Invalid input raises the documented exception, names a remedy, and changes nothing."""

import numpy as np
import pytest
import tandem as td
from tandem import errors

X = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
HUGE = 2**62

CASES = [
    # wrong shapes
    (lambda: X + td.zeros(4), ValueError, "do not broadcast"),
    (lambda: X @ td.zeros((2, 2)), ValueError, "matmul"),
    (lambda: X.reshape(5), ValueError, "does not reshape"),
    (lambda: X.sum(2), IndexError, "out of bounds"),
    (lambda: X[2], IndexError, "out of bounds"),
    (lambda: X[0, 0, 0], IndexError, "too many"),
    (lambda: X["a"], IndexError, "is not an index"),
    (lambda: td.zeros(-1), ValueError, "negative"),
    (lambda: td.asarray([[1, 2], [3]]), ValueError, "ragged nested list: row 0 has length 2, row 1 has length 1"),
    (lambda: td.zeros(3).mT, ValueError, "mT"),
    (lambda: td.zeros(3).mT, ValueError, "two axes"),
    (lambda: bool(X), ValueError, "ambiguous"),
    (lambda: X.item(), TypeError, "one element"),
    (lambda: float(X), TypeError, "one element"),
    (lambda: len(td.asarray(1)), TypeError, "0-d"),
    (lambda: list(td.asarray(1)), TypeError, "0-d"),
    # wrong dtypes
    (lambda: X & 1, TypeError, "does not take"),
    (lambda: td.asarray([1], dtype=td.int8) + td.asarray([1], dtype=td.uint64), TypeError, "uint64"),
    (lambda: X.astype("float12"), TypeError, "not a dtype"),
    (lambda: X.astype(None), TypeError, "not a dtype"),
    (lambda: td.asarray(np.array(["a"])), TypeError, "not a dtype"),
    (lambda: td.asarray(np.array([object()])), TypeError, "dtype object"),
    (lambda: td.asarray([object()]), TypeError, "objects"),
    (lambda: td.asarray([None]), TypeError, "objects"),
    (lambda: td.asarray("text"), TypeError, "text"),
    (lambda: td.asarray(b"text"), TypeError, "text"),
    (lambda: td.asarray(["a", "b"]), TypeError, "not a dtype"),
    (lambda: td.asarray(np.array(1, "datetime64[s]")), TypeError, "not a dtype"),
    (lambda: X + np.array([object()] * 3), TypeError, "dtype"),
    (lambda: [1, 2][X[0, 0]], TypeError, "integer"),
    (lambda: td.asarray([1], requires_grad=True), TypeError, "floating-point"),
    # wrong types
    (lambda: td.asarray(None), TypeError, "asarray takes"),
    (lambda: td.asarray(object()), TypeError, "asarray takes"),
    (lambda: td.add(X, "a"), TypeError, "'other' must be a Tensor"),
    (lambda: td.add(X), TypeError, "needs argument 'other'"),
    (lambda: td.add(X, X, 1.0), TypeError, "3 were given"),
    (lambda: td.add(X, X, out=1.0), TypeError, "out must be"),
    (lambda: td.add(X, X, other=X), TypeError, "twice"),
    (lambda: X.sum("a"), TypeError, "axis"),
    # wrong values
    (lambda: td.asarray([300], dtype=td.int8), OverflowError, "fit"),
    (lambda: td.asarray(2**63), OverflowError, "fit"),
    (lambda: td.asarray(2**100), OverflowError, "fit"),
    (lambda: td.asarray([1], dtype=td.int8) + 300, OverflowError, "does not fit"),
    # devices
    (lambda: td.asarray([1.0], device="cuda"), RuntimeError, "CUDA"),
    (lambda: X.to("cuda:0"), RuntimeError, "CUDA"),
    (lambda: td.zeros(2, device="cuda"), RuntimeError, "cuda"),
    (lambda: X.to("meta").to("cpu"), NotImplementedError, "no elements"),
    (lambda: td.asarray([1.0], device="tpu"), ValueError, "unknown device"),
    (lambda: td.zeros(2, device=3), ValueError, "device"),
    # unknown operators
    (lambda: td.ops.td.no_such_operator(X), AttributeError, "no operator"),
    (lambda: td.ops.td.add.NoOverload(X, X), AttributeError, "overload"),
    (lambda: td.dispatch_table("no_such_operator"), AttributeError, "no operator"),
    # sizes that are no sizes, or too large
    (lambda: td.zeros(float("nan")), TypeError, "shape"),
    (lambda: td.zeros((HUGE, HUGE)), ValueError, "too many elements"),
    (lambda: td.zeros(2**55), MemoryError, "memory"),
    (lambda: td.broadcast_to(X, (HUGE, HUGE, 2, 3)), ValueError, "too many elements"),
    (lambda: X.reshape(-HUGE, 3), ValueError, "negative"),
    # schemas
    (lambda: td.parse_schema("add(Tensor self"), ValueError, "add"),
    (lambda: td.Library("bad").define("no_arrow(Tensor x)"), ValueError, "->"),
    (lambda: td.Library("bad", "SOME"), RuntimeError, "SOME"),
    (lambda: td.Library("bad", "IMPL").define("f(Tensor x) -> Tensor"), RuntimeError, "IMPL"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), CASES, ids=range(len(CASES)))
def test_bad_input(call, kind, text):
    before = X.tolist()
    with pytest.raises(kind, match=text) as caught:
        call()
    ours = isinstance(caught.value, errors.TandemError)
    assert ours or type(caught.value) in (TypeError, ValueError), type(caught.value)
    assert X.tolist() == before
    assert X.storage().version == 0


def test_customary_types():
    for cls in vars(errors).values():
        if isinstance(cls, type) and issubclass(cls, errors.TandemError):
            assert cls.__doc__
