"""The schema language: what is parsed is printed back, and what is wrong is said with its column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tandem.errors import SchemaError
from tandem.registry.schema_parser import BASE_TYPES, parse_schema

GOOD = [
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    "t(Tensor(a) self) -> Tensor(a)",
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "ns::f.o(Tensor(a!)[] xs, int[2] k=1) -> Tensor(a!)[]",
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=[0,0]) -> Tensor",
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, Generator? generator=None) -> Tensor",
    "linalg_norm(Tensor self, str ord='fro', float rcond=1e-15) -> ()",
    "to(Tensor(a) self, Device device, MemoryFormat? memory_format=None) -> Tensor(a)",
    "nothing() -> ()",
]


@pytest.mark.parametrize("text", GOOD)
def test_printed_back(text):
    assert str(parse_schema(text)) == text


BAD = [
    ("add(Tensor self) Tensor", 17, "'->'"),
    ("add(Tensr self) -> Tensor", 4, "a type"),
    ("add(Tensor self, Tensor self) -> Tensor", 24, "taken"),
    ("add(Tensor self, int k=1, int j) -> Tensor", 30, "default"),
    ("add(Tensor self, int k='a) -> Tensor", 23, "a string"),
    ("add(Tensor self, bool k=1) -> Tensor", 24, "of type bool"),
    ("add(Tensor(a self) -> Tensor", 13, "')'"),
    ("add(Tensor self) -> Tensor extra junk", 33, "the end"),
    ("(Tensor self) -> Tensor", 0, "operator name"),
    ("add(Tensor self", 15, "','"),
    ("add(int[x] k) -> Tensor", 8, "list size"),
    ("", 0, "operator name"),
]


@pytest.mark.parametrize(("text", "column", "expected"), BAD)
def test_fault_has_its_column(text, column, expected):
    with pytest.raises(SchemaError, match="column") as caught:
        parse_schema(text)
    assert caught.value.column == column
    assert expected in str(caught.value)


def test_schema_is_text():
    with pytest.raises(SchemaError, match="string"):
        parse_schema(3)  # type: ignore[arg-type]


def test_what_a_schema_says():
    schema = parse_schema("add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)")
    assert schema.is_mutable and not schema.is_view
    assert [argument.name for argument in schema.positional] == ["self", "other"]
    assert parse_schema("t(Tensor(a) self) -> Tensor(a)").is_view


names = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
aliases = st.sampled_from(["", "(a)", "(a!)", "(a -> *)", "(a|b)"])


@st.composite
def types(draw):
    text = draw(st.sampled_from(sorted(BASE_TYPES)))
    text += draw(aliases) if text == "Tensor" else ""
    return text + draw(st.sampled_from(["", "?", "[]", "[2]", "[]?", "?[]"]))


@st.composite
def schemas(draw):
    arguments = draw(st.lists(names, unique=True, max_size=5))
    parts = [f"{draw(types())} {name}" for name in arguments]
    if parts:
        parts.insert(draw(st.integers(0, len(parts) - 1)), draw(st.sampled_from(["", "*"])))
    returns = draw(st.lists(types(), max_size=3))
    result = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
    return f"{draw(names)}({', '.join(part for part in parts if part)}) -> {result}"


@given(schemas())
def test_any_schema_is_printed_back(text):
    assert str(parse_schema(text)) == text


@given(st.data(), st.sampled_from(GOOD))
def test_damaged_text_gives_a_schema_or_a_schema_error(data, text):
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = (
        text[:at] + data.draw(st.sampled_from(["", "(", ")", "!", "*", "é", "\x00", "[["])) + text[at + 1 :]
    )
    try:
        schema = parse_schema(damaged)
    except SchemaError as fault:
        assert fault.column is not None and 0 <= fault.column <= len(damaged)
    else:
        assert parse_schema(str(schema)) == schema
