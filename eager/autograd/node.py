"""Nodes of the autograd graph: the operator that ran, edges to its inputs, and the residuals of its derivative."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from ... import config, lazy
from ...errors import AutogradError, NotDifferentiableError, VersionError
from ...named_tuple import NamedTuple
from ...operators.declare.shape_rules import spec_of
from ...operators.indexing.masks import mask_version_hooks
from ...operators.shape.views import sum_to
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import state
from ...registry.dtypes import DType
from ...registry.operator import Operator
from ...registry.values import TensorSpec
from ..tensor.dunders import by_name
from ..tensor.storage import Hold
from ..tensor.tensor import EAGER, Tensor, require_grad, storage_of, wrap
from .autograd_meta import AutogradMeta
from .derivative_rules import (
    ARGUMENT,
    ARGUMENT_SPEC,
    GRADIENT,
    KEYWORD,
    KEYWORD_SPEC,
    RESULT,
    ActiveRules,
    Rule,
)

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

Change = Callable[[Any, Any, int | None], tuple[Any, Any]]  # of Node.change_residuals

_residual_hooks = lazy.Module(".eager.autograd.residual_hooks")
residual_changes = lazy.Module(".eager.autograd.residual_changes")
packings = [0]  # the number of open blocks with hooks of saved tensors, in all threads
sequence = itertools.count()  # numbers the nodes, those of native code too

# The target of a gradient: a node or a leaf's AutogradMeta, the result's index, and the gradient's shape and dtype.
Edge = tuple[Any, int, tuple[int, ...], DType]


class CallName(NamedTuple):
    """The name of a function, in place of the operator in a node that is a call of it; equal names are equal."""

    name: str

    @property
    def schema(self) -> CallName:
        return self


class DroppedResiduals:
    """Placeholder for dropped residuals of a node, from which they can be recomputed.

    Attributes:
        source: an object whose ``take(index)`` returns the :meth:`Node.state` of the recomputed node.
        index: the argument of ``take``.
    """

    __slots__ = ("index", "source")

    def __init__(self, source: Any, index: int):
        self.source, self.index = source, index


class Node:
    """One recorded call.

    Attributes:
        op: the operator.
        sequence: increases with each node, so that a node has a higher number than those it depends on.
        active: the rules that apply; None if the operator has no derivative.
        edges: per rule an :data:`Edge`, or for a list argument a tuple of edges and None.
        residuals: the values that the rules need; None once they have been freed.
        versions: the version of each residual when it was saved, or for an aliased result a
            :class:`..tensor.storage.Hold`.
        results: specs of the results if there are several, else None.
        reason: why the operator has no derivative.
        hooks: hooks of the gradients of the results (:mod:`.hooks`); not set if there are none.
    """

    __slots__ = (
        "__weakref__",
        "active",
        "edges",
        "hooks",
        "op",
        "reason",
        "residuals",
        "results",
        "sequence",
        "versions",
    )

    hooks: Any

    OPTIONAL: ClassVar = ("hooks",)  # slots that are not set in new objects, which native code creates, too

    def __init__(self, op: Operator, active: ActiveRules | None, edges: list[Any], reason: str = ""):
        self.op, self.active, self.edges, self.reason = op, active, tuple(edges), reason
        self.sequence = next(sequence)
        self.residuals: Any = ()
        self.versions: tuple[Any, ...] = ()
        self.results: tuple[TensorSpec, ...] | None = None

    @property
    def name(self) -> str:
        """The name of the operator, for display."""
        return self.op.schema.name

    def free(self) -> None:
        """Free the residuals; a node without saved tensors may run again (such as the cast of a shared weight).

        Native twin: backends/cpu/fastpath/runtime/rt_backward.py:release_saved
        """
        for version in self.versions:
            if version is not None:
                self.residuals, self.versions = None, ()
                return

    # -- saving ----------------------------------------------------------------------------------------------------
    def save(self, args: Args, kwargs: Kwargs, out: object, is_alias: bool) -> None:
        """Save the residuals that the rules need.

        Args:
            args, kwargs: the arguments of the call; for values of a level, their payloads.
            out: its result.
            is_alias: whether ``out`` will refer to this node, so that an alias must be saved instead of it.

        Native twin: backends/cpu/fastpath/runtime/rt_saved.py:make_saved
        """
        values, versions = [], []
        for kind, where, _ in self.active.savers:  # type: ignore[union-attr]
            if kind in (ARGUMENT, KEYWORD):
                value = args[where] if kind == ARGUMENT else kwargs[where]
                version = version_of(value) if isinstance(value, Tensor) else _versions(value)
            elif kind == RESULT:
                value, version = _alias_result(out) if is_alias else (out, _versions(out))
            else:
                source = (
                    args[where] if kind == ARGUMENT_SPEC else kwargs[where] if kind == KEYWORD_SPEC else out
                )
                value, version = spec_deep(source), None
            values.append(value)
            versions.append(version)
        self.residuals, self.versions = tuple(values), tuple(versions)
        if packings[0]:
            _residual_hooks.pack_residuals(self)

    def drop(self, dropped: DroppedResiduals) -> None:
        """Replace the residuals by a placeholder from which they can be recomputed."""
        if self.residuals:
            self.residuals, self.versions = dropped, ()

    def state(self) -> Any:
        """The residuals and versions, for :meth:`refill` of another node."""
        return self.residuals, self.versions

    def refill(self, residuals_and_versions: Any) -> None:
        """Take over the residuals of another node of the same operator."""
        self.residuals, self.versions = residuals_and_versions

    def copy(self) -> Any:
        """Another node of the same call, with the same residuals."""
        return copy(self)

    def change_residuals(self, change: Change) -> bool:
        """Apply a change to the tensors among the residuals, now or each time they have been recomputed.

        Args:
            change: ``change(value, version, index)``, where ``index`` is that of the node's result, or None; returns
                the new value and its version.

        Returns:
            Whether the node is known to refer to no other tensors.
        """
        if self.residuals:
            return residual_changes.change(self, change)  # type: ignore[no-any-return]
        return True

    def values(self) -> list[Any]:
        """Return the residuals after checking their versions.

        Raises:
            AutogradError: they have been freed.
            VersionError: one has been written since.
        """
        while self.residuals.__class__ is DroppedResiduals:
            self.refill(self.residuals.source.take(self.residuals.index))
        if self.residuals is None:
            raise AutogradError(
                f"backward needs the saved values of {self.op.name} a second time, and the first backward has freed "
                "them; pass retain_graph=True to the first one"
            )
        if not self.residuals:
            return []
        result = []
        for (kind, _, name), value, version in zip(self.active.savers, self.residuals, self.versions):  # type: ignore[union-attr]
            if version is not None:
                if value.__class__ is not Tensor or kind == RESULT or value._storage is not None or version:
                    self._check(name, value, version)
                if kind == RESULT and not state.exclude & AUTOGRAD:
                    value = self._revive(value, version)
            result.append(value)
        return result

    def _check(self, name: str, value: Any, version: Any) -> None:
        if type(version) is list:
            for item, known in zip(value, version):
                self._check(name, item, known)
            return
        if version is None:
            return
        if type(version) is Hold:
            now, version = version.storage.version, version.version
        else:
            now = version_of(value)
        if now != version:
            raise VersionError(
                f"backward of {self.op.name} needs {name!r}, {spec_of(value)}, which was written in place after "
                f"{self.op.schema.name} had saved it (version {now}, saved at {version}); write into a copy "
                "(x.clone()) or use the functional operator"
            )

    def _revive(self, value: Any, version: Any, index: int = 0) -> Any:
        """Attach this node to a result that was saved as an alias, for gradients of gradients."""
        if type(version) is list:
            return tuple(self._revive(item, known, i) for i, (item, known) in enumerate(zip(value, version)))
        if type(version) is not Hold or not value.dtype.is_inexact:
            return value
        return require_grad(untracked_alias(value), AutogradMeta(self, index))

    # -- the derivative --------------------------------------------------------------------------------------------
    def gradients(self, given: dict[int, Tensor]) -> list[Any]:
        """Compute the gradient of each edge from those of the results.

        Raises:
            NotDifferentiableError: the operator has no derivative.
        """
        if self.active is None:
            return self._report_missing()
        values = self.values()
        values.append(
            given[0] if self.results is None else self._fill_zeros(given)
        )  # so its index is GRADIENT, -1
        rules = self.active.rules
        return (
            [apply_rule(rules[0], values)]
            if len(rules) == 1
            else [apply_rule(rule, values) for rule in rules]
        )

    def _report_missing(self) -> list[Any]:
        """Raise an error for a missing derivative, or warn and return no gradients, as configured."""
        message = f"the operator {self.op.name} has no derivative: {self.reason}"
        if config.flags.missing_derivative == "error":
            raise NotDifferentiableError(message)
        warnings.warn(f"{message}; its inputs get no gradient through it", RuntimeWarning, stacklevel=2)
        return []

    def _fill_zeros(self, given: dict[int, Tensor]) -> tuple[Tensor, ...]:
        specs = self.results or ()
        return tuple(given[i] if i in given else zeros_of(spec) for i, spec in enumerate(specs))


def zeros_of(spec: TensorSpec) -> Tensor:
    """Zeros of a shape and dtype."""
    return by_name("full")(spec.shape, 0, dtype=spec.dtype, device=spec.device)


def apply_rule(rule: Rule, values: list[Any]) -> Any:
    """Compute the gradient of one argument from the residuals, followed by the result's gradient.

    Native twin: backends/cpu/fastpath/runtime/rt_backward.py:apply_rule
    """
    _, fn, indices, constant, is_partial, _ = rule
    if fn is None:
        g = values[GRADIENT]
        if constant == 0:
            return by_name("zeros_like")(g)  # a gradient that is zero is not one that is missing
        return g if constant == 1 else -g if constant == -1 else g * constant
    result = fn(*map(values.__getitem__, indices))
    return values[GRADIENT] * result if is_partial else result


def fit(g: Tensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """Sum a gradient over broadcast axes and cast it to the dtype of the argument.

    Native twin: backends/cpu/fastpath/runtime/rt_backward.py:fit_gradient
    """
    if g.shape != shape:
        g = sum_to(g, shape)
    if g.dtype is not dtype:
        if g.dtype.kind == "c" and dtype.kind != "c":
            g = by_name("real")(g)
        g = by_name("astype")(g, dtype, copy=False)
    return g


def version_of(value: Any) -> int:
    """The version of a tensor's memory: the number of in-place writes.

    Native twin: backends/cpu/fastpath/runtime/rt_saved.py:version_of
    """
    while type(value) is not Tensor and hasattr(value, "_payload"):
        value = value._payload
    storage = value._storage
    return 0 if storage is None else storage.version


mask_version_hooks.append(version_of)


def _versions(value: object) -> object:
    if isinstance(value, Tensor):
        return version_of(value)
    if isinstance(value, tuple) and any(isinstance(item, Tensor) for item in value):
        return [version_of(item) if isinstance(item, Tensor) else None for item in value]
    return None


def spec_deep(value: object) -> object:
    """The spec of a value; of a tuple of them a tuple.

    Native twin: backends/cpu/fastpath/runtime/rt_saved.py:specs_of
    """
    return tuple(map(spec_of, value)) if isinstance(value, tuple) else spec_of(value)


def _alias_result(out: Any) -> tuple[object, object]:
    """An alias of a result: the result itself refers to the node, and saving it would create a reference cycle."""
    if isinstance(out, tuple):
        pairs = [_alias_result(item) for item in out]
        return tuple(alias for alias, _ in pairs), [version for _, version in pairs]
    return untracked_alias(out), Hold(storage_of(out))


def untracked_alias(x: Tensor) -> Tensor:
    """An alias of a tensor that is not counted among the tensors on its storage."""
    if type(x) is Tensor:
        return wrap(x._array)
    bare = x._alias()
    if type(x) in EAGER:
        bare._storage = None
    return bare
