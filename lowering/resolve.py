"""How each node will be computed, and why: read off its declaration and what the backend can emit.

Preference: a view (no code) > a scalar body, a reduction or a constant that is fused > a library kernel with a C
signature > a callback to the eager kernel, which serves whatever has a shape rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..operators.rules import compute_dtype, normalize_axes
from ..operators.user_functions import ScalarFunction, scalar_reason
from ..registry.dtypes import DType, int64
from ..registry.keys import DispatchKey
from ..registry.precedence import from_outside
from ..tracer.graph import Graph, Node, Value
from ..tracer.infer import stand_in
from .layout import Layout, contiguous, is_view, view_of
from .ranges import range_of
from .user_kernels import user_function

FUSED = ("fused", "reduction", "copy", "constant")
"""The choices that become part of an emitted loop."""
REALS = (bool, int, float)
NUMBERS = (*REALS, complex)
FOLDS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")


class Choice(NamedTuple):
    """How a node is computed.

    Attributes:
        kind: ``"fused"``, ``"reduction"``, ``"copy"``, ``"constant"``, ``"view"``, ``"pieces"``, ``"blas"``,
            ``"range"``, ``"native"`` (a C function of the user's) or ``"callback"``.
        why: the reason, for people.
    """

    kind: str
    why: str


class Target(NamedTuple):
    """What a backend can do.

    Attributes:
        emits: whether it emits code for a dtype.
        library: the reason why a node is served by a library kernel of it, or None.
        native: the reason why a node is served by a C function that the user has registered, or None.
        loops: whether it emits loops and branches around compiled bodies.
        key: where its eager kernels are registered.
        absorbs: whether a launch costs more than computing a cheap operand again for each element that reads it.
        copies: which operands of a library kernel or a C function are copied first, from how they lie; None: those
            that are no matrices, or not contiguous.
    """

    emits: Callable[[DType], bool]
    library: Callable[[Node], str | None]
    native: Callable[[Node], str | None] = lambda node: None
    loops: bool = False
    key: DispatchKey = DispatchKey.CPU
    absorbs: bool = False
    copies: Callable[[Node, Sequence[Layout]], Sequence[bool]] | None = None


class Resolution:
    """The choices for a graph's nodes, and where each view lies.

    Attributes:
        choices: by node.
        roots: for the result of each view: the value whose buffer holds it, and its layout there.
        pieces: says whether a node is put together from pieces.
    """

    def __init__(self, graph: Graph, target: Target, pieces: Callable[[Node], Any]):
        self.target, self.pieces = target, pieces
        self.choices: dict[Node, Choice] = {}
        self.roots: dict[Value, tuple[Value, Layout]] = {}
        for node in graph.nodes:
            self.choices[node] = self._choose(node)

    def root(self, value: Value) -> tuple[Value, Layout]:
        """The value whose buffer holds ``value``, and its layout there."""
        return self.roots.get(value) or (value, contiguous(value.shape))

    def _choose(self, node: Node) -> Choice:
        instead = from_outside(node.op, self.target.key)
        if instead is not None:
            return Choice(
                "callback", f"{instead.name} of {instead.origin} is registered in place of its kernel"
            )
        if is_view(node):
            found = self._view(node)
            if found is not None:
                return found
        decl = node.op.decl
        dtypes = [value.spec.dtype for value in (*node.inputs, *node.outputs)]
        unable = next((d for d in dtypes if not self.target.emits(d)), None)
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
        if unable is not None:
            return Choice("callback", f"{unable.name} is not emitted")
        if any(value.weak is complex for value in node.inputs):
            return Choice("callback", "a complex number is passed at run time")
        if decl.kind == "custom":
            return self._custom(node)
        if decl.kind == "random":
            native = self.target.native(node)
            return (
                Choice("callback", "a random has no emitted kernel")
                if native is None
                else Choice("native", native)
            )
        native = self.target.native(node) if decl.kind in ("gather", "scatter", "scan") else None
        if native is not None:
            return Choice("native", native)
        if self.pieces(node):
            return Choice("pieces", "each part is written where it belongs")
        if self.target.absorbs and range_of(node) is not None:
            return Choice("range", "its numbers are counted where they are read")
        return _fusable(node, self.target)

    def _custom(self, node: Node) -> Choice:
        """An operator from outside: by its kernel's language."""
        native = self.target.native(node)
        if native is not None:
            return Choice("native", native)
        function = user_function(node)
        if function is None:
            return Choice("callback", "its kernel is a Python function")
        if not isinstance(function, ScalarFunction):
            return Choice(
                "callback", f"the C function {function.signature} cannot be called from compiled code here"
            )
        given = [
            a if not isinstance(a, Value) else a.spec if a.weak is None else stand_in(a) for a in node.args
        ]
        why = scalar_reason(function, given, node.outputs[0].spec)
        if not why and any(
            _may_not_fit(a, dtype) for a, dtype in zip(node.args, function.params, strict=True)
        ):
            why = "an integer that is passed at run time may not fit"
        if why:
            return Choice("callback", f"its {function.language} function does not fit: {why}")
        return Choice("fused", f"a scalar function in {function.language}")

    def _view(self, node: Node) -> Choice | None:
        source, out = node.args[0], node.outputs[0]
        if not isinstance(source, Value) or source.weak is not None:
            return None
        root, layout = self.root(source)
        found = view_of(node, layout)
        if found is not None:
            self.roots[out] = root, found
            return Choice("view", f"strides {found.strides}, offset {found.offset}")
        fresh = view_of(node, contiguous(source.shape))
        if fresh is None or not fresh.is_contiguous or not self.target.emits(out.spec.dtype):
            return None
        return Choice("copy", "its elements have to move for that shape")


def _may_not_fit(argument: Any, dtype: DType) -> bool:
    """Whether an argument is an integer known at run time only, and narrower than what it is passed as."""
    weak = argument.weak if isinstance(argument, Value) else None
    return weak is int and dtype.is_integer and dtype is not int64


def _fusable(node: Node, target: Target) -> Choice:
    decl = node.op.decl
    if decl.is_elementwise:
        return _elementwise(node, target)
    if decl.reduce in FOLDS and decl.kind == "reduction":
        return Choice("reduction", f"{decl.reduce} over axes {reduced_axes(node)}")
    if decl.kind == "creation" and node.op.schema.name == "full":
        return _filled(node)
    if decl.kind in ("cast", "copy") and isinstance(node.args[0], (Value, *NUMBERS)):
        return Choice("fused", "a conversion" if decl.kind == "cast" else "a copy")
    return Choice("callback", f"a {decl.kind} has no emitted kernel")


def _elementwise(node: Node, target: Target) -> Choice:
    odd = [a for a in (*node.args, *node.kwargs.values()) if not isinstance(a, (Value, *NUMBERS))]
    if odd or node.kwargs:
        return Choice("callback", f"its body takes tensors and numbers, not {(odd or ['keywords'])[0]!r}")
    if not target.emits(body_dtype(node)):
        return Choice("callback", f"{body_dtype(node).name} is not emitted")
    return Choice("fused", "it has a scalar body")


def _filled(node: Node) -> Choice:
    if uniform_constant(node) is not None:
        return Choice("constant", f"{uniform_constant(node)!r} everywhere")
    return Choice("fused", "one value everywhere")


def body_dtype(node: Node) -> DType:
    """The dtype that the scalar body of an elementwise node runs in."""
    decl = node.op.decl
    args = [stand_in(a) if isinstance(a, Value) else a for a in node.args]
    return compute_dtype(node.op.schema.name, decl.result, decl.dtypes, args)


def reduced_axes(node: Node) -> tuple[int, ...]:
    """The axes that a reduction node reduces, sorted and not negative."""
    axis: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("axis")
    axes = (axis,) if isinstance(axis, int) else axis
    return normalize_axes(node.op.schema.name, axes, len(node.args[0].shape))


def uniform_constant(node: Node) -> bool | int | float | None:
    """The Python number that a node's result is filled with, or None if it is not filled with one."""
    if node.op.decl is None or node.op.decl.kind != "creation" or node.op.schema.name != "full":
        return None
    value = node.args[1]
    return value if isinstance(value, REALS) else None
