"""Error messages for missing kernels: the arguments, the key set, the registered kernels, and the line to add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from .. import lazy
from ..errors import NoKernelError, UnknownOperatorError
from .dispatch.keys import ALIASES, BACKENDS, BACKENDS_OF_AUTOGRAD, COMPOSED, GROUPS, DispatchKey, keys_of
from .dispatch.state import state
from .registration import Registration
from .values import TensorBase, describe, tensors_of

if TYPE_CHECKING:
    from .operator import Operator
    from .types import Args, Kwargs

_MAX_LINES = 6


def raise_missing(op: Any, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Raise for a call that reached a key without a kernel; the kernel of empty table entries.

    Returns:
        The result of the call, if another thread has meanwhile imported the module that registers the kernel.

    Raises:
        NoKernelError: there is no kernel.
    """
    key = DispatchKey(bits.bit_length() - 1)
    lazy.wait_for_imports()
    serves_all = any(not registration.dtypes for registration in op.kernels.get(key, ()))
    if serves_all and op.table[key].kind != "missing":
        return op.dispatch(bits, args, kwargs)
    special = [r for r in op.kernels.get(key, ()) if r.dtypes]
    for_dtypes = sorted({d.name for r in special for d in r.dtypes})
    served = f" and these dtypes (it has one for {', '.join(for_dtypes)})" if for_dtypes else ""
    raise NoKernelError(
        f"operator {op.name} has no kernel for the dispatch key {key.name}{served}\n"
        f"{_describe_call(bits, args, kwargs)}\n"
        f"  registered:  {_describe_nearest(op, key)}\n"
        f"  to add one:  {registration_line(op, key.name)}"
    )


def raise_ambiguous(op: Operator, bits: int, args: Args, kwargs: Kwargs) -> NoReturn:
    """Raise for a call that reached a key with two equally ranked kernels; the kernel of ambiguous table entries.

    Raises:
        NoKernelError: always.
    """
    key = DispatchKey(bits.bit_length() - 1)
    behind = [k for k in op.kernels if _serves_any(k, BACKENDS_OF_AUTOGRAD[key])]
    raise NoKernelError(
        f"operator {op.name} is ambiguous at the dispatch key {key.name}: its CompositeImplicit kernel would serve "
        f"this key and bypass the kernels of backends that share it\n"
        f"{_describe_call(bits, args, kwargs)}\n"
        f"  composite:   {_describe_registration(op.registered('CompositeImplicit'))}\n"
        f"  backends:    {_join_lines([_describe_registration(op.kernels[k][-1]) for k in behind])}\n"
        f"  to decide:   {registration_line(op, key.name)}\n"
        f"               or remove the CompositeImplicit kernel, or use a backend with an autograd key of its own"
    )


def raise_undefined(op: Operator, bits: int, args: Args, kwargs: Kwargs) -> NoReturn:
    """Raise for a call of an operator whose definition has been removed; the kernel of all its table entries.

    Raises:
        UnknownOperatorError: always.
    """
    raise UnknownOperatorError(
        f"operator {op.name} is no longer defined: its definition has been removed; "
        f"if it has been defined again, look it up again: {lookup_expression(op)}"
    )


def make_no_key_error(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> NoKernelError:
    """The error of a call with an empty key set, or whose keys all fall through."""
    text = f"operator {op.name}: no key left to dispatch to\n{_describe_call(keyset, args, kwargs)}"
    if not keyset:
        return NoKernelError(f"{text}none{_excluded_keys_note(args, kwargs)}\n{_call_advice(op)}")
    keys = list(keys_of(keyset))
    key = next((key for key in keys if 1 << key & BACKENDS), keys[0])
    return NoKernelError(
        f"{text} (all of them fall through)\n"
        f"  registered:  {_describe_nearest(op, key)}\n"
        f"  to add one:  {registration_line(op, key.name, allow_override=key in op.kernels)}"
    )


def check_composed(op: Operator, included: int, args: Args, kwargs: Kwargs) -> None:
    """Reject a call in which an included sparse or quantized key would dispatch dense tensors to tandem's own kernel.

    Raises:
        NoKernelError: no argument is a sparse or quantized tensor.
    """
    registration = op.table[included.bit_length() - 1].registration
    own = registration is None or registration.is_trusted
    if op.binder.device_argument is not None:  # a creation function
        return
    if not own or any(value._keys & COMPOSED for value in tensors_of(op, args, kwargs)):
        return
    names = ", ".join(key.name for key in keys_of(included))
    raise NoKernelError(
        f"operator {op.name}: this thread includes {names}, and no argument is such a tensor; the kernels there take "
        f"sparse or quantized tensors alone\n{_describe_call(included, args, kwargs)}\n"
        f"  to go on:    leave {names} out of td.include_keys, or pass such a tensor: td.sparse_coo_tensor(...), "
        "td.quantize_per_tensor(...)"
    )


def _excluded_keys_note(args: Args, kwargs: Kwargs) -> str:
    """A note about the arguments' keys that this thread excludes; empty if there are none."""
    bits = 0
    for value in (*args, *kwargs.values()):
        for item in value if type(value) is tuple else (value,):
            bits |= item._keys if isinstance(item, TensorBase) else 0
    names = ", ".join(key.name for key in keys_of(bits & state.exclude))
    return f"; this thread excludes {names}, which td.force_keys() undoes" if names else ""


def _call_advice(op: Operator) -> str:
    """Advice for a call with an empty key set, where adding a kernel alone does not help."""
    key = max((key for key in op.kernels if isinstance(key, DispatchKey)), default=DispatchKey.CPU).name
    added = "" if op.kernels else f"  to add one:  {registration_line(op, key)}\n"
    call = f'{lookup_expression(op)}.call_for_key("{key}", ...)'
    return f"  registered:  {_describe_nearest(op, DispatchKey.CPU)}\n{added}  to call it:  {call}"


def make_no_kernel_error(op: Any, key: DispatchKey | str, kind: str, call: Any = None) -> NoKernelError:
    """The error of ``get_kernel`` or ``call_for_key`` for a key or alias without a kernel."""
    name = key if isinstance(key, str) else key.name
    bits = ALIASES[key] if isinstance(key, str) else 1 << key
    return NoKernelError(
        f"operator {op.name} has no kernel to call for {name}: it is {kind}\n"
        + ("" if call is None else f"{_describe_call(bits, *call)}\n")
        + f"  registered:  {_describe_nearest(op, key)}\n"
        f"  to add one:  {registration_line(op, name, allow_override=key in op.kernels)}"
    )


def lookup_expression(op: Operator) -> str:
    """The Python expression that looks an operator up."""
    return f"td.ops.{op.schema.namespace}.{op.schema.name}.{op.schema.overload or 'default'}"


def registration_line(op: Operator, key: str, allow_override: bool = False) -> str:
    """The line of Python that registers a kernel."""
    name = op.name.partition("::")[2]
    override = ", allow_override=True" if allow_override else ""
    return f'lib = td.Library("{op.schema.namespace}", "IMPL"); lib.impl("{name}", kernel, "{key}"{override})'


def _describe_call(bits: int, args: Args, kwargs: Kwargs) -> str:
    given = [_describe_argument(value) for value in args]
    given += [f"{name}={_describe_argument(value)}" for name, value in kwargs.items()]
    keys = ", ".join(key.name for key in keys_of(bits))
    return f"  called with: {', '.join(given) or 'no arguments'}\n  key set:     {keys}"


def _describe_argument(value: object) -> str:
    if not isinstance(value, TensorBase):
        return describe(value)
    keys = ", ".join(key.name for key in keys_of(value._keys))
    return f"{describe(value)} on {getattr(value, 'device', '?')} ({keys})"


def _serves_any(key: DispatchKey | str, bits: int) -> bool:
    return bool(GROUPS.get(key, 0) & bits) if isinstance(key, str) else bool(1 << key & bits)


def _describe_registration(registration: Registration | None) -> str:
    return "none" if registration is None else (
        f"{registration.key_name}: {registration.name}, {registration.origin}"
    )  # fmt: skip


def _join_lines(items: list[str]) -> str:
    rest = [f"and {len(items) - _MAX_LINES} more"] if len(items) > _MAX_LINES else []
    return ("\n" + " " * 15).join(items[:_MAX_LINES] + rest) or "none"


def _describe_nearest(op: Operator, key: DispatchKey | str) -> str:
    """The operator's kernels, sorted by the distance of their keys from ``key``."""

    def distance(registration: Registration) -> tuple[bool, int]:
        other = registration.key
        if isinstance(other, str) or isinstance(key, str):
            return other != key, 0
        return bool(1 << other & BACKENDS) != bool(1 << key & BACKENDS), abs(other - key)

    held = [r for registered in op.kernels.values() for r in registered[-1:]]
    return _join_lines([_describe_registration(r) for r in sorted(held, key=distance)])
