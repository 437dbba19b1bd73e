"""The schema language: what is parsed is printed back, and what is wrong is said with its column."""

import keyword

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


names = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))
FORMS = ["", "?", "[]", "[2]", "[]?", "?[]", "[2]?"]
DEFAULTS = {
    "int": ["0", "-3", "7"],
    "SymInt": ["1", "-1"],
    "float": ["0.5", "1e-05", "inf", "-2", "nan"],
    "bool": ["True", "False"],
    "str": ["'mean'", '"x"', "''", r"'it\'s'"],
    "Scalar": ["1", "0.5", "True", "2j"],
    "complex": ["1j", "0"],
    "ScalarType": ["float", "long", "int8"],
    "Layout": ["strided"],
    "MemoryFormat": ["contiguous_format"],
    "Device": ["'cpu'"],
    "Dimname": ["'N'"],
}


@st.composite
def types(draw, aliases):
    base = draw(st.sampled_from(sorted(BASE_TYPES)))
    form = draw(st.sampled_from(FORMS))
    return base, base + (draw(st.sampled_from(aliases)) if base == "Tensor" else "") + form, form


@st.composite
def arguments_of(draw, name, with_default):
    base, text, form = draw(types(["", "(a)", "(a!)", "(b -> *)", "(b|a)"]))
    if not with_default:
        return f"{text} {name}"
    choices = list(DEFAULTS.get(base, []))
    if "[" in form:
        one = draw(st.lists(st.sampled_from(choices), max_size=3)) if choices else []
        choices = [f"[{', '.join(one)}]"] if base in DEFAULTS else []
    if form.endswith("?"):
        choices.append("None")
    return f"{text} {name}={draw(st.sampled_from(choices))}" if choices else f"int[2] {name}=[1, 2]"


@st.composite
def schemas(draw):
    """A schema: first what every call gives, then what has a default, then the keyword-only arguments."""
    found = draw(st.lists(names, unique=True, max_size=6))
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(found))] * 2)))
    parts = ["Tensor(a!) Self", "Tensor(b) Other"]
    parts += [draw(arguments_of(name, index >= first)) for index, name in enumerate(found[:last])]
    if found[last:]:
        parts += ["*", *[draw(arguments_of(name, draw(st.booleans()))) for name in found[last:]]]
    returns = [draw(types(["", "(a)", "(a!)", "(b)", "(b|a)"]))[1] for _ in range(draw(st.integers(0, 3)))]
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
