"""The native runtime of a process: loads or compiles the entries of the `rt_*` modules on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ..... import lazy, locks
from .....named_tuple import NamedTuple
from ... import cache
from ..compiler import engine
from ..runtime import rt_base
from . import class_slots, layout
from .structs import DTypeObjects, StructMemory, make_process_struct

_lock = locks.make_lock("runtime")

# The modules are imported to compile an entry; a process that finds it in the disk cache does not need them.
lang = lazy.Module(".backends.cpu.fastpath.compiler.lang")
rt_asarray = lazy.Module(".backends.cpu.fastpath.entries.rt_asarray")
rt_assign = lazy.Module(".backends.cpu.fastpath.entries.rt_assign")
rt_attributes = lazy.Module(".backends.cpu.fastpath.entries.rt_attributes")
rt_backward = lazy.Module(".backends.cpu.fastpath.runtime.rt_backward")
rt_cached_views = lazy.Module(".backends.cpu.fastpath.entries.rt_cached_views")
rt_copies = lazy.Module(".backends.cpu.fastpath.entries.rt_copies")
rt_counts = lazy.Module(".backends.cpu.fastpath.entries.rt_counts")
rt_elementwise = lazy.Module(".backends.cpu.fastpath.entries.rt_elementwise")
rt_fills = lazy.Module(".backends.cpu.fastpath.entries.rt_fills")
rt_forward = lazy.Module(".backends.cpu.fastpath.entries.rt_forward")
rt_gathers = lazy.Module(".backends.cpu.fastpath.entries.rt_gathers")
rt_inplace = lazy.Module(".backends.cpu.fastpath.entries.rt_inplace")
rt_jit = lazy.Module(".backends.cpu.fastpath.entries.rt_jit")
rt_joins = lazy.Module(".backends.cpu.fastpath.entries.rt_joins")
rt_kernels = lazy.Module(".backends.cpu.fastpath.entries.rt_kernels")
rt_loop_calls = lazy.Module(".backends.cpu.fastpath.entries.rt_loop_calls")
rt_matmul = lazy.Module(".backends.cpu.fastpath.entries.rt_matmul")
rt_operator_slots = lazy.Module(".backends.cpu.fastpath.entries.rt_operator_slots")
rt_parts = lazy.Module(".backends.cpu.fastpath.entries.rt_parts")
rt_protocols = lazy.Module(".backends.cpu.fastpath.entries.rt_protocols")
rt_ranges = lazy.Module(".backends.cpu.fastpath.entries.rt_ranges")
rt_reduce = lazy.Module(".backends.cpu.fastpath.entries.rt_reduce")
rt_row_writes = lazy.Module(".backends.cpu.fastpath.entries.rt_row_writes")
rt_scans = lazy.Module(".backends.cpu.fastpath.entries.rt_scans")
rt_subscript = lazy.Module(".backends.cpu.fastpath.entries.rt_subscript")
rt_type_slots = lazy.Module(".backends.cpu.fastpath.entries.rt_type_slots")
rt_views = lazy.Module(".backends.cpu.fastpath.entries.rt_views")


class Group(NamedTuple):
    """Entries that are compiled together.

    Attributes:
        module: where their functions are.
        functions: the names of the functions by the kinds of the entries.
        constants: compile-time constants: numbers, or names of such in the module of views.
        reads_dtypes: whether an entry looks up objects that name dtypes.
    """

    module: Any
    functions: dict[str, str]
    constants: Mapping[str, int | str] = MappingProxyType({})
    reads_dtypes: bool = False

    def find_functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of the entries by their kinds."""
        return {kind: getattr(self.module, name) for kind, name in self.functions.items()}

    def find_constants(self) -> dict[str, int]:
        """Return the values of the constants."""
        return {
            name: getattr(rt_views, value) if isinstance(value, str) else value
            for name, value in self.constants.items()
        }


ONE: dict[str, int | str] = {"NIN": 1, "NARGS": 2}  # constants of entries with one input
TWO: dict[str, int | str] = {"NIN": 2, "NARGS": 3}
SHAPED = ONE | {"VIEW": "RESHAPE"}
VIEWS = {"reshape": "RESHAPE", "permute": "PERMUTE", "broadcast_to": "BROADCAST"}
TRANSPOSES = {"reverse_axes": "ALL_AXES", "swap_last_axes": "LAST_AXES"}
COPIES = {"clone": "COPY", "contiguous": "DENSE", "stop_gradient": "ALIAS"}
CASTS = {"cast": 0, "astype": 1}
ATTRIBUTES = (
    "read_shape read_strides read_rank read_length read_size read_count read_item_size read_byte_size read_dtype "
    "read_item to_float to_complex to_int to_index to_bool to_list to_bytes to_array "
    "read_common_dtype has_complex has_real has_axes reshape_or_bitcast map_tensors broadcast_all read_flags"
)
TYPE_SLOTS = "deallocate get_buffer get_length get_truth get_int get_float get_iterator iterate"
METHOD_SLOTS = (
    "add sub mul mod lshift rshift and xor or floordiv truediv matmul iadd isub imul imod ilshift irshift "
    "iand ixor ior ifloordiv itruediv neg pos abs invert compare subscript item"
)
FILLS = {"full": -1, "zeros": 0, "ones": 1}

GROUPS = (
    *(Group(rt_elementwise, {f"elementwise{n}": "elementwise"}, {"NIN": n, "NARGS": n + 1}) for n in (1, 3)),
    Group(
        rt_elementwise, {"elementwise2": "elementwise", "elementwise2_swapped": "elementwise_swapped"}, TWO
    ),
    Group(rt_reduce, {"reduction": "reduction"}, ONE, reads_dtypes=True),
    Group(rt_jit, {"jitted": "jitted_call", "recorded": "recorded_call"}),
    Group(rt_kernels, {"kernel_call": "kernel_call"}),
    Group(rt_kernels, {"array_kernel_call": "array_kernel_call"}),
    Group(rt_counts, {"bincount": "bincount"}, reads_dtypes=True),
    Group(rt_forward, {"forward": "forward"}),
    Group(rt_asarray, {"asarray": "asarray", "convert": "convert"}, reads_dtypes=True),
    Group(rt_asarray, {"asarray_double": "asarray"}, {"DOUBLE": 1}, reads_dtypes=True),
    Group(rt_type_slots, {name: name for name in TYPE_SLOTS.split()}),
    Group(rt_operator_slots, {f"slot_{name}": f"slot_{name}" for name in METHOD_SLOTS.split()}, SHAPED),
    Group(rt_attributes, {name: name for name in ATTRIBUTES.split()}, reads_dtypes=True),
    Group(rt_copies, {name: name for name in ("copy_elements", "copy_with_memo")}, ONE),
    Group(rt_protocols, {"array_ufunc": "array_ufunc", "array_function": "array_function"}),
    Group(rt_loop_calls, {"loop_call": "loop_call"}, ONE | {"LISTS": 1}),
    Group(rt_backward, {"backward": "backward"}),
    Group(rt_subscript, {"subscript": "subscript"}, SHAPED),
    Group(rt_assign, {"assign": "assign", "put": "put"}, SHAPED),
    *(Group(rt_views, {kind: "view"}, ONE | {"VIEW": which}) for kind, which in VIEWS.items()),
    *(Group(rt_views, {kind: "transpose"}, ONE | {"VIEW": which}) for kind, which in TRANSPOSES.items()),
    *(
        Group(rt_cached_views, {kind: "cached_view"}, SHAPED | {"LISTS": lists})
        for lists, kind in enumerate(("cached_view", "cached_views"))
    ),
    *(
        Group(rt_parts, {kind: "read_part"}, SHAPED | {"IMAGINARY": which})
        for which, kind in enumerate(("read_real", "read_imaginary"))
    ),
    *(Group(rt_views, {kind: "copy_or_view"}, ONE | {"RESULT": which}) for kind, which in COPIES.items()),
    *(Group(rt_inplace, {f"inplace{n}": "inplace"}, {"NIN": n, "NARGS": n + 1}) for n in (1, 2, 3)),
    *(
        Group(rt_elementwise, {kind: "cast"}, ONE | {"HAS_COPY": known}, True)
        for kind, known in CASTS.items()
    ),
    Group(rt_scans, {"scan": "scan"}, ONE, reads_dtypes=True),
    *(Group(rt_fills, {kind: "fill"}, ONE | {"VALUE": value}, True) for kind, value in FILLS.items()),
    Group(rt_ranges, {name: name for name in ("arange", "linspace", "eye")}),
    Group(rt_matmul, {"matmul": "matmul"}, TWO),
    *(Group(rt_joins, {kind: "join"}, ONE | {"STACK": int(kind == "stack")}) for kind in ("concat", "stack")),
    *(Group(rt_gathers, {kind: "gather"}, ONE | {"TAKE": int(kind == "take")}) for kind in ("index", "take")),
    Group(rt_subscript, {"basic_index": "basic_index"}, SHAPED),
    Group(rt_row_writes, {"write_rows": "write_rows"}),
)
KINDS = {kind: group for group in GROUPS for kind in group.functions}


def runtime_ir(kind: str, constants: Mapping[str, Any]) -> str:
    """Return LLVM IR of one kind of entry and those that it is compiled with, exported under their names."""
    group = KINDS[kind]
    text: str = lang.emit(group.find_functions(), {**constants, **group.find_constants()})
    return text


class Runtime:
    """The compiled entries of this process, and the struct of globals that they share.

    Raises:
        RuntimeError: a slot of a class has an unexpected offset.
    """

    def __init__(self) -> None:
        self.constants = class_slots.class_constants()
        self.dtype_objects = DTypeObjects()
        self.process: StructMemory = make_process_struct(self.dtype_objects)
        self.codes: dict[str, engine.Code] = {}
        # Called with each stub whose entries have been installed, while the registry's lock is held.
        self.install_listeners: list[Callable[[Any], None]] = []

    def _fingerprint(self, kind: str) -> str:
        return engine.fingerprint(
            *KINDS[kind].functions, engine.source_digest(), repr(sorted(self.constants.items()))
        )

    def tick(self) -> int:
        """Advance the clock that orders calls of jitted functions, and return its time."""
        time = self.process.get(rt_base.Globals.jit_clock) + 1
        self.process.set(rt_base.Globals.jit_clock, time)
        return time

    def is_available(self, kind: str) -> bool:
        """Return whether an entry needs no compilation: it is loaded, or in the disk cache."""
        return kind in self.codes or cache.read(self._fingerprint(kind)) is not None

    def entry(self, kind: str) -> int:
        """Return the address of the entry of a kind (see `KINDS`), loaded or compiled on demand."""
        with _lock:
            if kind not in self.codes:
                if KINDS[kind].reads_dtypes:
                    self.dtype_objects.fill()
                kinds = list(KINDS[kind].functions)
                imports = layout.numpy_symbols() | {"tandem_process": self.process.address}
                code = engine.build(
                    self._fingerprint(kind),
                    lambda: runtime_ir(kind, self.constants),
                    kinds,
                    imports,
                    passes=engine.Passes.MODULE,
                )
                self.codes.update(dict.fromkeys(kinds, code))
            return self.codes[kind][kind]
