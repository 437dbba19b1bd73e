"""Index maps of operators that read or write at integer positions, from their declared index specs."""

from __future__ import annotations

from ...errors import LoweringError
from ...named_tuple import NamedTuple
from ...operators.declare.shape_rules import normalize_axis
from ...registry import dtypes as dt
from ...tracer.graph import Node, Value
from ..layout import Layout
from .loop_ir import IndexedAxis, IndexMap


class IndexedAccess(NamedTuple):
    """The access of one node at integer positions.

    Attributes:
        source: the indexed tensor.
        indices: a tensor or an integer for each indexed axis.
        axis: the first indexed axis.
        rank: the number of axes of the indices after broadcasting.
        value: what is written; None for reads.
        combine: the node of the scalar IR that combines an element with the value; empty: the value replaces it.
    """

    source: Value
    indices: tuple[Value | int, ...]
    axis: int
    rank: int
    value: object = None
    combine: str = ""

    @property
    def stop(self) -> int:
        """The axis after the last indexed one."""
        return self.axis + len(self.indices)

    def index_map(self, buffer: str, layout: Layout, op: str) -> IndexMap:
        """The indexed axes of the source, whose layout in its buffer is given."""
        axes = (
            IndexedAxis(axis, layout.shape[axis], layout.strides[axis])
            for axis in range(self.axis, self.stop)
        )
        return IndexMap(buffer, tuple(axes), op, tuple(self.source.shape))


def find_indexed_access(node: Node) -> IndexedAccess | None:
    """The access of a node whose operator declares an index spec; None for others, and for indices of other forms."""
    spec = getattr(node.op.decl, "index_spec", None)
    if spec is None:
        return None
    source, indices, *rest = node.args
    value = rest.pop(0) if spec.writes else None
    if not isinstance(source, Value) or not all(
        isinstance(one, Value) or type(one) is int for one in indices
    ):
        return None
    axis = normalize_axis(node.op.schema.name, rest[0] if rest else 0, len(source.shape))
    rank = max((len(one.shape) for one in indices if isinstance(one, Value)), default=0)
    combine = spec.combine(**node.kwargs)
    if combine == "mul" and source.spec.dtype is dt.bool_:
        combine = "minimum"
    return IndexedAccess(source, tuple(indices), axis, rank, value, combine)


def indexed_access(node: Node) -> IndexedAccess:
    """The access of a node that the kernel selection has chosen to compile.

    Raises:
        LoweringError: it has none.
    """
    access = find_indexed_access(node)
    if access is None:
        raise LoweringError(f"{node.op.name} does not read or write at integer positions")
    return access


def explain_indexed_access(node: Node, checks_empty: bool = True) -> str | None:
    """Why an access is not compiled to an index map; None if it is.

    Args:
        node: a node whose operator declares an index spec.
        checks_empty: whether positions are checked where nothing is selected.
    """
    access = find_indexed_access(node)
    if access is None:
        return "its indices are neither tensors nor integers"
    shape = access.source.shape
    if checks_empty and not all(shape):
        return "positions are checked, but nothing is selected"
    if access.combine and access.combine != "add" and access.source.spec.dtype.kind == "c":
        return "complex numbers are combined by NumPy"
    if access.combine in ("minimum", "maximum") and access.source.spec.dtype in dt.HALVES:
        return "NumPy orders zeros of 16-bit floats otherwise"
    return None


def aligned_inputs(node: Node, rank: int) -> list[tuple[Value, int]]:
    """The operands that a node reads at the point that it computes, each with the axis of its first axis.

    Args:
        node: a node that iterates over ``rank`` axes.
        rank: the number of these axes.
    """
    access = find_indexed_access(node)
    if access is None:
        return [(value, rank - len(value.shape)) for value in node.inputs]
    last = access.axis + access.rank
    return [(one, last - len(one.shape)) for one in access.indices if isinstance(one, Value)]


def unaligned_inputs(node: Node) -> tuple[Value, ...]:
    """The operands that a node reads at other points than the one that it computes: they have to be in memory."""
    access = find_indexed_access(node)
    return () if access is None else (access.source,)
