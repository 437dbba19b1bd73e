"""``opcheck``: test that an operator agrees with its registrations.

Source: ``torch.library.opcheck``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..errors import ArgumentError, OpCheckError, ValueArgumentError
from ..registry.dispatch.keys import CPU_KEYS
from ..registry.function import OperatorFunction
from ..registry.namespace import OverloadPacket
from ..registry.operator import Operator
from .check_kernels import (
    check_determinism,
    check_dtypes,
    check_empty,
    check_fake,
    check_schema,
    check_strided,
)
from .check_layers import check_autograd, check_jit, check_vmap
from .tested_call import CheckFailure, CheckSkipped, Subject

TESTS: dict[str, Callable[[Subject], None]] = {
    "schema": check_schema,
    "fake": check_fake,
    "determinism": check_determinism,
    "strided": check_strided,
    "empty": check_empty,
    "dtypes": check_dtypes,
    "autograd": check_autograd,
    "vmap": check_vmap,
    "jit": check_jit,
}
SUCCESS = "SUCCESS"


def opcheck(
    op: object,
    args: Sequence[object],
    kwargs: Mapping[str, object] | None,
    tests: str | Sequence[str] | None,
    raise_exception: bool,
    rtol: float | None,
    atol: float | None,
) -> dict[str, str | OpCheckError]:
    """See :func:`tandem.opcheck`."""
    names = _select_tests(tests)
    subject = Subject(_to_operator(op), args, kwargs or {}, rtol, atol)
    _check_plain(subject)
    result: dict[str, str | OpCheckError] = {name: _run_test(TESTS[name], subject) for name in names}
    failures = {name: str(fault) for name, fault in result.items() if isinstance(fault, OpCheckError)}
    if failures and raise_exception:
        text = "\n".join(f"  {name}: {what}" for name, what in failures.items())
        raise OpCheckError(f"{subject.name} fails {len(failures)} of {len(names)} tests:\n{text}", failures)
    return result


def _select_tests(tests: str | Sequence[str] | None) -> list[str]:
    names = list(TESTS) if tests is None else [tests] if isinstance(tests, str) else list(tests)
    unknown = [name for name in names if name not in TESTS]
    if unknown:
        raise ValueArgumentError(f"opcheck has no test {unknown[0]!r}; the tests are {', '.join(TESTS)}")
    return names


def _to_operator(op: object) -> Operator:
    if isinstance(op, OperatorFunction):
        return op.operator
    if isinstance(op, OverloadPacket):
        return _to_operator(getattr(op, op.overloads()[0]))
    if isinstance(op, Operator):
        return op
    raise ArgumentError(
        f"opcheck takes an operator: what custom_op gives, td.ops.myns.name, or a function such as td.add, not {op!r}"
    )


def _check_plain(subject: Subject) -> None:
    odd = [
        leaf.name
        for leaf in subject.leaves()
        if leaf.tensor._keys & ~CPU_KEYS and not leaf.tensor.requires_grad
    ]
    if odd:
        raise ArgumentError(
            f"opcheck takes plain CPU tensors; {odd[0]!r} of {subject.name} is something else"
        )


def _run_test(test: Callable[[Subject], None], subject: Subject) -> str | OpCheckError:
    try:
        test(subject)
    except CheckSkipped as why:
        return f"SKIPPED: {why}"
    except CheckFailure as fault:
        return OpCheckError(str(fault))
    except Exception as fault:
        return OpCheckError(f"the call itself fails: {type(fault).__name__}: {fault}")
    return SUCCESS
