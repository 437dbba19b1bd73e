"""The GIL in compiled graphs: before which steps it is released, and the LLVM IR that releases it.

A graph whose code may release the GIL, or may need it inside a loop that has released it, is compiled to ``BODY``,
which finds the state of the call (``rt_gil``) among its buffers. Its ``main`` makes that state and calls ``BODY``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import lazy
from ...errors import LoweringError
from ...lowering.loop_bodies import LoopThunk
from ...lowering.lower import Lowered
from ...lowering.thunks import KernelThunk
from .fastpath.compiler.engine import Code, KeepFirst, Passes, build_once
from .fastpath.compiler.structs import sizeof
from .fastpath.runtime.rt_gil import CallState, gil_acquire, gil_poll, gil_release
from .loop_cost import RELEASE_NS
from .step_cost import estimate_step, has_callback

_calls = lazy.Module(".backends.cpu.native_kernels.calls")
_lang = lazy.Module(".backends.cpu.fastpath.compiler.lang")
FUNCTIONS = {f.__name__: f for f in (gil_release, gil_acquire, gil_poll)}
MAIN, BODY = "tandem_main", "tandem_body"
STATE = 2  # slots after the workspace: 1 is the table of constants, 2 the address of the call's state
RELEASE = "  call void @gil_release(ptr %state)"
ACQUIRE = "  call void @gil_acquire(ptr %state)"
_CHECK = """  %pending = call ptr @PyErr_Occurred()
  %is_pending = icmp ne ptr %pending, null
  %raised = zext i1 %is_pending to i32
  %result = or i32 %failed, %raised
"""
DECLARATIONS = """
declare void @gil_release(ptr)
declare void @gil_acquire(ptr)
declare i64 @gil_poll(ptr, ptr, i64, i64)
"""


def main_text(slot: int, may_raise: bool) -> str:
    """Return the LLVM IR of a ``main`` that makes the state of the call.

    Args:
        slot: index of the state among the buffers.
        may_raise: whether the code calls functions that may set an exception without the GIL.
    """
    check = _CHECK if may_raise else ""
    return f"""
define i32 @{MAIN}(ptr %buffers, ptr %scalars) {{
entry:
  %state = alloca [{sizeof(CallState) // 8} x i64]
  store [{sizeof(CallState) // 8} x i64] zeroinitializer, ptr %state
  %slot = getelementptr i8, ptr %buffers, i64 {8 * slot}
  store ptr %state, ptr %slot
  %failed = call i32 @{BODY}(ptr %buffers, ptr %scalars)
{ACQUIRE}
{check}  ret i32 {"%result" if may_raise else "%failed"}
}}
"""


def has_state(lowered: Lowered) -> bool:
    """Return whether a graph's code may release the GIL, or need it inside a loop that has released it."""
    return bool(release_points(lowered.steps)) or any(map(_needs_state, lowered.steps))


def _needs_state(step: Any) -> bool:
    if isinstance(step, LoopThunk):
        bodies = [body.lowered for body in step.bodies if body.lowered is not None]
        return step.node.op.schema.name != "switch" or any(map(has_state, bodies))
    if isinstance(step, KernelThunk):
        return any(stage.has_index_maps() for stage in step.kernel.stages)
    return bool(step.kind == "callback" or _may_fail(step))


def _may_fail(step: Any) -> bool:
    """Return whether a step is a call of an inner loop that may have to raise an exception."""
    return getattr(step.node.op.decl, "native", None) is not None and bool(_calls.can_fail(step))


def release_points(steps: Sequence[Any]) -> set[int]:
    """Return the indices of the steps before which the GIL is released: each begins a long run without callbacks."""
    points: set[int] = set()
    first, total = 0, 0.0
    for number, step in enumerate(steps):
        if has_callback(step):
            first, total = number + 1, 0.0
            continue
        total += estimate_step(step)
        if total >= RELEASE_NS:
            points.add(first)
    return points


def gil_function_addresses() -> dict[str, int]:
    """Return the addresses of the functions that release and acquire the GIL.

    The entries of eager calls are not loaded.
    """
    code = _compile_functions()
    return {name: code[name] for name in FUNCTIONS}


@KeepFirst
def _compile_functions() -> Code:
    """Return the code of the functions of ``rt_gil``, compiled once."""
    code = build_once(
        "functions of the GIL", lambda: str(_lang.emit(FUNCTIONS, {})), FUNCTIONS, passes=Passes.QUICK
    )
    if code is None:
        raise LoweringError("the functions that release the GIL cannot be compiled")
    return code
