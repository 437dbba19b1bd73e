"""Every declared operator against its reference, shape rule and errors; declarations are complete."""

import doctest
import io
import itertools
import os
import re
import zlib

import pytest
import tandem as td
from optable import (
    arrays_of,
    as_function,
    check,
    depends_on_data,
    errors_of,
    expected,
    generator,
    make,
    replace,
    rows,
    table,
    to_specs,
    to_tensors,
)
from rotation import rotating
from tandem.errors import TandemError
from tandem.jit.api import jit
from tandem.operators.declare.declaration import TensorSample
from tandem.operators.declare.derivatives import Linear, NotDifferentiable, Partials, Rule, parameter_names
from tandem.registry.dispatch.keys import DispatchKey
from tandem.registry.dtypes import float32
from tandem.registry.function import functions
from tandem.registry.values import TensorSpec

OPS = table()
REFERENCED = {name: op for name, op in OPS.items() if op.decl.reference and op.decl.samples}


def specs_of(result):
    found = to_specs(result)
    return (found,) if isinstance(found, TensorSpec) else found


@pytest.mark.parametrize("name", REFERENCED)
def test_eager_equals_reference(name):
    op = OPS[name]
    for dtype, sample in rows(op):
        args, kwargs = arrays_of(sample, dtype, generator(op, dtype))
        tensors, options = to_tensors((args, kwargs))
        got = functions[op.name](*tensors, **options)
        check(op, got, expected(op, args, kwargs), args, f"{name} {dtype} {sample}")


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.decl.shape_rule and op.decl.samples])
def test_rule_gives_the_real_shape_and_dtype(name):
    op = OPS[name]
    for dtype, sample in rows(op):
        args, kwargs = to_tensors(arrays_of(sample, dtype, generator(op, dtype)))
        got = specs_of(functions[op.name](*args, **kwargs))
        args, kwargs = op.binder.bind(args, kwargs)
        if not depends_on_data(op, args, kwargs):
            assert specs_of(op.decl.shape_rule(*to_specs(args), **to_specs(kwargs))) == got, sample


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.decl.errors])
def test_bad_calls_raise_what_they_say(name):
    op = OPS[name]
    default = float32 if float32 in op.decl.dtypes or not op.decl.dtypes else op.decl.dtypes[-1]
    for bad in errors_of(op):
        rng = generator(op, default)
        args, kwargs = replace(
            (bad.args, dict(bad.kwargs)), TensorSample, lambda d, rng=rng: wrap(d, default, rng)
        )
        with pytest.raises(bad.error, match=re.escape(bad.match)) as caught:
            functions[op.name](*args, **kwargs)
        assert isinstance(caught.value, TandemError), bad


def wrap(draw, dtype, rng):
    return to_tensors(make(draw, dtype, rng))


@pytest.mark.parametrize("name", OPS)
def test_declaration_is_complete(name):
    op = OPS[name]
    decl = op.decl
    assert decl.doc.strip(), "a doc"
    assert "Returns:" in decl.doc, "the doc says what it returns"
    assert ">>>" in decl.doc, "the doc has an example"
    assert decl.samples is not None, "samples"
    assert decl.reference or decl.effects, "a reference"
    assert decl.dtypes or decl.kind in ("creation", "random", "composite"), "the dtypes that it takes"
    if decl.kind == "composite":
        assert decl.body is not None
    else:
        assert isinstance(decl.derivative, Partials | Linear | Rule | NotDifferentiable), (
            "a derivative, or why none"
        )
        assert decl.shape_rule is not None, "a shape and dtype rule"
        assert op.registered(DispatchKey.CPU) is not None, "a kernel for the CPU"


@pytest.mark.parametrize("name", OPS)
def test_example_says_what_happens(name):
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    example = doctest.DocTestParser().get_doctest(OPS[name].decl.doc, {"td": td}, name, None, 0)
    runner.run(example, out=report.write)
    assert not runner.failures, report.getvalue()


@pytest.mark.parametrize("name", OPS)
def test_derivative_names_what_exists(name):
    """A rule names arguments of the schema, their specs, out, g and t, and nothing else."""
    op = OPS[name]
    arguments = {argument.name for argument in op.schema.arguments}
    known = arguments | {f"{a}_spec" for a in arguments} | {"out", "out_spec", "g", "t"}
    derivative = op.decl.derivative
    for group in ("by", "transpose", "vjp", "jvp"):
        for argument, rule in getattr(derivative, group, {}).items():
            assert argument in arguments
            assert set(parameter_names(rule)) <= known, (argument, parameter_names(rule))


JITTED = [name for name, op in OPS.items() if op.decl.kind != "random" and op.decl.samples]


def check_jit(op, chosen):
    for dtype, sample in chosen:
        args, kwargs = to_tensors(arrays_of(sample, dtype, generator(op, dtype)))
        call, tensors = as_function(op, args, kwargs)
        if tensors and not depends_on_data(op, args, kwargs):
            want = call(*tensors)
            want = tuple(w._array for w in want) if isinstance(want, tuple) else want._array
            arrays = [tensor._array for tensor in tensors]
            check(op, jit(call)(*tensors), want, arrays, f"jit {op.name} {dtype} {sample}")


@rotating
@pytest.mark.parametrize("name", JITTED)
def test_jit_equals_eager(name):
    """One row of each dtype: for half of the seeds the last, which has extremes, for the others any."""
    op, seed = OPS[name], int(os.environ.get("TANDEM_TEST_SEED", "0"))
    for _, group in itertools.groupby(rows(op), lambda row: row[0]):
        group = list(group)
        draw = zlib.crc32(f"{seed} {name} {group[0][0]}".encode())
        check_jit(op, [group[-1] if draw % 2 else group[draw // 2 % len(group)]])


@pytest.mark.full
@pytest.mark.parametrize("name", JITTED)
def test_jit_equals_eager_on_every_row(name):
    check_jit(OPS[name], rows(OPS[name]))
