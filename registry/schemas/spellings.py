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

# argument: its other names in NumPy, the array API and PyTorch, such as `dim` for `axis`. A name stands for the
# argument only in schemas without an argument of that name.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "self": (
        "input",
        "x",
        "a",
        "x1",
        "a1",
        "arr",
        "ary",
        "array",
        "m",
        "v",
        "operand",
        "prototype",
        "tensor",
        "val",
        "z",
        "A",
    ),
    "other": ("x2", "a2", "y", "b", "exponent"),
    "axis": ("dim", "axes", "dims", "dimension", "dimensions"),
    "axes": ("dims", "dim", "axis", "dimensions"),
    "axis1": ("dim1",),
    "axis2": ("dim2",),
    "keepdims": ("keepdim",),
    "shape": ("size", "newshape", "new_shape"),
    "indices": ("index",),
    "tensors": ("arrays", "tup", "operands"),
    "k": ("diagonal",),
    "n_rows": ("N", "n"),
    "n_cols": ("M", "m"),
    "min": ("a_min",),
    "max": ("a_max",),
    "stop": ("end",),
    "num": ("steps",),
    "repetitions": ("reps",),
    "sections": ("indices_or_sections",),
    "width": ("pad_width",),
}

# An argument that functions of another library have and an operator lacks -> what to write.
FOREIGN_ARGUMENTS: dict[str, str] = {
    "accuracy": "the accuracy is that of NumPy",
    "casting": "td.can_cast tells whether a cast is safe",
    "ceil_mode": "pad the input with td.pad",
    "dtype": "write x.astype(dtype) for the argument or the result",
    "inplace": "write the method that ends in an underscore, such as x.relu_()",
    "initial": "write td.maximum, td.minimum or an arithmetic operator with the initial value; td.numpy has it",
    "kind": "the order is always stable",
    "layout": "tensors are dense; td.sparse_coo_tensor makes sparse ones",
    "like": "results are tensors of tandem",
    "memory_format": "elements are in row-major order; x.permute changes the order of axes",
    "mode": "td.clip the indices",
    "order": "elements are in row-major order; td.permute or x.T changes the order of axes",
    "out_sharding": "a program runs on one device",
    "overwrite_input": "arguments are not overwritten",
    "pin_memory": "write x.pin_memory()",
    "precision": "products are computed in the dtype of the arguments",
    "preferred_element_type": "write x.astype(dtype) for the arguments",
    "requires_grad": "write x.requires_grad_(); td.torch has it",
    "reverse": "td.flip the argument and the result",
    "sharding": "a program runs on one device",
    "signature": "write x.astype(dtype) for the arguments",
    "subok": "results are tensors of tandem",
    "where": "write td.where(mask, x, neutral value); td.numpy has it",
}


def _is_size(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, (TensorBase, type))


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
            name = self.option_for(value, options)
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

    def option_for(self, value: object, taken: Kwargs) -> str:
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
