"""``vectorize``: a function of elements as a function of tensors, with NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ..eager.tensor.tensor import Tensor
from ..errors import ConcretizationError, ValueArgumentError
from ..operators.declare.shape_rules import is_tensor
from ..registry.dtypes import DType, as_dtype
from ..transforms import numpy_maps
from .creation import asarray, replace_type


class vectorize:
    """A function of tensors from a function of their elements.

    The function is mapped by ``td.vmap``, so that it is called once. If it needs values, for instance for an ``if`` or
    for a function of ``math``, it is called for each element with numbers of Python, as by NumPy.

    Args:
        pyfunc: the function; None: the result is a decorator.
        otypes: the dtypes of the results: a list of dtypes, or a string of NumPy's characters; None: those of the
            results of the first call.
        doc: the docstring of the result; None: that of the function.
        excluded: positions and names of arguments that are passed as they are; named arguments always are.
        cache: accepted for compatibility with NumPy.
        signature: the core axes, such as ``"(m,n),(n)->(m)"``, which the function gets whole; None: it gets elements.

    Raises:
        ConcretizationError: the function needs values of tensors that are traced, or that require a gradient.
        ValueArgumentError: there are no elements and no ``otypes``, and the function needs values.

    >>> import tandem.numpy as np
    >>> np.vectorize(lambda a: 1 if a > 0 else -1)([2.0, -3.0]).tolist()
    [1, -1]

    Source: ``numpy.vectorize``.
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any] | None = None,
        otypes: str | Sequence[Any] | None = None,
        doc: str | None = None,
        excluded: Collection[int | str] | None = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.otypes = None if otypes is None else [_to_dtype(kind) for kind in otypes]
        self.excluded, self.signature = frozenset(excluded or ()), signature
        self.cache, self._doc = cache, doc
        if pyfunc is not None:
            self._wrap(pyfunc)

    def _wrap(self, pyfunc: Callable[..., Any]) -> None:
        self.pyfunc = pyfunc
        self._mapped = numpy_maps.vectorize(pyfunc, excluded=self.excluded, signature=self.signature)
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")
        self.__doc__ = getattr(pyfunc, "__doc__", None) if self._doc is None else self._doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call the function for the elements of tensors that broadcast."""
        if "pyfunc" not in vars(self):
            self._wrap(*args)
            return self
        given = [value if at in self.excluded else asarray(value) for at, value in enumerate(args)]
        try:
            result = self._mapped(*given, **kwargs)
        except ConcretizationError:
            mapped = [value for at, value in enumerate(given) if at not in self.excluded]
            if self.signature is not None or not all(map(_has_values, mapped)):
                raise
            return self._call_for_each(given, kwargs)
        results = result if isinstance(result, tuple) else (result,)
        tensors: tuple[Any, ...] = tuple(part if is_tensor(part) else asarray(part) for part in results)
        if self.otypes is not None:
            tensors = tuple(part.astype(kind) for part, kind in zip(tensors, self.otypes))
        return tensors if isinstance(result, tuple) else tensors[0]

    def _call_for_each(self, given: Sequence[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """Call the function for each element, with numbers of Python."""
        mapped = [at for at in range(len(given)) if at not in self.excluded]
        arrays = np.broadcast_arrays(*[given[at].numpy() for at in mapped])
        shape = arrays[0].shape
        results: list[Any] = []
        whole = list(given)
        for values in zip(*[array.ravel().tolist() for array in arrays]):
            for at, value in zip(mapped, values):
                whole[at] = value
            results.append(self.pyfunc(*whole, **kwargs))
        if results and isinstance(results[0], tuple):
            return tuple(self._join(column, shape, at) for at, column in enumerate(zip(*results)))
        if not results and self.otypes is not None and len(self.otypes) > 1:
            return tuple(self._join((), shape, at) for at in range(len(self.otypes)))
        return self._join(results, shape, 0)

    def _join(self, values: Sequence[Any], shape: tuple[int, ...], position: int) -> Tensor:
        """One tensor of numbers, in the dtype of the first one unless ``otypes`` has another."""
        if self.otypes is None and not values:
            raise ValueArgumentError(
                "vectorize: without elements, the dtypes of the results are needed: otypes="
            )
        kind = asarray(values[0]).dtype if self.otypes is None else self.otypes[position]
        numbers = [value.item() if isinstance(value, Tensor) else value for value in values]
        return asarray(np.array(numbers, dtype=kind.np).reshape(shape))


def _to_dtype(kind: Any) -> DType:  # noqa: ANN401
    return as_dtype(np.dtype(kind)) if isinstance(kind, str) else as_dtype(replace_type(kind))


def _has_values(x: Any) -> bool:  # noqa: ANN401
    """Whether a tensor's elements are known, and calls with them may leave the graph of gradients."""
    return type(x) is Tensor and not x.requires_grad
