"""Explain why a call of a jitted function would use a cached specialization, or recompile."""

from __future__ import annotations

from collections.abc import Sequence

from .. import pytree
from ..eager.layers.autocast import context_key
from ..registry.dispatch.keys import from_bits
from ..registry.dispatch.state import state
from ..registry.values import describe
from .arguments import Arguments, BoundArguments
from .specialization import Specialization


def explain(
    arguments: Arguments,
    known: Sequence[Specialization],
    specialization: Specialization | None,
    bound: BoundArguments,
    keys: Sequence[tuple[object, ...]],
) -> str:
    """The text of :meth:`.function.JitFunction.explain`."""
    if specialization is not None:
        head = [
            f"{arguments.name}: specialization {known.index(specialization) + 1} of {len(known)} would answer this call"
        ]
        return "\n".join(head + _describe_context(specialization))
    if not known:
        return f"{arguments.name} has not been called yet: this call would be traced and compiled"
    faults = [(find_mismatches(arguments, item, bound, keys), number) for number, item in enumerate(known, 1)]
    nearest, number = min(faults, key=lambda pair: (len(pair[0]), -pair[1]))
    head = [
        f"{arguments.name}: this call would be traced and compiled, for none of {len(known)} specialization(s) fits",
        f"compared with specialization {number}, the nearest:",
    ]
    return "\n".join(head + [f"  - {fault}" for fault in nearest] + _describe_context(known[number - 1]))


def find_mismatches(
    arguments: Arguments, item: Specialization, bound: BoundArguments, keys: Sequence[tuple[object, ...]]
) -> list[str]:
    """Describe each guard of a specialization that fails for a call."""
    faults = _compare_structure(arguments, item, bound)
    if not faults:
        rows = zip(item.guards, item.paths, keys)
        faults = [text for guard, path, key in rows if (text := guard.explain(path, key))]
    faults += _compare_statics(arguments, item, bound)
    if (item.include, item.exclude) != (state.include, state.exclude):
        faults.append(
            f"this thread's dispatch state was include {from_bits(item.include)}, exclude {from_bits(item.exclude)}; "
            f"it is include {from_bits(state.include)}, exclude {from_bits(state.exclude)}"
        )
    if item.context != context_key():
        faults.append(
            f"autocast was {_describe_autocast(item.context)}, and is {_describe_autocast(context_key())}"
        )
    faults += [text for guard in item.environment if (text := guard.explain())]
    if not item.is_current():
        faults.append("a kernel of an operator that it uses was registered or removed")
    if not faults and item.scalars(bound.leaves) is None:
        faults.append("arithmetic among Python scalars gave a result of another type")
    return faults


def _describe_autocast(context: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{dtype} on {device}" for device, dtype in context) or "off"


def _compare_structure(arguments: Arguments, item: Specialization, bound: BoundArguments) -> list[str]:
    pairs = zip(arguments.dynamic, item.treedef.children, bound.treedef.children)
    differences = [(name, pytree.difference(old, new)) for name, old, new in pairs if old != new]
    return [f"argument {name}: the structure was and is{text or ' different'}" for name, text in differences]


def _compare_statics(arguments: Arguments, item: Specialization, bound: BoundArguments) -> list[str]:
    names = [p.name for p in arguments.parameters if p.name in arguments.static]
    rows = zip(names, item.statics, bound.static_keys, item.static_values, bound.statics)
    return [f"static argument {name} was {was!r}, now {now!r}" for name, a, b, was, now in rows if a != b]


def _describe_context(item: Specialization) -> list[str]:
    """Describe the tensors and variables that a specialization captures, and how it runs."""
    tensors = [f"  {describe(tensor)}" for tensor in item.graph.constants]
    variables = [f"  {guard}" for guard in item.externals]
    paths = [item.paths[item.dynamic[index]] for index in item.outputs.written]
    written = [f"arguments written after the call: {', '.join(paths)}"] if paths else []
    written += _describe_execution("", item)
    if item.derivative is not None:
        halves = {"forward": item.derivative.forward, "backward": item.derivative.backward.function}
        for name, half in halves.items():
            written += _describe_execution(f"{name}: ", half.specialization)
        written += item.derivative.split.describe()
    lines = ["captured tensors, read at each call:", *tensors] if tensors else []
    return written + lines + (["variables guarded by identity:", *variables] if variables else [])


def _describe_execution(name: str, item: Specialization | None) -> list[str]:
    """Describe how calls run: how kernels are launched, and why Python handles calls, if it does."""
    if item is None:
        return []
    value = [f"{name}{item.executable.launching}"] if hasattr(item.executable, "launching") else []
    reasons = [record for record in item.records.values() if isinstance(record, str)]
    return value + [f"{name}calls are answered by Python: {reason}" for reason in dict.fromkeys(reasons)]
