"""The declaration of an operator: everything that tandem knows about it, in one place.

The dispatcher's layers, the backends, the documentation and the tests read declarations. The *kinds* (:mod:`.kinds`)
fill in the fields that operators of a kind have in common.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ...errors import UnsupportedError
from ...named_tuple import NamedTuple
from ...registry.dtypes import DType
from ...registry.function import OperatorFunction, make_function
from ...registry.lazy_operators import materialize_all
from ...registry.library import Library
from ...registry.operator import Operator, lock, operators
from .aliases import add_aliases
from .derivatives import Derivative

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from ..scalar_ir.fold import Fold
    from .native_kernel import Decomposition, NativeKernel
    from .view_spec import PieceSpec, ViewRule

    # The calls of a test: a function that returns them, or the dotted name of a generator in tests/harness/samples,
    # alone or in a tuple with further arguments. Samples are generated for a dtype.
    Samples: TypeAlias = str | tuple[Any, ...] | Callable[[DType], Iterable["SampleInput"]]
    Errors: TypeAlias = str | tuple[Any, ...] | Callable[[], Iterable["ErrorInput"]]

LIBRARY = Library("td", "DEF")

# Called with each operator that is declared: layers and backends register their kernels here.
_listeners: list[Callable[[Operator], object]] = []


class SampleInput(NamedTuple):
    """One call to test an operator with. The tests turn each :class:`TensorSample` in ``args`` into a tensor."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = {}


class TensorSample(NamedTuple):
    """The description of a random test tensor: shape, range of values and memory layout.

    Attributes:
        shape: the shape.
        low, high: interval of the values (clipped to the dtype's range).
        values: exact values instead, of length ``prod(shape)``, cast to the dtype.
        layout: one of ``LAYOUTS``; "reversed" has negative strides, "strided" is every second element.
        dtype: a dtype that overrides the one under test.
        distinct: whether all values differ (for derivatives of max, sort, ...).
    """

    shape: tuple[int, ...] = ()
    low: float = -3.0
    high: float = 3.0
    values: tuple[Any, ...] | None = None
    layout: str = "contiguous"
    dtype: DType | None = None
    distinct: bool = False


class ErrorInput(NamedTuple):
    """A call that must raise: arguments, exception class and part of its message."""

    args: tuple[Any, ...]
    error: type[Exception]
    match: str = ""
    kwargs: Mapping[str, Any] = {}


LAYOUTS = ("contiguous", "transposed", "reversed", "strided")  # of a TensorSample


class IndexSpec:
    """The access of a gather or scatter at integer positions, which lowering compiles from.

    The first arguments of such an operator are a tensor and index tensors for consecutive axes, then the value that is
    written, if it writes, and the first indexed axis. The result of a read, and the value, have the broadcast shape of
    the indices in the place of the indexed axes.

    Attributes:
        writes: whether the operator returns a copy with written elements; otherwise it returns the elements.
        combine: from the operator's keyword arguments to the node of the scalar IR that combines the old element with
            the value; an empty string if the value replaces it.
    """

    __slots__ = ("combine", "writes")

    def __init__(self, *, writes: bool = False, combine: Callable[..., str] = lambda: ""):
        self.writes, self.combine = writes, combine


class Declaration(NamedTuple):
    """One operator; two declarations are equal only if they are the same object.

    Attributes:
        schema: its schema, in PyTorch's language.
        kind: ``"unary" "binary" "comparison" "ternary" "reduction" "scan" "view" "cast" "copy" "join" "gather"
            "scatter" "contraction" "convolution" "creation" "composite" "random" "special" "integer"``.
        doc: its documentation.
        shape_rule: the shape and dtype rule: from the schema's arguments (tensors, specs, scalars) to one TensorSpec
            or a tuple of them.
        body: for elementwise kinds the scalar body, in :mod:`..scalar_ir`; for composites the body, in operators.
        number_body: for binary elementwise kinds: the body for a real Python number as second operand, if it differs.
        view: for views: the rule from the sizes, strides and offset of the tensor to those of the view, see
            :mod:`.view_spec`.
        kernel: for other kinds the array kernel ``kernel(xp, *arguments)``, with ``xp`` numpy or cupy; a view's kernel
            returns a view.
        eager_kernel: a faster array kernel for eager calls on plain CPU tensors: it replaces a composite's body, or
            another operator's shape rule and ``kernel``, and returns new arrays with the same elements. The others run
            the calls for which it returns NotImplemented, or raises IndexError, TypeError or ValueError.
        fold: for reductions and scans: how elements are combined.
        index_spec: for gathers and scatters at integer positions: how they access elements.
        piece_spec: for joins and writes of slices: the parts of the result that are copies of arguments.
        native: the C functions or emitted loops that compute the operator, see :mod:`.native_kernel`.
        decomposition: for other kinds than composites: the operator in terms of others, for compiled code, see
            :mod:`.native_kernel`.
        derivative: the derivative, or why there is none; None only for composites, whose body is differentiated.
        dtypes: the accepted dtypes of the first tensor argument.
        result: how the result's dtype follows from the promoted one: ``"same"``, ``"float"`` (integers become the
            default float), ``"bool"``, ``"real"`` (complex becomes its real type) or ``"complex"`` (the reverse).
        conditions: for elementwise kinds: bool arguments, which do not take part in promotion; a body accepts them as
            bools or as values of the promoted dtype, with zero for false.
        value_checked: for elementwise kinds: whether ``shape_rule`` rejects some Python integers by value (not only
            those that do not fit), so that calls with a Python integer stay in Python.
        reference: dotted name of the function that tests compare with: NumPy's, SciPy's, or one of
            ``tests/harness/references``, which gets tandem's dtypes; or a function of NumPy arrays. It is never
            derived from the body.
        samples, errors: the calls that the tests make: a function that returns them; or the dotted name of a generator
            in ``tests/harness/samples``, alone or in a tuple with further arguments.
        tolerance: relative tolerance by dtype name, where the kind's default is too strict.
        inplace: whether an in-place variant (``clip_``) exists; elementwise methods of a tensor have one anyway.
            ``"set"`` or ``"add"``: it writes the last argument, or adds it, at positions along an axis, the arguments
            before it.
        method: whether it is a method of Tensor.
        explicit: for composites: a trace records the operator itself (CompositeExplicit) instead of decomposing it.
        batching: how the Batched layer runs the operator on tensors with a batch axis in front, a rule of
            :mod:`.batching`; the elementwise kinds, reductions and scans supply theirs. None: run a composite's body,
            or loop over the examples.
        autocast: the Autocast layer's policy: ``"lower"`` (run in the lower precision), ``"float32"``, ``"promote"``
            (the widest dtype among the arguments), or empty: no casts.
        aliases: other public names of the operator's function and method.
        spellings: other names of arguments -> names in the schema, besides those that all operators accept
            (:mod:`...registry.schemas.spellings`).
        ignored: keywords of other libraries that calls may have, and that change nothing here.
        variadic: whether the last positional argument, a list, may also be given item by item; None: if it is the only
            list and has no default, as in ``reshape``. A str: calls with more positional arguments than the schema
            has are calls of the overload of this name: ``x.transpose(1, 2)`` with a list of ints, ``x.round(1)``.
        result_type: the named tuple that public functions and methods return; its fields are the results in the schema.
        effects: ``"random"``, ``"callback"``, ``"print"``, ``"mutation"``: such nodes are never merged, removed or
            reordered.
        idle_if: the name of a boolean scalar argument; where it is true, the kernel has no effect and no result.
    """

    schema: str
    kind: str
    doc: str
    shape_rule: Callable[..., Any] | None = None
    body: Callable[..., Any] | None = None
    number_body: Callable[..., Any] | None = None
    view: ViewRule | None = None
    kernel: Callable[..., Any] | None = None
    eager_kernel: Callable[..., Any] | None = None
    fold: Fold | None = None
    index_spec: IndexSpec | None = None
    piece_spec: PieceSpec | None = None
    native: NativeKernel | None = None
    decomposition: Decomposition | None = None
    derivative: Derivative | None = None
    dtypes: Sequence[DType] = ()
    result: str = "same"
    conditions: tuple[str, ...] = ()
    value_checked: bool = False
    reference: str | Callable[..., Any] = ""
    samples: Samples | None = None
    errors: Errors | None = None
    tolerance: Mapping[str, float] = {}
    inplace: bool | Literal["set", "add"] = False
    method: bool = True
    explicit: bool = False
    batching: Callable[..., Any] | None = None
    autocast: str = ""
    aliases: tuple[str, ...] = ()
    spellings: Mapping[str, str] = {}
    ignored: tuple[str, ...] = ()
    variadic: bool | str | None = None
    result_type: type[tuple[Any, ...]] | None = None
    effects: frozenset[str] = frozenset()
    idle_if: str = ""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return object.__hash__(self)

    @property
    def is_elementwise(self) -> bool:
        """Whether the operator has a scalar body."""
        return self.kind in ("unary", "binary", "comparison", "ternary")

    def body_with(self, number: bool) -> Callable[..., Any]:
        """The scalar body for calls whose second operand is a real Python number (``number``), or any other."""
        chosen = self.number_body if number else None
        if chosen is None:
            chosen = self.body
        if chosen is None:
            raise UnsupportedError(f"{self.schema} is not elementwise")
        return chosen


def declare(declaration: Declaration) -> OperatorFunction[Any]:
    """Enter a declaration into the registry.

    Returns:
        The operator's function object, which is also what users call.
    """
    LIBRARY.define(declaration.schema, declaration)
    add_aliases(declaration.schema.partition("(")[0].partition(".")[0], declaration.aliases)
    operator = next(op for op in reversed(operators.values()) if op.decl is declaration)
    operator.is_complete = False
    if declaration.kind == "composite" and declaration.body is not None:
        key = "CompositeExplicit" if declaration.explicit else "CompositeImplicit"
        LIBRARY.impl(operator, declaration.body, key)
    function = make_function(operator, clean_doc(declaration.doc))
    for listener in _listeners:
        listener(operator)
    operator.is_complete = True
    return function


def clean_doc(doc: str) -> str:
    """``inspect.cleandoc``; of docstrings without tabs in a tenth of its time."""
    if "\t" in doc:
        return inspect.cleandoc(doc).strip()
    indent = min(re.findall(r"\n( *)\S", doc), default="")
    return doc.replace("\n" + indent, "\n").strip()


def on_declaration(listener: Callable[[Operator], object]) -> None:
    """Call ``listener`` with every operator that is declared so far, and with each that is declared later."""
    with lock:
        for operator in _list_declared():
            listener(operator)
        _listeners.append(listener)


def declared_operators() -> list[Operator]:
    """All operators of the namespace ``td`` that have a declaration, in order of declaration."""
    materialize_all()
    return _list_declared()


def _list_declared() -> list[Operator]:
    return [
        operator
        for operator in list(operators.values())
        if isinstance(operator.decl, Declaration) and operator.schema.namespace == "td"
    ]
