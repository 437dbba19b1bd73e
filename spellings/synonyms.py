"""Suggestions for unknown names: the namespace that has them, other spellings, or the nearest name.

foreign_names.py has the tables of names that no namespace of tandem has.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType

from .. import lazy
from ..eager.tensor.tensor import Tensor
from .foreign_names import ABSENT, ABSENT_CLASS, ABSENT_PATTERNS, SYNONYM_PATTERNS, SYNONYMS

_difflib = lazy.Module("difflib")
_TANDEM = __package__.rpartition(".")[0]

# Modules, and the namespaces that have their names, the likely ones first.
_PUBLIC: dict[str, str] = {
    ".nn.functional": "td.nn.functional",
    ".torch": "td.torch",
    ".numpy": "td.numpy",
    ".jax.numpy": "td.jax.numpy",
    ".jax.lax": "td.jax.lax",
    ".jax.nn": "td.jax.nn",
    ".jax.random": "td.jax.random",
    ".operators.random.namespace": "td.random",
    ".linalg": "td.linalg",
    ".special": "td.special",
    ".fft": "td.fft",
    ".nn": "td.nn",
    ".nn.init": "td.nn.init",
    ".nn.utils": "td.nn.utils",
    ".optim": "td.optim",
    ".optim.lr_scheduler": "td.optim.lr_scheduler",
    ".eager.autograd.namespace": "td.autograd",
    ".tree": "td.tree",
}

# Names that are made from others: a pattern, and the name that has the function.
_DERIVED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"(.+)_p", r"\1"),  # a primitive of JAX
        (r"(.+)_copy", r"\1"),
        (r"(.+)_with_indices", r"\1"),
        (r"(.+)_shape_tuple", r"\1"),
        (r"dynamic_(.+)", r"\1"),
        (r"reduce_(.+)", r"\1"),
        (r"(?:unsafe|native|quantized|cudnn|mkldnn|miopen|fused|tree)_(.+)", r"\1"),
        (r"(.+_dropout|dropout)\d?d?", "dropout"),
        (r"(.+?)_?(?:1d|2d|3d)", r"\1"),
        (r"(.+)_", r"\1"),
    )
)


def suggest(name: str, names: Iterable[str], prefix: str = "td.") -> str:
    """Return a text about the tandem spelling of an unknown name; empty if nothing is near.

    Args:
        name: the unknown name.
        names: the names that exist.
        prefix: what is written before a name that exists.

    >>> from tandem.spellings.synonyms import suggest
    >>> suggest("concatnate", ["concatenate", "sum"])
    '; did you mean td.concatenate?'
    >>> suggest("huber_loss", []), suggest("convert_element_type", [])
    ('; it is td.nn.functional.huber_loss', '; with tandem write x.astype(dtype)')
    """
    public = [other for other in names if not other.startswith("_")]
    known = _look_up(name)
    if known:
        return known
    folded = {_fold(other): other for other in public}
    same = folded.get(_fold(name))
    if same:
        return f"; did you mean {prefix}{same}?"
    kind = _match_pattern(name)
    if kind:
        return kind
    stems = [*_derive(name)]
    for stem in stems:
        if stem in public:
            return f"; did you mean {prefix}{stem}?"
        known = _look_up(stem)
        if known:
            return known
    near = _difflib.get_close_matches(name, public, 1, _MISSPELLED)
    if near:
        return f"; did you mean {prefix}{near[0]}?"
    kind = next(filter(None, map(_match_pattern, stems)), "")
    return kind or (f"; tandem lacks it: {ABSENT_CLASS}" if name[0].isupper() else "")


# The least similarity of a name to the one that was meant: "concatnate" and "concatenate" have 0.95.
_MISSPELLED = 0.81


def _match_pattern(name: str) -> str:
    """Return a text about the kind of names to which a name belongs; empty if there is none."""
    for pattern, text in SYNONYM_PATTERNS:
        match = pattern.fullmatch(name)
        if match:
            return f"; with tandem write {match.expand(text)}"
    reason = next((reason for pattern, reason in ABSENT_PATTERNS if pattern.fullmatch(name)), "")
    return f"; tandem lacks it: {reason}" if reason else ""


def _fold(name: str) -> str:
    return name.lower().replace("_", "")


def _look_up(name: str) -> str:
    """Return a text about a name that a table or another namespace has; empty if none has it."""
    if name in ABSENT:
        return f"; tandem lacks it: {ABSENT[name]}"
    if name in SYNONYMS:
        return f"; with tandem write {SYNONYMS[name]}"
    path = find_elsewhere(name)
    return f"; it is {path}" if path else ""


def _derive(name: str) -> Iterator[str]:
    """The names from which a name may be made, such as ``sin`` of ``sin_p``."""
    for pattern, template in _DERIVED:
        match = pattern.fullmatch(name)
        if match:
            yield match.expand(template)


def find_elsewhere(name: str) -> str:
    """Return the path of a name in another namespace of tandem, such as ``td.linalg.qr``; empty if none has it.

    >>> from tandem.spellings.synonyms import find_elsewhere
    >>> find_elsewhere("nll_loss"), find_elsewhere("relu_")
    ('td.nn.functional.nll_loss', 'the method x.relu_()')
    """
    if name in dir(sys.modules[_TANDEM]):
        return f"td.{name}"
    if hasattr(Tensor, name):
        is_value = isinstance(vars(Tensor).get(name), property)
        return f"the attribute x.{name}" if is_value else f"the method x.{name}()"
    namespace = next((path for path in _PUBLIC.values() if path.endswith(f".{name}")), "")
    if namespace:
        return namespace
    loaders = lazy.loaders(_PUBLIC)
    return next((f"{namespace}.{name}" for load, namespace in loaders if _has(load(), name)), "")


def _has(module: ModuleType, name: str) -> bool:
    """Whether a module has a name that it, or another module of tandem, defines."""
    if name in getattr(module, "__all__", ()):
        return True
    return name in dir(module) and getattr(getattr(module, name), "__module__", _TANDEM).startswith(_TANDEM)
