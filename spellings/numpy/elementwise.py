"""Elementwise functions with NumPy's arguments and dtypes: reciprocal of integers, nan_to_num with ``copy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor.interop import numpy_protocols
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError
from ..operators.declare.shape_rules import is_tensor, spec_of
from ..operators.elementwise import arithmetic, elementary
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import eq
from ..operators.elementwise.selection import where
from ..registry.dtypes import bool_, int8
from .array_likes import name_operator
from .creation import asarray

if TYPE_CHECKING:
    from ..registry.types import TensorLike


_OPTIONS = frozenset(("where", "dtype", "casting", "order", "subok"))


def reciprocal(x: TensorLike, /, out: Tensor | None = None, **options: Any) -> Tensor:  # noqa: ANN401
    """One over each element; of integers, the integer part: 0, but for 1 and -1.

    Args:
        x: a tensor of any shape and dtype.
        out: a tensor of the result's shape and dtype that is written and returned.
        options: those of ufuncs: ``where``, ``dtype``, ``casting``.

    Returns:
        A tensor of the same shape and dtype; int8 for bools. The reciprocal of the integer 0 is 0.

    Raises:
        ArgumentError: there is no such option, or ``out`` is not a tensor.

    Source: ``numpy.reciprocal``.

    >>> import tandem.numpy as np
    >>> np.reciprocal([1, 2, -1]).tolist(), np.reciprocal(2.0).item()
    ([1, 0, -1], 0.5)
    """
    if type(x) is Tensor and x.dtype.is_inexact and out is None and not options:
        return arithmetic.reciprocal(x)
    if not options.keys() <= _OPTIONS:
        raise ArgumentError(f"reciprocal has no argument {min(options.keys() - _OPTIONS)!r}")
    if out is not None and not is_tensor(out):
        raise ArgumentError(f"reciprocal: out must be a tensor, not {type(out).__name__}")
    given = asarray(x)
    if spec_of(given).dtype.is_inexact or options.get("dtype") is not None:
        if options:
            result: Tensor = numpy_protocols.apply_ufunc(  # type: ignore[assignment]
                np.reciprocal, "__call__", (given,), options | {"out": out}
            )
            return result
        return arithmetic.reciprocal(given) if out is None else arithmetic.reciprocal(given, out=out)
    if spec_of(given).dtype is bool_:
        given = astype(given, int8)
    whole: Tensor = where(eq(arithmetic.abs(given), 1), given, 0)
    mask = options.get("where", True)
    if mask is not True:
        whole = where(mask, whole, 0 if out is None else out)
    return whole if out is None else out.copy_(whole)


vars(reciprocal).update({name: getattr(np.reciprocal, name) for name in ("nin", "nout", "nargs", "identity")})


@name_operator(elementary.nan_to_num, "copy", takes_none=True, most=1)
def nan_to_num(
    x: Tensor,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Numbers in place of NaN and infinities.

    Args:
        x: a tensor of any dtype and shape.
        copy: whether the result is a new tensor; False: ``x`` is written and returned.
        nan: the replacement of NaN.
        posinf, neginf: the replacements of the infinities; None: the largest and the smallest number of the dtype.

    Source: ``numpy.nan_to_num``.

    >>> import tandem.numpy as np
    >>> x = np.array([1.0, np.nan])
    >>> np.nan_to_num(x, copy=False) is x, x.tolist()
    (True, [1.0, 0.0])
    """
    result = elementary.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    return result if copy or result is x else x.copy_(result)
