"""Compile a lowered graph for CUDA: its kernels as one module, and a function that launches them."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from ....lowering.kernel_selection import Target
from ....lowering.layout import Layout
from ....lowering.lower import Backend, Lowered, register_backend
from ....lowering.passes.pipeline import merge_common_subexpressions, remove_dead_code
from ....lowering.report import describe_thunk
from ....lowering.thunks import KernelThunk, Thunk
from ....registry.dispatch.keys import DispatchKey
from ....registry.dtypes import DType
from ....tracer.graph import Graph, Node
from ...cpu.compile import MAIN
from ...cpu.executable import make_calling_convention
from ...cpu.fastpath.compiler import engine
from ..blas.cublas import Cublas
from ..blas.products import explain_product, product_operands_to_copy
from ..codegen.kernel import CudaKernel, module_source
from ..codegen.types import CTYPE
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray
from ..runtime.copies import make_constant
from ..runtime.devices import device_of
from ..runtime.launching import kernel_functions
from .call_text import DeviceMainWriter, write_kernels
from .callback import make_node_callable
from .constants import fold_constants
from .decompose_on_device import decompose_on_device
from .executable import CudaExecutable
from .graph_choice import GraphChoice
from .graphs import Replay, Submission
from .move_to_device import move_to_device
from .prewritten import explain_prewritten, make_launches, prewritten_operands_to_copy
from .prewritten_forms import normalize
from .select_updates import select_updates


def has_ctype(dtype: DType) -> bool:
    """Whether CUDA C can be emitted for a dtype."""
    return dtype in CTYPE


def make_target() -> Target:
    """The backend's capabilities, for kernel selection."""
    return Target(
        has_ctype,
        explain_product,
        key=DispatchKey.CUDA,
        inlines_producers=True,
        native=explain_prewritten,
        copies=_operands_to_copy,
        indexes=True,
        updates=True,
        reports_later=True,
    )


def _operands_to_copy(node: Node, layouts: Sequence[Layout]) -> Sequence[bool]:
    function = product_operands_to_copy if explain_product(node) else prewritten_operands_to_copy
    return function(node, layouts)


def explain_uncompiled(graph: Graph) -> str | None:
    """The reason why an optimised graph cannot be compiled; None if it can."""
    devices = {output.spec.device for node in graph.nodes for output in node.outputs}
    devices |= {value.spec.device for value in graph.parameters if value.spec.device != "cpu"}
    if len(devices) > 1:
        return f"it works on several devices: {', '.join(sorted(devices))}"
    moved = next((node for node in graph.nodes if getattr(node.op.decl, "kind", "") == "transfer"), None)
    return None if moved is None else "it moves a tensor from device to device"


class Tables:
    """The table of the code's constants: addresses of arrays, then callbacks, numbers and cuBLAS's struct.

    Attributes:
        arrays: the constants.
        address: of the table.
    """

    def __init__(self, constants: list[DeviceArray], callables: list[Any]):
        self.arrays, self._callables = constants, callables
        words = [array.ptr for array in constants]
        words += [_to_address(one) for one in callables]
        self._words = (ctypes.c_void_p * max(len(words), 1))(*words)
        self.address = ctypes.addressof(self._words)


def _to_address(one: Any) -> int:
    """The table entry of a number, of cuBLAS (the address of its struct), or of a callable (its address)."""
    if type(one) is int:
        return one
    return one.address if isinstance(one, Cublas) else id(one)


def compile_lowered(lowered: Lowered) -> CudaExecutable:
    """Compile a lowered graph, or load its code from the disk cache."""
    at = device_of(lowered.device)
    writer = DeviceMainWriter(lowered)
    code = _compile_module(writer.write())
    constants = [make_constant(tensor._array, at.index) for _, tensor in lowered.folded]
    tables = Tables(constants, [make_node_callable(step, at.index) for step in writer.nodes])
    handles = kernel_functions(writer.launched, at.index) if writer.launched else []
    plan = make_calling_convention(lowered, code[MAIN], tables)._replace(workspace=writer.workspace)
    plain = Submission(plan.address, [tools.toolkit().driver.address("cuLaunchKernel"), *handles])

    def replay() -> Replay:
        code = _compile_module(DeviceMainWriter(lowered, replays=True).write())
        words = sum(p.weak is None for p in plan.parameters) + len(plan.storages) + 4
        return Replay(at, handles, code, words, len(plan.parameters), tables.address)

    choice = GraphChoice(plain, len(handles), replay, _explain_no_cuda_graph(lowered))
    return CudaExecutable(lowered, plan, at, choice, (code, tables))


def _explain_no_cuda_graph(lowered: Lowered) -> str:
    """The reason why a graph's steps cannot be replayed as one CUDA graph; empty if they can."""
    steps = (step for step in lowered.steps if not isinstance(step, KernelThunk))
    other = next((step for step in steps if step.kind != "native"), None)
    return "" if other is None else f"{other.node.op.name} is among them, and a CUDA graph takes kernels only"


@functools.lru_cache(maxsize=256)
def _compile_module(text: str) -> engine.Code:
    """The code of a module, shared by equal graphs."""
    return engine.compile_ir(text, [MAIN], {}, passes=engine.Passes.FUNCTIONS)


def _kernels_of(step: Thunk) -> list[CudaKernel]:
    if isinstance(step, KernelThunk):
        return write_kernels(step, True)
    return [launch.kernel for launch in make_launches(step)] if step.kind == "native" else []


def print_source(lowered: Lowered) -> str:
    """The CUDA C of a lowered graph, after comments that list its steps in their order."""
    steps = lowered.steps
    kernels = [kernel for step in steps for kernel in _kernels_of(step)]
    text = module_source(kernels)
    order = [f"//   {describe_thunk(step)}" for step in steps]
    return "\n".join(["// what runs, in this order, on one stream:", *order, "", text])


def run_passes(graph: Graph, device: str) -> Graph:
    """Run the passes that only CUDA needs."""
    graph = decompose_on_device(move_to_device(graph, device), device)
    graph = merge_common_subexpressions(normalize(select_updates(fold_constants(graph))))
    return remove_dead_code(fold_constants(graph))


register_backend(
    "cuda", Backend(make_target, compile_lowered, print_source, "CUDA C", explain_uncompiled, run_passes)
)
