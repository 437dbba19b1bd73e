"""Other spellings of a call: argument names of NumPy and PyTorch, sizes one by one, options by position, ``out``.

Argument binding translates them, so schemas, kernels, graphs and traces have one spelling. What an operator accepts
follows from its schema and from the field ``spellings`` of its declaration:

- other names of arguments: those of :data:`SPELLINGS` for every operator that has the argument, and its own;
- a list of sizes or axes that ends the positional arguments, item by item, see :func:`.binding.is_variadic`;
- keyword-only arguments by position, after the others, in the order of the schema; an argument whose type does not
  accept the value is passed over;
- ``out``, a tensor that the result is written into, see :mod:`..respelled_calls`;
- ``copy``, of operators that return one view: whether to copy the elements, see
  :attr:`.schema.Schema.takes_copy`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import ArgumentError, DeviceError, DTypeError
from ..values import TensorBase, describe
from .binding import ConversionError

if TYPE_CHECKING:
    from ..types import Args, Kwargs
    from .binding import Binder

# argument: its names in NumPy, the array API and PyTorch. A name stands for the argument only in schemas without an
# argument of that name.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "self": ("input", "x", "a", "x1", "arr", "ary", "array", "m", "v"),
    "other": ("x2", "y", "b"),
    "axis": ("dim", "axes", "dims"),
    "axes": ("dims", "dim", "axis"),
    "keepdims": ("keepdim",),
    "shape": ("size", "newshape"),
    "indices": ("index",),
    "tensors": ("arrays", "tup"),
}


def _is_size(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, TensorBase)


class CallSpellings:
    """The other spellings that one operator accepts.

    Args:
        binder: the binder of the operator's schema.
        names: other names of arguments -> names in the schema, besides those of :data:`SPELLINGS`.
        variadic: whether the last positional argument, a list, may be given item by item.
    """

    def __init__(self, binder: Binder, names: Mapping[str, str], variadic: bool):
        self.binder = binder
        self.names = {
            spelling: name
            for name, spellings in reversed(SPELLINGS.items())
            if name in binder.names
            for spelling in spellings
            if spelling not in binder.names
        } | dict(names)
        self.variadic = variadic
        # A view is not written anywhere: a tensor after its arguments is a mistake, not ``out``.
        self.returns_view = any(result.type.aliases() for result in binder.schema.returns)

    def translate(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs, object]:
        """The arguments of a call in the spelling of the schema, and the value of ``out``.

        Raises:
            ArgumentError: an argument is given twice, unknown, or there are too many positional arguments.
        """
        options: Kwargs = {}
        kwargs = dict(kwargs)
        out = None if "out" in self.binder.names else kwargs.pop("out", None)
        for name, value in kwargs.items():
            known = self.names.get(name, name)
            if known in options:
                raise self.binder.refuse(f"got argument {known!r} twice, as {self._spelled(known, kwargs)}")
            options[known] = value
        limit = len(self.binder.positional)
        if self.variadic and len(args) > limit:
            sizes = tuple(itertools.takewhile(_is_size, args[limit - 1 :]))
            args = (*args[: limit - 1], sizes, *args[limit - 1 + len(sizes) :]) if sizes else args
        for value in args[limit:]:
            name = self._option_for(value, options)
            if name:
                options[name] = value
            elif (
                out is None
                and not self.returns_view
                and (isinstance(value, TensorBase) or (value is None and self.binder.keyword))
            ):
                out = value
            else:
                raise self.binder.refuse(
                    f"takes {limit} positional arguments, {len(args)} were given, and {describe(value)} fits no option"
                )
        return args[:limit], options, out

    def _spelled(self, known: str, kwargs: Kwargs) -> str:
        return " and as ".join(repr(name) for name in kwargs if self.names.get(name, name) == known)

    def _option_for(self, value: object, taken: Kwargs) -> str:
        """The first keyword-only argument not in ``taken`` that accepts a value; empty if there is none."""
        for argument in self.binder.keyword:
            if argument.name in taken:
                continue
            try:
                self.binder.converters[argument.name](value)
            except (ConversionError, ArgumentError, DTypeError, DeviceError):
                continue
            return argument.name
        return ""
