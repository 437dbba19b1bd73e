"""Retired terms do not return in names and docstrings.

docs/glossary.md has the terms in use. ALLOWED lists the names that still use a retired term, because they are public or
because the word has its usual meaning there. The test also fails for an entry that is no longer needed.
"""

import ast
import functools
import re

import pytest
from source_tree import ROOT, documentation_pages, syntax_trees

pytestmark = pytest.mark.once

PAGES = documentation_pages()

# A word of a name (snake_case or CamelCase) that has been replaced: retired word, and the terms that replaced it.
RETIRED_WORDS = {
    "absorb": "inline_producers",
    "absorbed": "inline_producers",
    "apart": "noinline, is_separate, split",
    "borrowed": "external",
    "bring": "move_to_device",
    "desc": "entry",
    "door": "api, lazy, patch point, call cache",
    "doors": "patch points",
    "family": "alias set",
    "held": "captured variable",
    "keyed": "call cache",
    "lasting": "constant",
    "lent": "DLPack",
    "making": "creation",
    "moving": "dynamic",
    "picks": "take_along_axis",
    "place": "index, offset, address, axis",
    "places": "indices, offsets",
    "promise": "register_lazy",
    "promised": "lazy names",
    "recomputed": "rematerialize",
    "saved": "residuals",
    "settle": "snapshot, finalize",
    "settled": "snapshot, final",
    "strangers": "untracked aliases",
    "texts": "sources",
    "told": "report, notify",
    "way": "strategy",
    "ways": "strategies",
    "words": "bits, opcodes, key",
}
# Whole names that were retired.
RETIRED_NAMES = {
    "Bad",
    "Draw",
    "Form",
    "Frame",
    "Held",
    "Sample",
    "Way",
    "hand_on",
    "put_in",
    "take_out",
    "way_of",
}

# Names of parameters, variables and attributes that were replaced everywhere.
RETIRED_VARIABLES = {"desc", "door", "found", "moving", "place", "places", "promised", "way"}

# The first line of a docstring says what the thing does or is, in plain English.
RETIRED_PHRASES = {
    "a noun phrase instead of a sentence": r"^(What|Who|Where|How)\b",
    "'is no X' for 'is not an X'": r"\b(is|are) no (?!longer\b|more than\b)\w",
    "lies": r"\b(lies|lie)\b",
    "beside": r"\bbesides?\b",
    "anew": r"\banew\b",
    "in force": r"\bin force\b",
    "hand on": r"\bhand(s|ed)? on\b",
    "stands for": r"\b(stands|stand|stood) for\b",
    "want of": r"\bwant of\b",
    "from outside": r"\bfrom outside\b",
    "whoever": r"\bwhoever\b",
    "door": r"\bdoors?\b",
    "strangers": r"\bstrangers?\b",
}

ALLOWED: set[str] = {
    "backends/cpu/fastpath/runtime/rt_backward.py:release_saved",
    "backends/cpu/fastpath/runtime/rt_saved.py",
    "backends/cpu/fastpath/runtime/rt_saved.py:make_saved",
    "backends/cuda/kernels/creation.py:draw_words",
    "backends/cuda/launches/executable.py:settled",
    "backends/cuda/runtime/faults.py:fault_words",
    "cli/overhead/measure.py:saved_by",
    "cli/overhead/ready.py:ready_saved",
    "control/residuals.py:_is_recomputed",
    "eager/autograd/context.py:saved_tensors",
    "eager/autograd/residual_hooks.py:disable_saved_tensors_hooks",
    "eager/autograd/residual_hooks.py:saved_tensors_hooks",
    "eager/tensor/type_stubs.py:_split_words",
    "operators/random/philox.py:random_words",
    "operators/random/typed_keys.py:_key_words",
    "registry/schemas/overloads.py:_is_told_by_type",
    "spellings/jax/numpy.py:place",
    "spellings/numpy/writing.py:place",
}


def words_of(name: str) -> list[str]:
    """The words of a name: ["jit", "call"] for `jit_call` and `JitCall`."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name.replace("in_place", "inplace"))
    return [word.lower() for word in words]


def is_retired(name: str) -> bool:
    return name in RETIRED_NAMES or any(word in RETIRED_WORDS for word in words_of(name))


@functools.cache
def faults() -> frozenset[str]:
    """`file:name` of each name, and `file:name: phrase` of each first docstring line, with a retired term."""
    found = set()
    for path, tree in syntax_trees().items():
        file = path.relative_to(ROOT).as_posix()
        if is_retired(path.stem):
            found.add(file)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            label = file if isinstance(node, ast.Module) else f"{file}:{node.name}"
            if not isinstance(node, ast.Module) and is_retired(node.name):
                found.add(label)
            line = (ast.get_docstring(node) or "").partition("\n")[0]
            found |= {f"{label}: {why}" for why, phrase in RETIRED_PHRASES.items() if re.search(phrase, line)}
    return frozenset(found)


def test_no_retired_term():
    assert not faults() - ALLOWED, "use the terms of docs/glossary.md"


def test_no_retired_variable():
    for path, tree in syntax_trees().items():
        for node in ast.walk(tree):
            name = getattr(
                node, {ast.arg: "arg", ast.Name: "id", ast.Attribute: "attr"}.get(type(node), ""), ""
            )
            assert name not in RETIRED_VARIABLES, f"{path.relative_to(ROOT)}:{node.lineno}: {name}"


def test_every_allowed_name_is_needed():
    assert not ALLOWED - faults(), "remove these from ALLOWED"


@pytest.mark.parametrize(
    ("name", "retired"),
    [("put_words", True), ("Door", True), ("Way", True), ("always", False), ("concat_in_place", False)],
)
def test_name_is_split_into_words(name, retired):
    assert is_retired(name) is retired


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_avoid_retired_terms(page):
    """Prose only: code blocks and inline code are left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    phrases = [p for why, p in RETIRED_PHRASES.items() if not p.startswith("^") and "is no X" not in why]
    found = [match[0] for phrase in phrases for match in re.finditer(phrase, text)]
    assert not found
