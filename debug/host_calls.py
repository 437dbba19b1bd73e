"""Python functions as callbacks: binding of their arguments, and checks of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import pytree
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError, TandemError
from ..registry.dispatch.state import current_keys, set_keys
from ..registry.dtypes import as_dtype
from ..registry.values import SCALARS, TensorBase, TensorSpec, describe, traced_number_types

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs, Pytree


def is_value(leaf: object) -> bool:
    """Return whether a leaf of the arguments is known only at run time."""
    return isinstance(leaf, TensorBase) or type(leaf) in traced_number_types


class HostCall:
    """A Python function with its static arguments; the values are passed at each call.

    Attributes:
        name: the name of the function, for messages.
    """

    def __init__(self, fn: Function, leaves: Sequence[object], treedef: pytree.TreeDef):
        self.name = getattr(fn, "__qualname__", None) or repr(fn)
        self._fn, self._treedef = fn, treedef
        self._fixed = [None if is_value(leaf) else leaf for leaf in leaves]
        self._indices = [index for index, leaf in enumerate(leaves) if is_value(leaf)]

    def __call__(self, values: Sequence[object]) -> object:
        """Call the function, in the default state of the dispatcher."""
        leaves = list(self._fixed)
        for index, value in zip(self._indices, values):
            leaves[index] = to_host_array(value)
        args, kwargs = self._treedef.unflatten(leaves)
        before = current_keys()
        try:
            set_keys(0, 0)
            return self._fn(*args, **kwargs)
        finally:
            set_keys(*before)


def make_host_call(fn: object, args: Args, kwargs: Kwargs, what: str) -> tuple[HostCall, list[object]]:
    """Bind the arguments of a Python function; return the host call and the values to pass to it."""
    if not callable(fn):
        raise ArgumentError(f"{what} takes a function, not {describe(fn)}")
    leaves, treedef = pytree.flatten((args, kwargs))
    return HostCall(fn, leaves, treedef), [leaf for leaf in leaves if is_value(leaf)]


def to_host_array(value: object) -> Any:
    """Convert a tensor to a new ndarray; return any other value as it is."""
    return np.array(value.detach()._host("a Python function")) if isinstance(value, Tensor) else value


# -- results -----------------------------------------------------------------------------------------------------------
def is_spec(item: object) -> bool:
    """Return whether an object is a leaf of ``result_spec``: it has a shape and a dtype."""
    return isinstance(item, TensorSpec) or (hasattr(item, "shape") and hasattr(item, "dtype"))


def parse_result_specs(result_spec: Pytree, what: str) -> tuple[tuple[TensorSpec, ...], pytree.TreeDef]:
    """Flatten ``result_spec`` into specs and a treedef.

    Raises:
        ArgumentError: a leaf has no shape and dtype.
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


class ResultSpecs:
    """The declared results of a Python function.

    Attributes:
        specs: the shapes and dtypes of the results.
        treedef: the containers of the results.
    """

    def __init__(self, what: str, result_spec: Pytree):
        self.what = what
        self.specs, self.treedef = parse_result_specs(result_spec, what)

    def checked(self, name: str, results: Pytree, batch: tuple[int, ...] = ()) -> tuple[Tensor, ...]:
        """Convert the results of a function to tensors, and check them.

        Args:
            name: the name of the function, for messages.
            results: the results of the function.
            batch: the shape of the batch axes, which precede those of the specs.

        Raises:
            ArgumentError, ShapeError, DTypeError: the results do not match ``result_spec``.
        """
        where = f"{self.what}: {name} gave"
        leaves = pytree.flatten_up_to(self.treedef, results, where)
        rows = zip(leaves, self.specs, self.treedef.paths())
        return tuple([_check_leaf(where, leaf, spec, path, batch) for leaf, spec, path in rows])


def _check_leaf(where: str, leaf: object, spec: TensorSpec, path: str, batch: tuple[int, ...]) -> Tensor:
    shape, at = (*batch, *spec.shape), f" at {path}" if path else ""
    try:
        result = asarray(leaf, spec.dtype if type(leaf) in SCALARS else None)
    except TandemError as fault:
        raise ArgumentError(
            f"{where} {describe(leaf)}{at}, which cannot be converted to a tensor: {fault}"
        ) from None
    wanted = TensorSpec(shape, spec.dtype)
    if result.shape != shape:
        raise ShapeError(f"{where} {describe(result)}{at}, and result_spec promises {wanted}")
    if result.dtype is not spec.dtype:
        raise DTypeError(
            f"{where} {describe(result)}{at}, and result_spec promises {wanted}; convert it in the function, or "
            "promise another dtype"
        )
    return asarray(np.array(result.detach().numpy()))
