"""Encode a specialization for the native entry of a jitted function: its guard program, parameters and results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lazy, pytree
from ..backends.cpu.executable import CallingConvention, CpuExecutable, make_empty_convention
from ..backends.cpu.fastpath.glue import jit_layout as at
from ..backends.cpu.fastpath.glue.jit_structs import (
    LayoutGuard,
    Program,
    SpecializationStruct,
    float_bits,
    make_array_guard,
    make_output_table,
    make_strided_array_guard,
)
from ..backends.cpu.fastpath.runtime.rt_base import ELSEWHERE
from ..eager.tensor.tensor import Tensor
from ..registry.dispatch.keys import AUTOGRAD
from ..registry.dispatch.state import flags_of
from ..registry.dtypes import as_dtype
from ..registry.values import TensorSpec
from ..tracer.graph import Value
from .arguments import Arguments
from .guards.leaves import LeafGuard, NotNative
from .specialization import Specialization

if TYPE_CHECKING:
    from ..backends.cpu.fastpath.glue.structs import StructMemory
    from ..registry.types import Function

_native_results = lazy.Module(".jit.native_results")
_strided_parameters = lazy.Module(".jit.strided_parameters")

INT64 = (-(2**63), 2**63 - 1)
_ARITHMETIC = {
    "add": at.DerivedCode.ADD,
    "sub": at.DerivedCode.SUBTRACT,
    "mul": at.DerivedCode.MULTIPLY,
    "truediv": at.DerivedCode.DIVIDE,
}
_NUMBERS: dict[type | None, int] = {float: at.BuildCode.FLOAT, int: at.BuildCode.INT, bool: at.BuildCode.BOOL}
_SOURCES = {float: at.ScalarSource.FLOAT, int: at.ScalarSource.INT}


class GuardBuilder:
    """Builds the guard program and the native struct of one specialization."""

    def __init__(self, specialization: Specialization, arguments: Arguments, convention: CallingConvention):
        self.specialization, self.arguments, self.convention = specialization, arguments, convention
        self.guards, self.build = Program(), Program()
        self.held = 0
        # by parameter of the graph: which held reference is the object given, and which is its array
        self.reference_indices: dict[int, int] = {}
        self.array_indices: dict[int, int] = {}
        self.strided: dict[int, int] = {}  # those that are not contiguous, and the lowest offset in bytes
        self.parameter_of = {leaf: number for number, leaf in enumerate(specialization.dynamic)}
        self.arrays = sum(p.weak is None for p in convention.parameters)
        self.externals = 0
        executable = specialization.executable
        self.device: Any = (
            None if executable is None or isinstance(executable, CpuExecutable) else executable.entry()
        )
        self.results = list(self.convention.storages)  # the specs of the arrays to allocate
        self.strides: dict[int, tuple[int, ...]] = {}  # in bytes, of those that are not C-contiguous
        self.written: dict[int, int] = {}  # those that are stored in an argument, and the index of its array

    def record(self, positional: int, names: tuple[str, ...]) -> SpecializationStruct:
        """Build the struct for calls with ``positional`` positional arguments and the keywords ``names``."""
        self.add_argument_guards(positional, names)
        self.add_external_guards()
        for item in self.specialization.graph.derived:
            self.add_derived_scalar(item.value, item.function, item.operands)
        self.add_result(self.specialization.outputs.treedef, iter(self.specialization.outputs.leaves))
        made = SpecializationStruct()
        made.kept.append(self.specialization.executable)
        for offset, number in {
            at.Specialization.main: self.convention.address,
            at.Specialization.flags: flags_of(self.specialization.include, self.specialization.exclude),
            at.Specialization.args: positional + len(names),
            at.Specialization.keywords: len(names),
            at.Specialization.externals: self.externals,
            at.Specialization.derived: len(self.specialization.graph.derived),
            at.Specialization.buffers: self.arrays + len(self.convention.storages) + 4,
            at.Specialization.scalars: len(self.convention.parameters) - self.arrays,
            at.Specialization.held: self.held
            + len(self.convention.storages)
            + 1,  # on a device scratch memory is an object too
            at.Specialization.outputs: len(self.convention.storages),
            at.Specialization.workspace: self.convention.workspace if self.device is None else 0,
            at.Specialization.tables: self.convention.tables,
            at.Specialization.workspace_at: self.arrays + len(self.convention.storages),
        }.items():
            made.set(offset, number)
        if self.device is not None:
            made.point(at.Specialization.device, self.device.record)
        keywords = Program()
        for name in names:
            keywords.same(_intern(name))
        made.point(at.Specialization.names, keywords.record())
        made.point(at.Specialization.guards, self.guards.record())
        made.point(at.Specialization.build, self.build.record())
        if self.specialization.outputs.writes:
            _native_results.add_writes(self, made)
        table = make_output_table(self.results, self.strides, self.arrays, self.written)
        made.point(at.Specialization.output_table, table)
        return made

    # -- guards ----------------------------------------------------------------------------------------------------
    def add_argument_guards(self, positional: int, names: tuple[str, ...]) -> None:
        """Add the guards of the arguments in the order of the call, then those of defaults that are containers."""
        leaves, given = self._index_leaves(), self.arguments.match_call(positional, names)
        for name, label in given:
            if name in self.arguments.static:
                self._guard_static(name, label)
            elif label is None:
                self._guard_parameter(name, leaves)
            else:
                self._guard_item(name, label, leaves)
        known = {name for name, _ in given} | self.arguments.static
        for parameter in self.arguments.parameters:
            if parameter.name not in known and parameter.default is not parameter.empty:
                self._guard_default(parameter.default)

    def _index_leaves(self) -> dict[str, tuple[pytree.TreeDef, int]]:
        """For each dynamic parameter, its treedef and the index of its first leaf."""
        result, first = {}, 0
        for name, child in zip(self.arguments.dynamic, self.specialization.treedef.children):
            result[name] = (child, first)
            first += child.leaf_count
        return result

    def _guard_static(self, name: str, label: int | str | None) -> None:
        order = [p.name for p in self.arguments.parameters if p.name in self.arguments.static]
        value = self.specialization.static_values[order.index(name)]
        self.add_constant(value if label is None else value[label])

    def _guard_parameter(self, name: str, leaves: dict[str, tuple[pytree.TreeDef, int]]) -> None:
        treedef, first = leaves[name]
        self._guard_tree(treedef, iter(range(first, first + treedef.leaf_count)), self._guard_leaf)

    def _guard_item(self, name: str, label: int | str, leaves: dict[str, tuple[pytree.TreeDef, int]]) -> None:
        """Add the guard of one argument in ``*args`` or ``**kwargs``."""
        treedef, first = leaves[name]
        index = label if type(label) is int else treedef.static.index(label)
        first += sum(child.leaf_count for child in treedef.children[:index])
        child = treedef.children[index]
        self._guard_tree(child, iter(range(first, first + child.leaf_count)), self._guard_leaf)

    def _guard_default(self, value: object) -> None:
        """Add guards that a container has the items that it had; other defaults are constants."""
        items, treedef = pytree.flatten(value)
        if treedef.kind not in (None, type(None)):
            self.guards.add(at.GuardCode.OBJECT)
            self.guards.same(value)
            self.externals += 1
            self._guard_tree(treedef, iter(items), self.add_constant)

    def _guard_leaf(self, number: int) -> None:
        self.specialization.guards[number].emit(self, self.parameter_of.get(number, -1))

    def _guard_tree(
        self, treedef: pytree.TreeDef, leaves: Iterator[Any], guard_leaf: Callable[[Any], None]
    ) -> None:
        kind = treedef.kind
        if kind is None:
            guard_leaf(next(leaves))
            return
        if kind is type(None):
            self.guards.add(at.GuardCode.SAME)
            self.guards.same(None)
            return
        labels: tuple[Any, ...] = ()
        fixed: tuple[str, ...] = ()  # attributes that are part of the container
        if kind is dict:
            labels = treedef.static
            if any(type(key) not in (str, int) for key in labels):
                raise NotNative("a dict with keys that are neither str nor int")
            self.guards.add(at.GuardCode.DICT, len(labels))
        elif kind is list or kind is tuple or treedef._node is pytree.NAMEDTUPLE:
            self.guards.add(
                at.GuardCode.LIST if kind is list else at.GuardCode.TUPLE, kind, len(treedef.children)
            )
        elif treedef._node.variables is not None:
            self._guard_variables(treedef, leaves, guard_leaf)
            return
        elif treedef._node.attributes is not None:
            labels, fixed = treedef._node.attributes
            self.guards.add(at.GuardCode.ATTRIBUTES, kind, len(labels) + len(fixed))
        else:
            raise NotNative(f"a {kind.__name__} among the arguments")
        for index, child in enumerate(treedef.children):
            if labels:
                self.guards.same(labels[index])
            self._guard_tree(child, leaves, guard_leaf)
        for name, value in zip(fixed, treedef.static if fixed else ()):
            self.guards.same(name)
            self.add_constant(value)

    def _guard_variables(
        self, treedef: pytree.TreeDef, leaves: Iterator[Any], guard_leaf: Callable[[Any], None]
    ) -> None:
        """Add the guard of a ``td.nn`` module: its class, and the dict of its attributes with their names and order."""
        self.guards.add(at.GuardCode.ATTRIBUTES, treedef.kind, 1)
        self.guards.same("__dict__")
        self.guards.add(at.GuardCode.DICT, len(treedef.static))
        children = dict(zip(map(str, treedef.keys), treedef.children))
        for name, value in treedef.static:
            self.guards.same(name)
            if f".{name}" in children:
                self._guard_tree(children[f".{name}"], leaves, guard_leaf)
            else:
                self.add_constant(value)

    def add_constant(self, value: object) -> None:
        """Add a guard that the object at hand equals a string, a number or a tuple of those, or is another constant."""
        if type(value) is tuple:
            self.guards.add(at.GuardCode.TUPLE, tuple, len(value))
            for item in value:
                self.add_constant(item)
        elif type(value) is int and INT64[0] <= value <= INT64[1]:
            self.guards.add(at.GuardCode.EQUAL_INT, value)
        elif type(value) is float:
            self.guards.add(at.GuardCode.EQUAL_FLOAT, float_bits(value))
        else:
            self.guards.add(at.GuardCode.STRING if type(value) is str else at.GuardCode.SAME)
            self.guards.same(value)

    def add_scalar(self, kind: type, parameter: int) -> None:
        """Add a guard that the object at hand is a Python number of a type."""
        slot = self.convention.parameters[parameter].slot
        if kind is complex and self.convention.parameters[parameter].weak is None:
            self.guards.add(
                at.GuardCode.NUMPY_SCALAR, complex, slot
            )  # its value is where NumPy's scalars have theirs
            self._hold(parameter, 1)
            return
        if kind is float:
            self.guards.add(at.GuardCode.FLOAT)
        elif kind is bool:
            self.guards.add(at.GuardCode.BOOL)
        elif kind is int:
            self.guards.add(at.GuardCode.INT, *self._bounds(parameter))
        else:
            raise NotNative("a complex number among the arguments")
        self.guards.add(slot)
        self._hold(parameter, 1)

    def _bounds(self, parameter: int) -> tuple[int, int]:
        bounds = [(r.low, r.high) for r in self.specialization.ranges if r.parameter == parameter]
        return max([INT64[0], *(low for low, _ in bounds)]), min([INT64[1], *(high for _, high in bounds)])

    def add_array(self, guard: LeafGuard, parameter: int) -> None:
        """Add a guard on the layout of the tensor or array at hand."""
        if self.device is not None:
            self._guard_device_tensor(guard, parameter)
            return
        dtype = as_dtype(guard.dtype)
        if guard.type is np.generic and guard.dtype is dtype.np and _native_results.has_value_in_place(dtype):
            self.guards.add(
                at.GuardCode.NUMPY_SCALAR, dtype.np.type, self.convention.parameters[parameter].slot
            )
            self.held += 1
            return
        if guard.type not in (Tensor, np.ndarray) or guard.device != "cpu" or guard.dtype is not dtype.np:
            raise NotNative("an array of a foreign class or byte order, or on a device")
        spec = TensorSpec(tuple(guard.shape), dtype)
        kind = at.GuardCode.TENSOR if guard.type is Tensor else at.GuardCode.ARRAY
        if guard.keys & AUTOGRAD and not self.specialization.exclude & AUTOGRAD:
            kind = at.GuardCode.RECORDED_TENSOR
        make: Callable[[TensorSpec, int], StructMemory] = make_array_guard
        if guard.strides is not None:
            low = _strided_parameters.find_extent(guard.shape, guard.strides)[0] if guard.strides else 0
            make, self.strided[parameter] = (
                functools.partial(make_strided_array_guard, guard.strides, low),
                low,
            )
        self.guards.add(kind, LayoutGuard(make, spec, self.convention.parameters[parameter].slot))
        if guard.type is Tensor:
            self.reference_indices[parameter] = self.held
        self.array_indices[parameter] = self.held + 1
        self.held += 2

    def _guard_device_tensor(self, guard: LeafGuard, parameter: int) -> None:
        if guard.device == "cpu" or guard.strides is not None:
            raise NotNative("a tensor that is on the host, or is not contiguous")
        spec = TensorSpec(tuple(guard.shape), as_dtype(guard.dtype), guard.device)
        self.guards.add(
            at.GuardCode.DEVICE,
            LayoutGuard(self.device.guard, spec, self.convention.parameters[parameter].slot),
        )
        self.reference_indices[parameter] = self.held
        self.held += 2

    def _hold(self, parameter: int, count: int) -> None:
        self.reference_indices[parameter] = self.held
        self.held += count

    def add_external_guards(self) -> None:
        """Add the guards of closure cells and globals, then of captured tensors."""
        for guard in self.specialization.environment:
            guard.emit(self)
        self.externals += len(self.specialization.environment)

    def add_derived_scalar(self, value: Value, function: str, operands: tuple[object, ...]) -> None:
        """Add the computation of a derived scalar, if machine arithmetic equals Python's."""
        number = self.specialization.graph.parameters.index(value)
        code = _ARITHMETIC.get(function)
        if function == "neg":
            code, operands = at.DerivedCode.MULTIPLY, (operands[0], -1)
        kinds = [o.weak if isinstance(o, Value) else type(o) for o in operands]
        whole = value.weak is int and kinds == [int, int] and code != at.DerivedCode.DIVIDE
        real = value.weak is float and float in kinds and set(kinds) <= {int, float}
        if (
            code is None
            or not (whole or real)
            or any(r.parameter == number for r in self.specialization.ranges)
        ):
            raise NotNative(f"scalar arithmetic that Python computes ({function})")
        self.guards.add(code + at.DerivedCode.INTEGER * whole, self.convention.parameters[number].slot)
        for operand in operands:
            self._operand(operand, whole)

    def _operand(self, operand: Any, whole: bool) -> None:
        if isinstance(operand, Value):
            index = self.specialization.graph.parameters.index(operand)
            self.guards.add(_SOURCES[operand.weak or float], self.convention.parameters[index].slot)
        elif whole:
            if abs(operand) >= at.SMALL_INTEGER:
                raise NotNative("a long integer")
            self.guards.add(at.ScalarSource.CONSTANT, operand)
        else:
            self.guards.add(at.ScalarSource.CONSTANT, float_bits(float(operand)))

    # -- the result ------------------------------------------------------------------------------------------------
    def add_result(self, treedef: pytree.TreeDef, leaves: Iterator[Any]) -> None:
        """Add the instructions that build a result tree."""
        kind = treedef.kind
        if kind is None:
            self._result_leaf(next(leaves))
            return
        if kind is type(None):
            self.build.add(at.BuildCode.SAME, None)
            return
        if kind is dict:
            self.build.add(at.BuildCode.DICT, len(treedef.children), dict.fromkeys(treedef.static))
        elif kind is list or kind is tuple:
            self.build.add(at.BuildCode.LIST if kind is list else at.BuildCode.TUPLE, len(treedef.children))
        else:
            self.build.add(at.BuildCode.CALL, len(treedef.children), _make_constructor(treedef))
        for index, child in enumerate(treedef.children):
            if kind is dict:
                self.build.same(treedef.static[index])
            self.add_result(child, leaves)

    def _result_leaf(self, leaf: Any) -> None:
        if leaf.weak:
            self.build.add(at.BuildCode.CALL, 1, _native_results.to_weak_scalar)
        if leaf.kind == "constant":
            self.build.add(at.BuildCode.SAME)
            self.build.same(leaf.value)
        elif leaf.kind == "parameter":
            if leaf.number not in self.reference_indices:
                self._add_number(leaf.number)
                return
            if leaf.views:
                self.build.add(at.BuildCode.CALL, 1, _native_results.make_view_call(leaf.views))
            self.build.add(at.BuildCode.HELD, self.reference_indices[leaf.number])
        else:
            self._add_computed(leaf.number)

    def _add_number(self, index: int) -> None:
        """Add a number that was derived from the arguments."""
        parameters = self.convention.parameters
        code = _NUMBERS.get(parameters[index].weak) if index < len(parameters) else None
        if code is None:
            raise NotNative("an array of NumPy or a captured tensor that is not read among the results")
        self.build.add(code, parameters[index].slot)

    def _add_computed(self, number: int) -> None:
        """Add a result of the executable: a fresh array with all elements of its memory, or a view or a copy of one."""
        if number >= len(self.convention.outputs):
            raise NotNative("a result that is no longer computed")
        output = self.convention.outputs[number]
        numbers = [leaf.number for leaf in self.specialization.outputs.leaves if leaf.kind == "result"]
        is_repeated = numbers.count(number) > 1
        storages = [o.index if o.kind == "storage" else -1 for o in self.convention.outputs]
        owns = output.kind == "storage" and storages.index(output.index) == number
        if self.device is not None:
            if not (owns and output.same and storages.count(output.index) == 1) or is_repeated:
                raise NotNative("a result on a device that is a view, a constant, or there twice")
            self.build.add(
                at.BuildCode.HELD, self.held + output.index
            )  # a tensor, stored after the arguments
        elif owns and (output.same or _native_results.fills_storage(self, output)):
            if not output.same:
                _native_results.set_layout(self, output.index, output.layout)
            self.build.add(at.BuildCode.SHARED if is_repeated else at.BuildCode.RESULT, output.index)
        elif is_repeated:
            raise NotNative("a view or a constant that is there twice among the results")
        elif output.kind == "constant":
            self.build.add(at.BuildCode.CALL, 0, _native_results.make_copy_call(self.convention, output))
        else:
            self.build.add(at.BuildCode.VIEW, _native_results.describe_view(self, output, not owns))


def _make_constructor(treedef: pytree.TreeDef) -> Function:
    """A function that builds a container from its children, for containers that only Python can build."""
    return lambda *children: treedef.build(children)


def _intern(name: str) -> str:
    return next(iter({name: None}))


def make_native_specialization(
    specialization: Specialization, arguments: Arguments, form: Any
) -> SpecializationStruct | str:
    """Encode a specialization for the native entry, or return why Python must run its calls.

    Args:
        found: a specialization with its executable.
        arguments: how the function is called.
        form: the number of positional arguments and the names of the keyword arguments of a call.
    """
    executable = specialization.executable
    if not (executable is None or isinstance(executable, CpuExecutable) or hasattr(executable, "entry")):
        return "there is no machine code to call"
    if specialization.donated:
        return "results are stored in the memory of donated arguments"
    if specialization.outputs.writes and specialization.derivative is not None:
        return "it writes into an argument, and tensors require gradients"
    if specialization.outputs.writes and not (
        executable is None or _native_results.has_kernels(executable.lowered)
    ):
        return "it writes into an argument, and calls Python"
    if flags_of(specialization.include, specialization.exclude) == ELSEWHERE:
        return "it was traced in a dispatch state that is neither the default nor no_grad"
    convention = make_empty_convention(specialization.graph) if executable is None else executable.convention
    try:
        return GuardBuilder(specialization, arguments, convention).record(*form)
    except NotNative as why:
        return str(why)
