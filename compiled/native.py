"""The native entry of a jitted function: its specializations as records that machine code reads.

A specialization that the entry cannot express (views among the results, foreign containers, ...) is left to Python,
which is also what answers every call whose guards fail.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import config, pytree
from ..backends.cpu import native
from ..backends.cpu.executable import CallPlan, CpuExecutable
from ..backends.cpu.native import jit_layout as at
from ..backends.cpu.native.jit_records import (
    JitRecord,
    Program,
    SpecializationRecord,
    array_guard,
    float_bits,
    output_table,
)
from ..backends.cpu.native.rt_base import ELSEWHERE
from ..backends.cpu.native.threads import flags_of
from ..eager.tensor import Tensor
from ..registry import native_type
from ..registry.dtypes import as_dtype
from ..registry.operator import Operator, change_listeners, lock
from ..registry.values import TensorSpec
from ..tracer.graph import Value
from .arguments import Arguments
from .externals import ABSENT
from .leaves import LeafGuard
from .specialization import Specialization

INT64 = (-(2**63), 2**63 - 1)
_ARITHMETIC = {"add": at.D_ADD, "sub": at.D_SUBTRACT, "mul": at.D_MULTIPLY, "truediv": at.D_DIVIDE}
_SOURCES = {float: at.FROM_FLOAT, int: at.FROM_INT}


class NotNative(Exception):
    """The entry cannot express this specialization; says why."""


class _Builder:
    """Writes the record of one specialization."""

    def __init__(self, found: Specialization, arguments: Arguments, plan: CallPlan):
        self.found, self.arguments, self.plan = found, arguments, plan
        self.guards, self.build = Program(), Program()
        self.held = 0
        self.places: dict[int, int] = {}  # parameter of the graph: which held reference is the object given
        self.parameter_of = {leaf: number for number, leaf in enumerate(found.moving)}
        self.arrays = sum(p.weak is None for p in plan.parameters)
        self.externals = 0
        self.device: Any = None if isinstance(found.executable, CpuExecutable) else found.executable.entry()

    def record(self, positional: int, names: tuple[str, ...]) -> SpecializationRecord:
        """The record for calls with so many positional arguments and these keywords."""
        self.arguments_guards(positional, names)
        self.external_guards()
        for item in self.found.graph.derived:
            self.derived(item.value, item.function, item.operands)
        self.result(self.found.outputs.treedef, iter(self.found.outputs.leaves))
        made = SpecializationRecord()
        made.kept.append(self.found.executable)
        for offset, number in {
            at.S_MAIN: self.plan.address,
            at.S_FLAGS: flags_of(self.found.include, self.found.exclude),
            at.S_ARGS: positional + len(names),
            at.S_KEYWORDS: len(names),
            at.S_EXTERNALS: self.externals,
            at.S_DERIVED: len(self.found.graph.derived),
            at.S_BUFFERS: self.arrays + len(self.plan.storages) + 4,
            at.S_SCALARS: len(self.plan.parameters) - self.arrays,
            at.S_HELD: self.held + len(self.plan.storages) + 1,  # on a device scratch memory is an object too
            at.S_OUTPUTS: len(self.plan.storages),
            at.S_WORKSPACE: self.plan.workspace if self.device is None else 0,
            at.S_TABLES: self.plan.tables,
            at.S_WORKSPACE_AT: self.arrays + len(self.plan.storages),
        }.items():
            made.set(offset, number)
        if self.device is not None:
            made.point(at.S_DEVICE, self.device.record)
        keywords = Program()
        for name in names:
            keywords.same(_interned(name))
        made.point(at.S_NAMES, keywords.record())
        made.point(at.S_GUARDS, self.guards.record())
        made.point(at.S_BUILD, self.build.record())
        made.point(at.S_OUTPUT_TABLE, output_table(self.plan.storages, self.arrays))
        return made

    # -- guards ----------------------------------------------------------------------------------------------------
    def arguments_guards(self, positional: int, names: tuple[str, ...]) -> None:
        """Guards in the order of the call; then what was left to its default."""
        parameters = [p.name for p in self.arguments.parameters]
        given = [*parameters[:positional], *names]
        leaves = self._leaves_of()
        for name in given:
            self._parameter(name, leaves)
        for parameter in self.arguments.parameters:
            if parameter.name not in given and parameter.name not in self.arguments.static:
                self._default(parameter, leaves)

    def _leaves_of(self) -> dict[str, tuple[pytree.TreeDef, int]]:
        """For each parameter that is not static its containers and the number of its first leaf."""
        found, first = {}, 0
        for name, child in zip(self.arguments.dynamic, self.found.treedef.children):
            found[name] = (child, first)
            first += child.leaf_count
        return found

    def _parameter(self, name: str, leaves: dict[str, tuple[pytree.TreeDef, int]]) -> None:
        if name in self.arguments.static:
            order = [p.name for p in self.arguments.parameters if p.name in self.arguments.static]
            self._fixed(self.found.static_values[order.index(name)])
            return
        treedef, first = leaves[name]
        self._tree(treedef, iter(range(first, first + treedef.leaf_count)))

    def _default(self, parameter: Any, leaves: dict[str, tuple[pytree.TreeDef, int]]) -> None:
        self.guards.add(at.E_OBJECT)
        self.guards.same(parameter.default)
        self.externals += 1
        self._parameter(parameter.name, leaves)

    def _tree(self, treedef: pytree.TreeDef, numbers: Iterator[int]) -> None:
        kind = treedef.kind
        if kind is None:
            self._leaf(next(numbers))
            return
        if kind is type(None):
            self.guards.add(at.G_SAME)
            self.guards.same(None)
            return
        labels: tuple[Any, ...] = ()
        fixed: tuple[str, ...] = ()  # attributes that are part of the container
        if kind is dict:
            labels = treedef.static
            if any(type(key) not in (str, int) for key in labels):
                raise NotNative("a dict with keys that are neither str nor int")
            self.guards.add(at.G_DICT, len(labels))
        elif kind is list or kind is tuple or treedef._node is pytree.NAMEDTUPLE:
            self.guards.add(at.G_LIST if kind is list else at.G_TUPLE, kind, len(treedef.children))
        elif treedef._node.attributes is not None:
            labels, fixed = treedef._node.attributes
            self.guards.add(at.G_ATTRIBUTES, kind, len(labels) + len(fixed))
        else:
            raise NotNative(f"a {kind.__name__} among the arguments")
        for place, child in enumerate(treedef.children):
            if labels:
                self.guards.same(labels[place])
            self._tree(child, numbers)
        for name, value in zip(fixed, treedef.static if fixed else ()):
            self.guards.same(name)
            self._fixed(value)

    def _leaf(self, number: int) -> None:
        guard = self.found.guards[number]
        if guard.kind == "same":
            self.guards.add(at.G_SAME)
            self.guards.weakly(guard.value._ref())
        elif guard.kind == "fixed":
            self._fixed(guard.value)
        elif guard.kind == "scalar":
            self._scalar(guard.type, self.parameter_of[number])
        else:
            self._array(guard, self.parameter_of[number])

    def _fixed(self, value: Any) -> None:
        self.guards.add(at.G_STRING if type(value) is str else at.G_SAME)
        self.guards.same(value)

    def _scalar(self, kind: type, parameter: int) -> None:
        slot = self.plan.parameters[parameter].slot
        if kind is float:
            self.guards.add(at.G_FLOAT_LEAF)
        elif kind is bool:
            self.guards.add(at.G_BOOL_LEAF)
        elif kind is int:
            self.guards.add(at.G_INT_LEAF, *self._bounds(parameter))
        else:
            raise NotNative("a complex number among the arguments")
        self.guards.add(slot)
        self._hold(parameter, 1)

    def _bounds(self, parameter: int) -> tuple[int, int]:
        bounds = [(r.low, r.high) for r in self.found.ranges if r.index == parameter]
        return max([INT64[0], *(low for low, _ in bounds)]), min([INT64[1], *(high for _, high in bounds)])

    def _array(self, guard: LeafGuard, parameter: int) -> None:
        if self.device is not None:
            self._on_device(guard, parameter)
            return
        dtype = as_dtype(guard.dtype)
        if guard.type not in (Tensor, np.ndarray) or not guard.contiguous or guard.dtype is not dtype.np:
            raise NotNative("an array that is not contiguous, or of a foreign class or byte order")
        spec = TensorSpec(tuple(guard.shape), dtype)
        kind = at.G_TENSOR_LEAF if guard.type is Tensor else at.G_ARRAY_LEAF
        self.guards.add(kind, array_guard(spec, self.plan.parameters[parameter].slot))
        if guard.type is Tensor:
            self.places[parameter] = self.held
        self.held += 2

    def _on_device(self, guard: LeafGuard, parameter: int) -> None:
        if guard.device == "cpu" or not guard.contiguous:
            raise NotNative("a tensor that lies on the host, or is not contiguous")
        spec = TensorSpec(tuple(guard.shape), as_dtype(guard.dtype), guard.device)
        self.guards.add(at.G_DEVICE_LEAF, self.device.guard(spec, self.plan.parameters[parameter].slot))
        self.places[parameter] = self.held
        self.held += 2

    def _hold(self, parameter: int, count: int) -> None:
        self.places[parameter] = self.held
        self.held += count

    def external_guards(self) -> None:
        """Closure cells and globals, then the captured tensors."""
        for guard in self.found.externals:
            if guard.value is ABSENT:
                raise NotNative(f"the closure variable {guard.name} was not set")
            if guard.kind == "cell":
                self.guards.add(at.E_CELL, guard.place)
            else:
                self.guards.add(at.E_ITEM, guard.place)
                self.guards.same(_interned(guard.name))
            self.guards.add(at.G_SAME)
            self.guards.same(guard.value)
        first = len(self.found.graph.inputs) + len(self.found.graph.derived)
        for number, (leaf, tensor) in enumerate(zip(self.found.captured, self.found.graph.constants)):
            self.guards.add(at.E_OBJECT)
            self.guards.same(tensor)
            self._array(leaf, first + number)
        self.externals += len(self.found.externals) + len(self.found.captured)

    def derived(self, value: Value, function: str, operands: tuple[Any, ...]) -> None:
        """A scalar that follows from scalars, where machine arithmetic is Python's."""
        number = self.found.graph.parameters.index(value)
        code = _ARITHMETIC.get(function)
        if function == "neg":
            code, operands = at.D_MULTIPLY, (operands[0], -1)
        kinds = [o.weak if isinstance(o, Value) else type(o) for o in operands]
        whole = value.weak is int and kinds == [int, int] and code != at.D_DIVIDE
        real = value.weak is float and float in kinds and set(kinds) <= {int, float}
        if code is None or not (whole or real) or any(r.index == number for r in self.found.ranges):
            raise NotNative(f"scalar arithmetic that Python computes ({function})")
        self.guards.add(code + at.D_INTEGER * whole, self.plan.parameters[number].slot)
        for operand in operands:
            self._operand(operand, whole)

    def _operand(self, operand: Any, whole: bool) -> None:
        if isinstance(operand, Value):
            place = self.found.graph.parameters.index(operand)
            self.guards.add(_SOURCES[operand.weak or float], self.plan.parameters[place].slot)
        elif whole:
            if abs(operand) >= at.SMALL_INTEGER:
                raise NotNative("a long integer")
            self.guards.add(at.FROM_CONSTANT, operand)
        else:
            self.guards.add(at.FROM_CONSTANT, float_bits(float(operand)))

    # -- the result ------------------------------------------------------------------------------------------------
    def result(self, treedef: pytree.TreeDef, leaves: Iterator[Any]) -> None:
        """The build program of a tree."""
        kind = treedef.kind
        if kind is None:
            self._result_leaf(next(leaves))
            return
        if kind is type(None):
            self.build.add(at.B_SAME, None)
            return
        if kind is dict:
            self.build.add(at.B_DICT, len(treedef.children))
        elif kind is list or kind is tuple:
            self.build.add(at.B_LIST if kind is list else at.B_TUPLE, len(treedef.children))
        else:
            self.build.add(at.B_CALL, len(treedef.children), _maker(treedef))
        for place, child in enumerate(treedef.children):
            if kind is dict:
                self.build.same(treedef.static[place])
            self.result(child, leaves)

    def _result_leaf(self, leaf: Any) -> None:
        if leaf.kind == "constant":
            self.build.add(at.B_SAME)
            self.build.same(leaf.value)
        elif leaf.kind == "parameter":
            if leaf.views or leaf.index not in self.places:
                raise NotNative("a view of an argument among the results")
            self.build.add(at.B_HELD, self.places[leaf.index])
        else:
            storage = self._storage(leaf.index)
            if self.device is None:
                self.build.add(at.B_RESULT, storage)
            else:  # it is a tensor already, held behind the arguments
                self.build.add(at.B_HELD, self.held + storage)

    def _storage(self, index: int) -> int:
        output = self.plan.outputs[index]
        alone = [o.index for o in self.plan.outputs if o.kind == "storage"].count(output.index) == 1
        twice = [o.index for o in self.found.outputs.leaves if o.kind == "result"].count(index) > 1
        if output.kind != "storage" or not output.same or not alone or twice:
            raise NotNative("a result that is a view, a constant, or there twice")
        return output.index


def _maker(treedef: pytree.TreeDef) -> Callable[..., Any]:
    """What makes a container of its children, for containers that only Python can make."""
    return lambda *children: treedef.build(children)


def _interned(name: str) -> str:
    return next(iter({name: None}))


def make_record(found: Specialization, arguments: Arguments, form: Any) -> SpecializationRecord | str:
    """The record of a specialization, or why Python has to answer its calls.

    Args:
        found: a specialization with its executable.
        arguments: how the function is called.
        form: number of positional arguments and names of the keyword arguments of a call.
    """
    if not isinstance(found.executable, CpuExecutable) and not hasattr(found.executable, "entry"):
        return "there is no machine code to call"
    if found.outputs.writes:
        return "it writes into an argument"
    if flags_of(found.include, found.exclude) == ELSEWHERE:
        return "it was traced in a dispatch state that is neither the default nor no_grad"
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in arguments.parameters):
        return "the function takes any number of arguments"
    try:
        return _Builder(found, arguments, found.executable.plan).record(*form)
    except NotNative as why:
        return str(why)


class NativeEntry:
    """The native entry of one jitted function.

    Args:
        function: the jitted function, a ``NativeCallable``.
        slow: what answers calls whose guards fail.
        kind: ``"jitted"``, or ``"recorded"`` for the forward passes of calls that Python records.
    """

    def __init__(self, function: Any, slow: Callable[..., Any], kind: str = "jitted"):
        self._kind = kind
        self._function = weakref.ref(function)
        self._slow = slow
        self._record: JitRecord | None = None
        self._ready: bool | None = None
        _entries.add(self)

    def link(self, found: Specialization, arguments: Arguments, form: Any) -> None:
        """Let machine code answer calls of this form, if it can; see ``Specialization.records``."""
        runtime, function = native.runtime(), self._function()
        if runtime is None or function is None or not self._worth_it(runtime, found):
            return
        record = found.records.get(form)
        if record is None:
            record = found.records[form] = make_record(found, arguments, form)
        if isinstance(record, str) or (self._record is not None and record in self._record.chain):
            return
        # A change of the registry unlinks; none may come between the look at the versions and the link. No call waits:
        # while another thread registers, a later one links.
        with lock.if_free() as free:
            if not free or not found.current():
                return
            if self._record is None:
                entry = runtime.entry(self._kind)
                self._record = JitRecord(runtime.process, self._slow)
                native_type.set_entry(function, entry, self._record.address)
            self._record.link(record)

    def _worth_it(self, runtime: Any, found: Specialization) -> bool:
        """Whether the entry is at hand, or the function is called so often that compiling the entry pays.

        Python goes on with an executable that is still to find out how it is called best.
        """
        if not getattr(found.executable, "settled", True):
            return False
        if self._record is not None or found.hits >= config.flags.hot_calls:
            return True
        if self._ready is None:
            self._ready = runtime.ready(self._kind)
        return bool(self._ready)

    def unlink(self) -> None:
        """Send every call to Python until it links specializations again."""
        if self._record is not None:
            with lock:
                self._record.unlink()


_entries: weakref.WeakSet[NativeEntry] = weakref.WeakSet()


def _unlink_all(op: Operator) -> None:
    """A kernel has changed: no compiled specialization runs before Python has looked at it again."""
    for entry in list(_entries):
        entry.unlink()


change_listeners.append(_unlink_all)
