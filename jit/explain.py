"""Explain a cache hit or miss of a jitted function: which guards of the cached specializations fail for a call."""

from __future__ import annotations

from collections.abc import Sequence

from .. import pytree
from ..eager.layers.autocast import context_key
from ..registry.dispatch.keys import from_bits
from ..registry.dispatch.state import state
from ..registry.dtypes import default_float
from ..registry.values import describe
from .arguments import Arguments, BoundArguments
from .specialization import Specialization


def explain(
    arguments: Arguments,
    specializations: Sequence[Specialization],
    specialization: Specialization | None,
    bound: BoundArguments,
    keys: Sequence[tuple[object, ...]],
) -> str:
    """The text of :meth:`.function.JitFunction.explain`."""
    count = len(specializations)
    if specialization is not None:
        number = specializations.index(specialization) + 1
        head = [f"{arguments.name}: specialization {number} of {count} would answer this call"]
        return "\n".join(head + _describe_context(specialization))
    if not specializations:
        return f"{arguments.name} has not been called yet: this call would be traced and compiled"
    candidates = [
        (find_mismatches(arguments, cached, bound, keys), number)
        for number, cached in enumerate(specializations, 1)
    ]
    mismatches, number = min(candidates, key=lambda pair: (len(pair[0]), -pair[1]))
    head = [
        f"{arguments.name}: this call would be traced and compiled; none of {count} specialization(s) matches it",
        f"compared with specialization {number}, the closest:",
    ]
    lines = [f"  - {mismatch}" for mismatch in mismatches] + _describe_context(specializations[number - 1])
    return "\n".join(head + lines)


def find_mismatches(
    arguments: Arguments,
    specialization: Specialization,
    bound: BoundArguments,
    keys: Sequence[tuple[object, ...]],
) -> list[str]:
    """Describe each guard of a specialization that fails for a call."""
    mismatches = _diff_structure(arguments, specialization, bound)
    if not mismatches:
        rows = zip(specialization.guards, specialization.paths, keys)
        mismatches = [text for guard, path, key in rows if (text := guard.explain(path, key))]
    mismatches += _diff_statics(arguments, specialization, bound)
    if (specialization.include, specialization.exclude) != (state.include, state.exclude):
        mismatches.append(
            f"this thread's dispatch state was include {from_bits(specialization.include)}, "
            f"exclude {from_bits(specialization.exclude)}; it is "
            f"include {from_bits(state.include)}, exclude {from_bits(state.exclude)}"
        )
    if specialization.context != context_key():
        mismatches.append(
            f"autocast was {_describe_autocast(specialization.context)}, and is {_describe_autocast(context_key())}"
        )
    if specialization.default_dtype is not default_float():
        mismatches.append(f"the default dtype was {specialization.default_dtype}, and is {default_float()}")
    mismatches += [text for guard in specialization.environment if (text := guard.explain())]
    if not specialization.is_current():
        mismatches.append("a kernel of an operator that it uses was registered or removed")
    if not mismatches and specialization.scalars(bound.leaves) is None:
        mismatches.append("arithmetic among Python scalars gave a result of another type")
    return mismatches


def _describe_autocast(context: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{dtype} on {device}" for device, dtype in context) or "off"


def _diff_structure(arguments: Arguments, specialization: Specialization, bound: BoundArguments) -> list[str]:
    pairs = zip(arguments.dynamic, specialization.treedef.children, bound.treedef.children)
    differences = [(name, pytree.difference(old, new)) for name, old, new in pairs if old != new]
    return [f"argument {name}: the structure was and is{text or ' different'}" for name, text in differences]


def _diff_statics(arguments: Arguments, specialization: Specialization, bound: BoundArguments) -> list[str]:
    names = [p.name for p in arguments.parameters if p.name in arguments.static]
    rows = zip(names, specialization.statics, bound.static_keys, specialization.static_values, bound.statics)
    return [f"static argument {name} was {was!r}, now {now!r}" for name, a, b, was, now in rows if a != b]


def _describe_context(specialization: Specialization) -> list[str]:
    """Describe the tensors and variables that a specialization captures, and how it runs."""
    tensors = [f"  {describe(tensor)}" for tensor in specialization.graph.constants]
    variables = [f"  {guard}" for guard in specialization.externals]
    paths = [specialization.paths[specialization.dynamic[index]] for index in specialization.outputs.written]
    written = [f"arguments written after the call: {', '.join(paths)}"] if paths else []
    written += _describe_execution("", specialization)
    if specialization.derivative is not None:
        derivative = specialization.derivative
        passes = {"forward": derivative.forward, "backward": derivative.backward.function}
        for name, function in passes.items():
            written += _describe_execution(f"{name}: ", function.specialization)
        written += derivative.split.describe()
    lines = ["captured tensors, read at each call:", *tensors] if tensors else []
    return written + lines + (["variables guarded by identity:", *variables] if variables else [])


def _describe_execution(name: str, specialization: Specialization | None) -> list[str]:
    """Describe how calls run: how kernels are launched, and why Python handles calls, if it does."""
    if specialization is None:
        return []
    executable = specialization.executable
    lines = [f"{name}{executable.launching}"] if hasattr(executable, "launching") else []
    reasons = [record for record in specialization.records.values() if isinstance(record, str)]
    return lines + [f"{name}calls are answered by Python: {reason}" for reason in dict.fromkeys(reasons)]
