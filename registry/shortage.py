"""What is said when no kernel can run: the arguments, the key set, the kernels that there are, and the line to add."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import NoKernelError, UnknownOperatorError
from .keys import ALIASES, BACKENDS, BEHIND, GROUPS, DispatchKey, keys_of
from .registration import Registration
from .state import state
from .values import TensorBase, describe

_SHOWN = 6


def missing(op: Any, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    """The kernel of an empty slot.

    Raises:
        NoKernelError: always.
    """
    key = DispatchKey(bits.bit_length() - 1)
    special = [r for r in op.kernels.get(key, ()) if r.dtypes]
    for_dtypes = sorted({d.name for r in special for d in r.dtypes})
    served = f" and these dtypes (it has one for {', '.join(for_dtypes)})" if for_dtypes else ""
    raise NoKernelError(
        f"operator {op.name} has no kernel for the dispatch key {key.name}{served}\n"
        f"{_call(bits, args, kwargs)}\n"
        f"  registered:  {_nearest(op, key)}\n"
        f"  to add one:  {line_to_add(op, key.name)}"
    )


def ambiguous(op: Any, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    """The kernel of a slot for which two registrations stand up with the same right.

    Raises:
        NoKernelError: always.
    """
    key = DispatchKey(bits.bit_length() - 1)
    behind = [k for k in op.kernels if _serves(k, BEHIND[key])]
    raise NoKernelError(
        f"operator {op.name} is ambiguous at the dispatch key {key.name}: its CompositeImplicit kernel would stand in, "
        f"and would bypass the kernels of backends that share this key\n"
        f"{_call(bits, args, kwargs)}\n"
        f"  composite:   {_shown(op.registered('CompositeImplicit'))}\n"
        f"  backends:    {_lines([_shown(op.kernels[k][-1]) for k in behind])}\n"
        f"  to decide:   {line_to_add(op, key.name)}\n"
        f"               or remove the CompositeImplicit kernel, or use a backend with an autograd key of its own"
    )


def retired(op: Any, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    """The kernel in every slot of an operator whose definition has been removed.

    Raises:
        UnknownOperatorError: always.
    """
    raise UnknownOperatorError(
        f"operator {op.name} is no longer defined: its definition has been removed; "
        f"if it was defined anew, look it up again: {lookup(op)}"
    )


def no_key_left(op: Any, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoKernelError:
    """The error of a call whose keys all let it fall through, or that has none."""
    text = f"operator {op.name}: no key left to dispatch to\n{_call(keyset, args, kwargs)}"
    if not keyset:
        return NoKernelError(f"{text}none{_hidden(args, kwargs)}\n{_ways_out(op)}")
    keys = list(keys_of(keyset))
    key = next((key for key in keys if 1 << key & BACKENDS), keys[0])
    return NoKernelError(
        f"{text} (each lets calls of it fall through)\n"
        f"  registered:  {_nearest(op, key)}\n"
        f"  to add one:  {line_to_add(op, key.name, allow_override=key in op.kernels)}"
    )


def _hidden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Which keys of the arguments this thread excludes."""
    bits = 0
    for value in (*args, *kwargs.values()):
        for item in value if type(value) is tuple else (value,):
            bits |= item._keys if isinstance(item, TensorBase) else 0
    names = ", ".join(key.name for key in keys_of(bits & state.exclude))
    return f"; this thread excludes {names}, which td.force_keys() undoes" if names else ""


def _ways_out(op: Any) -> str:
    """What to do where no key is in the set, so that one kernel more changes nothing by itself."""
    key = max((key for key in op.kernels if isinstance(key, DispatchKey)), default=DispatchKey.CPU).name
    added = "" if op.kernels else f"  to add one:  {line_to_add(op, key)}\n"
    call = f'{lookup(op)}.call_for_key("{key}", ...)'
    return f"  registered:  {_nearest(op, DispatchKey.CPU)}\n{added}  to call it:  {call}"


def no_such_kernel(op: Any, key: DispatchKey | str, kind: str, call: Any = None) -> NoKernelError:
    """The error of asking for the kernel of a key or an alias that has none, to keep or for a call with arguments."""
    name = key if isinstance(key, str) else key.name
    bits = ALIASES[key] if isinstance(key, str) else 1 << key
    return NoKernelError(
        f"operator {op.name} has no kernel to call for {name}: it is {kind}\n"
        + ("" if call is None else f"{_call(bits, *call)}\n")
        + f"  registered:  {_nearest(op, key)}\n"
        f"  to add one:  {line_to_add(op, name, allow_override=key in op.kernels)}"
    )


def lookup(op: Any) -> str:
    """The expression that gives an operator."""
    return f"td.ops.{op.schema.namespace}.{op.schema.name}.{op.schema.overload or 'default'}"


def line_to_add(op: Any, key: str, allow_override: bool = False) -> str:
    """The line that registers a kernel."""
    name = op.name.partition("::")[2]
    override = ", allow_override=True" if allow_override else ""
    return f'lib = td.Library("{op.schema.namespace}", "IMPL"); lib.impl("{name}", kernel, "{key}"{override})'


def _call(bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    given = [_argument(value) for value in args]
    given += [f"{name}={_argument(value)}" for name, value in kwargs.items()]
    keys = ", ".join(key.name for key in keys_of(bits))
    return f"  called with: {', '.join(given) or 'no arguments'}\n  key set:     {keys}"


def _argument(value: Any) -> str:
    if not isinstance(value, TensorBase):
        return describe(value)
    keys = ", ".join(key.name for key in keys_of(value._keys))
    return f"{describe(value)} on {getattr(value, 'device', '?')} ({keys})"


def _serves(key: DispatchKey | str, bits: int) -> bool:
    return bool(GROUPS.get(key, 0) & bits) if isinstance(key, str) else bool(1 << key & bits)


def _shown(registration: Registration | None) -> str:
    return "none" if registration is None else (
        f"{registration.key_name}: {registration.name}, {registration.origin}"
    )  # fmt: skip


def _lines(items: list[str]) -> str:
    rest = [f"and {len(items) - _SHOWN} more"] if len(items) > _SHOWN else []
    return ("\n" + " " * 15).join(items[:_SHOWN] + rest) or "none"


def _nearest(op: Any, key: DispatchKey | str) -> str:
    """The operator's kernels, those of keys most like the one reached first."""

    def distance(registration: Registration) -> tuple[bool, int]:
        other = registration.key
        if isinstance(other, str) or isinstance(key, str):
            return other != key, 0
        return bool(1 << other & BACKENDS) != bool(1 << key & BACKENDS), abs(other - key)

    held = [r for registered in op.kernels.values() for r in registered[-1:]]
    return _lines([_shown(r) for r in sorted(held, key=distance)])
