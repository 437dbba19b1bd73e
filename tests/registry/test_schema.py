"""The schema language: parsing and printing are inverse, and errors give the column."""

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tandem.errors import SchemaError
from tandem.registry.schemas.parser import BASE_TYPES, parse_schema

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
    ("add(Tensor a) -> Tensor(a)", 17, "no argument is in"),
    ("add(Tensor(a) a) -> Tensor(a!)", 20, "not written"),
    ("add(Tensor a) -> (Tensor x, Tensor x)", 35, "taken"),
    ("add(Tensor a, *) -> Tensor", 15, "','"),
    ("add(Tensor a, *, *, int b) -> Tensor", 17, "a type"),
    ("add(Tensor a,) -> Tensor", 13, "a type"),
    ("add(int(a) k) -> Tensor", 7, "shares no storage"),
    ("add(Tensor?(a) k) -> Tensor", 11, "argument name"),
    ("add(Tensor(a!|b) k) -> Tensor", 13, "')'"),
    ("add(Tensor(a -> b!) k) -> Tensor", 17, "')'"),
    ("add(Tensor() k) -> Tensor", 11, "alias set"),
    ("add(int k=1.5) -> Tensor", 10, "of type int"),
    ("add(int k=9223372036854775808) -> Tensor", 10, "of type int"),
    ("add(int k=foo) -> Tensor", 10, "of type int"),
    ("add(int k=+1) -> Tensor", 10, "default value"),
    ("add(int[] k=1) -> Tensor", 12, "of type int[]"),
    ("add(int[2] k=[1,]) -> Tensor", 16, "default value"),
    ("add(int[2] k=[1 2]) -> Tensor", 16, "','"),
    ("add(Tensor x=None) -> Tensor", 13, "of type Tensor"),
    ("add(ScalarType t=int33) -> Tensor", 17, "of type ScalarType"),
    ("add(Layout t=dense) -> Tensor", 13, "of type Layout"),
    ("add(str t=mean) -> Tensor", 10, "of type str"),
    ("add(str t='a\\c') -> Tensor", 10, "a string"),
    ("add.default(Tensor x) -> Tensor", 4, "overload name"),
    ("add.__x(Tensor x) -> Tensor", 4, "overload name"),
    ("a::b::c(Tensor x) -> Tensor", 4, "'('"),
    ("add(Tensor if) -> Tensor", 11, "cannot be"),
    ("add(..., Tensor x) -> Tensor", 7, "')'"),
    ("add(Tensor x) -> Tensor, Tensor", 23, "the end"),
    ("add(Tensor x) -> ((Tensor))", 18, "a type"),
    ("add(Tensor x) -> (Tensor,)", 25, "a type"),
    ("add(int[-1] x) -> Tensor", 8, "list size"),
]


@pytest.mark.parametrize(("text", "column", "expected"), BAD)
def test_fault_has_its_column(text, column, expected):
    with pytest.raises(SchemaError, match="column") as caught:
        parse_schema(text)
    assert caught.value.column == column
    assert expected in str(caught.value)


def broken(text):
    """Schemas made from a good one that none can be, each by one damage."""
    head, arrow, tail = text.partition(" -> ")
    name, _, arguments = head.partition("(")
    yield f"{head} {tail}"
    yield f"{head} -> "
    yield f"{head[:-1]} -> {tail}"
    yield f"{name}{arguments} -> {tail}"
    yield f"{name}(({arguments} -> {tail}"
    yield f"{text})"
    yield f"{text} -> {tail}"
    yield f"{name}(Tensr first, {arguments} -> {tail}"
    yield f"{name}(int k=, {arguments} -> {tail}"
    yield f"{name}(Tensor twice, Tensor twice, {arguments} -> {tail}"
    yield f"{name}(*, *, {arguments} -> {tail}"
    yield f"{name}(int k=1, Tensor after) -> {tail.replace('(a)', '').replace('(a!)', '')}"
    yield f"3{text}"
    yield f"{head}{arrow}({tail}"


@pytest.mark.parametrize("text", GOOD)
def test_any_damage_is_refused_with_its_column(text):
    made = list(broken(text))
    for damaged in made:
        with pytest.raises(SchemaError, match="expected") as caught:
            parse_schema(damaged)
        assert caught.value.column is not None and 0 <= caught.value.column <= len(damaged), damaged
    assert len(made) * len(GOOD) > 150


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int k=-3", -3),
        ("int reduction=Mean", 1),
        ("float k=1e-05", 1e-05),
        ("float k=2.", 2.0),
        ("float k=-inf", float("-inf")),
        ("bool k=True", True),
        ("str k='mean'", "mean"),
        ('str k="a, b"', "a, b"),
        (r"str k='it\'s'", "it's"),
        (r'str k="\"\n"', '"\n'),
        ("Scalar k=0.5", 0.5),
        ("Scalar k=True", True),
        ("complex k=2j", 2j),
        ("int[2] k=1", 1),
        ("int[] k=[]", ()),
        ("bool[3] k=[True,False,True]", (True, False, True)),
        ("float[] k=[1.0, 2]", (1.0, 2)),
        ("int[]? k=None", None),
        ("int?[] k=[1, None]", (1, None)),
        ("ScalarType k=float", "float32"),
        ("ScalarType k=long", "int64"),
        ("ScalarType k=int8", "int8"),
        ("Layout k=strided", "strided"),
        ("MemoryFormat k=contiguous_format", "contiguous_format"),
        ("Device k='cpu'", "cpu"),
        ("Dimname k='N'", "N"),
        ("Generator? k=None", None),
    ],
)
def test_defaults(text, value):
    schema = parse_schema(f"f({text}) -> ()")
    assert str(schema) == f"f({text}) -> ()"
    found = schema.arguments[0].default
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "kind", "view"),
    [
        ("add(Tensor self) -> Tensor", "functional", False),
        ("t(Tensor(a) self) -> Tensor(a)", "functional", True),
        ("add_(Tensor(a!) self) -> Tensor(a!)", "inplace", False),
        ("__iadd__(Tensor(a!) self) -> Tensor(a!)", "inplace", False),
        ("__and__(Tensor self) -> Tensor", "functional", False),
        ("add.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "out", False),
        ("fill(Tensor self, Tensor(a!) into) -> ()", "mutable", False),
        ("retain(Tensor(a!) self) -> ()", "mutable", False),
        ("_foreach_add_(Tensor(a!)[] self) -> ()", "inplace", False),
    ],
)
def test_kinds(text, kind, view):
    schema = parse_schema(text)
    assert (schema.kind, schema.is_view) == (kind, view)
    assert schema.is_mutable == (kind != "functional")


def test_may_alias():
    schema = parse_schema(
        "f(Tensor(a|b) x, Tensor(b!) y, Tensor(c -> *) z, Tensor w) -> (Tensor(a) p, Tensor(c)[] q)"
    )
    assert schema.may_alias("x", "y") and schema.may_alias("x", "p") and schema.may_alias("z", "q")
    assert schema.may_alias("z", "x")  # a wildcard may be anything that is annotated
    assert (
        not schema.may_alias("y", "p") and not schema.may_alias("w", "z") and not schema.may_alias("w", "w")
    )
    assert schema.may_alias(schema.arguments[0], schema.returns[0])
    with pytest.raises(SchemaError, match="no result 'nothing'"):
        schema.may_alias("x", "nothing")


def test_compatibility():
    def reasons(old, new):
        return parse_schema(new).incompatibilities(parse_schema(old))

    old = "f(Tensor x, int k=1, *, Scalar alpha=1, Tensor(a!) out) -> Tensor"
    assert not reasons(old, old)
    assert not reasons(
        old, "f(Tensor? x, Scalar k=1, bool more=True, *, int b=2, Tensor(a!) out, Scalar alpha=1) -> Tensor"
    )
    for new, reason in [
        ("g(Tensor x, int k=1, *, Scalar alpha=1, Tensor(a!) out) -> Tensor", "the name is g"),
        (
            "f(Tensor x, int k=2, *, Scalar alpha=1, Tensor(a!) out) -> Tensor",
            "default of 'k' is 2, it was 1",
        ),
        ("f(Tensor x, int k, *, Scalar alpha=1, Tensor(a!) out) -> Tensor", "default of 'k' is gone"),
        ("f(int k, Tensor x, *, Scalar alpha=1, Tensor(a!) out) -> Tensor", "'x' has moved"),
        ("f(Tensor x, *, int k=1, Scalar alpha=1, Tensor(a!) out) -> Tensor", "'k' has become keyword-only"),
        ("f(Tensor x, int k=1, *, Scalar alpha=1) -> Tensor", "'out' is gone"),
        (
            "f(Tensor x, int k=1, *, int alpha=1, Tensor(a!) out) -> Tensor",
            "takes int, which is not all of Scalar",
        ),
        ("f(Tensor x, int k=1, *, Scalar alpha=1, Tensor(b!) out) -> Tensor", "alias annotation differs"),
        ("f(Tensor x, int k=1, *, Scalar alpha=1, Tensor(a!) out, int n) -> Tensor", "'n' has no default"),
        ("f(Tensor x, int k=1, *, Scalar alpha=1, Tensor(a!) out) -> Tensor?", "which is not always Tensor"),
        ("f(Tensor x, int k=1, *, Scalar alpha=1, Tensor(a!) out) -> Tensor y", "named 'y'"),
        ("f(Tensor x, int k=1, *, Scalar alpha=1, Tensor(a!) out) -> ()", "0 results"),
        ("f(Tensor x, int k=1, *, Scalar alpha=1, Tensor(a!) out, ...) -> Tensor", "'...'"),
    ]:
        found = reasons(old, new)
        assert any(reason in one for one in found), (new, found)
        assert not parse_schema(new).is_backward_compatible_with(parse_schema(old))


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
def test_damaged_schema_parses_or_raises_schema_error(data, text):
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
