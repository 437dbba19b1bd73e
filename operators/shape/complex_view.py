"""view_part: the real or the imaginary parts of complex numbers as a view, ``z.real`` and ``z.imag``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DTypeError
from ...registry.dtypes import complex64, complex128
from ...registry.values import TensorSpec
from ..declare.derivatives import Linear
from ..declare.docstrings import make_docstring
from ..declare.kinds import view
from ..declare.shape_rules import result_dtype, spec_of
from ..declare.view_spec import ViewLayout
from ..elementwise.arithmetic import mul

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Tensor
    from ..declare.batching import Batched, BatchInfo, Dims


def _shape_rule(self: TensorSpec, imaginary: bool) -> TensorSpec:
    spec = spec_of(self)
    if spec.dtype.kind != "c":
        raise DTypeError(f"view_part: elements of {spec.dtype} have no imaginary part")
    return TensorSpec(spec.shape, result_dtype("real", spec.dtype), spec.device)


def _rule(x: ViewLayout, imaginary: bool) -> ViewLayout:
    strides = tuple(2 * stride for stride in x.strides)
    return ViewLayout(x.sizes, strides, 2 * x.offset + imaginary, x.itemsize // 2)


def _kernel(xp: ArrayModule, self: Array, imaginary: bool) -> Array:
    return self.imag if imaginary else self.real


def _batched(info: BatchInfo, in_dims: Dims, self: Tensor, imaginary: bool) -> Batched:
    return info.call(self, imaginary), 0


view_part: OperatorFunction[Tensor] = view(
    "view_part(Tensor(a) self, bool imaginary) -> Tensor(a)",
    _rule,
    shape_rule=_shape_rule,
    kernel=_kernel,
    doc=make_docstring(
        "A view of the real or the imaginary parts of complex numbers, which `x.real` and `x.imag` return.",
        """Args:
    self: a complex tensor.
    imaginary: whether the imaginary parts are wanted.

Returns:
    A real tensor of the same shape, in the memory of ``self``: a write into it changes ``self``.

Raises:
    DTypeError: the elements are real.

Source: ``ndarray.real`` and ``torch.real``.""",
        "td.view_part(td.asarray([1 + 2j, 3 - 1j]), True) -> [2.0, -1.0]",
    ),
    reference="references.basic.view_part",
    dtypes=(complex64, complex128),
    derivative=Linear({"self": lambda g, imaginary: mul(g, -1j) if imaginary else g}),
    batching=_batched,
    samples="samples.shape.view_part_samples",
    errors="samples.shape.view_part_errors",
    method=False,
)
