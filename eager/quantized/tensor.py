"""QuantizedTensor: a dense tensor of 8-bit integers with scales and zero points."""

from __future__ import annotations

import copy as copying
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

import numpy as np

from ... import lazy, pytree
from ...errors import UnsupportedError
from ...registry.dispatch.keys import DispatchKey
from ...registry.dtypes import DType
from ...registry.operator import operators
from ...registry.values import Device, TensorSpec
from ..autograd.autograd_meta import AutogradMeta
from ..autograd.node import Node
from ..meta.tensor import meta_tensor
from ..tensor.tensor import Tensor, require_grad, wrap

if TYPE_CHECKING:
    from ...eager.tensor.storage import Storage
    from ...registry.types import Args, Array, Function

lazy.module(".backends.cpu.kernels.sparse_quantized")  # registers the kernels of operators on the components

# Kind of device -> the key set of its quantized tensors; of the others, that of the CPU.
QUANTIZED_KEYS = {"cuda": 1 << DispatchKey.QuantizedCUDA}


class Scheme:
    """A quantization scheme: the integers represent ``scales * (integers - zero_points)``.

    There is one scale and one zero point for all elements, or one pair for each position along an axis.

    Attributes:
        scales, zero_points: read-only float64 and int64 arrays, 0-d or 1-d.
        axis: the axis, or None.
        cut_by: whether the quantized tensor required a gradient; ``backward`` then raises an error.
    """

    __slots__ = ("_key", "axis", "cut_by", "scales", "zero_points")

    def __init__(self, scales: object, zero_points: object, axis: int | None = None, cut_by: bool = False):
        self.scales, self.zero_points = np.array(scales, np.float64), np.array(zero_points, np.int64)
        self.scales.flags.writeable = self.zero_points.flags.writeable = False
        self.axis, self.cut_by = axis, cut_by
        self._key = (self.scales.tobytes(), self.zero_points.tobytes(), axis, cut_by)

    @property
    def name(self) -> str:
        """``per_tensor_affine`` or ``per_channel_affine``."""
        return "per_tensor_affine" if self.axis is None else "per_channel_affine"

    def on_axis(self, axis: int | None) -> Scheme:
        """The same scales for another axis."""
        return Scheme(self.scales, self.zero_points, axis, self.cut_by)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scheme) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[type[Scheme], Args]:
        return Scheme, (self.scales, self.zero_points, self.axis, self.cut_by)


def to_device_of(x: Tensor, array: Array) -> Tensor:
    """Convert scales or zero points to a tensor on the device of ``x``; on meta the result has no elements."""
    tensor = wrap(array)
    if x.device == "meta":
        return meta_tensor(tensor.spec)
    return tensor if x.device == "cpu" else tensor.to(x.device)


class QuantizedTensor(Tensor):
    """A tensor of affine 8-bit integers.

    Made by :func:`tandem.quantize_per_tensor` and :func:`tandem.quantize_per_channel`; its ``dtype`` is that of the
    integers.
    """

    __slots__ = ("_ints", "_scheme")
    _ints: Tensor
    _scheme: Scheme

    @property
    def shape(self) -> tuple[int, ...]:
        return self._ints.shape

    @property
    def dtype(self) -> DType:
        return self._ints.dtype

    @property
    def device(self) -> Device:
        return self._ints.device

    @property
    def spec(self) -> TensorSpec:
        return self._ints.spec

    @property
    def _strides(self) -> tuple[int, ...]:
        return self._ints._strides

    @property
    def storage_offset(self) -> int:
        return self._ints.storage_offset

    def storage(self) -> Storage:
        return self._ints.storage()

    def is_contiguous(self) -> bool:
        return self._ints.is_contiguous()

    @property
    def requires_grad(self) -> bool:
        return False

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    # -- the parts -------------------------------------------------------------------------------------------------
    @property
    def qscheme(self) -> str:
        """``per_tensor_affine`` or ``per_channel_affine``."""
        return self._scheme.name

    def int_repr(self) -> Tensor:
        """The integers, a dense tensor."""
        return self._ints

    def dequantize(self) -> Tensor:
        """The numbers, a dense float32 tensor."""
        scheme = self._scheme
        op = operators["quantized::dequantize"]
        ints = self._ints
        result: Tensor = op(
            ints, to_device_of(ints, scheme.scales), to_device_of(ints, scheme.zero_points), scheme.axis
        )
        if scheme.cut_by:
            reason = (
                "the numbers were quantized, and rounding has no useful derivative; quantize x.detach(), or train "
                "in floating point"
            )
            require_grad(result, AutogradMeta(Node(op, None, [], reason)))
        return result

    def q_scale(self) -> float:
        """The scale of a tensor that has one."""
        return float(self._one("q_scale").scales)

    def q_zero_point(self) -> int:
        """The zero point of a tensor that has one."""
        return int(self._one("q_zero_point").zero_points)

    def q_per_channel_scales(self) -> Tensor:
        """The scale of each channel, float64."""
        return wrap(self._many("q_per_channel_scales").scales)

    def q_per_channel_zero_points(self) -> Tensor:
        """The zero point of each channel, int64."""
        return wrap(self._many("q_per_channel_zero_points").zero_points)

    def q_per_channel_axis(self) -> int:
        """The axis of the channels."""
        return int(self._many("q_per_channel_axis").axis)  # type: ignore[arg-type]

    def _one(self, what: str) -> Scheme:
        if self._scheme.axis is not None:
            raise UnsupportedError(f"{what}: the tensor has a scale per channel; use q_per_channel_scales()")
        return self._scheme

    def _many(self, what: str) -> Scheme:
        if self._scheme.axis is None:
            raise UnsupportedError(f"{what}: the tensor has one scale; use q_scale() and q_zero_point()")
        return self._scheme

    # -- no numbers in memory --------------------------------------------------------------------------------------
    @property
    def _array(self) -> NoReturn:
        self._host("reading its memory")

    def _host(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"{what}: a quantized tensor holds integers that stand for numbers; use x.dequantize() for the numbers, "
            "x.int_repr() for the integers"
        )

    def requires_grad_(self, requires_grad: bool = True) -> QuantizedTensor:
        """Return the tensor for False; raise UnsupportedError for True, since integers have no gradient."""
        if requires_grad:
            self._host("requires_grad_(): integers have no gradient")
        return self

    def __dlpack_device__(self) -> NoReturn:
        self._host("DLPack export")

    # -- copies and text -------------------------------------------------------------------------------------------
    def _without_history(self) -> QuantizedTensor:
        scheme = self._scheme
        return quantized_tensor(self._ints.detach(), Scheme(scheme.scales, scheme.zero_points, scheme.axis))

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Function, Args]:
        return quantized_tensor, (self._ints, self._scheme)

    def __deepcopy__(self, memo: dict[int, object]) -> QuantizedTensor:
        memo[id(self)] = made = quantized_tensor(copying.deepcopy(self._ints, memo), self._scheme)
        return made

    def __copy__(self) -> QuantizedTensor:
        return self.__deepcopy__({})

    def __repr__(self) -> str:
        scheme = self._scheme
        numbers = repr(self.dequantize().detach())[7:-1] if type(self._ints) is Tensor else repr(self._ints)
        if scheme.axis is None:
            parts = [f"scale={float(scheme.scales)}", f"zero_point={int(scheme.zero_points)}"]
        else:
            parts = [f"scales={scheme.scales.tolist()}", f"zero_points={scheme.zero_points.tolist()}"]
            parts.append(f"axis={scheme.axis}")
        return f"tensor({', '.join([numbers, *parts, f'dtype=quantized {self.dtype}'])})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def quantized_tensor(ints: Tensor, scheme: Scheme) -> QuantizedTensor:
    """A quantized tensor of checked parts."""
    tensor = QuantizedTensor.__new__(QuantizedTensor)
    tensor._ints, tensor._scheme = ints, scheme
    tensor._keys = QUANTIZED_KEYS.get(ints.device.partition(":")[0], 1 << DispatchKey.QuantizedCPU)
    tensor._meta, tensor._storage = None, None
    return tensor


pytree.register_pytree_node(
    QuantizedTensor, lambda x: ((x._ints,), x._scheme), lambda scheme, ints: quantized_tensor(ints[0], scheme)
)
