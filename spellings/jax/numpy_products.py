"""Products of ``jax.numpy`` with the keywords ``precision`` and ``preferred_element_type``.

There is one algorithm for each dtype, so ``precision`` changes nothing. With ``preferred_element_type`` the arguments
are converted to it before the product if it is the wider dtype, and the result has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..eager.tensor.construct import asarray
from ..operators.contraction import matmul as matrices
from ..operators.contraction import products
from ..operators.declare.shape_rules import promoted_dtype
from ..operators.elementwise.casting import astype
from ..registry.dtype_functions import promote_types
from ..registry.dtypes import as_dtype
from .keywords import extend_operator, is_number, to_dtype

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor, TensorLike


def _multiply(
    product: Callable[..., Tensor],
    a: TensorLike,
    b: TensorLike,
    preferred: DTypeLike | None,
    *options: object,
) -> Tensor:
    """The product of two tensors, in the preferred dtype if there is one."""
    if preferred is None:
        return product(a, b, *options)
    dtype, arguments = as_dtype(preferred), [x if is_number(x) else asarray(x) for x in (a, b)]
    wide = promote_types(promoted_dtype(product.__name__, arguments), dtype)
    one, other = (to_dtype(x, wide) for x in arguments)
    return astype(product(one, other, *options), dtype)


@extend_operator(matrices.matmul)
def matmul(
    a: TensorLike,
    b: TensorLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tensor:
    """The product of matrices, or of stacks of them.

    Args:
        a, b: tensors of one axis or more.
        precision: accepted for compatibility with JAX.
        preferred_element_type: the dtype of the result and of its sums; None: that of the arguments.

    Source: ``jax.numpy.matmul``.

    >>> import tandem.jax.numpy as jnp
    >>> x = jnp.ones((2, 2), jnp.float16)
    >>> jnp.matmul(x, x, preferred_element_type=jnp.float32).dtype
    tandem.float32
    """
    return _multiply(matrices.matmul, a, b, preferred_element_type)


@extend_operator(products.dot)
def dot(
    a: TensorLike,
    b: TensorLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tensor:
    """The product over the last axis of ``a`` and the last but one of ``b``; see :func:`matmul` for the keywords."""
    return _multiply(products.dot, a, b, preferred_element_type)


@extend_operator(products.vdot)
def vdot(
    a: TensorLike,
    b: TensorLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tensor:
    """The product of flattened tensors, the first conjugated; see :func:`matmul` for the keywords."""
    return _multiply(products.vdot, a, b, preferred_element_type)


@extend_operator(products.inner)
def inner(
    a: TensorLike,
    b: TensorLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tensor:
    """The product over the last axes of both tensors; see :func:`matmul` for the keywords."""
    return _multiply(products.inner, a, b, preferred_element_type)


@extend_operator(matrices.tensordot)
def tensordot(
    a: TensorLike,
    b: TensorLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tensor:
    """The product over several axes; see :func:`matmul` for the keywords.

    Args:
        a, b: tensors.
        axes: how many last axes of ``a`` and first ones of ``b``, or the axes of both.
        precision, preferred_element_type: as for :func:`matmul`.
    """
    return _multiply(matrices.tensordot, a, b, preferred_element_type, axes)
