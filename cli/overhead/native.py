"""The native path taken apart: its entry compiled again with one layer after another replaced by a ready answer.

The entry is written in small native functions, so a variant is the same source with one of them exchanged.  The
complete call that the parts are compared with is the operator's own entry, untouched.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ... import add, asarray
from ...backends.cpu import fastpath
from ...backends.cpu.fastpath.compiler import engine, lang
from ...backends.cpu.fastpath.compiler.structs import sizeof
from ...backends.cpu.fastpath.entries import rt_elementwise, rt_jit
from ...backends.cpu.fastpath.glue import jit_layout, layout
from ...backends.cpu.fastpath.glue.structs import CODES, OperatorStruct, StructMemory
from ...backends.cpu.fastpath.glue.stubs import Stub
from ...backends.cpu.fastpath.runtime import rt_base
from ...eager.tensor.tensor import Tensor
from ...jit.api import jit
from ...registry.native_type import DATA, NativeCallable, accept_entries, entry_of, set_entry
from ...registry.operator import find_operator
from . import ready
from .compare import make_call_case, warm_up
from .measure import Case, Timing, interleave
from .results import Split
from .workloads import chain, chain_arrays

if TYPE_CHECKING:
    from ...registry.types import Args

EAGER_PATH, RECORDED_PATH, JIT_PATH = "native, eager", "native, eager, recording", "native, compiled"

# Each layer with the functions of the entry that it consists of, and their replacements.
EAGER_LAYERS: Mapping[str, Mapping[str, object]] = {
    "thread state": {"thread_flags": ready.flags},
    "key set and types": {"operand_code": ready.code},
    "lookup": {"find_variant": ready.variant},
    "shapes": {"is_flat": ready.shapes},
    "allocation": {"new_array": ready.array},
    "result": {"make_tensor": ready.tensor},
}


RECORDED_LAYERS: Mapping[str, Mapping[str, object]] = {
    "edges": {"make_edges": ready.ready_edges},
    "saved values": {"make_saved": ready.ready_saved},
    "node": {"record_call": ready.unrecorded},
    **EAGER_LAYERS,
}


def native_state() -> dict[str, str]:
    """Which native paths are on."""
    fault = fastpath.why_off()
    state = f"off ({fault})" if fault else "on"
    return {
        "native eager": state,
        "compiled calls": "NumPy kernels on the optimised graph" if fault else "on",
    }


JIT_LAYERS: Mapping[str, Mapping[str, object]] = {
    "thread state": {"thread_flags": ready.flags},
    "guards": {"tensor_matches": ready.leaf},
    "allocation": {"new_array": ready.array},
    "result": {"make_tensor": ready.tensor},
}


@accept_entries
class Probe(NativeCallable):  # type: ignore[misc]
    """A callable with nothing but a native entry."""

    def __init__(self, entry: int, data: StructMemory, keep: object) -> None:
        self.keep = data, keep
        set_entry(self, entry, data.address)


def copied(address: int, size: int, owner: object) -> StructMemory:
    """A record with the content of the memory at an address, which the owner keeps alive."""
    result = StructMemory(size)
    result.memory.raw = ctypes.string_at(address, size)
    result.kept.append(owner)
    return result


def telescope(whole: Timing, peeled: Mapping[str, Timing]) -> dict[str, float]:
    """The parts: the time that each variant saves over the previous one, and the call that remains after the last.

    Layers overlap in the processor, so what each saves alone adds up to more than there is.
    """
    # A variant with less to do takes no longer: where one seems to, the machine was busy.
    left = list(accumulate((timing.median for timing in (whole, *peeled.values())), min))
    parts = {name: was - now for name, was, now in zip(peeled, left, left[1:])}
    return {"call": left[-1], **parts}


class EagerProbes:
    """Variants of the entry of one elementwise operator of two operands.

    Args:
        stub: the operator's stub, hot.
        args: the tensors of the call.
    """

    def __init__(self, stub: Stub, args: Args) -> None:
        variants = stub.record.variants if stub.record is not None else {}
        self.stub, self.runtime = stub, stub.runtime
        # The loop of another dtype, called before, would write outside of the result.
        codes = [CODES.index(cast(Tensor, x).dtype) for x in args]
        self.variant = variants[sum(code << rt_base.CODE_BITS * i for i, code in enumerate(codes))]
        self.result = stub.operator(*args)
        self.imports = {
            **layout.numpy_symbols(),
            "tandem_ready_array": id(self.result._array),
            "tandem_ready_tensor": id(self.result),
            "tandem_ready_tuple": id(()),
        }

    def probe(self, replaced: Mapping[str, object], *, compute: bool = True) -> Probe:
        """The entry with some functions exchanged, and with the loop or without."""
        constants = {**self.runtime.constants, "NIN": 2, "NARGS": 3, **replaced}
        variant = copied(self.variant.address, sizeof(rt_base.Variant), self.variant)
        functions: dict[str, Callable[..., Any]] = {
            "entry": rt_elementwise.elementwise,
            "nothing": ready.loop,
        }
        imports = self.imports | {"tandem_ready_variant": variant.address}
        code = engine.compile_ir(lang.emit(functions, constants), list(functions), imports)
        if not compute:
            variant.set(rt_base.Variant.loop, code["nothing"])
        data = OperatorStruct(self.runtime.process, self.stub.operator, self.stub.operator)
        data.add(variant)
        data.set_recorder(self.stub.recorder())
        return Probe(code["entry"], data, (code, self.result))


def peeled(probe: Callable[..., Probe], layers: Mapping[str, Mapping[str, object]]) -> dict[str, Probe]:
    """The entry without its first layer, without its first two, ...; at last without the loop as well."""
    made: dict[str, Probe] = {}
    replaced: dict[str, Any] = {}
    for name, layer in layers.items():
        replaced |= layer
        made[name] = probe(replaced)
    return made | {"kernel": probe(replaced, compute=False)}


def eager_split(size: int = 16, seconds: float = 1.0) -> Split:
    """``add`` of two plain tensors through its native entry."""
    args = (asarray(np.ones(size, np.float32)), asarray(np.ones(size, np.float32)))
    return _entry_split(EAGER_PATH, f"add, float32[{size}]", args, EAGER_LAYERS, seconds)


def recorded_split(size: int = 16, seconds: float = 1.0) -> Split:
    """``add`` of a tensor that requires gradients through its native entry, which records the call."""
    ones = np.ones(size, np.float32)
    args = (asarray(ones, requires_grad=True), asarray(ones))
    return _entry_split(RECORDED_PATH, f"add, float32[{size}]", args, RECORDED_LAYERS, seconds)


def _entry_split(
    path: str, about: str, args: Args, layers: Mapping[str, Mapping[str, object]], seconds: float
) -> Split:
    """A call of ``add`` through its native entry, without one layer after another."""
    warm_up(make_call_case(add, args))
    stubs = fastpath.stubs()
    stub = stubs.by_operator.get(find_operator("td::add.Tensor")) if stubs is not None else None
    if stub is None or stub.record is None or not entry_of(add):
        return Split(path, about, None, note=fastpath.why_off() or "the operator has no native entry")
    probes = peeled(EagerProbes(stub, args).probe, layers)
    whole, parts = _timed(make_call_case(add, args), probes, args, seconds)
    return Split(path, about, whole, parts, "the entry that td.add runs")


def _timed(
    whole: Case, probes: Mapping[str, Probe], args: Args, seconds: float
) -> tuple[Timing, dict[str, float]]:
    """The complete call, and its parts."""
    cases = {name: make_call_case(probe, args) for name, probe in probes.items()}
    times = interleave({"whole": whole, **cases}, seconds=seconds)
    complete = times.pop("whole")
    return complete, telescope(complete, times)


class JitProbes:
    """Variants of the entry of a jitted function that has one specialization and returns one new tensor."""

    def __init__(self, function: object, constants: Mapping[str, object], result: Any) -> None:
        self.function, self.constants, self.result = function, constants, result
        self.data = ctypes.c_void_p.from_address(id(function) + DATA).value or 0
        self.imports = {
            **layout.numpy_symbols(),
            "tandem_ready_array": id(result._array),
            "tandem_ready_tensor": id(result),
        }

    def probe(self, replaced: Mapping[str, object], *, compute: bool = True) -> Probe:
        """The entry with some functions exchanged, and with the compiled code or without."""
        functions: dict[str, Callable[..., Any]] = {"entry": rt_jit.jitted_call, "nothing": ready.main}
        ir = lang.emit(functions, {**self.constants, **replaced})
        code = engine.compile_ir(ir, list(functions), self.imports)
        record = copied(self.data, sizeof(jit_layout.JitEntry), self.function)
        head = copied(record.get(jit_layout.JitEntry.head), sizeof(jit_layout.Specialization), self.function)
        head.set(jit_layout.Specialization.next, 0)
        head.set(jit_layout.Specialization.spare, 0)
        if not compute:
            head.set(jit_layout.Specialization.main, code["nothing"])
        record.point(jit_layout.JitEntry.head, head)
        return Probe(code["entry"], record, (code, self.result))


def jit_split(length: int = 30, size: int = 16, seconds: float = 1.0) -> Split:
    """A jitted chain of operations through its native entry."""
    about = f"chain of {length}, float32[{size}]"
    args = tuple(map(asarray, chain_arrays(size)))
    function = jit(chain(length))
    warm_up(make_call_case(function, args))
    stubs = fastpath.stubs()
    if stubs is None or not entry_of(function):
        return Split(JIT_PATH, about, None, note=fastpath.why_off() or "the function has no native entry")
    probes = peeled(JitProbes(function, stubs.runtime.constants, function(*args)).probe, JIT_LAYERS)
    whole, parts = _timed(make_call_case(function, args), probes, args, seconds)
    return Split(JIT_PATH, about, whole, parts, "the entry that the jitted function runs")


NATIVE_SPLITS = (eager_split, recorded_split, jit_split)
