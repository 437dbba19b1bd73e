"""The values that loop bodies capture: their identity as a cache key.

The key of a function has everything that its trace depends on: its code, the values of the variables that it reads, of
functions those of their variables in turn, of tensors dtype and shape. A function without a key is one whose steps may
do more than compute, or that captures a value which can change without notice; its loops are Python loops.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..eager.layers.vmap.strategies import StrategyCache
from ..eager.tensor.tensor import Tensor
from ..pytree import TreeDef
from ..registry.dispatch.keys import CPU_KEYS
from ..registry.dtypes import DType
from ..registry.function import OperatorFunction
from ..registry.native_type import NativeCallable
from .captured_objects import ObjectReads, is_plain_object, read_version
from .code_facts import TEXT_METHODS, Read, read_code

if TYPE_CHECKING:
    from ..registry.types import Array

NUMBERS = frozenset((int, float, bool, complex))
MOST_BYTES = 1 << 16  # of arrays of NumPy, whose content is part of the key
MOST_VALUES = 1 << 12  # in a key
MOST_ITEMS = 1 << 9  # in lists and dicts, which are read at each call
_TREE_KINDS = frozenset((None, type(None), tuple, list, dict))
CONSTANTS = frozenset((str, bytes, type(None), type(...), DType))
_PACKAGE = __name__.partition(".")[0] + "."
# Parts of the package whose functions only compute.
_PARTS = (
    "control eager.layers.vmap.mapping eager.tensor.construct fft jax linalg nn numpy operators pytree.functions "
    "pytree.ravel registry.dispatch.unwinding special spellings torch transforms"
)
_PURE_PARTS = tuple(_PACKAGE + part for part in _PARTS.split())
# Modules in them whose functions draw from default generators, set options or use files.
_STATE_OF_PARTS = (
    "nn.default_generator nn.hooks numpy.composed_distributions numpy.files numpy.floating_errors numpy.memory "
    "numpy.random numpy.writing torch.calls torch.files torch.sampling"
)
_STATEFUL_PARTS = frozenset(_PACKAGE + part for part in _STATE_OF_PARTS.split())
_PURE_MODULES = frozenset(("math", "cmath", "_functools", "numpy", "itertools"))
# Attributes and functions that tell an array from a copy, besides the base of a view.
_DETAILS_OF_ARRAYS = frozenset("flags ctypes shares_memory may_share_memory byte_bounds".split())
_READS_BY_TEXT = frozenset(("format", "format_map"))  # as "{0.rate}" does
_EFFECTS_OF_BUILTINS = frozenset(
    "ascii breakpoint compile delattr dir eval exec exit format fromfile getattr globals hasattr hash help id input "
    "locals open print quit repr setattr vars __build_class__ __import__".split()
)
_ArrayFunction = type(np.concatenate)
# The members of a named tuple class besides its fields, if the class has no code of the user.
_NAMED_TUPLE_MEMBERS = frozenset(vars(NamedTuple("_Plain", []))) | frozenset(
    (
        "__annotations__",
        "__orig_bases__",
        "__replace__",  # before Python 3.13, tandem's own have it
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__firstlineno__",
        "__static_attributes__",
        "__slotnames__",  # written by pickle and copy
    )
)


class NoKey(Exception):
    """A captured value without a key; the text says which."""


class RecordedTensor(NoKey):
    """A captured tensor whose calls are recorded, or that is not a plain one; the next call may capture another."""


def describe_number(value: object) -> object:
    """The key of a number; raises NoKey for a weak tensor."""
    if type(value) not in NUMBERS:
        raise NoKey("a weak tensor")
    if isinstance(value, int):
        return type(value), value  # a long one has no text
    return type(value), repr(value)  # which tells zeros of different signs apart


class Captures:
    """The values that functions capture.

    Args:
        keys: the key sets that captured tensors may have.

    Attributes:
        tensors: the captured tensors, in order.
        held: the objects that are known by their identity in keys.
        objects: what is read of the captured objects, by their ids.
    """

    def __init__(self, keys: frozenset[int]):
        self.tensors: list[Tensor] = []
        self.held: list[object] = []
        self._keys = keys
        self._numbers: dict[int, int] = {}
        self._functions: dict[int, int] = {}
        self._has_containers = self._changes_containers = self._compares_objects = self._calls_numpy = False
        self._has_leaves = len(keys) > 1  # tensors that require gradients, which nothing records
        self.objects: dict[int, ObjectReads] = {}
        self._order: list[ObjectReads] = []
        self._arrays: list[Array] = []
        self._names: set[str] = set()  # of attributes that the functions read
        self._classes: dict[
            type, None
        ] = {}  # of this package, whose members count, since they may be replaced
        self._room = [MOST_VALUES, MOST_ITEMS, MOST_BYTES]
        self._of_modules: Captures | None = None

    def describe_input(self, x: Tensor) -> tuple[object, ...]:
        """The shape and the dtype of a tensor; raises NoKey if it is not a plain one without gradient."""
        if type(x) is not Tensor or x._keys not in self._keys or has_old_gradient(x):
            raise RecordedTensor("a tensor with a gradient, or that is not a plain one of the CPU")
        array = x._array
        return array.shape, array.dtype

    def check_tree(self, treedef: TreeDef) -> None:
        """Raise NoKey if a container of a tree has code of the user, as its methods do."""
        kind = treedef.kind
        of_operators = kind is not None and kind.__module__.startswith(_PACKAGE + "operators.")  # random keys
        if not (kind in _TREE_KINDS or of_operators or is_plain_named_tuple(kind)):
            raise NoKey(f"a {kind}")
        for child in treedef.children:
            self.check_tree(child)

    def make_key(self, *functions: object) -> tuple[object, ...]:
        """Make the key of functions; raises NoKey if one has none."""
        key = (*map(self._key, functions), *self._object_items(), *map(read_version, self._classes))
        inner = self._of_modules or self
        has_containers = self._has_containers or inner._has_containers
        if has_containers and (self._changes_containers or inner._changes_containers):
            raise NoKey("a container may be changed")
        return key

    @property
    def compares_objects(self) -> bool:
        """Whether a function may ask if two variables are one object."""
        return self._compares_objects or (self._of_modules or self)._compares_objects

    def _take_room(self, of: int, amount: int) -> None:
        """Count what a key holds; raises NoKey if it is too much to be compared and kept."""
        self._room[of] -= amount
        if self._room[of] < 0:
            raise NoKey("too many values")

    def _key(self, value: object) -> object:
        room = self._room
        room[0] -= 1
        if room[0] < 0:
            raise NoKey("too many values")
        kind = type(value)
        if isinstance(value, Tensor):
            return self._tensor_key(value)
        if kind in NUMBERS:
            return describe_number(value)
        if kind in CONSTANTS:
            if type(value) is str and "%" in value:
                self._names |= TEXT_METHODS  # of operands
            return kind, value
        if kind is TreeDef:
            self.check_tree(cast(TreeDef, value))
            return value
        if kind is StrategyCache:
            return kind  # it saves time, and nothing depends on it
        if kind is FunctionType:  # a proxy of one, which looks like it, has no key
            return self._function_key(cast(FunctionType, value))
        if kind in (list, dict) or isinstance(value, (tuple, functools.partial)):
            return self._container_key(value)
        if isinstance(value, np.generic) and kind.__module__ == "numpy":
            return kind, value.dtype, value.tobytes()
        if isinstance(value, np.ndarray) and kind is np.ndarray:
            return self._array_key(value)
        return self._object_key(value)

    def _object_key(self, value: object) -> object:
        """The key of a callable, or of an instance of a class written in Python."""
        if type(value) is MethodType:
            if find_function(value.__func__) is not None:
                raise NoKey("a jitted method, which knows what its object was")
            return MethodType, self._key(value.__self__), self._module_key(value.__func__)
        inner = find_function(value)
        if inner is not None:
            return self._function_key(inner)
        if _only_computes(value):
            self._calls_numpy |= isinstance(value, (_ArrayFunction, np.ufunc))
            self.held.append(value)
            return id(value)
        if not is_plain_object(value, is_pure_class):
            raise NoKey(f"a {type(value).__name__}")
        if self._of_modules is self:
            raise NoKey("an object of a module")
        reads = self.objects.get(id(value))
        if reads is None:
            reads = self.objects[id(value)] = ObjectReads(value, is_pure_class, len(self.objects))
            self._order.append(reads)
            self._classes.update(dict.fromkeys(reads.bases))
            self.held.append(type(value))
        return id(type(value)), reads.number

    def _array_key(self, value: Array) -> object:
        if value.dtype.hasobject or not value.flags.forc or self._of_modules is self:
            raise NoKey("an array of a module, one of objects, or one with gaps")
        self._take_room(2, value.nbytes)
        self._arrays.append(value)
        self._has_containers = True
        return np.ndarray, value.dtype, value.shape, value.strides, value.tobytes("K")

    def _object_items(self) -> Iterator[object]:
        """The keys of the attributes of the captured objects; those that they hold are captured in turn."""
        names, number = frozenset[str](), 0
        while number < len(self._order) or len(names) < len(self._names):
            if len(names) < len(self._names):
                names, number = frozenset(self._names), 0
                continue
            for name, value, kind in self._order[number].read_new(names):
                yield number, name, kind, self._key(value) if kind is None else self._module_key(value)
            number += 1
            if number == len(self._order) and (self._of_modules or self)._calls_numpy | self._calls_numpy:
                self._names.update(*[reads.list_array_methods() for reads in self._order])
        if self.objects and (self.compares_objects or not _READS_BY_TEXT.isdisjoint(self._names)):
            raise NoKey("copies of objects are other objects, and lack attributes that are not named")
        details = _DETAILS_OF_ARRAYS | (
            {"base"} if any(array.base is not None for array in self._arrays) else set()
        )
        if self._arrays and not details.isdisjoint(self._names):
            raise NoKey("copies of arrays are other arrays")

    def _container_key(self, value: Any) -> object:  # noqa: ANN401 - a container, by its type
        kind = type(value)
        self._has_containers |= kind is list or kind is dict
        if kind is list or kind is dict:
            self._take_room(1, len(value))
        if kind is dict:
            if not all(map(_is_constant, value)):
                raise NoKey("a dict whose keys are objects, of which copies are other keys")
            return kind, *map(self._key, value), *map(self._key, value.values())
        if kind is functools.partial:
            return kind, *map(self._key, (value.func, *value.args)), *map(self._key, value.keywords.items())
        if kind is not list and kind is not tuple:
            if not (is_plain_named_tuple(kind) or is_own_type(kind, tuple)):
                raise NoKey(f"a {kind.__name__}")
            self.held.append(kind)
        return kind, *map(self._key, value)

    def _tensor_key(self, x: Tensor) -> object:
        spec = self.describe_input(x)
        number = self._numbers.setdefault(id(x), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(x)
        return number, spec

    def _function_key(self, function: FunctionType) -> object:
        known = self._functions.get(id(function))
        if known is not None:
            return "function", known
        self._functions[id(function)] = len(self._functions)
        code = function.__code__
        self.held.append(code)
        if is_pure_part(function):
            names = code.co_freevars
            return id(code), *[self._key(_get_variable(function, Read(False, name, ()))) for name in names]
        facts = read_code(code)
        if self._has_leaves and facts.reads_gradients:
            raise NoKey("the copy of a leaf requires no gradient")
        if facts.effect or is_own(function) or vars(function).keys() - {"__wrapped__"}:
            raise NoKey(f"{function.__qualname__}: {facts.effect or 'not a function that only computes'}")
        self._changes_containers |= facts.changes_containers
        self._compares_objects |= facts.compares_objects
        self._names |= facts.attributes
        self.held.append(function.__globals__)
        variables = [self._read_key(function, read) for read in facts.reads]
        defaults = function.__defaults__ or (), tuple((function.__kwdefaults__ or {}).items())
        return id(code), id(function.__globals__), *variables, self._key(defaults)

    def _read_key(self, function: FunctionType, read: Read) -> object:
        value: object = _get_variable(function, read)
        attributes = read.attributes
        if not isinstance(value, ModuleType):
            return self._key(value)
        while isinstance(value, ModuleType) and attributes:
            value, attributes = getattr(value, attributes[0], None), attributes[1:]
        return self._module_key(value)

    def _module_key(self, value: object) -> object:
        """The key of a value of a module or a class, which is not replaced in copies, so that it has no tensors."""
        inner = self._of_modules
        if inner is None:
            inner = self._of_modules = Captures(self._keys)
            inner.held, inner._of_modules, inner._names = self.held, inner, self._names
            inner._room = self._room
        key = inner._key(value)
        if inner.tensors:
            raise NoKey("a tensor of a module or a class")
        return key


def _is_constant(value: object) -> bool:
    kind = type(value)
    return (
        kind in NUMBERS or kind in CONSTANTS or (kind is tuple and all(map(_is_constant, cast(Any, value))))
    )


def _get_variable(function: FunctionType, read: Read) -> object:
    """The value of a variable that a function reads; raises NoKey if it is not set."""
    try:
        if not read.is_global:
            at = function.__code__.co_freevars.index(read.name)
            return function.__closure__[at].cell_contents  # type: ignore[index]  # it has free variables
        if read.name in function.__globals__:
            return function.__globals__[read.name]
        return getattr(builtins, read.name)
    except (AttributeError, ValueError):
        raise NoKey(f"{read.name} is not set") from None


def has_old_gradient(x: Tensor) -> bool:
    """Whether a tensor that does not require a gradient has one, from when it did; a traced copy has none."""
    return x._meta is not None and x._meta.grad is not None and x._keys == CPU_KEYS


def find_function(value: object) -> FunctionType | None:
    """The user's function inside a callable of the package, such as a jitted function."""
    if not isinstance(value, NativeCallable):
        return None
    inner = getattr(value, "__wrapped__", None)
    return inner if type(inner) is FunctionType and not is_own(inner) else None


def _module_of(function: FunctionType) -> str:
    """The name of the module that defines a function; ``functools.wraps`` does not change it."""
    return str(getattr(function, "__globals__", {}).get("__name__", ""))  # none of a function in C


def is_own(function: FunctionType) -> bool:
    """Whether this package defines a function."""
    return _module_of(function).startswith(_PACKAGE)


def is_own_type(kind: type, base: type) -> bool:
    """Whether this package defines a class, which is a subclass of ``base``."""
    return issubclass(kind, base) and kind.__module__.startswith(_PACKAGE)


def is_pure_part(function: FunctionType) -> bool:
    """Whether a function belongs to the parts of this package whose functions only compute."""
    return _is_pure_module(_module_of(function))


def is_pure_class(kind: type) -> bool:
    """Whether a class belongs to these parts."""
    return _is_pure_module(str(kind.__module__))  # which may be anything


def _is_pure_module(name: str) -> bool:
    return name.startswith(_PURE_PARTS) and name not in _STATEFUL_PARTS


def is_plain_named_tuple(kind: Any) -> bool:  # noqa: ANN401 - a type, or None
    """Whether a class is a named tuple without methods, properties or other attributes of its own."""
    return (
        isinstance(kind, type)
        and kind.__bases__ == (tuple,)
        and hasattr(kind, "_fields")
        and vars(kind).keys() <= _NAMED_TUPLE_MEMBERS | {*kind._fields}
    )


def _only_computes(value: object) -> bool:
    """Whether calls of an object that is not a Python function have no effect but their result."""
    if isinstance(value, OperatorFunction):
        return value.operator.schema.namespace == "td"  # others may run Python code of the user
    if isinstance(value, NativeCallable):
        inner = getattr(value, "__wrapped__", None)  # a jitted method has state
        return inner is None or (isinstance(inner, FunctionType) and is_pure_part(inner))
    if isinstance(value, _ArrayFunction):
        return "npyio" not in _module_of(cast(Any, value).__wrapped__)
    if isinstance(value, np.ufunc):
        return any("O" not in types for types in value.types)  # else it may be a Python function of the user
    if isinstance(value, np.dtype):
        return True
    if isinstance(value, BuiltinFunctionType):
        module = value.__module__
        is_pure = module == "builtins" or module in _PURE_MODULES
        return is_pure and value.__name__ not in _EFFECTS_OF_BUILTINS
    if not isinstance(value, type):
        return False
    if value.__module__ == "builtins":
        return value not in (type, object, super, classmethod, staticmethod, property)
    is_number = (
        issubclass(value, np.number | np.bool_) and value.__module__ == "numpy"
    )  # a date may be that of now
    return is_number or value.__module__ == "itertools" or is_plain_named_tuple(value) or value is Tensor
