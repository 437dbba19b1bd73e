"""Binding of calls to schemas: Python's rules, conversion of values, error messages."""

import inspect
import keyword

import numpy as np
import pytest
import tandem as td
from hypothesis import given
from hypothesis import strategies as st
from tandem.errors import ArgumentError, ConcretizationError, DeviceError, DTypeError
from tandem.registry.function import signature
from tandem.registry.schemas.binding import Binder
from tandem.registry.schemas.parser import parse_schema

X = td.asarray([1.0, 2.0])


def bind(arguments, *args, **kwargs):
    return Binder(parse_schema(f"ns::f({arguments}) -> ()")).bind(args, kwargs)


def value(kind, given):
    """What one argument of a type becomes."""
    return bind(f"{kind} k", given)[0][0]


# --- binding ------------------------------------------------------------------------------------------------

names = st.from_regex(r"[a-z]{1,3}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))


@st.composite
def calls(draw):
    found = draw(st.lists(names, unique=True, min_size=1, max_size=6))
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(found))] * 2)))
    parts = [f"int {name}" + f"={i}" * (i >= first) for i, name in enumerate(found[:last])]
    if found[last:]:
        parts += [
            "*",
            *(f"int {name}" + f"={i}" * draw(st.booleans()) for i, name in enumerate(found[last:])),
        ]
    args = tuple(draw(st.lists(st.integers(10, 99), max_size=len(found) + 1)))
    chosen = draw(st.sets(st.sampled_from([*found, "zzzz"])))
    return f"f({', '.join(parts)}) -> ()", args, {name: 100 + i for i, name in enumerate(sorted(chosen))}


@given(calls())
def test_a_call_binds_as_inspect_binds_it(call):
    text, args, kwargs = call
    schema = parse_schema(text)
    try:
        expected = signature(schema).bind(*args, **kwargs)
    except TypeError:
        with pytest.raises(ArgumentError):
            Binder(schema).bind(args, kwargs)
        assert not Binder(schema).fits(len(args), kwargs.keys())
        return
    expected.apply_defaults()
    assert Binder(schema).fits(len(args), kwargs.keys())
    assert Binder(schema).bind(args, kwargs) == (expected.args, expected.kwargs)


def test_the_signature_is_pythons():
    schema = parse_schema("f(Tensor x, int k=1, *, str mode='m', ScalarType? dtype=None) -> Tensor")
    shown = signature(schema)
    assert str(shown) == "(x, k=1, *, mode='m', dtype=None)"
    assert all(isinstance(parameter, inspect.Parameter) for parameter in shown.parameters.values())


@pytest.mark.parametrize(
    ("arguments", "args", "kwargs", "text"),
    [
        ("int a, int b=1", (1, 2, 3), {}, "takes 2 positional arguments, 3 were given"),
        ("int a, int b=1", (), {}, "needs argument 'a'"),
        ("int a, *, int b", (1,), {}, "needs argument 'b'"),
        ("int a", (1,), {"a": 2}, "got argument 'a' twice"),
        ("int a", (1,), {"c": 2}, "has no argument 'c'"),
        ("int a", (1.5,), {}, "argument 'a' must be an int, not float 1.5"),
        ("int a", (True,), {}, "must be an int"),
        ("int[2] a", ("x",), {}, "must be a sequence of int of length 2, not str 'x'"),
        ("int[] a", ([1, "x"],), {}, "must be an int"),
        ("float a", ("x",), {}, "must be a float"),
        ("bool a", (1,), {}, "must be a bool"),
        ("str a", (1,), {}, "must be a str"),
        ("Scalar a", ("x",), {}, "must be a Python number"),
        ("Scalar a", (X,), {}, "must be a Python number or a 0-d tensor, not float32"),
        ("Tensor a", ("x",), {}, "must be a Tensor"),
        ("Tensor[] a", (X,), {}, "must be a sequence of Tensor"),
        ("Tensor(a!) a", (1.0,), {}, "must be a Tensor, because the operator writes into it"),
        ("Layout a", ("dense",), {}, "must be a layout: 'sparse_coo', 'sparse_csr', 'strided'"),
        ("MemoryFormat a", (1,), {}, "must be a memory format: 'channels_last'"),
        ("Generator a", (3,), {}, "must be a numpy.random.Generator"),
        ("Dimname a", ("no name",), {}, "must be the name of a dimension"),
        ("int a", (None,), {}, "must be an int, not NoneType"),
    ],
)
def test_what_does_not_fit_is_explained(arguments, args, kwargs, text):
    with pytest.raises(ArgumentError) as caught:
        bind(arguments, *args, **kwargs)
    assert text in str(caught.value)
    assert f"schema: ns::f({arguments}) -> ()" in str(caught.value)


# --- values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("int", np.int16(3), 3),
        ("int", td.asarray(3), 3),
        ("SymInt", 4, 4),
        ("DeviceIndex", 1, 1),
        ("float", 2, 2.0),
        ("float", np.float32(0.5), 0.5),
        ("float", td.asarray(2.5), 2.5),
        ("bool", np.True_, True),
        ("Scalar", np.int8(3), 3),
        ("Scalar", np.float64(3.5), 3.5),
        ("Scalar", td.asarray(7), 7),
        ("Scalar", td.asarray(1.5), 1.5),
        ("Scalar", td.asarray(True), True),
        ("complex", 2, 2 + 0j),
        ("complex", td.asarray(1 + 2j), 1 + 2j),
        ("int[2]", 3, (3, 3)),
        ("int[3]", [1, 2, 3], (1, 2, 3)),
        ("int[1]", [1, 2], (1, 2)),  # the size is for the repeated value only, as in PyTorch
        ("bool[2]", True, (True, True)),
        ("float[]", [1, 2.5], (1.0, 2.5)),
        ("int[]", np.asarray([4, 5]), (4, 5)),
        ("int[]?", None, None),
        ("int?[]", [1, None], (1, None)),
        ("Scalar?", None, None),
        ("ScalarType", "int8", td.int8),
        ("ScalarType", np.float64, td.float64),
        ("ScalarType?", td.bool, td.bool),
        ("Device", "cuda:1", "cuda:1"),
        ("Layout", "strided", td.strided),
        ("Layout?", td.sparse_csr, td.sparse_csr),
        ("MemoryFormat?", "channels_last", "channels_last"),
        ("Dimname[]", ["N", "C"], ("N", "C")),
        ("str?", "x", "x"),
    ],
)
def test_values_are_normalised(kind, given, wanted):
    found = value(kind, given)
    assert found == wanted and type(found) is type(wanted)


def test_a_generator():
    generator = np.random.default_rng(0)
    assert value("Generator?", generator) is generator


def test_an_array_becomes_a_tensor():
    assert isinstance(value("Tensor?", np.ones(2)), td.Tensor)
    assert isinstance(value("Tensor[]", [np.ones(2)])[0], td.Tensor)


def test_tensor_with_gradients_is_not_a_number():
    with pytest.raises(ArgumentError, match="would lose them"):
        value("Scalar", td.asarray(1.0, requires_grad=True))


def test_traced_tensor_is_not_a_number():
    with td.Library("callstest", "DEF") as library:
        library.define("scaled(Tensor x, Scalar by) -> Tensor")
        library.impl("scaled", lambda x, by: x * by, "CompositeImplicit")
        assert td.ops.callstest.scaled(X, td.asarray(2.0)).tolist() == [2.0, 4.0]
        with pytest.raises(ConcretizationError):
            td.jit(lambda x, by: td.ops.callstest.scaled(x, by))(X, td.asarray(2.0))


def test_names_that_name_nothing():
    with pytest.raises(DTypeError):
        value("ScalarType", "int33")
    with pytest.raises(DeviceError):
        value("Device", "toaster")


def test_defaults_are_normalised():
    text = (
        "int[2] k=1, ScalarType t=long, float f=2, Layout l=strided, Device d='cpu', bool[2] m=[True,False]"
    )
    assert bind(text) == (((1, 1), td.int64, 2.0, td.strided, "cpu", (True, False)), {})
