"""Guards on the closure cells and globals that a function reads, and on attributes of modules in them, by identity."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from sys import intern
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from ... import lazy, pytree
from ...eager.autograd.kernel import eager_meta
from ...errors import UnsupportedError
from ...named_tuple import NamedTuple
from ...pytree.nodes import node_of
from ...registry.source import is_package_file
from ...registry.values import TensorBase, describe
from .leaves import NotNative

if TYPE_CHECKING:
    from ...registry.types import Function, Tensor
    from ..native_record import GuardBuilder

jit_layout = lazy.Module(".backends.cpu.fastpath.glue.jit_layout")


class _Absent:
    def __repr__(self) -> str:
        return "<not defined>"


ABSENT: object = _Absent()


class ExternalGuard(NamedTuple):
    """A guard that a cell or global still holds the object that it held when the function was traced.

    Attributes:
        kind: ``"cell"``, ``"global"`` or ``"attribute"``.
        name: the variable.
        holder: the cell, or the dict of globals or attributes.
        value: the object that it held; :data:`ABSENT` if the cell was empty.
    """

    kind: str
    name: str
    holder: Any
    value: Any

    def get_value(self) -> object:
        """The current value of the variable; :data:`ABSENT` if it is not set."""
        if self.kind != "cell":
            return self.holder.get(self.name, ABSENT)
        try:
            return self.holder.cell_contents
        except ValueError:
            return ABSENT

    def assign(self, value: Any) -> None:
        """Assign to the variable."""
        if self.kind != "cell":
            self.holder[self.name] = value
        else:
            self.holder.cell_contents = value

    def check(self) -> bool:
        """Whether the variable holds the same object."""
        return self.get_value() is self.value

    def explain(self) -> str:
        """Describe what has changed since the trace; return an empty text if the guard holds."""
        if self.check():
            return ""
        was, now = _summarize(self.value), _summarize(self.get_value())
        return f"{self._describe_variable()} was {was}, now {'another ' if was == now else ''}{now}"

    def emit(self, builder: GuardBuilder) -> None:
        """Add the guard to the guard program of a native entry.

        Raises:
            NotNative: the variable was not set.
        """
        if self.value is ABSENT:
            raise NotNative(f"the closure variable {self.name} was not set")
        if self.kind == "cell":
            builder.guards.add(jit_layout.GuardCode.CELL, self.holder)
        else:
            builder.guards.add(jit_layout.GuardCode.ITEM, self.holder)
            builder.guards.same(intern(self.name))
        builder.guards.add(jit_layout.GuardCode.SAME)
        builder.guards.same(self.value)

    def _describe_variable(self) -> str:
        return f"{'closure variable' if self.kind == 'cell' else self.kind} {self.name}"

    def __str__(self) -> str:
        return f"{self._describe_variable()} = {_summarize(self.value)}"


def _summarize(value: object) -> str:
    if isinstance(value, FunctionType | type):
        return getattr(value, "__qualname__", repr(value))
    text = describe(value) if isinstance(value, TensorBase) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def find_externals(fn: Function) -> tuple[ExternalGuard, ...]:
    """Make guards for the variables that a function reads, and for those of functions of its module that it calls.

    Modules of Python, builtins, variables of this package's modules and attributes of guarded objects are not guarded;
    :func:`find_attributes` has those of ``td.nn`` modules. A variant names the function that it replaces in its
    attribute ``replaces``, and the variables of that function that it assigns in ``assigned``.
    """
    guards: dict[tuple[int, str], ExternalGuard] = {}
    assigned: set[object] = set()
    stack, seen = [], set[Any]()
    inner: Any = fn
    while inner is not None:
        stack.append(unwrap_function(inner))
        assigned.update(getattr(inner, "assigned", ()))
        inner = getattr(inner, "replaces", None)
    while stack:
        function = stack.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        for guard in _make_guards(function):
            key = (id(guard.holder), guard.name)
            if key not in guards and key not in assigned:
                guards[key] = guard
                stack.append(_find_helper(guard.value, function))
    return tuple(guards.values())


def captures_gradient(fn: Function) -> bool:
    """Whether a variable that a function reads holds a tensor that requires gradients, itself or in a container."""
    return any(eager_meta(leaf) is not None for leaf in _external_leaves(fn))


def _external_leaves(fn: Function) -> Iterator[object]:
    yield from pytree.leaves(find_owner(fn))
    for guard in find_externals(fn):
        yield from pytree.leaves(guard.value)


def find_attributes(fn: Function, externals: Iterable[ExternalGuard]) -> Iterator[ExternalGuard]:
    """Make guards for the attributes of the ``td.nn`` modules that a function captures, or is a method of.

    So a module that is in training mode during the trace is not used by a call after ``eval()``.
    """
    seen = set()
    for value in (find_owner(fn), *(guard.value for guard in externals)):
        for holder in _find_variables(value):
            if id(holder) not in seen:
                seen.add(id(holder))
                yield from (ExternalGuard("attribute", name, holder, held) for name, held in holder.items())


def _find_variables(value: object) -> Iterator[dict[str, object]]:
    """The dicts of attributes of the modules in a value, which is a module or a container of some."""
    pending, seen = [value], dict[int, object]()
    while pending:
        item = pending.pop()
        node = node_of(type(item))
        if node is None or id(item) in seen:  # a container may hold itself
            continue
        seen[id(item)] = item  # which keeps it alive, and so its id
        if node.variables is not None:
            yield from node.variables(item)
        else:
            pending.extend(node.flatten(item)[0])


def find_owner(fn: object) -> object:
    """The instance of a bound method, or a callable object itself; None for a plain function."""
    fn = getattr(fn, "__wrapped__", fn)
    owner = getattr(fn, "__self__", fn)
    return None if isinstance(owner, FunctionType) else owner


def unwrap_function(fn: object) -> FunctionType | None:
    """The Python function inside a callable: of a wrapper, a method, a partial, or an object with ``__call__``."""
    for _ in range(32):
        if isinstance(fn, FunctionType) or fn is None:
            return fn
        names = [name for name in ("__wrapped__", "__func__", "func") if hasattr(fn, name)]
        fn = getattr(fn, names[0]) if names else type(fn).__dict__.get("__call__")
    return None


def _find_helper(value: object, function: FunctionType) -> FunctionType | None:
    """The function in a variable if it is from the same module, so that its variables are guarded too; else None."""
    inner = value if isinstance(value, FunctionType) else getattr(value, "__wrapped__", None)
    same = isinstance(inner, FunctionType) and inner.__globals__ is function.__globals__
    return inner if same else None


def _make_guards(function: FunctionType) -> Iterator[ExternalGuard]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        guard = ExternalGuard("cell", name, cell, None)
        yield ExternalGuard("cell", name, cell, guard.get_value())
    if is_package_file(function.__code__.co_filename):
        return  # no user assigns the variables of this package's modules
    globals_ = function.__globals__
    for name in sorted(_code_names(function.__code__)):
        value = globals_.get(name, ABSENT)
        if value is ABSENT and not hasattr(builtins, name):
            continue  # an attribute's name, most likely
        if value is not ABSENT and not isinstance(value, ModuleType):
            yield ExternalGuard("global", name, globals_, value)


def _code_names(code: CodeType) -> set[str]:
    """The global and attribute names in code and in the functions defined inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _code_names(constant)
    return names


# -- attributes of objects ---------------------------------------------------------------------------------------------
MOST_OBJECTS = 64  # in whose attributes tensors are looked for
_HEAP_TYPE = 1 << 9


class Reachable:
    """The tensors that a function reaches before a call is traced, and the guards on what leads to each.

    A jitted function may write these: if another tensor takes the place of one of them, a guard fails. Tensors that it
    finds in other places, such as lists, slots, or attributes of classes, and those that it makes itself, are refused.

    Args:
        fn: the function.
        externals: the guards on its variables and on the attributes of its modules.
        statics: the values of static arguments, such as the object of a method.
    """

    def __init__(self, fn: Function, externals: Iterable[ExternalGuard], statics: Iterable[object]):
        self.tensors: dict[int, Tensor] = {}
        self._paths: dict[int, tuple[ExternalGuard, ...]] = {}
        self._pending: list[tuple[Any, tuple[ExternalGuard, ...]]] = []
        self._seen: set[int] = set()
        for guard in externals:
            self._add(guard.value, (guard,))
        for value in (find_owner(fn), *statics):
            self._add(value, ())
        for item, path in self._pending:  # grows
            self._add_attributes(item, path)

    def _add_attributes(self, item: Any, path: tuple[ExternalGuard, ...]) -> None:
        node = node_of(type(item))
        if node is None or node.variables is None:
            for name, held in list(vars(item).items()):
                self._add(held, (*path, ExternalGuard("attribute", name, vars(item), held)))
            return
        # All attributes of a module and of those inside matter, such as ``training``; their tensors share one path.
        dicts = list(node.variables(item))
        guards = [
            ExternalGuard("attribute", name, names, held) for names in dicts for name, held in names.items()
        ]
        whole = (*path, *guards)
        for guard in guards:
            self._add(guard.value, whole)

    def _add(self, value: Any, path: tuple[ExternalGuard, ...]) -> None:
        if isinstance(value, TensorBase):
            self.tensors.setdefault(id(value), value)  # type: ignore[arg-type]
            self._paths.setdefault(id(value), path)
        elif id(value) not in self._seen and len(self._seen) < MOST_OBJECTS and _has_attributes(value):
            self._seen.add(id(value))
            self._pending.append((value, path))

    def find_guards(self, captured: Iterable[object], written: Iterable[object]) -> Iterator[ExternalGuard]:
        """Make the guards that lead to captured tensors, but for those on what the function itself has assigned.

        Args:
            captured: the captured tensors.
            written: those of them that are written.

        Raises:
            UnsupportedError: the function has assigned what led to a tensor that is written.
        """
        for tensor in written:
            assigned = [guard for guard in self._paths.get(id(tensor), ()) if not guard.check()]
            if assigned:
                variable = f"{assigned[0].kind} {assigned[0].name}"
                raise UnsupportedError(
                    f"the jitted function writes a captured tensor, and assigns the {variable}, "
                    "which compiled code would not do again; pass the tensors as arguments, and return new ones"
                )
        paths = [self._paths.get(id(tensor), ()) for tensor in captured]
        seen = set()
        for path in {id(path): path for path in paths}.values():
            for guard in path:
                key = (id(guard.holder), guard.name)
                if guard.kind == "attribute" and key not in seen and guard.check():
                    seen.add(key)
                    yield guard


def _has_attributes(value: object) -> bool:
    """Whether a value is a module, or an instance of a class that Python code defines and not a container or tensor."""
    kind = type(value)
    node = node_of(kind)
    if node is not None:
        return node.variables is not None
    if isinstance(value, (TensorBase, type, FunctionType, ModuleType)):
        return False
    return bool(kind.__flags__ & _HEAP_TYPE) and type(getattr(value, "__dict__", None)) is dict
