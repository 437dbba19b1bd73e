"""From a lowered graph to CUDA: its kernels as one module, and a function that launches them."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from ...lowering.layout import Layout
from ...lowering.lowered import Backend, Lowered, register_backend
from ...lowering.passes import merge_common_subexpressions, remove_dead_code
from ...lowering.report import describe_group
from ...lowering.resolve import Target
from ...lowering.steps import KernelStep, Step
from ...registry.dtypes import DType
from ...registry.keys import DispatchKey
from ...tracer.graph import Graph, Node
from ..cpu.compile import MAIN, call_plan
from ..cpu.native import engine
from . import toolkit as tools
from .arrays import DeviceArray
from .bring import bring
from .call_text import CallWriter, kernels_of
from .callback import serving
from .constants import fold
from .cublas import Cublas
from .devices import device_of
from .direct import copied_operands, direct_reason, launches_of
from .direct_forms import in_form
from .emit.kernel import CudaKernel, module_source
from .emit.types import CTYPE
from .executable import CudaExecutable
from .graph_choice import GraphChoice
from .graphs import Replay, Way
from .lasting import lasting
from .modules import kernel_functions
from .picks import pick
from .products import copied_matrices, product_reason


def emits(dtype: DType) -> bool:
    """Whether CUDA C is emitted for a dtype."""
    return dtype in CTYPE


def target() -> Target:
    """What the backend can compute."""
    return Target(
        emits, product_reason, key=DispatchKey.CUDA, absorbs=True, native=direct_reason, copies=_copies
    )


def _copies(node: Node, layouts: Sequence[Layout]) -> Sequence[bool]:
    served = copied_matrices if product_reason(node) else copied_operands
    return served(node, layouts)


def why_not(graph: Graph) -> str | None:
    """Why an optimised graph is not compiled; None if it is."""
    devices = {output.spec.device for node in graph.nodes for output in node.outputs}
    devices |= {value.spec.device for value in graph.parameters if value.spec.device != "cpu"}
    if len(devices) > 1:
        return f"it works on several devices: {', '.join(sorted(devices))}"
    moved = next((node for node in graph.nodes if getattr(node.op.decl, "kind", "") == "transfer"), None)
    return None if moved is None else "it moves a tensor from device to device"


class Tables:
    """What the code is given beside its arguments: addresses of constants, then callables of callbacks, and cuBLAS.

    Attributes:
        arrays: the constants.
        address: where the table lies.
    """

    def __init__(self, constants: list[DeviceArray], callables: list[Any]):
        self.arrays, self._callables = constants, callables
        words = [array.ptr for array in constants]
        words += [_word(one) for one in callables]
        self._words = (ctypes.c_void_p * max(len(words), 1))(*words)
        self.address = ctypes.addressof(self._words)


def _word(one: Any) -> int:
    """What the table holds: a number, the address of cuBLAS's record, or the object that is called."""
    if type(one) is int:
        return one
    return one.address if isinstance(one, Cublas) else id(one)


def compile_lowered(lowered: Lowered) -> CudaExecutable:
    """Compile a lowered graph, or load its code from the disk cache."""
    at = device_of(lowered.device)
    writer = CallWriter(lowered)
    code = _shared(writer.write())
    constants = [lasting(tensor._array, at.index) for _, tensor in lowered.folded]
    tables = Tables(constants, [serving(step, at.index) for step in writer.nodes])
    handles = kernel_functions(writer.launched, at.index) if writer.launched else []
    plan = call_plan(lowered, code[MAIN], tables)._replace(workspace=writer.workspace)
    plain = Way(plan.address, [tools.toolkit().driver.address("cuLaunchKernel"), *handles])

    def replay() -> Replay:
        code = _shared(CallWriter(lowered, replays=True).write())
        words = sum(p.weak is None for p in plan.parameters) + len(plan.storages) + 4
        return Replay(at, handles, code, words, len(plan.parameters), tables.address)

    choice = GraphChoice(plain, len(handles), replay, _why_no_graph(lowered))
    return CudaExecutable(lowered, plan, at, choice, (code, tables))


def _why_no_graph(lowered: Lowered) -> str:
    """Why a graph's steps cannot be replayed as one CUDA graph; empty if they can."""
    steps = (step for step in lowered.steps if not isinstance(step, KernelStep))
    other = next((step for step in steps if step.kind != "native"), None)
    return "" if other is None else f"{other.node.op.name} is among them, and a CUDA graph takes kernels only"


@functools.lru_cache(maxsize=256)
def _shared(text: str) -> engine.Code:
    """The code of a module, shared by equal graphs."""
    return engine.compile_ir(text, [MAIN], {}, level=1)


def _printed(step: Step) -> list[CudaKernel]:
    if isinstance(step, KernelStep):
        return kernels_of(step, True)
    return [launch.kernel for launch in launches_of(step)] if step.kind == "native" else []


def source(lowered: Lowered) -> str:
    """The CUDA C of a lowered graph; steps that are no kernels as comments, in their place."""
    steps = lowered.steps
    kernels = [kernel for step in steps for kernel in _printed(step)]
    text = module_source(kernels)
    order = [f"//   {describe_group(step)}" for step in steps]
    return "\n".join(["// what runs, in this order, on one stream:", *order, "", text])


def prepare(graph: Graph, device: str) -> Graph:
    """The passes that are CUDA's own."""
    graph = merge_common_subexpressions(in_form(pick(fold(bring(graph, device)))))
    return remove_dead_code(fold(graph))


register_backend("cuda", Backend(target, compile_lowered, source, "CUDA C", why_not, prepare))
