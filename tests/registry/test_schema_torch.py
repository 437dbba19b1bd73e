"""The schema language compared with PyTorch's: schemas, parsers, compatibility check, inference."""

import importlib.util
import random
import re
import warnings
from functools import cache
from pathlib import Path

import pytest
import tandem as td
from tandem.errors import SchemaError
from tandem.registry.schemas.parser import parse_schema
from tandem.registry.schemas.schema import Argument

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torchgen") is None,
    reason="PyTorch is not installed",
)
TOKEN = re.compile(r"->|\w+(?:\.\d+)?|\s+|.")


@cache
def torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch as found
    return found


@cache
def torch_schemas():
    """The text of every schema of PyTorch."""
    import torchgen

    path = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
    found = re.findall(r"^- func: (.*?)$", path.read_text(), flags=re.MULTILINE)
    return [text.strip().strip('"') if text.startswith('"') else text.strip() for text in found]


def test_every_schema_is_printed_back():
    texts = torch_schemas()
    assert len(texts) >= 2000
    assert [str(parse_schema(text)) for text in texts] == texts


def plain(text):
    return re.sub(r"\([^)]*\)", "", str(text))


def alias_of(kind):
    found = kind.aliases()
    return (found[0].before, found[0].is_write, found[0].after or ()) if found else None


def annotation(of):
    return (tuple(of.alias_set), of.is_write, tuple(of.alias_set_after)) if of else None


def test_structure_is_torchgens():
    from torchgen.model import FunctionSchema

    for text in torch_schemas():
        ours, theirs = parse_schema(text), FunctionSchema.parse(text)
        assert (ours.name, ours.overload) == (str(theirs.name.name), theirs.name.overload_name)
        assert [
            (a.name, plain(a.type), a.default_text or None, alias_of(a.type)) for a in ours.arguments
        ] == [(a.name, str(a.type), a.default, annotation(a.annotation)) for a in theirs.arguments.flat_all]
        assert [a.name for a in ours.arguments if a.kwarg_only] == [
            a.name for a in (*theirs.arguments.flat_kwarg_only, *theirs.arguments.out)
        ]
        assert [(r.name or None, plain(r.type), alias_of(r.type)) for r in ours.returns] == [
            (r.name, str(r.type), annotation(r.annotation)) for r in theirs.returns
        ]
        written_self = ours.arguments and ours.arguments[0].is_write
        if not (
            written_self and theirs.kind().name == "functional"
        ):  # torchgen overlooks retain_grad and two more
            assert ours.kind == theirs.kind().name, text


def test_defaults_and_mutation_are_the_dispatchers():
    for text in torch_schemas():
        ours, theirs = parse_schema(text), torch()._C.parse_schema(text)
        assert (ours.is_mutable, ours.is_view) == (theirs.is_mutable, theirs._is_view_op()), text
        for a, b in zip(ours.arguments, theirs.arguments, strict=True):
            assert a.has_default == b.has_default_value()
            if a.has_default and a.type.core not in ("ScalarType", "Layout", "MemoryFormat"):
                value = list(a.default) if isinstance(a.default, tuple) else a.default
                if isinstance(b.default_value, list) and not isinstance(value, list):
                    value = [value] * len(b.default_value)
                assert value == b.default_value, text


def places(schema):
    c = torch()._C
    kinds = (c._SchemaArgType.input, schema.arguments), (c._SchemaArgType.output, schema.returns)
    return [(c._SchemaArgument(kind, i), place) for kind, found in kinds for i, place in enumerate(found)]


def test_aliasing_is_the_dispatchers():
    """Between a tensor and a list PyTorch asks `may_contain_alias`; tandem has one question for both."""
    for text in random.Random(0).sample(torch_schemas(), 700):
        schema = parse_schema(text)
        info = torch()._C._SchemaInfo(torch()._C.parse_schema(text))
        for one, mine in places(schema):
            for other, theirs in places(schema):
                if mine is theirs:
                    continue
                found = schema.may_alias(mine, theirs)
                if mine.type.is_list or theirs.type.is_list:
                    assert info.may_alias(one, other) <= found <= info.may_contain_alias(one, other), text
                else:
                    assert found == info.may_alias(one, other), text


# --- bad schemas --------------------------------------------------------------------------------------------


def mutants(seed, count):
    """Schemas of PyTorch with one or two tokens deleted, inserted, exchanged or replaced."""
    rng = random.Random(seed)
    tokens = [TOKEN.findall(text) for text in torch_schemas()]
    pool = [token for text in tokens for token in text if not token.isspace()]
    for _ in range(count):
        parts = list(rng.choice(tokens))
        for _ in range(rng.choice([1, 1, 1, 2])):
            at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
            match rng.randrange(4):
                case 0:
                    parts[at] = ""
                case 1:
                    parts.insert(at, rng.choice(pool))
                case 2:
                    parts[at], parts[other] = parts[other], parts[at]
                case 3:
                    parts[at] = rng.choice(pool)
        yield "".join(parts)


def verdict(text):
    """What PyTorch's parser says: None, or its complaint."""
    try:
        torch()._C.parse_schema(text)
    except (RuntimeError, IndexError, ValueError) as fault:
        return str(fault)
    return None


# What PyTorch's parser lets pass and tandem's does not, by what tandem says.
STRICTER = (
    "expected a type",  # TorchScript's type variables and tuples are not types of operators
    "which no argument is in",  # PyTorch never looks whether an alias set exists
    "a result that is not written",  # ... nor whether a result is written that its argument is not
    "which is taken",  # two arguments of one name could not be told apart in a call
    "expected a default of type",  # `int k=1.5`, `Tensor x=None`, `bool b=1`
    "shares no storage",  # an alias set on a number
    "an argument name, found '!",  # `Tensor! x`: an alias set without a name
    "found '! ",
    "found '!",
    "expected an argument name, found '(",
    "expected an argument name, found '...",
    "expected ',', found ')",  # `*` at the end
)


def test_mutated_schemas_rejected_by_pytorch_are_rejected():
    refused, stricter = 0, []
    for text in mutants(seed=7, count=3000):
        complaint = verdict(text)
        try:
            parse_schema(text)
        except SchemaError as fault:
            assert fault.column is not None and 0 <= fault.column <= len(text), text
            assert "expected" in str(fault)
            refused += complaint is not None
            if complaint is None and not any(reason in str(fault) for reason in STRICTER):
                stricter.append((text, str(fault)))
        else:
            assert complaint is None, (text, complaint)
    assert refused > 2000
    assert not stricter


DIFFERENCES = [
    # tandem reads what PyTorch does not
    ("f(Dimname d) -> ()", True, False),
    ("f(float k=inf) -> ()", True, False),
    ("f(str[] k=['a', 'b']) -> ()", True, False),
    ("f(int[]? k=[1]) -> ()", True, False),
    ("f(Scalar[] k=[1, 2.5]) -> ()", True, False),
    ("f(MemoryFormat m=channels_last) -> ()", True, False),
    # PyTorch reads what tandem does not
    ("f(Tensor a, Tensor a) -> ()", False, True),
    ("f(Tensor a, *) -> ()", False, True),
    ("f(Tensor a, *, *, int b) -> ()", False, True),
    ("f(int k=1.5) -> ()", False, True),
    ("f(Tensor a=None) -> ()", False, True),
    ("f(Tensor a) -> Tensor(a)", False, True),
    ("f(Tensor(a) a) -> Tensor(a!)", False, True),
    ("f(int(a) k) -> ()", False, True),
    ("f(t[] xs) -> t", False, True),
    ("f(Tensor a) -> (Tensor x, Tensor x)", False, True),
    # both agree
    ("f(int[0] k) -> ()", True, True),
    ("f(int[2] k=[1, 2, 3]) -> ()", True, True),
    ("f(Tensor (a!) x) -> Tensor [ ]", True, True),
    ("f(...) -> ...", True, True),
    ("f(Tensor(a!)? x) -> ()", True, True),
    ("f(Tensor?(a!) x) -> ()", False, False),
    ("f(Tensor(a! -> a|b) x) -> Tensor(b)", True, True),
    ("f(int k=+1) -> ()", False, False),
    ("f(int k=99999999999999999999) -> ()", False, False),
    ("f(int[] k=1) -> ()", False, False),
    ("f(int k=foo) -> ()", False, False),
    ("f.default(Tensor x) -> ()", False, False),
    ("f.__x(Tensor x) -> ()", False, False),
    ("f(Tensor for) -> ()", False, False),
    ("f(int k=1, int j) -> ()", False, False),
]


@pytest.mark.parametrize(("text", "ours", "theirs"), DIFFERENCES)
def test_differences_are_these(text, ours, theirs):
    assert (verdict(text) is None) == theirs
    try:
        parse_schema(text)
    except SchemaError:
        assert not ours
    else:
        assert ours


# --- backward compatibility ---------------------------------------------------------------------------------

TYPES = (
    "Tensor Tensor? Tensor(a) Tensor(a!) int SymInt int? float float? Scalar Scalar? bool str int[] int[2] int[2]? "
    "SymInt[] int[]? Tensor[] Tensor?[] Any complex Device?"
).split()
DEFAULTS = {
    "int": "1",
    "SymInt": "1",
    "float": "1.0",
    "Scalar": "1",
    "bool": "True",
    "str": '"x"',
    "int[2]": "1",
}
RESULTS = "Tensor Tensor? int Scalar Tensor[]".split()


class Pair:
    """An old schema and a new one, made from it by a few changes of the kinds that both sides rule on.

    Where the two differ on purpose there are no changes: new arguments in front of keyword-only ones, another order of
    these, and a new `out` argument.
    """

    def __init__(self, rng):
        self.rng = rng
        self.count = 0
        first = rng.randint(1, 3)
        self.positional = [self.argument(i >= first) for i in range(rng.randint(first, 4))]
        self.keyword = [self.last(rng.random() < 0.5) for _ in range(rng.randint(0, 2))]
        self.out = rng.random() < 0.25 and not self.keyword
        self.returns = [[rng.choice(RESULTS), rng.choice(["", f"r{i}"])] for i in range(rng.randint(1, 2))]
        self.old = self.text()
        for _ in range(rng.randint(0, 2)):
            self.change()
        self.new = self.text()

    def argument(self, with_default):
        self.count += 1
        kind = self.rng.choice(TYPES)
        if with_default and kind not in DEFAULTS and not kind.endswith("?"):
            kind = "int"
        default = ("None" if kind.endswith("?") else DEFAULTS[kind]) if with_default else ""
        return [kind, f"x{self.count}", default]

    def last(self, with_default):
        """A keyword-only argument; one that is written would be an `out`."""
        kind, name, default = self.argument(with_default)
        return ["Tensor" if kind == "Tensor(a!)" else kind, name, default]

    def change(self):
        rng = self.rng
        match rng.randrange(6):
            case 0 if not self.keyword:
                self.positional.append(self.argument(True))
            case 1 if not self.out:
                self.keyword.append(self.last(rng.random() < 0.7))
            case 2:
                argument = rng.choice(self.positional + self.keyword)
                if not argument[2]:
                    argument[0] = rng.choice([kind for kind in TYPES if kind != "Tensor(a!)"])
            case 3:
                rng.choice(self.returns)[0] = rng.choice(RESULTS)
            case 4:
                argument = rng.choice(self.positional + self.keyword)
                argument[2] = "" if argument[2] and argument in self.keyword else argument[2]
            case 5:
                rng.choice(self.positional)[1] += "_"

    def text(self):
        shown = [f"{kind} {name}" + f"={default}" * bool(default) for kind, name, default in self.positional]
        last = [f"{kind} {name}" + f"={default}" * bool(default) for kind, name, default in self.keyword]
        last += ["Tensor(z!) out"] * self.out
        results = [f"{kind} {name}".strip() for kind, name in self.returns]
        result = results[0] if len(results) == 1 else f"({', '.join(results)})"
        return f"f({', '.join(shown + ['*'] * bool(last) + last)}) -> {result}"


def test_compatibility_is_the_dispatchers():
    rng = random.Random(11)
    verdicts = []
    for _ in range(2000):
        pair = Pair(rng)
        try:
            old, new = torch()._C.parse_schema(pair.old), torch()._C.parse_schema(pair.new)
            theirs = new.is_backward_compatible_with(old)
        except (RuntimeError, ValueError):  # its parser has trouble with complex, its check with Any
            continue
        ours = parse_schema(pair.new).incompatibilities(parse_schema(pair.old))
        assert (not ours) == theirs, (pair.old, pair.new, ours)
        verdicts.append(theirs)
    assert len(verdicts) > 1500 and 200 < sum(verdicts) < len(verdicts) - 200


# --- inference ----------------------------------------------------------------------------------------------

SOURCES = """
def f(x: Tensor, y: Optional[Tensor] = None, *, k: int = 1) -> Tensor: ...
def f(xs: list[Tensor], ys: Sequence[Optional[Tensor]], a: float = 0.5, c: str = "m") -> tuple[Tensor, Tensor]: ...
def f(x: Tensor, n: Optional[list[int]] = None, s: Optional[Sequence[float]] = None) -> None: ...
def f(x: "Tensor", b: "bool" = True) -> "Tensor": ...
def f(x: Tensor, d: DType, e: Optional[DType] = None) -> list[Tensor]: ...
def f(x: Tensor, w: Optional[float] = None) -> int: ...
def f(x: Tensor, xs: List[Tensor], *, out: Tensor) -> Tuple[Tensor, int, float, bool]: ...
def f(x: Tensor, b: List[bool], c: Optional[List[bool]], z: Optional[str] = "q") -> Tensor: ...
def f(x: Tensor, b: bool = True, i: int = -3, g: float = -1e-07) -> Tensor: ...
def f(x, y: Tensor) -> Tensor: ...
def f(x: Tensor): ...
def f(*x: Tensor) -> Tensor: ...
def f(x: dict) -> Tensor: ...
def f(x: tuple[int, int]) -> Tensor: ...
def f(x: Tensor, /) -> Tensor: ...
def f(x: Tensor) -> str: ...
def f(x: "NoSuchName") -> Tensor: ...
""".strip().splitlines()


def inferred(source, scope, infer, mutates):
    names = {**scope}
    exec(f"from typing import *\n{source}", names)
    try:
        return str(infer(names["f"], mutates_args=mutates, op_name="f"))
    except (ValueError, SchemaError):
        return "refused"


@pytest.mark.parametrize("mutates", [(), "unknown", ["x"]], ids=str)
@pytest.mark.parametrize("source", SOURCES)
def test_inference_is_pytorchs(source, mutates):
    scope = {"Tensor": torch().Tensor, "DType": torch().dtype}
    theirs = inferred(source, scope, torch().library.infer_schema, mutates)
    ours = inferred(source, {"Tensor": td.Tensor, "DType": type(td.float32)}, td.infer_schema, mutates)
    assert ours == theirs
    if ours != "refused":
        assert all(isinstance(argument, Argument) for argument in parse_schema(ours).arguments)
