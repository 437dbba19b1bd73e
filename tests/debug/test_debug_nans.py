"""``td.debug.nans`` names the first operator that returns a NaN, its source line and its inputs."""

import os
import subprocess
import sys

import pytest
import tandem as td
from tandem import errors

X = td.asarray([1.0, -2.0, 3.0])


def plain(fn):
    return fn


@pytest.fixture(params=["eager", "jit"])
def way(request):
    return {"eager": plain, "jit": td.jit}[request.param]


def fault(fn, *args, **options):
    with td.debug.nans(**options), pytest.raises(errors.NanError) as caught:
        fn(*args)
    assert isinstance(caught.value, FloatingPointError)
    return str(caught.value)


def test_names_op_line_and_inputs(way):
    def f(x):
        y = x * 2
        return td.exp(td.log(y)) + 1

    for _ in range(2):
        text = fault(way(f), X)
        line = f.__code__.co_firstlineno + 2
        assert text.splitlines()[0] == f"td::log gave a NaN at {__file__}:{line}"
        assert text.splitlines()[1] == "  self: float32[3], without NaN, from -4.0 to 6.0"


def test_outside_of_the_block_nothing_is_checked(way):
    f = way(td.sqrt)
    f(X)
    fault(f, X)
    assert bool(td.isnan(f(X))[1])


def test_two_inputs_and_which_had_a_nan():
    text = fault(lambda: td.asarray([0.0, 1.0]) / td.zeros(2))
    assert "  self: float32[2], without NaN, from 0.0 to 1.0" in text
    assert "  other: float32[2], without NaN, from 0.0 to 0.0" in text
    text = fault(lambda: td.asarray([0.0, float("nan")]) + 1)
    assert "  self: float32[2], has a NaN" in text
    assert "  other: int 1, without NaN" in text
    assert "tensors[1]: float32[1], has a NaN" in fault(
        lambda: td.concat([td.ones(1), td.asarray([float("nan")])])
    )


def test_infinities_on_demand(way):
    with td.debug.nans():
        assert way(lambda x: 1 / x)(td.zeros(1)).item() == float("inf")
    assert "td::div.Tensor gave an infinity" in fault(way(lambda x: 1 / x), td.zeros(1), inf=True)
    assert "gave a NaN" in fault(way(td.sqrt), X, inf=True)


def test_requested_nan_is_not_reported():
    with td.debug.nans():
        assert bool(td.isnan(td.full((2,), float("nan")))[0])
        assert bool(td.isnan(td.asarray(float("nan"))))
        assert td.asarray([1, 2]).sum().item() == 3


def test_gradients(way):
    assert "gave a NaN" in fault(way(td.grad(lambda x: (td.sqrt(x) * 0).sum())), td.zeros(2))
    x = td.asarray([0.0], requires_grad=True)
    y = (td.sqrt(x) * 0).sum()
    text = fault(y.backward)
    assert "gave a NaN" in text


def test_batches(way):
    text = fault(way(td.vmap(lambda x: td.log(x) + 1)), X)
    assert "td::log gave a NaN" in text
    assert "float32[3]" in text
    assert "td::log gave a NaN" in fault(td.vmap(way(lambda x: td.log(x) + 1)), X)


def test_the_parts_of_a_composite():
    text = fault(lambda: td.var(td.asarray([1.0]), correction=1))
    assert "gave a NaN" in text
    assert __file__ in text


def test_in_place():
    x = td.asarray([-1.0])
    assert "td::sqrt_ gave a NaN" in fault(lambda: x.sqrt_())


def test_dtypes():
    for dtype in (td.float16, td.bfloat16, td.float64, td.complex64):
        fault(lambda dtype=dtype: td.zeros(2, dtype=dtype) / td.zeros(2, dtype=dtype))


def test_the_variable_turns_it_on():
    code = "import tandem as td; f = td.jit(lambda x: td.log(x)); f(td.asarray(-1.0))"
    for value, failed in (("1", True), ("0", False)):
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "TANDEM_DEBUG_NANS": value},
            cwd="/",
        )
        assert ("NanError: td::log gave a NaN at <string>:1" in run.stderr) is failed, run.stderr
        assert (run.returncode != 0) is failed
