"""Facts about the bytecode of functions: the variables that they read, and whether they may change anything outside.

A loop body that only computes may be traced once in place of all its steps. Python does not declare that, so it is read
from the instructions: a function that assigns to an attribute, a global or a variable of an enclosing function,
imports, or handles exceptions (it could swallow those of the tracer) is not accepted.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from types import CodeType

from ..named_tuple import NamedTuple

_READING_METHODS = frozenset("copy count fromkeys get index items keys values".split())
# Methods that change the list or the dict that they are called on.
MUTATING_METHODS = frozenset(
    name
    for kind in (list, dict)
    for name in vars(kind)
    if not (name.startswith("_") or name in _READING_METHODS)
    or name in ("__init__", "__setitem__", "__delitem__")
    or (name.startswith("__i") and hasattr(operator, name))
)
_LOCAL_STORES = ("STORE_FAST", "STORE_SUBSCR", "STORE_SLICE", "DELETE_FAST", "DELETE_SUBSCR")
_EFFECTS = ("STORE_", "DELETE_", "IMPORT_", "LOAD_BUILD_CLASS", "LOAD_NAME", "LOAD_LOCALS", "GET_AWAITABLE")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_GRADIENT_ATTRIBUTES = frozenset(
    "requires_grad is_leaf grad grad_fn zero_grad requires_grad_ detach_ clip_grad_norm_ clip_grad_value_ "
    "clip_grads_with_norm_".split()
)
TEXT_METHODS = frozenset(("__str__", "__repr__"))  # besides __format__, which every class has
_FORMATTING = frozenset(("str", "format", "format_map"))


class Read(NamedTuple):
    """A variable that a function reads, and the attributes that it reads of it at once, such as ``td.linalg.inv``."""

    is_global: bool
    name: str
    attributes: tuple[str, ...]


class CodeFacts(NamedTuple):
    """The facts about a function, together with the functions defined inside it.

    Attributes:
        effect: an instruction that may have an effect outside of the function; empty if there is none.
        changes_containers: whether it may change a list or a dict.
        reads_gradients: whether it may ask what autograd knows about a tensor.
        compares_objects: whether it may ask if two variables are one object.
        reads: the globals and variables of enclosing functions that it reads.
        attributes: the names of the attributes that it reads, and of the globals; the methods that make texts, if it
            may ask for the text of an object.
    """

    effect: str
    changes_containers: bool
    reads_gradients: bool
    compares_objects: bool
    reads: tuple[Read, ...]
    attributes: frozenset[str]


@lru_cache(maxsize=1024)
def read_code(code: CodeType) -> CodeFacts:
    """Read the facts about a function from its code.

    >>> read_code((lambda x: math.exp(x)).__code__).reads
    (Read(is_global=True, name='math', attributes=('exp',)),)
    """
    outer = frozenset(code.co_freevars)
    effect, changes, gradients, compares, reads = "", False, False, False, dict[Read, None]()
    attributes: frozenset[str] = frozenset()
    for part in _codes(code):
        instructions = list(dis.get_instructions(part))
        effect = effect or _find_effect(instructions, outer)
        names = frozenset(part.co_names).union(*_find_patterns(instructions))
        attributes |= names | (TEXT_METHODS if _makes_text(part, instructions) else frozenset())
        changes |= not MUTATING_METHODS.isdisjoint(names) or any(map(_changes_operand, instructions))
        gradients |= not _GRADIENT_ATTRIBUTES.isdisjoint(names)
        compares |= any(map(_compares_objects, instructions, instructions[1:]))
        reads.update(dict.fromkeys(_find_reads(instructions, outer)))
    return CodeFacts(effect, changes, gradients, compares, tuple(reads), attributes)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _find_patterns(instructions: Sequence[dis.Instruction]) -> Iterator[tuple[str, ...]]:
    """The names of the attributes that the patterns of ``match`` statements read."""
    for operand, item in pairwise(instructions):
        if item.opname == "MATCH_CLASS":
            yield operand.argval


def _makes_text(code: CodeType, instructions: Sequence[dis.Instruction]) -> bool:
    """Whether code may ask for the text of an object: by a call, an f-string, or the operator ``%``."""
    return (
        not _FORMATTING.isdisjoint(code.co_names)
        or any(item.opname.startswith("FORMAT_") for item in instructions)
        or any(isinstance(constant, str) and "%" in constant for constant in code.co_consts)
    )


def passes_first_argument(code: CodeType) -> bool:
    """Whether code may use its first argument otherwise than to read attributes, such as to call it.

    >>> passes_first_argument((lambda cls, x: x * cls.factor).__code__)
    False
    >>> passes_first_argument((lambda cls, x: cls(x)).__code__)
    True
    """
    first = code.co_varnames[0] if code.co_argcount else None
    if first is None or first in code.co_cellvars:
        return True
    instructions = list(dis.get_instructions(code))
    for item, after in pairwise(instructions):
        loaded = item.argval if isinstance(item.argval, tuple) else (item.argval,)
        if item.opname.startswith("LOAD_FAST") and first in loaded:
            is_read = loaded.index(first) == len(loaded) - 1 and after.opname in _ATTRIBUTES
            if not is_read or after.argval == "mro":
                return True
    return False


def _changes_operand(item: dis.Instruction) -> bool:
    is_in_place = item.opname == "BINARY_OP" and item.argrepr.endswith("=")
    return is_in_place or item.opname in ("STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR")


def _compares_objects(operand: dis.Instruction, item: dis.Instruction) -> bool:
    return item.opname == "IS_OP" and operand.opname != "LOAD_CONST"


def _find_effect(instructions: Sequence[dis.Instruction], outer: frozenset[str]) -> str:
    handlers = blocks = 0
    for item in instructions:
        name = item.opname
        handlers += name == "PUSH_EXC_INFO"
        blocks += name == "WITH_EXCEPT_START"
        if name in ("STORE_DEREF", "DELETE_DEREF"):
            if item.argval in outer:
                return f"{name} {item.argval}"
        elif name in _ATTRIBUTES and item.argval.startswith("__"):
            return f"{name} {item.argval}"  # such as __globals__, which leads anywhere
        elif name.startswith(_EFFECTS) and not name.startswith(_LOCAL_STORES):
            return f"{name} {item.argval}"
    return "an exception handler" if handlers > blocks else ""


def _find_reads(instructions: Sequence[dis.Instruction], outer: frozenset[str]) -> Iterator[Read]:
    for number, item in enumerate(instructions):
        is_global = item.opname == "LOAD_GLOBAL"
        if is_global or (item.opname.endswith("_DEREF") and item.argval in outer):
            attributes = []
            for after in instructions[number + 1 :]:
                if after.opname not in _ATTRIBUTES:
                    break
                attributes.append(after.argval)
            yield Read(is_global, item.argval, tuple(attributes))
