"""The page of one operator, in Markdown, from its declaration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tandem as td
from tandem import config
from tandem.backends.cuda.load import strategy_of
from tandem.cli.catalogue import derivative_of, native_share
from tandem.debug.differences import DEFAULT_DTYPES, DIFFERENCES
from tandem.eager.tensor.inplace import functional
from tandem.eager.tensor.type_stubs import format_function
from tandem.operators.declare.declaration import Declaration
from tandem.operators.declare.derivatives import Custom, Linear, NotDifferentiable, Partials, Rule, RuleFn
from tandem.registry.dispatch.tables import dispatch_table
from tandem.registry.dtypes import COMPLEX, FLOATS, INTEGERS, DType, bool_
from tandem.registry.function import function_of
from tandem.registry.operator import Operator
from tandem.registry.schemas.spellings import CallSpellings

from . import docstrings
from .examples import run_example
from .formulas import definition
from .inventory import Entry, entries, families
from .sources import body_of, location

SECTIONS = ("Signature", "Names", "Definition", "Derivative", "Kernels", "Example", "See also")
"""The headings that every page has; those of arguments, results and errors follow its docstring."""
KEYS = ("CPU", "CUDA", "Meta", "SparseCPU", "QuantizedCPU", "AutogradCPU", "Batched", "AutocastCPU")
LAYOUT_KEYS = ("SparseCPU", "QuantizedCPU")
"""Keys that are listed only for operators with a kernel of their own."""
CUDA_KERNELS = {
    "emitted": "a kernel in CUDA C",
    "view": "a view; elements are copied only where its layout demands it",
    "library": "the array kernel, run by CuPy",
    "none": "no kernel",
}
RESULTS = {
    "same": "the promoted dtype of the arguments",
    "float": "the promoted dtype, or the default float for integers and bools",
    "bool": "bool",
    "real": "the promoted dtype, or its real part's for complex numbers",
    "complex": "the complex dtype whose parts have the promoted dtype",
}
AUTOCAST = {
    "lower": "runs in the lower precision",
    "float32": "runs in float32",
    "promote": "runs in the widest dtype among the arguments",
}


def fence(code: str, language: str = "python") -> str:
    """A block of code."""
    ticks = "````" if "```" in code else "```"
    return f"{ticks}{language}\n{code}\n{ticks}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def link(name: str, folder: str = "") -> str:
    """A link to the page of an operator."""
    entry = entries()[name]
    return f"[`{entry.title}`]({folder}{entry.page}.md)"


def first_sentence(entry: Entry) -> str:
    """The first sentence of an operator's documentation, for indices."""
    return docstrings.to_markdown(" ".join(docstrings.parse(entry.overloads[0].decl.doc).summary.split()))


def operator_page(entry: Entry) -> str:
    """The text of the page of an operator."""
    blocks = [f"# {entry.title}", first_sentence(entry)]
    first, *others = entry.overloads
    blocks += _describe(entry, first, "##")
    for op in others:
        blocks += [f"## Overload `{op.schema.name}.{op.schema.overload}`"]
        blocks += [
            docstrings.to_markdown(docstrings.parse(op.decl.doc).summary),
            *_describe(entry, op, "###"),
        ]
    blocks += ["## See also", *_neighbours(entry)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _describe(entry: Entry, op: Operator, level: str) -> Iterator[str]:
    doc = docstrings.parse(op.decl.doc)
    yield f"{level} Signature"
    yield fence(_signature(entry, op))
    yield f"Schema: `{op.schema}`"
    yield docstrings.to_markdown(doc.text)
    for name, section in doc.sections.items():
        yield f"{level} {'Arguments' if name == 'Args' else name}"
        yield docstrings.format_section(name, section)
    yield f"{level} Properties"
    yield table(("property", "value"), list(_properties(op)))
    yield f"{level} Names"
    yield from _names(entry) if op is entry.overloads[0] else ()
    yield from _argument_names(op)
    yield f"{level} Definition"
    for sentence, code, language in definition(op) or [(f"Declared as `{op.decl.kind}`.", "", "")]:
        yield sentence
        yield fence(code, language) if code else ""
    yield f"{level} Derivative"
    yield from _derivative(op)
    yield f"{level} Kernels"
    yield table(("key", "kernel", "how"), list(_kernels(op)))
    yield f"{level} Example"
    yield fence(run_example(op.name, doc.example), "pycon")


# -- signature and names -----------------------------------------------------------------------------------------------
def _signature(entry: Entry, op: Operator) -> str:
    """The typed signatures, as the type stubs have them."""
    stubs = format_function(entry.title, function_of(op.name))
    lines = [
        line for line in stubs.splitlines() if line.strip() and not line.strip().startswith(('"""', "@"))
    ]
    text = "\n".join(lines).replace("def ", "").replace("_b.", "").replace("_Number", "Number")
    text = text.replace("_TensorLike", "TensorLike").replace("_DTypeLike", "DTypeLike").replace("_np.", "np.")
    return "\n".join(_join(part) for part in text.split(":\n") if part.strip()).rstrip(":")


def _join(signature: str) -> str:
    """One line for a signature that fits."""
    flat = " ".join(line.strip() for line in signature.splitlines()).replace("( ", "(").replace(", )", ")")
    return flat if len(flat) <= 88 else signature


def _properties(op: Operator) -> Iterator[tuple[str, str]]:
    decl: Declaration = op.decl
    yield "kind", decl.kind
    if decl.dtypes:
        yield "tested dtypes" if decl.kind == "composite" else "dtypes", _dtype_names(decl.dtypes)
    if decl.is_elementwise:
        yield "dtype of the result", RESULTS[decl.result]
    yield "method of `Tensor`", "yes" if decl.method and op.schema.namespace == "td" else "no"
    inplace = sorted(other.schema.name for other, base in functional.items() if base is op)
    yield "in place", ", ".join(f"`{name}`" for name in inplace) or "no"
    if decl.autocast:
        yield "autocast", AUTOCAST[decl.autocast]
    share = native_share(op) if config.flags.native else None
    if share is not None:
        yield "native entry", f"for {100 * share:.0f} % of dtypes and memory layouts"
    if decl.effects:
        yield "effects", ", ".join(sorted(decl.effects))
    if isinstance(decl.reference, str) and decl.reference and not decl.reference.startswith("references."):
        yield "tests compare with", f"`{decl.reference}`"


def _dtype_names(dtypes: Sequence[DType]) -> str:
    groups: list[tuple[str, Sequence[DType]]] = [
        ("bool", (bool_,)),
        ("all integers", INTEGERS),
        ("all real floats", FLOATS),
        ("all complex", COMPLEX),
    ]
    names: list[str] = []
    for name, group in groups:
        accepted = [dtype.name for dtype in group if dtype in dtypes]
        names += [name] if len(accepted) == len(group) else accepted
    return ", ".join(names)


def _names(entry: Entry) -> Iterator[str]:
    others = [f"`{name}`" for name in entry.spellings[1:]]
    if not entry.spellings:
        yield "An internal operator: others are composed of it."
    else:
        yield f"Other names: {', '.join(others)}." if others else "The operator has one public name."
    own = list(_own_versions(entry))
    if own:
        yield f"With another library's meaning: {', '.join(own)}."
    names = {name.rpartition(".")[2] for name in entry.spellings}
    for row in (*DIFFERENCES, *DEFAULT_DTYPES):
        if names & {*row.names.split()}:
            yield (
                f"Libraries differ in {row.calls}. NumPy: {row.numpy}. PyTorch: {row.torch}. "
                f"Calls with one meaning: {row.write}."
            )


def _argument_names(op: Operator) -> Iterator[str]:
    rows: dict[str, list[str]] = {}
    for spelling, name in CallSpellings(op.binder, op.decl.spellings, False).names.items():
        rows.setdefault(name, []).append(f"`{spelling}`")
    if rows:
        yield "Arguments have other names too, those of NumPy and PyTorch:"
        yield table(("argument", "also"), [(f"`{name}`", ", ".join(also)) for name, also in rows.items()])


def _own_versions(entry: Entry) -> Iterator[str]:
    """Functions of ``tandem.numpy``, ``tandem.torch`` and ``tandem.jax`` that replace the operator there."""
    for path, module in (("td.numpy", td.numpy), ("td.torch", td.torch), ("td.jax.lax", td.jax.lax)):
        for name in sorted({spelling.removeprefix("td.") for spelling in entry.spellings}):
            own = vars(module).get(name)
            if getattr(own, "__module__", "").startswith("tandem." + path.removeprefix("td.")):
                yield f"`{path}.{name}`"


# -- derivative and kernels --------------------------------------------------------------------------------------------
def _derivative(op: Operator) -> Iterator[str]:
    derivative = op.decl.derivative
    if derivative is None:
        yield "That of the operators in its body." if op.decl.kind == "composite" else "None is declared."
    elif isinstance(derivative, NotDifferentiable):
        yield f"None: {docstrings.to_markdown(derivative.reason)}."
    elif isinstance(derivative, Partials):
        yield "Partial derivatives; a rule that uses `g` returns the product with the cotangent `g` instead."
        yield fence(
            "\n".join(
                _rule_line(f"d {op.schema.name} / d {name}", rule) for name, rule in derivative.by.items()
            )
        )
    elif isinstance(derivative, Linear):
        yield "Linear in these arguments: the tangent goes through the operator itself, the cotangent `g` through"
        yield fence("\n".join(_rule_line(name, rule) for name, rule in derivative.transpose.items()))
    elif isinstance(derivative, Rule):
        yield "Rules for the cotangent `g` of the result (vjp) and a tangent `t` (jvp); `out` is the result."
        lines = [_rule_line(f"vjp {name}", rule) for name, rule in derivative.vjp.items()]
        lines += [_rule_line(f"jvp {name}", rule) for name, rule in derivative.jvp.items()]
        yield fence("\n".join(lines))
    else:
        assert isinstance(derivative, Custom), derivative_of(op)
        yield f"A backward function for the whole call (`{location(derivative.backward)}`)."


def _rule_line(left: str, rule: RuleFn) -> str:
    """``left = rule``; a function of several lines follows below its name."""
    if not callable(rule):
        return f"{left} = {rule}"
    body = body_of(rule)
    if body.startswith(("def ", "lambda")) or not body:
        return f"# {left}\n{body or location(rule)}"
    return f"{left} = {body}"


def _kernels(op: Operator) -> Iterator[tuple[str, str, str]]:
    computed = dispatch_table(op)
    strategy = strategy_of(op)
    for key in KEYS:
        entry = computed[key]
        if key == "CUDA" and strategy != "composite":
            how = "" if strategy == "none" else "registered at the first use of a GPU"
            yield "`CUDA`", CUDA_KERNELS[strategy], how
        elif entry.registration is not None and (entry.kind == "kernel" or key not in LAYOUT_KEYS):
            yield f"`{key}`", f"`{entry.registration.name}`", entry.kind.replace("_", " ")


# -- neighbours --------------------------------------------------------------------------------------------------------
def _neighbours(entry: Entry) -> Iterator[str]:
    lines = []
    if entry.calls:
        lines.append(f"- It calls {', '.join(map(link, entry.calls))}.")
    if entry.callers:
        lines.append(f"- It is called by {', '.join(map(link, entry.callers))}.")
    family = [other.name for other in families()[entry.family] if other is not entry]
    if family:
        lines.append(f"- Of the same file: {', '.join(map(link, family))}.")
    lines.append(f"- Declared in `{entry.module}`; [all operators](index.md).")
    yield "\n".join(lines)
