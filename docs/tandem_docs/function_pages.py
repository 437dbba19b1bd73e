"""Pages of the public functions and classes that are not operators, one page for each part of the package."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import tandem as td
from tandem.registry.operator import Operator

from . import docstrings
from .examples import run_example
from .inventory import entries
from .operator_page import fence, table


class Part(NamedTuple):
    """One page.

    Attributes:
        slug: its file name.
        title: its heading.
        namespace: the public module, such as ``"nn"``; empty: ``td`` itself.
        modules: the modules, without ``tandem.``, whose functions are on the page; a function is on the first page that
            accepts it.
    """

    slug: str
    title: str
    namespace: str
    modules: tuple[str, ...]


PARTS = (
    Part("transforms", "Transforms", "", ("transforms",)),
    Part("control_flow", "Control flow", "", ("control",)),
    Part("jit", "Compilation", "", ("jit",)),
    Part("tensors", "Tensors, files and printing", "", ("eager.tensor", "eager.meta")),
    Part("grad_modes", "Gradient modes and layers", "", ("eager.autograd", "eager.layers")),
    Part("array_functions", "Array functions that are not operators", "", ("operators", "linalg")),
    Part("custom", "Operators and kernels of your own", "", ("custom",)),
    Part("registry", "Dtypes, dispatch and registration", "", ("registry",)),
    Part("checks", "Checks and callbacks", "", ("debug",)),
    Part("autograd", "td.autograd", "autograd", ("",)),
    Part("cuda", "td.cuda", "cuda", ("",)),
    Part("debug", "td.debug", "debug", ("debug",)),
    Part("errors", "td.errors", "errors", ("errors",)),
    Part("nn", "td.nn", "nn", ("nn",)),
    Part("nn_functional", "td.nn.functional", "nn.functional", ("nn.functional",)),
    Part("nn_init", "td.nn.init", "nn.init", ("nn.init",)),
    Part("nn_utils", "td.nn.utils", "nn.utils", ("nn.utils",)),
    Part("optim", "td.optim", "optim", ("optim",)),
    Part("lr_scheduler", "td.optim.lr_scheduler", "optim.lr_scheduler", ("optim.lr_scheduler",)),
    Part("swa_utils", "td.optim.swa_utils", "optim.swa_utils", ("optim.swa_utils",)),
    Part("profiler", "td.profiler", "profiler", ("profiler",)),
    Part("random", "td.random", "random", ("operators.random", "eager")),
    Part("tree", "td.tree", "tree", ("",)),
    Part("numpy", "td.numpy", "numpy", ("numpy",)),
    Part("torch", "td.torch", "torch", ("torch",)),
    Part("torch_data", "td.torch.utils.data", "torch.utils.data", ("torch.utils.data",)),
    Part("torch_distributions", "td.torch.distributions", "torch.distributions", ("torch.distributions",)),
    Part("jax_lax", "td.jax.lax", "jax.lax", ("jax.lax",)),
)


def _accepts(part: Part, value: object) -> bool:
    module = getattr(value, "__module__", None) or ""
    own = module.removeprefix("tandem.")
    return module.startswith("tandem.") and any(
        not prefix or own == prefix or own.startswith(f"{prefix}.") for prefix in part.modules
    )


def members(part: Part) -> dict[str, Any]:
    """Public name -> function or class."""
    module = attrgetter(part.namespace)(td) if part.namespace else td
    names = getattr(module, "__all__", None) or dir(module)
    result: dict[str, Any] = {}
    for name in sorted(names, key=str.lower):
        value = None if name.startswith("_") else getattr(module, name)
        is_operator = isinstance(getattr(value, "operator", None), Operator)
        is_of_td = bool(part.namespace) and getattr(td, name, None) is value
        if callable(value) and _accepts(part, value) and not (is_operator or is_of_td):
            result[".".join(filter(None, ("td", part.namespace, name)))] = value
    wrapped = {entry.title for entry in entries().values()}
    return {name: value for name, value in result.items() if name not in wrapped}


def part_page(part: Part) -> str:
    """The text of a page: each member with its signature, documentation and executed example."""
    found = members(part)
    rows = [
        (f"[`{name}`](#{name.lower().replace('.', '')})", _summary(value)) for name, value in found.items()
    ]
    blocks = [f"# {part.title}", table(("name", "summary"), rows)]
    for name, value in found.items():
        blocks += [f"## {name}", *_describe(name, value)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _summary(value: object) -> str:
    return docstrings.to_markdown(" ".join(docstrings.parse(_own_doc(value)).summary.split()))


def _own_doc(value: object) -> str:
    return (getattr(value, "__doc__", None) or "") if not isinstance(value, td.DType) else ""


def _describe(name: str, value: Callable[..., Any]) -> Iterator[str]:
    yield fence(f"{name}{_signature(value)}")
    doc = docstrings.parse(_own_doc(value))
    yield docstrings.to_markdown(doc.summary)
    yield docstrings.to_markdown(doc.text)
    for heading, section in doc.sections.items():
        yield f"**{'Arguments' if heading == 'Args' else heading}**"
        yield docstrings.format_section(heading, section)
    if doc.example:
        yield fence(run_example(name, doc.example, value.__module__), "pycon")
    if inspect.isclass(value):
        rows = list(_methods(value))
        yield table(("method", "summary"), rows) if rows else ""


def _signature(value: Callable[..., Any]) -> str:
    """The parameters and the result, without the package's own module names."""
    try:
        text = str(inspect.signature(value))
    except ValueError:
        return "(...)"
    return (
        text.replace("'", "").replace("tandem.", "")
        if len(text) <= 100
        else _wrapped(inspect.signature(value))
    )


def _wrapped(signature: inspect.Signature) -> str:
    lines = [
        f"    {parameter}," for parameter in str(signature).partition("(")[2].rpartition(")")[0].split(", ")
    ]
    result = str(signature).rpartition(")")[2]
    return "\n".join(["(", *lines, f"){result}"]).replace("'", "").replace("tandem.", "")


def _methods(owner: type) -> Iterator[tuple[str, str]]:
    """The public methods and properties that a class defines itself."""
    for name, member in sorted(vars(owner).items()):
        doc = getattr(member, "__doc__", None)
        is_member = callable(member) or isinstance(member, (property, classmethod, staticmethod))
        if name.startswith("_") or not doc or not is_member:
            continue
        operator = getattr(member, "operator", None)
        key = operator.name.removeprefix("td::").partition(".")[0] if isinstance(operator, Operator) else ""
        shown = f"[`{name}`](../operators/{entries()[key].page}.md)" if key in entries() else f"`{name}`"
        yield shown, docstrings.to_markdown(" ".join(docstrings.parse(doc).summary.split()))
