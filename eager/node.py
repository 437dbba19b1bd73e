"""Nodes of the recorded history: which operator ran, on what, and what its derivative needs."""

from __future__ import annotations

import itertools
import warnings
from typing import Any, NamedTuple

from .. import config
from ..errors import AutogradError, NotDifferentiableError, VersionError
from ..operators.rules import spec_of
from ..operators.views import sum_to
from ..registry.dtypes import DType
from ..registry.keys import AUTOGRAD
from ..registry.operator import Operator
from ..registry.state import state
from ..registry.values import TensorSpec
from .dunders import by_name
from .meta import AutogradMeta
from .plans import ARGUMENT, ARGUMENT_SPEC, GRADIENT, KEYWORD, KEYWORD_SPEC, RESULT, Active, Rule
from .storage import Hold
from .tensor import EAGER, Tensor, require_grad, storage_of, wrap

sequence = itertools.count()  # numbers the nodes; native code counts on with it

# Where a gradient goes: a node or a leaf's meta, which result of it, and the shape and dtype that it must have.
Edge = tuple[Any, int, tuple[int, ...], DType]


class Named(NamedTuple):
    """What stands for an operator in a node that is the call of a whole function; two of one name are equal."""

    name: str

    @property
    def schema(self) -> Named:
        return self


class Dropped:
    """In the place of what a node has saved: where to get it from again.

    Attributes:
        source: has ``take(index)``, which gives the :meth:`Node.state` of a node that is like this one.
        index: which.
    """

    __slots__ = ("index", "source")

    def __init__(self, source: Any, index: int):
        self.source, self.index = source, index


class Node:
    """One recorded call.

    Attributes:
        op: the operator.
        sequence: rises with each node, so that a node comes after all that it depends on.
        active: the rules that apply; None where the operator has no derivative.
        edges: per rule an :data:`Edge`, or for a list argument a tuple of edges and None.
        saved: the values that the rules need; None once they have been freed.
        versions: the version that each saved tensor had; a :class:`.storage.Hold` for one that is kept as an alias.
        results: specs of the results if there are several, else None.
        reason: why there is no derivative.
        hooks: what sees the gradients of the results (:mod:`.hooks`); not set where there is none.
    """

    __slots__ = (
        "__weakref__",
        "active",
        "edges",
        "hooks",
        "op",
        "reason",
        "results",
        "saved",
        "sequence",
        "versions",
    )

    hooks: Any

    def __init__(self, op: Operator, active: Active | None, edges: list[Any], reason: str = ""):
        self.op, self.active, self.edges, self.reason = op, active, tuple(edges), reason
        self.sequence = next(sequence)
        self.saved: Any = ()
        self.versions: tuple[Any, ...] = ()
        self.results: tuple[TensorSpec, ...] | None = None

    @property
    def name(self) -> str:
        """The operator's name, for people."""
        return self.op.schema.name

    def free(self) -> None:
        """Let go of the saved values; a node that has saved no tensor may run again (the cast of a shared weight)."""
        for version in self.versions:
            if version is not None:
                self.saved, self.versions = None, ()
                return

    # -- saving ----------------------------------------------------------------------------------------------------
    def save(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, is_alias: bool) -> None:
        """Keep what the rules need.

        Args:
            args, kwargs: the arguments of the call; values of a level are given as what they wrap.
            out: its result.
            is_alias: whether ``out`` will carry this node itself, so that it must not be kept as it is.
        """
        values, versions = [], []
        for kind, where, _ in self.active.savers:  # type: ignore[union-attr]
            if kind in (ARGUMENT, KEYWORD):
                value = args[where] if kind == ARGUMENT else kwargs[where]
                version = version_of(value) if isinstance(value, Tensor) else _versions(value)
            elif kind == RESULT:
                value, version = _alias(out) if is_alias else (out, _versions(out))
            else:
                source = (
                    args[where] if kind == ARGUMENT_SPEC else kwargs[where] if kind == KEYWORD_SPEC else out
                )
                value, version = spec_deep(source), None
            values.append(value)
            versions.append(version)
        self.saved, self.versions = tuple(values), tuple(versions)

    def drop(self, dropped: Dropped) -> None:
        """Let go of the saved values, which can be got again."""
        if self.saved:
            self.saved, self.versions = dropped, ()

    def state(self) -> Any:
        """What is dropped and got again."""
        return self.saved, self.versions

    def refill(self, found: Any) -> None:
        """Take what another node like this one has saved."""
        self.saved, self.versions = found

    def values(self) -> list[Any]:
        """The saved values, checked.

        Raises:
            AutogradError: they have been freed.
            VersionError: one has been written since.
        """
        while self.saved.__class__ is Dropped:
            self.refill(self.saved.source.take(self.saved.index))
        if self.saved is None:
            raise AutogradError(
                f"backward needs what {self.op.name} had saved a second time, and the first backward has freed it; "
                "give the first one retain_graph=True"
            )
        if not self.saved:
            return []
        found = []
        for (kind, _, name), value, version in zip(self.active.savers, self.saved, self.versions):  # type: ignore[union-attr]
            if version is not None:
                if value.__class__ is not Tensor or kind == RESULT or value._storage is not None or version:
                    self._check(name, value, version)
                if kind == RESULT and not state.exclude & AUTOGRAD:
                    value = self._revive(value, version)
            found.append(value)
        return found

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
        """A result that was saved as an alias, with its history again, for gradients of gradients."""
        if type(version) is list:
            return tuple(self._revive(item, known, i) for i, (item, known) in enumerate(zip(value, version)))
        if type(version) is not Hold or not value.dtype.is_inexact:
            return value
        return require_grad(_bare(value), AutogradMeta(self, index))

    # -- the derivative --------------------------------------------------------------------------------------------
    def gradients(self, given: dict[int, Any]) -> list[Any]:
        """The gradient for each edge, from those of the results.

        Raises:
            NotDifferentiableError: the operator has no derivative.
        """
        if self.active is None:
            return self._missing()
        values = self.values()
        values.append(
            given[0] if self.results is None else self._filled(given)
        )  # so its place is GRADIENT, -1
        rules = self.active.rules
        return (
            [apply_rule(rules[0], values)]
            if len(rules) == 1
            else [apply_rule(rule, values) for rule in rules]
        )

    def _missing(self) -> list[Any]:
        """There is no derivative: an error, or where the user wants that a warning and no gradients."""
        message = f"the operator {self.op.name} has no derivative: {self.reason}"
        if config.flags.missing_derivative == "error":
            raise NotDifferentiableError(message)
        warnings.warn(
            f"{message}; what it depends on gets no gradient through it", RuntimeWarning, stacklevel=2
        )
        return []

    def _filled(self, given: dict[int, Any]) -> tuple[Any, ...]:
        specs = self.results or ()
        return tuple(given[i] if i in given else zeros_of(spec) for i, spec in enumerate(specs))


def zeros_of(spec: TensorSpec) -> Any:
    """Zeros of a shape and dtype."""
    return by_name("full")(spec.shape, 0, dtype=spec.dtype, device=spec.device)


def apply_rule(rule: Rule, values: list[Any]) -> Any:
    """The gradient by one argument, from the saved values and the result's gradient behind them."""
    _, fn, places, constant, is_partial, _ = rule
    if fn is None:
        g = values[GRADIENT]
        if constant == 0:
            return by_name("zeros_like")(g)  # a gradient that is zero is not one that is missing
        return g if constant == 1 else -g if constant == -1 else g * constant
    result = fn(*map(values.__getitem__, places))
    return values[GRADIENT] * result if is_partial else result


def fit(g: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """A gradient summed over what broadcasting had added, in the dtype of the argument."""
    if g.shape != shape:
        g = sum_to(g, shape)
    if g.dtype is not dtype:
        if g.dtype.kind == "c" and dtype.kind != "c":
            g = by_name("real")(g)
        g = by_name("astype")(g, dtype, copy=False)
    return g


def version_of(value: Any) -> int:
    """How often the memory of a tensor has been written."""
    while type(value) is not Tensor and hasattr(value, "_payload"):
        value = value._payload
    storage = value._storage
    return 0 if storage is None else storage.version


def _versions(value: Any) -> Any:
    if isinstance(value, Tensor):
        return version_of(value)
    if isinstance(value, tuple) and any(isinstance(item, Tensor) for item in value):
        return [version_of(item) if isinstance(item, Tensor) else None for item in value]
    return None


def spec_deep(value: Any) -> Any:
    """The spec of a value; of a tuple of them a tuple."""
    return tuple(map(spec_of, value)) if isinstance(value, tuple) else spec_of(value)


def _alias(out: Any) -> tuple[Any, Any]:
    """A result's elements without the result, which holds the node: a cycle would outlive its last user."""
    if isinstance(out, tuple):
        pairs = [_alias(item) for item in out]
        return tuple(alias for alias, _ in pairs), [version for _, version in pairs]
    return _bare(out), Hold(storage_of(out))


def _bare(x: Any) -> Any:
    """The same elements as another object, which does not count as one that shares the storage."""
    if type(x) is Tensor:
        return wrap(x._array)
    bare = x._alias()
    if type(x) in EAGER:
        bare._storage = None
    return bare
