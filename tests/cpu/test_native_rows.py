"""Every row of the op table that ``doctor`` counts as native runs by its entry and returns the right result."""

import numpy as np
import pytest
from optable import arrays_of, generator, same, samples_of, to_tensors, tolerance
from rotation import one_each_commit
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.cli.overhead.coverage import LAYOUTS, layouts_of, rows, share
from tandem.eager.tensor.tensor import Tensor
from tandem.operators.declare.declaration import TensorSample, declared_operators

pytestmark = [
    pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"),
    pytest.mark.filterwarnings("error"),
]
native_layer.install()
STUBS = native_layer.stubs().by_operator if native_layer.stubs() is not None else {}
SERVED = [op for op in declared_operators() if op in STUBS and op.decl.kind != "composite"]
LOOSE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 4e-6, "complex64": 8e-6}


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        yield


def with_layout(sample, layout):
    """The arguments of a sample with its tensors laid out in one way; None if none of them has two axes."""
    found = []

    def lay(value):
        if isinstance(value, TensorSample):
            found.extend([value] if len(value.shape) > 1 and value.dtype is None else [])
            return value._replace(layout=layout)
        return type(value)(map(lay, value)) if type(value) in (tuple, list) else value

    args = tuple(map(lay, sample.args))
    return args if found else None


def compare(op, got, want, dtype):
    got, want = (value if isinstance(value, tuple) else (value,) for value in (got, want))
    for one, two in zip(got, want, strict=True):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        rtol = max(LOOSE.get(one.dtype.name, 1e-12), tolerance(op, dtype))
        with np.errstate(invalid="ignore"):  # bits that are reinterpreted may be signaling NaNs
            scale = np.abs(two._array.astype(complex)) if two.size else np.zeros(1)
        atol = rtol * max(1.0, scale[np.isfinite(scale)].max(initial=1.0))
        assert same(one._array, two._array, rtol, atol), f"{op.name} {dtype}\n{one._array!r}\n{two._array!r}"


def call_both(op, args, kwargs, dtype):
    """Whether a hot call ran native; its result is that of the Python path."""
    stub = STUBS[op]
    try:
        want = op(*args, **kwargs)
    except Exception as error:
        with pytest.raises(type(error)):
            stub.function(*args, **kwargs)
        return False
    for _ in range(2):
        stub.function(*args, **kwargs)
    before = stub.calls
    got = stub.function(*args, **kwargs)
    compare(op, got, want, dtype)
    return stub.calls == before + 1


@pytest.mark.parametrize("op", SERVED, ids=lambda op: op.name)
@pytest.mark.parametrize("part", one_each_commit(*range(8)))
def test_samples_agree_and_each_layout_runs_native(op, part):
    for dtype in op.decl.dtypes[part::8]:
        if not native_layer.serves(op, dtype):
            continue
        rng, seen = generator(op, dtype), set()
        for sample in samples_of(op, dtype):
            args, kwargs = to_tensors(arrays_of(sample, dtype, rng))
            alone = all(value.ndim == 0 for value in args if isinstance(value, Tensor))
            if call_both(op, args, kwargs, dtype) and alone and op.decl.kind == "creation":
                seen.update(layouts_of(op))  # one number lies in one way
            for layout in LAYOUTS:
                drawn = with_layout(sample, layout)
                if drawn is not None:
                    laid, _ = to_tensors(arrays_of(type(sample)(drawn), dtype, rng))
                    if call_both(op, laid, kwargs, dtype):
                        seen.add(layout)
        missing = set(layouts_of(op)) - seen
        assert not missing, f"{op.name} {dtype}: {sorted(missing)} not native"


def test_the_share_of_native_rows():
    found = list(rows())
    assert share(found) >= 0.9
    assert {row.operator for row in found if row.native} <= {op.name for op in STUBS}
