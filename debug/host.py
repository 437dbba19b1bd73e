"""Python functions that the program calls when its values are known: what they get, and what they must give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import pytree
from ..eager.construct import asarray
from ..eager.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError, TandemError
from ..registry.dtypes import as_dtype
from ..registry.state import set_keys
from ..registry.values import SCALARS, TensorBase, TensorSpec, describe, number_stand_ins


def is_value(leaf: Any) -> bool:
    """Whether a leaf of the arguments is known only when the program runs."""
    return isinstance(leaf, TensorBase) or type(leaf) in number_stand_ins


class HostCall:
    """A Python function and all of its arguments but the values, which come at each call.

    Attributes:
        name: the function, for messages.
    """

    def __init__(self, fn: Callable[..., Any], leaves: Sequence[Any], treedef: pytree.TreeDef):
        self.name = getattr(fn, "__qualname__", None) or repr(fn)
        self._fn, self._treedef = fn, treedef
        self._fixed = [None if is_value(leaf) else leaf for leaf in leaves]
        self._places = [place for place, leaf in enumerate(leaves) if is_value(leaf)]

    def __call__(self, values: Sequence[Any]) -> Any:
        """Call the function, in the default state of the dispatcher."""
        leaves = list(self._fixed)
        for place, value in zip(self._places, values):
            leaves[place] = as_array(value)
        args, kwargs = self._treedef.unflatten(leaves)
        before = set_keys(0, 0)
        try:
            return self._fn(*args, **kwargs)
        finally:
            set_keys(*before)


def host_call(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str
) -> tuple[HostCall, list[Any]]:
    """A call of a Python function, and the values that it waits for."""
    if not callable(fn):
        raise ArgumentError(f"{what} takes a function, not {describe(fn)}")
    leaves, treedef = pytree.flatten((args, kwargs))
    return HostCall(fn, leaves, treedef), [leaf for leaf in leaves if is_value(leaf)]


def as_array(value: Any) -> Any:
    """What a Python function gets for a value: an ndarray of its own, or a number."""
    return np.array(value.detach()._host("a Python function")) if isinstance(value, Tensor) else value


# -- results -----------------------------------------------------------------------------------------------------------
def is_spec(item: Any) -> bool:
    """Whether something says a shape and a dtype, so that it is a leaf of ``result_spec``."""
    return isinstance(item, TensorSpec) or (hasattr(item, "shape") and hasattr(item, "dtype"))


def specs_of(result_spec: Any, what: str) -> tuple[tuple[TensorSpec, ...], pytree.TreeDef]:
    """The specs of the results, and their containers.

    Raises:
        ArgumentError: a leaf says no shape and dtype.
    """
    leaves, treedef = pytree.flatten(result_spec, is_spec)
    specs = []
    for path, leaf in zip(treedef.paths(), leaves):
        if not is_spec(leaf):
            raise ArgumentError(
                f"{what}: result_spec{path} is {describe(leaf)}; say what the function gives by "
                "td.TensorSpec(shape, dtype), or anything else with a shape and a dtype"
            )
        specs.append(TensorSpec(tuple(leaf.shape), as_dtype(leaf.dtype)))
    return tuple(specs), treedef


class Promise:
    """What a Python function gives, to be checked when it has run.

    Attributes:
        specs: shapes and dtypes of the results.
        treedef: their containers.
    """

    def __init__(self, what: str, result_spec: Any):
        self.what = what
        self.specs, self.treedef = specs_of(result_spec, what)

    def checked(self, name: str, found: Any, batch: tuple[int, ...] = ()) -> tuple[Tensor, ...]:
        """What a function has given, as tensors.

        Args:
            name: the function, for messages.
            found: what it has given.
            batch: axes in front of those that were promised.

        Raises:
            ArgumentError, ShapeError, DTypeError: that is something else than was promised.
        """
        where = f"{self.what}: {name} gave"
        leaves = pytree.flatten_up_to(self.treedef, found, where)
        rows = zip(leaves, self.specs, self.treedef.paths())
        return tuple([_checked(where, leaf, spec, path, batch) for leaf, spec, path in rows])


def _checked(where: str, leaf: Any, spec: TensorSpec, path: str, batch: tuple[int, ...]) -> Tensor:
    shape, at = (*batch, *spec.shape), f" at {path}" if path else ""
    try:
        found = asarray(leaf, spec.dtype if type(leaf) in SCALARS else None)
    except TandemError as fault:
        raise ArgumentError(f"{where} {describe(leaf)}{at}, which makes no tensor: {fault}") from None
    wanted = TensorSpec(shape, spec.dtype)
    if found.shape != shape:
        raise ShapeError(f"{where} {describe(found)}{at}, and result_spec promises {wanted}")
    if found.dtype is not spec.dtype:
        raise DTypeError(
            f"{where} {describe(found)}{at}, and result_spec promises {wanted}; convert it in the function, or "
            "promise another dtype"
        )
    return asarray(np.array(found.detach().numpy()))
