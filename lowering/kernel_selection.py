"""Kernel selection: choose how each node is computed, from its declaration and the backend's capabilities.

Preference: a view (no code) > a scalar body, a reduction or a constant that is fused > a library kernel with a C
signature > a callback to the eager kernel, which works for every node that has a shape rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .. import lazy
from ..named_tuple import NamedTuple
from ..operators.declare.shape_rules import compute_dtype, normalize_axes
from ..registry.dispatch.keys import DispatchKey
from ..registry.dispatch.precedence import find_external_kernel
from ..registry.dtypes import DType, int64
from ..tracer.graph import Graph, Node, Value
from ..tracer.infer import to_example
from .fusion.index_maps import explain_indexed_access
from .fusion.ranges import match_range
from .layout import Layout, contiguous, is_view, proves_equal, view_layout

_foreign_functions = lazy.Module(".operators.foreign.functions")
_foreign_kernels = lazy.Module(".lowering.foreign_kernels")
FUSED = ("fused", "reduction", "copy", "constant", "gather")
"""The choices that become part of an emitted loop."""
PREWRITTEN_KINDS = ("random", "gather", "scatter", "scan")
"""The kinds of operators that backends have prewritten code for."""
REALS = (bool, int, float)
NUMBERS = (*REALS, complex)


class Choice(NamedTuple):
    """The chosen kernel of a node.

    Attributes:
        kind: ``"fused"``, ``"reduction"``, ``"copy"``, ``"constant"``, ``"view"``, ``"pieces"``, ``"blas"``,
            ``"range"``, ``"native"`` (prewritten code, or a C function of the user) or ``"callback"``.
        why: the reason, as text.
    """

    kind: str
    why: str


class Target(NamedTuple):
    """The capabilities of a backend.

    Attributes:
        emits: whether it emits code for a dtype.
        library: why a library kernel of the backend computes a node; None if none does.
        native: why a C function or a prewritten kernel computes a node; None if none does.
        loops: whether it emits loops and branches around compiled bodies.
        key: the dispatch key of its eager kernels.
        inlines_producers: whether a launch costs more than recomputing a cheap operand for each element.
        copies: returns which operands of a library kernel or a C function must be copied first, from their layouts;
            where it is, or returns, None: those that are not BLAS matrices, or not contiguous.
        reduces: whether it emits reductions that combine elements of a dtype.
        indexes: whether its kernels read at integer positions through index maps.
        reports_later: whether positions out of bounds are reported after the call, and only those of selected elements.
        updates: whether they also write at integer positions, and results take over the memory of dead values.
    """

    emits: Callable[[DType], bool]
    library: Callable[[Node], str | None]
    native: Callable[[Node], str | None] = lambda node: None
    loops: bool = False
    key: DispatchKey = DispatchKey.CPU
    inlines_producers: bool = False
    copies: Callable[[Node, Sequence[Layout]], Sequence[bool] | None] = lambda node, layouts: None
    reduces: Callable[[DType], bool] = lambda dtype: True
    indexes: bool = False
    updates: bool = False
    reports_later: bool = False


class KernelSelection:
    """The kernel choices for a graph's nodes, and the layouts of views.

    Attributes:
        choices: by node.
        roots: for the result of each view, the value whose buffer holds it, and its layout there.
        pieces: returns the pieces of a node that is concatenated in place, else None.
    """

    def __init__(self, graph: Graph, target: Target, pieces: Callable[[Node], object]):
        self.target, self.pieces = target, pieces
        self.choices: dict[Node, Choice] = {}
        self.roots: dict[Value, tuple[Value, Layout]] = {}
        outputs = [output for output in graph.outputs if isinstance(output, Value)]
        self._reads = Counter([*outputs, *(value for node in graph.nodes for value in node.inputs)])
        for node in graph.nodes:
            self.choices[node] = self._choose(node)

    def root(self, value: Value) -> tuple[Value, Layout]:
        """The value whose buffer holds ``value``, and its layout there."""
        return self.roots.get(value) or (value, contiguous(value.shape))

    def _choose(self, node: Node) -> Choice:
        """Choose how a node runs: the first kind of kernel that it can have."""
        choice = self._choose_external(node)
        if choice is None and is_view(node):
            choice = self._choose_view(node)
        return choice or self._choose_uncompiled(node) or self._choose_kernel(node)

    def _choose_external(self, node: Node) -> Choice | None:
        """Choose the kernel or shape rule that other code has registered, if there is one."""
        for key, what in ((self.target.key, "kernel"), (DispatchKey.Meta, "shape rule")):
            instead = find_external_kernel(node.op, key)
            if instead is not None:
                return Choice(
                    "callback", f"{instead.name} of {instead.origin} is registered in place of its {what}"
                )
        return None

    def _choose_uncompiled(self, node: Node) -> Choice | None:
        """Choose a call of the operator, a library or compiled bodies for a node without an emitted kernel."""
        decl = node.op.decl
        if decl is None or not node.outputs:
            return Choice(
                "callback", "defined without a declaration" if decl is None else "it has no results"
            )
        if decl.kind == "control" and self.target.loops:
            return Choice("loop", "its bodies are compiled, and called from compiled code")
        if decl.effects:
            return Choice("callback", f"it has effects: {', '.join(sorted(decl.effects))}")
        library = self.target.library(node)
        if library is not None:
            return Choice("blas", library)
        has_native = decl.native is not None or decl.kind in PREWRITTEN_KINDS
        native = self.target.native(node) if has_native else None
        if native is not None:
            return Choice("native", native)
        dtypes = [value.spec.dtype for value in (*node.inputs, *node.outputs)]
        unable = next((d for d in dtypes if not self.target.emits(d)), None)
        if unable is not None:
            return Choice("callback", f"{unable.name} is not emitted")
        if any(value.weak is complex for value in node.inputs):
            return Choice("callback", "a complex number is passed at run time")
        return None

    def _choose_kernel(self, node: Node) -> Choice:
        """Choose the kernel of a declared operator by its kind."""
        kind = node.op.decl.kind
        if kind == "custom":
            return self._choose_custom(node)
        if kind == "random":
            return Choice("callback", "a random has no emitted kernel")
        if node.op.decl.index_spec is not None and self.target.indexes:
            return _choose_indexed(node, self.target)
        if self.pieces(node):
            return Choice("pieces", "each part is written where it belongs")
        if (self.target.inlines_producers or self.target.indexes) and match_range(node) is not None:
            return Choice("range", "its numbers are counted where they are read")
        return self._alias_copy(node) or _choose_fused(node, self.target)

    def _alias_copy(self, node: Node) -> Choice | None:
        """Alias a copy to its operand if that is a copying reshape that no other node reads."""
        source = node.args[0] if node.op.decl.kind == "copy" else None
        if not isinstance(source, Value) or source.node is None or self._reads[source] > 1:
            return None
        if self.choices[source.node].kind != "copy":
            return None
        self.roots[node.outputs[0]] = self.root(source)
        return Choice("view", "its elements have been copied already")

    def _choose_custom(self, node: Node) -> Choice:
        """Choose the kernel of a custom operator by the language of its kernel."""
        native = self.target.native(node)
        if native is not None:
            return Choice("native", native)
        function = _foreign_kernels.find_foreign_function(node)
        if function is None:
            return Choice("callback", "its kernel is a Python function")
        if not isinstance(function, _foreign_functions.ScalarFunction):
            return Choice(
                "callback", f"the C function {function.signature} cannot be called from compiled code here"
            )
        given = [
            a if not isinstance(a, Value) else a.spec if a.weak is None else to_example(a) for a in node.args
        ]
        why = _foreign_functions.explain_mismatch(function, given, node.outputs[0].spec)
        if not why and any(
            _may_not_fit(a, dtype) for a, dtype in zip(node.args, function.params, strict=True)
        ):
            why = "an integer that is passed at run time may not fit"
        if why:
            return Choice("callback", f"its {function.language} function does not fit: {why}")
        return Choice("fused", f"a scalar function in {function.language}")

    def _choose_view(self, node: Node) -> Choice | None:
        source, out = node.args[0], node.outputs[0]
        if not isinstance(source, Value) or source.weak is not None:
            return None
        root, layout = self.root(source)
        result = view_layout(node, layout)
        if result is not None:
            self.roots[out] = root, result
            return Choice("view", f"strides {result.strides}, offset {result.offset}")
        fresh = view_layout(node, contiguous(source.shape))
        is_whole = fresh is not None and fresh.is_contiguous and proves_equal(fresh.size, source.spec.size)
        if not is_whole or not self.target.emits(out.spec.dtype):
            return None
        return Choice("copy", "its elements have to move for that shape")


def _may_not_fit(argument: object, dtype: DType) -> bool:
    """Whether an argument is a run-time integer that may not fit the parameter's dtype."""
    weak = argument.weak if isinstance(argument, Value) else None
    return weak is int and dtype.is_integer and dtype is not int64


def _choose_fused(node: Node, target: Target) -> Choice:
    decl = node.op.decl
    if decl.is_elementwise:
        return _choose_elementwise(node, target)
    if decl.fold is not None and decl.kind == "reduction":
        combined = decl.fold.accumulation_dtype(node.args[0].spec.dtype, node.outputs[0].spec.dtype)
        if not target.reduces(combined):
            return Choice("callback", f"reductions of {combined.name} are not emitted")
        return Choice("reduction", f"{decl.fold.name} over axes {reduced_axes(node)}")
    if decl.kind == "creation" and node.op.schema.name == "full":
        return _choose_filled(node)
    if decl.kind in ("cast", "copy") and isinstance(node.args[0], (Value, *NUMBERS)):
        return Choice("fused", "a conversion" if decl.kind == "cast" else "a copy")
    return Choice("callback", _explain_view(node) or f"a {decl.kind} has no emitted kernel")


def _explain_view(node: Node) -> str | None:
    """Why a view is computed by a call, which copies its elements; None for other nodes."""
    if node.op.decl.kind != "view":
        return None
    if node.op.decl.view is None:
        return "it declares no rule of a view (operators.declare.kinds.view), so that its elements are copied"
    if node.outputs[0].spec.dtype is not node.args[0].spec.dtype:
        return "a view as another dtype is copied"
    return "its elements have to move"


def _choose_indexed(node: Node, target: Target) -> Choice:
    why = explain_indexed_access(node, not target.reports_later)
    writes = node.op.decl.index_spec.writes
    if why is None and writes and not target.updates:
        why = "no kernel writes at its positions"
    if why is not None:
        return Choice("callback", why)
    if writes:
        return Choice(
            "update", "elements are written at integer positions, in place if the old value is dead"
        )
    return Choice("gather", "elements are read at integer positions where they are used")


def _choose_elementwise(node: Node, target: Target) -> Choice:
    odd = [a for a in (*node.args, *node.kwargs.values()) if not isinstance(a, (Value, *NUMBERS))]
    if odd or node.kwargs:
        return Choice("callback", f"its body takes tensors and numbers, not {(odd or ['keywords'])[0]!r}")
    if not target.emits(body_dtype(node)):
        return Choice("callback", f"{body_dtype(node).name} is not emitted")
    return Choice("fused", "it has a scalar body")


def _choose_filled(node: Node) -> Choice:
    if uniform_constant(node) is not None:
        return Choice("constant", f"{uniform_constant(node)!r} everywhere")
    return Choice("fused", "one value everywhere")


def body_dtype(node: Node) -> DType:
    """The dtype that the scalar body of an elementwise node runs in."""
    decl = node.op.decl
    args = [to_example(a) if isinstance(a, Value) else a for a in node.args]
    return compute_dtype(node.op.schema.name, decl.result, decl.dtypes, args)


def reduced_axes(node: Node) -> tuple[int, ...]:
    """The axes that a reduction node reduces, sorted and not negative."""
    axis: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("axis")
    axes = (axis,) if isinstance(axis, int) else axis
    return normalize_axes(node.op.schema.name, axes, len(node.args[0].shape))


def uniform_constant(node: Node) -> bool | int | float | None:
    """The Python number that fills a node's result; None if the node is not such a ``full``."""
    if node.op.decl is None or node.op.decl.kind != "creation" or node.op.schema.name != "full":
        return None
    value = node.args[1]
    return value if isinstance(value, REALS) else None
