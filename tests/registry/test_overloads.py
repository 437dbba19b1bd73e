"""Overload resolution: the cached choice equals trying the overloads in turn."""

import pickle
import sys
import threading

import numpy as np
import pytest
import tandem as td
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tandem.errors import ArgumentError, DeviceError, DTypeError, UnknownOperatorError
from tandem.registry.function import functions
from tandem.registry.inventory import dangling_impls
from tandem.registry.namespace import OverloadPacket
from tandem.registry.operator import Operator
from tandem.registry.schemas.overloads import OverloadSet
from tandem.registry.schemas.parser import parse_schema

X = td.asarray([1.0, 2.0])
TENSOR_AND_SCALAR = [
    "f.Tensor(Tensor self, Tensor other) -> Any",
    "f.Scalar(Tensor self, Scalar other) -> Any",
]


def overloads(*texts):
    return OverloadSet(tuple(Operator(parse_schema(f"overloadtest::{text}")) for text in texts))


def chosen(found, *args, **kwargs):
    return found.choose(args, kwargs).schema.overload


# --- the preference -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "texts", [TENSOR_AND_SCALAR, TENSOR_AND_SCALAR[::-1]], ids=["tensor first", "scalar first"]
)
def test_tensors_and_numbers_choose_their_overloads(texts):
    found = overloads(*texts)
    zero_d = td.asarray(2.0)
    for _ in range(2):
        assert chosen(found, X, X) == chosen(found, X, zero_d) == chosen(found, X, np.ones(2)) == "Tensor"
        assert chosen(found, X, 2) == chosen(found, X, 2.5) == chosen(found, X, True) == "Scalar"
        assert chosen(found, X, np.float32(2)) == chosen(found, X, other=3) == "Scalar"


def test_what_nothing_takes_as_it_is_is_converted():
    assert chosen(overloads(TENSOR_AND_SCALAR[0], "f.str(Tensor self, str s) -> Any"), X, 2) == "Tensor"
    found = overloads("f.str(Tensor self, str s) -> Any", TENSOR_AND_SCALAR[1])
    assert chosen(found, X, td.asarray(2.0)) == "Scalar"
    with pytest.raises(ArgumentError, match="no overload"):
        found.choose((X, X), {})
    with pytest.raises(ArgumentError, match="no overload"):
        found.choose((X, td.asarray(2.0, requires_grad=True)), {})


def test_among_equals_the_first_defined_is_taken():
    assert chosen(overloads("f.a(Tensor x, int k) -> Any", "f.b(Tensor x, float k) -> Any"), X, 1) == "a"
    assert chosen(overloads("f.b(Tensor x, float k) -> Any", "f.a(Tensor x, int k) -> Any"), X, 1) == "b"
    assert chosen(overloads("f.a(Tensor x, int k) -> Any", "f.b(Tensor x, float k) -> Any"), X, 1.5) == "b"


def test_lists_select_overload_by_element_type():
    found = overloads(
        "f.ints(Tensor x, int[] k) -> Any",
        "f.tensors(Tensor x, Tensor?[] k) -> Any",
        "f.names(Tensor x, str[] k) -> Any",
    )
    assert chosen(found, X, [1, 2]) == chosen(found, X, []) == "ints"
    assert chosen(found, X, [X, None]) == chosen(found, X, (None,)) == "tensors"
    assert chosen(found, X, ["a"]) == "names"
    with pytest.raises(ArgumentError, match="no overload"):
        found.choose((X, ["a", 1]), {})


def test_strings_select_overload_by_meaning():
    found = overloads("f.dtype(Tensor x, ScalarType k) -> Any", "f.mode(Tensor x, str k) -> Any")
    assert chosen(found, X, "float32") == chosen(found, X, td.int8) == "dtype"
    assert chosen(found, X, "reflect") == "mode"


def test_number_of_arguments_and_keywords():
    found = overloads(
        "f.one(Tensor x) -> Any",
        "f.two(Tensor x, int k) -> Any",
        "f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    )
    assert [chosen(found, X), chosen(found, X, 3), chosen(found, X, k=3), chosen(found, X, out=X)] == [
        "one", "two", "two", "out"
    ]  # fmt: skip


def test_the_error_says_why_each_does_not_fit():
    with pytest.raises(ArgumentError) as caught:
        overloads(*TENSOR_AND_SCALAR).choose((X, "x"), {"alpha": 1})
    text = str(caught.value)
    assert "overloadtest::f takes (float32[2], str 'x', alpha=int 1)" in text
    assert "overloadtest::f.Tensor argument 'other' must be" in text
    assert "overloadtest::f.Scalar argument 'other' must be a Python number" in text


def test_a_decision_is_made_once(monkeypatch):
    found = overloads(*TENSOR_AND_SCALAR)
    chosen(found, X, 2)
    monkeypatch.setattr(OverloadSet, "_search", lambda *args: pytest.fail("decided again"))
    assert chosen(found, td.ones((3, 3)), 7) == "Scalar"


def test_decisions_do_not_pile_up():
    found = overloads("f.dtype(Tensor x, ScalarType k) -> Any", "f.mode(Tensor x, str k) -> Any")
    for k in range(2000):
        chosen(found, X, f"mode{k}")
    assert len(found._by_classes) <= 512 >= len(found.by_types)


# --- as trying each in turn ---------------------------------------------------------------------------------

TYPES = "Tensor Tensor? Tensor[] Tensor?[] int int? float bool str Scalar int[] int[2] float[] bool[]".split()
TYPES += ["ScalarType", "Device", "Any"]
VALUES = [
    X, td.asarray(2.0), td.asarray(3), td.asarray(True), td.asarray(1.0, requires_grad=True), np.ones(2),
    np.arange(2), np.asarray(3), np.float64(1.5), np.int64(2), np.bool_(True), 1, 0.5, True, 1j, None, "x", "int8",
    "cpu", td.float32, float, [], [1], [1, 2], [1.5], [True], [X], [X, None], [None], ["x"], (1, X), {}, object(),
]  # fmt: skip


@st.composite
def sets(draw):
    texts = []
    for index in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, 3))
        kinds = [draw(st.sampled_from(TYPES)) for _ in range(count)]
        parts = [f"{kind} x{i}" for i, kind in enumerate(kinds)]
        if draw(st.booleans()):
            parts.append("int? last=None")
        if draw(st.booleans()):
            parts += ["*", draw(st.sampled_from(["Tensor out", "bool flag=False", "Scalar alpha=1"]))]
        texts.append(f"f.o{index}({', '.join(parts)}) -> Any")
    return texts


calls = st.tuples(
    st.lists(st.integers(0, len(VALUES) - 1), max_size=4),
    st.dictionaries(
        st.sampled_from(["x0", "x1", "x2", "last", "out", "flag", "alpha"]),
        st.integers(0, len(VALUES) - 1),
        max_size=2,
    ),
)


def is_number(value):
    return isinstance(value, (bool, int, float, complex, np.generic))


def unchanged(kind, value):
    """Whether no number becomes a tensor, no tensor a number, and no single value a list."""
    if kind.form == "optional":
        return value is None or unchanged(kind.element, value)
    if kind.form == "list":
        return isinstance(value, (list, tuple)) and all(unchanged(kind.element, item) for item in value)
    if kind.base == "Tensor":
        return not is_number(value)
    if kind.base in ("int", "float", "bool", "Scalar"):
        return not isinstance(value, (td.Tensor, np.ndarray))
    return True


def tried_in_turn(operators, args, kwargs):
    """The reference: bind each overload, the first that takes everything unchanged, else the first that takes it."""
    second = None
    for operator in operators:
        try:
            operator.binder.bind(args, kwargs)
        except (ArgumentError, DTypeError, DeviceError):
            continue
        given = dict(zip((a.name for a in operator.schema.positional), args)) | kwargs
        kinds = {a.name: a.type for a in operator.schema.arguments}
        if all(unchanged(kinds[name], value) for name, value in given.items()):
            return operator
        second = second or operator
    return second


@settings(max_examples=200)
@given(sets(), st.lists(calls, min_size=1, max_size=6))
@example(
    ["f.o0(Tensor x0, int[] x1) -> Any"], [([0], {})]
)  # a list of sizes that ends a call may be left out
def test_overload_choice_equals_trying_each_in_order(texts, made):
    found = overloads(*texts)
    for places, named in made * 2:  # the second time from memory
        args = tuple(VALUES[i] for i in places)
        kwargs = {name: VALUES[i] for name, i in named.items()}
        expected = tried_in_turn(found.operators, args, kwargs)
        try:
            decided = found.choose(args, kwargs)
        except ArgumentError:
            decided = None
        assert decided is expected


# --- td.ops -------------------------------------------------------------------------------------------------


@pytest.fixture
def library():
    with td.Library("overloadtest", "DEF") as found:
        yield found


def define(library, text, answer):
    handle = library.define(text)
    name = text.partition("(")[0]
    library.impl(name, lambda *args, **kwargs: answer, "CompositeImplicit")
    return handle


def test_td_ops_calls_the_overload(library):
    for text in TENSOR_AND_SCALAR:
        define(library, text, text[2:8])
    f = td.ops.overloadtest.f
    assert f(X, X) == "Tensor" and f(X, 2) == "Scalar" and f.Scalar(X, 2) == "Scalar"
    assert f.overloads() == ["Tensor", "Scalar"]


def test_resolved_overload_is_cached(library):
    define(library, "g(Tensor x) -> Any", 1)
    packet = td.ops.overloadtest.g
    assert td.ops.overloadtest.g is packet and packet.default is packet.default
    assert packet.default is functions["overloadtest::g"]
    assert "overloadtest" in vars(td.ops) and "g" in vars(td.ops.overloadtest)


def test_names_with_underscores(library):
    define(library, "__iadd__(Tensor x) -> Any", 1)
    assert td.ops.overloadtest.__iadd__(X) == 1
    assert not hasattr(td.ops.overloadtest, "__wrapped__") and not hasattr(td.ops, "__wrapped__")


def test_held_packet_sees_new_overload(library):
    define(library, TENSOR_AND_SCALAR[0], "Tensor")
    kept = td.ops.overloadtest.f
    assert kept(X, 2) == "Tensor"
    define(library, TENSOR_AND_SCALAR[1], "Scalar")
    assert kept(X, 2) == td.ops.overloadtest.f(X, 2) == "Scalar"
    assert kept.overloads() == ["Tensor", "Scalar"] and kept.Scalar(X, 2) == "Scalar"


def test_held_packet_of_undefined_operator_raises(library):
    handle = define(library, "g(Tensor x) -> Any", 1)
    kept = td.ops.overloadtest.g
    for _ in range(3):
        assert kept(X) == 1
    handle.remove()
    for _ in range(2):
        with pytest.raises(UnknownOperatorError, match="no operator overloadtest::g"):
            kept(X)
    with pytest.raises(UnknownOperatorError):
        kept.default  # noqa: B018
    with pytest.raises(AttributeError):
        td.ops.overloadtest.g  # noqa: B018
    with td.Library("overloadtest", "FRAGMENT") as again:
        again.define("g(Tensor x) -> Any")
        again.impl(
            "g", lambda x: 2, "CPU", **({"allow_override": True} if "allow_override" in ALLOWED else {})
        )
        assert td.ops.overloadtest.g(X) == kept(X) == kept.default(X) == 2


ALLOWED = td.Library.impl.__code__.co_varnames


def test_the_default_answers_for_the_operator(library):
    define(library, "g(Tensor x) -> Any", 1)
    library.impl("g", lambda x: 5, "CPU")
    for op in (td.ops.overloadtest.g, td.ops.overloadtest.g.default):
        assert op.schema.name == "g" and op.call_for_key("CPU", X) == 5 and op.get_kernel("CPU")(X) == 5
        assert op.redispatch(td.DispatchKeySet("CPU"), X) == 5
    assert td.ops.overloadtest.g.default.operator.schema is td.ops.overloadtest.g.schema
    define(library, "g.more(Tensor x, int k) -> Any", 1)
    with pytest.raises(UnknownOperatorError, match="several overloads"):
        td.ops.overloadtest.g.redispatch  # noqa: B018


def test_pickled_and_shown(library):
    define(library, "g.o(Tensor x) -> Any", 1)
    packet = td.ops.overloadtest.g
    assert pickle.loads(pickle.dumps(packet)) is packet
    assert pickle.loads(pickle.dumps(packet.o)) is packet.o
    assert repr(packet) == "<operator packet overloadtest::g: o>"
    assert repr(packet.o) == "<function overloadtest.g.o>" and "g" in dir(td.ops.overloadtest)


def test_packet_shares_native_entry_of_its_overload():
    x = td.ones((4,))
    packet = td.ops.td.sinh
    function = packet.default
    assert function in [function] and packet in function.followers
    for _ in range(400):
        assert packet(x).shape == (4,)
    assert isinstance(packet, OverloadPacket)
    with td.Library("td", "IMPL") as shadow:
        options = {"allow_override": True} if "allow_override" in ALLOWED else {}
        shadow.impl("sinh", lambda v: v, "CPU", **options)
        assert packet(x) is x and td.ops.td.sinh(x) is x and function(x) is x
    assert packet(x) is not x


def test_defining_and_calling_in_threads():
    """Who calls sees one overload or two, or none at all; never one that is gone."""
    stop = threading.Event()
    faults = []

    def call():
        while not stop.is_set():
            try:
                found = td.ops.overloadthreads.f(X, 2)
                assert found in (1, 2), found
            except (UnknownOperatorError, td.errors.NoKernelError):
                pass
            except Exception as fault:
                faults.append(fault)
                return

    def list_names():
        while not stop.is_set():
            try:
                dir(td.ops), dir(td.ops.td), dangling_impls()
            except Exception as fault:
                faults.append(fault)
                return

    threads = [threading.Thread(target=target) for target in (call, call, call, list_names)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads alternate within the loops that look operators up
    try:
        for thread in threads:
            thread.start()
        for _ in range(150):
            with td.Library("overloadthreads", "DEF") as library:
                define(library, TENSOR_AND_SCALAR[0], 1)
                define(library, TENSOR_AND_SCALAR[1], 2)
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not faults


def test_empty_namespace_is_forgotten():
    """Its object is not kept, and a reference to it finds operators that are defined later."""
    with td.Library("forgotten", "DEF") as library:
        library.define("g(Tensor x) -> Tensor")
        library.impl("g", lambda x: x + 1, "CPU")
        held = td.ops.forgotten
        assert held.g(td.asarray(1.0)).item() == 2
    assert "forgotten" not in vars(td.ops)
    with pytest.raises(td.errors.UnknownOperatorError):
        held.g  # noqa: B018
    assert "forgotten" not in vars(td.ops)
    for step in (10, 20):
        with td.Library("forgotten", "DEF") as library:
            library.define("g(Tensor x) -> Tensor")
            library.impl("g", lambda x, step=step: x + step, "CPU")
            assert held.g(td.asarray(1.0)).item() == td.ops.forgotten.g(td.asarray(1.0)).item() == 1 + step
            assert held.g is td.ops.forgotten.g
