"""Views of meta tensors: the layout that the rule of an operator's declaration returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...operators.declare.view_spec import ViewLayout
from ...registry.dtypes import DType
from ...registry.operator import Operator
from .tensor import MetaTensor, meta_view

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs


def view_meta(op: Operator, x: MetaTensor, dtype: DType, args: Args, kwargs: Kwargs) -> MetaTensor | None:
    """The view that an operator returns of a meta tensor; None if its elements would be copied.

    Args:
        op: a view operator with a rule, or ``contiguous``.
        x: the tensor.
        dtype: the dtype of the view.
        args, kwargs: the other arguments.
    """
    if op.name == "td::contiguous":
        return x._alias() if x.is_contiguous() else None
    base = ViewLayout(x.shape, x._strides, x.storage_offset, x.dtype.itemsize)
    layout = op.decl.view(base, *args, **kwargs)
    return None if layout is None else meta_view(x, dtype, layout.sizes, layout.strides, layout.offset)


def may_view(op: Operator) -> bool:
    """Whether :func:`view_meta` knows an operator."""
    return getattr(op.decl, "view", None) is not None or op.name == "td::contiguous"
