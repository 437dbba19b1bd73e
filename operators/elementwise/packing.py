"""packbits and unpackbits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import INTEGERS, bool_, uint8
from ..creation.creation import arange, full
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from ..reductions.folds import sum
from ..shape.joining import concat
from ..shape.rearrange import flip, moveaxis
from ..shape.splitting import slice_axis
from ..shape.views import reshape
from .casting import cast

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ORDER = 'bitorder: ``"big"``: the first bit is the highest one, or ``"little"``: the lowest one.'
_RAISES = """OutOfBoundsError: there is no such axis.
    ValueArgumentError: another ``bitorder``."""


def _bits_last(name: str, self: Tensor, axis: int | None, bitorder: str) -> tuple[Tensor, int]:
    """The tensor, flattened without an axis, with the axis moved to the end; and the axis."""
    if bitorder not in ("big", "little"):
        raise ValueArgumentError(f"{name}: bitorder is 'big' or 'little', not {bitorder!r}")
    spec = spec_of(self)
    if axis is None:
        return reshape(self, (spec.size,)), 0
    along = normalize_axis(name, axis, len(spec.shape))
    return moveaxis(self, along, -1), along


def _weights(bitorder: str, device: str) -> Tensor:
    """The positions of the bits in a byte, as uint8."""
    numbers = cast(arange(8, device=device), uint8)
    return flip(numbers) if bitorder == "big" else numbers


@composite(
    "packbits(Tensor self, int? axis=None, str bitorder='big') -> Tensor",
    doc=make_docstring(
        "Eight bits packed into each byte.",
        f"""Args:
    self: a tensor of bools or integers; what is not 0 is a bit.
    axis: the axis to pack along, with zeros at its end; None: the tensor is flattened first.
    {_ORDER}

Returns:
    A tensor of uint8.

Raises:
    {_RAISES}
    DTypeError: neither bools nor integers.""",
        "td.packbits(td.asarray([1, 0, 0, 0, 0, 0, 1, 1, 1])) -> [131, 128]",
    ),
    reference="references.numpy_functions.packbits",
    samples="samples.elementwise.packbits_samples",
    errors="samples.elementwise.packbits_errors",
    dtypes=(bool_, *INTEGERS),
    method=False,
    spellings={"a": "self"},
)
def packbits(self: Tensor, axis: int | None, bitorder: str) -> Tensor:
    spec = spec_of(self)
    if spec.dtype.is_inexact:
        raise DTypeError(f"packbits: takes bools and integers, not {spec.dtype}")
    moved, along = _bits_last("packbits", self, axis, bitorder)
    bits = cast(cast(moved, bool_), uint8)
    missing = -bits.shape[-1] % 8
    if missing:
        bits = concat([bits, full((*bits.shape[:-1], missing), 0, dtype=uint8, device=spec.device)], -1)
    groups = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    packed = cast(sum(groups << _weights(bitorder, spec.device), -1), uint8)
    return packed if axis is None else moveaxis(packed, -1, along)


@composite(
    "unpackbits(Tensor self, int? axis=None, int? count=None, str bitorder='big') -> Tensor",
    doc=make_docstring(
        "The eight bits of each byte.",
        f"""Args:
    self: a tensor of uint8.
    axis: the axis to unpack along; None: the tensor is flattened first.
    count: the number of bits to return, with zeros behind them if there are fewer; negative: that many are cut off;
        None: all.
    {_ORDER}

Returns:
    A tensor of uint8 with zeros and ones.

Raises:
    {_RAISES}
    ShapeError: more bits are cut off than there are.
    DTypeError: not uint8.""",
        "td.unpackbits(td.asarray([131], dtype=td.uint8)) -> [1, 0, 0, 0, 0, 0, 1, 1]",
    ),
    reference="numpy.unpackbits",
    samples="samples.elementwise.unpackbits_samples",
    errors="samples.elementwise.unpackbits_errors",
    dtypes=(uint8,),
    method=False,
    spellings={"a": "self"},
)
def unpackbits(self: Tensor, axis: int | None, count: int | None, bitorder: str) -> Tensor:
    spec = spec_of(self)
    if spec.dtype is not uint8:
        raise DTypeError(f"unpackbits: takes uint8, not {spec.dtype}")
    moved, along = _bits_last("unpackbits", self, axis, bitorder)
    bits = (reshape(moved, (*moved.shape, 1)) >> _weights(bitorder, spec.device)) & 1
    flat = reshape(bits, (*moved.shape[:-1], moved.shape[-1] * 8))
    length = flat.shape[-1]
    wanted = length if count is None else count if count >= 0 else length + count
    if wanted < 0:
        raise ShapeError(f"unpackbits: cannot cut {-(count or 0)} of {length} bits off")
    if wanted > length:
        pad = full((*flat.shape[:-1], wanted - length), 0, dtype=uint8, device=spec.device)
        flat = concat([flat, pad], -1)
    result = slice_axis(flat, len(flat.shape) - 1, 0, wanted)
    return result if axis is None else moveaxis(result, -1, along)
