"""Native runtime: 16-bit floats. A bfloat16 is its bits, u16."""

from __future__ import annotations

from typing import TypeAlias

from ..compiler.dsl import f32, i32, i64, load, native, ptr, stack, store, template, u32

H: TypeAlias = float  # float16, or the bits of a bfloat16
BFLOAT16: i64 = template(0)  # 1: H is the bits of a bfloat16


@native
def load_half(p: ptr) -> f32:
    return widen_bfloat16(i32(load(H, p, 0))) if BFLOAT16 else f32(load(H, p, 0))


@native
def store_half(p: ptr, value: f32) -> None:
    if BFLOAT16:
        store(H, p, 0, H(round_bfloat16(value)))
    else:
        store(H, p, 0, H(value))


@native
def widen_bfloat16(bits: i32) -> f32:
    """Convert bfloat16 bits to float32."""
    where = stack(4)
    store(i32, where, 0, bits << 16)
    return load(f32, where, 0)


@native
def round_bfloat16(value: f32) -> i32:
    """Return the bits of the nearest bfloat16, ties to even."""
    where = stack(4)
    store(f32, where, 0, value)
    bits = load(u32, where, 0)
    near = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return i32((bits >> 16) | 0x40 if value != value else near)
