"""The provider of convolution loops: one loop for each number of axes; each call has the words of its geometry."""

from __future__ import annotations

import ctypes
import math

from ....named_tuple import NamedTuple
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ..codegen.shifted_tiles import tile_vectors
from ..codegen.small_product import tile_heights
from ..fastpath.compiler import engine
from ..fastpath.compiler.structs import fields_of, sizeof
from ..fastpath.glue.products import compile_product
from ..fastpath.runtime.rt_loops import Failures
from ..target import vector_target
from . import convolution_tiles, rt_convolution, rt_geometry, rt_planes
from .convolution_tiles import add_shifted_tiles, add_window_tiles
from .loop_code import compile_function, compile_together
from .providers import Loop
from .tables import parse_signature

SHIFTED = 4  # how much quicker it is to copy shifted planes than windows
MOST_SHIFTED = 512  # channels of a group
MOST_STRIDE = 4  # of shifted planes
ITEMS = 1 << 17  # elements of the shifted planes of items at a time
NEAR_PLANES = 1 << 13  # elements of planes that are read again and again: those of the first cache
LEAST_DEPTH = 128  # taps at a time, so that loading and storing sums takes little
COPY = 32  # multiplications that take as long as copying an element of a plane
VECTOR = 16  # elements of the result that are computed together
LEAST_SHIFTED = 32  # elements of a channel of the result
LEAST_COLUMNS = 6  # channels of a group of the result that are columns of windows
LEAST_WINDOW = 16  # elements of a window that is read in place
PLANES = 1 << 16  # elements of the planes of windows at a time
SUMS = 1 << 17  # elements of the sums of windows at a time, which are read for each channel
BLOCK = 1 << 20  # elements of the unfolded input at a time
AXES = "sizes kernel out stride before input_dilation dilation phases lengths".split()
TILED = (rt_convolution.SHIFTED, rt_convolution.WINDOWS)  # modes whose products are not those of matrices
SIGNATURES = {
    1: "(c,x),(o,i,r)->(o,u)",
    2: "(c,x,y),(o,i,r,s)->(o,u,v)",
    3: "(c,x,y,z),(o,i,r,s,t)->(o,u,v,w)",
}


class Sizes(NamedTuple):
    """The numbers in the name of a call, each axis as one number in a tuple."""

    groups: int
    channels: int
    of_group: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    out: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    input_dilation: tuple[int, ...]
    dilation: tuple[int, ...]


def parse_sizes(name: str) -> Sizes:
    """Parse the name of a call.

    >>> parse_sizes("1,3,4,8x8,3x3,6x6,1x1,0x0,1x1,1x1").kernel
    (3, 3)
    """
    first, *rest = [tuple(map(int, part.split("x"))) for part in name.split(",")]
    (channels,), (of_group,), *axes = rest
    return Sizes(first[0], channels, of_group, *axes)


def choose_mode(s: Sizes) -> int:
    """Choose how a convolution is computed.

    The windows of the input become columns, or, where kernels are larger than results, rows of a matrix; or the
    products of each element of the input are added to the result, which skips the zeros of a dilated input. Where
    results are not tiny, the planes of the input are multiplied where they are, shifted.
    """
    if is_shiftable(s):
        return rt_convolution.SHIFTED
    gathered = s.channels * math.prod(s.out)
    scattered = 2 * s.of_group * s.groups * math.prod(s.sizes)
    # windows of the size of the input are the input itself, shifted, and quick to copy
    price = SHIFTED if s.out == s.sizes else 1
    if max(s.input_dilation) > 1 or (max(s.stride) == 1 and price * scattered < gathered):
        return rt_convolution.SCATTER
    if math.prod(s.kernel) <= math.prod(s.out):
        return rt_convolution.COLUMNS
    is_wide = s.of_group >= LEAST_COLUMNS and math.prod(s.kernel) >= LEAST_WINDOW
    return rt_convolution.WINDOWS if is_wide and len(s.sizes) < 3 else rt_convolution.ROWS


def is_shiftable(s: Sizes) -> bool:
    """Return whether products of shifted planes are the quickest: few phases, and few columns too many."""
    is_plain = len(s.sizes) < 3 and max(s.input_dilation) == 1
    if not is_plain or s.channels // s.groups > MOST_SHIFTED:
        return False
    if max(s.stride) > 1 and (max(s.stride) > MOST_STRIDE or max(s.dilation) > 1):
        return False
    reach = (s.kernel[-1] - 1) * s.dilation[-1]
    return reach // s.stride[-1] <= s.out[-1] and math.prod(s.out) >= LEAST_SHIFTED


class Planes(NamedTuple):
    """The planes of a channel of the input that are copied: along each axis, how many, and their elements."""

    phases: list[int]
    lengths: list[int]

    @property
    def size(self) -> int:
        """The elements of the planes of a channel."""
        return math.prod(self.phases) * math.prod(self.lengths)


def find_shifted_planes(s: Sizes, dense: bool) -> Planes:
    """Return the planes of the mode SHIFTED: one for each phase or, if they are dense, each column of the kernel."""
    reach = [(k - 1) * d for k, d in zip(s.kernel, s.dilation, strict=True)]
    phases = [min(step, r + 1) for step, r in zip(s.stride, reach, strict=True)]
    lengths = [n + r // step for n, r, step in zip(s.out, reach, s.stride, strict=True)]
    if dense:
        phases[-1], lengths[-1] = s.kernel[-1], s.out[-1]
    return Planes(phases, lengths)


def find_padded_planes(s: Sizes) -> Planes:
    """Return the planes of the mode WINDOWS."""
    ends = zip(s.out, s.stride, s.kernel, s.dilation, strict=True)
    return Planes([1] * len(s.out), [(out - 1) * step + (k - 1) * d + 1 for out, step, k, d in ends])


def find_planes(s: Sizes, mode: int) -> Planes:
    """Return the planes of a mode; other modes than SHIFTED and WINDOWS copy none."""
    return find_shifted_planes(s, is_dense(s)) if mode == rt_convolution.SHIFTED else find_padded_planes(s)


def count_positions(s: Sizes, planes: Planes) -> int:
    """Return the positions of a channel of the result in rows of the length of a plane's."""
    return (math.prod(s.out[:-1]) - 1) * planes.lengths[-1] + s.out[-1]


def shifted_planes(s: Sizes, dense: bool) -> tuple[int, int]:
    """Return the elements of the planes of a channel, and the positions of one of the result, with those too many."""
    planes = find_shifted_planes(s, dense)
    return planes.size, -(-count_positions(s, planes) // VECTOR) * VECTOR


def is_dense(s: Sizes) -> bool:
    """Return whether fewer positions are worth more copies: whether planes have the width of the result."""
    planes, positions = shifted_planes(s, False)
    more, fewer = shifted_planes(s, True)
    return s.of_group * math.prod(s.kernel) * (positions - fewer) > COPY * (more - planes)


def block_depth(s: Sizes) -> int:
    """Return the number of taps of shifted planes at a time."""
    planes, kernel, within = shifted_planes(s, is_dense(s))[0], math.prod(s.kernel), s.channels // s.groups
    depth = max(1, NEAR_PLANES // planes) * kernel
    return min(within * kernel, depth) if depth >= LEAST_DEPTH else within * kernel


def block_size(s: Sizes) -> int:
    """Return the number of items at a time, in the modes that compute several."""
    if choose_mode(s) == rt_convolution.SHIFTED:
        planes, positions = shifted_planes(s, is_dense(s))
        return max(1, ITEMS // (s.channels // s.groups * planes + s.of_group * positions))
    if choose_mode(s) == rt_convolution.WINDOWS:
        return max(1, min(PLANES // find_padded_planes(s).size, SUMS // (math.prod(s.out) * s.of_group)))
    within = s.channels // s.groups
    return max(1, BLOCK // (s.groups * within * math.prod(s.kernel) * math.prod(s.out)))


def make_geometry(s: Sizes) -> tuple[int, ...]:
    """Return the words of a ``Geometry``."""
    cls: type = rt_geometry.Geometry
    within, indices = s.channels // s.groups, math.prod(s.out)
    taps, mode = within * math.prod(s.kernel), choose_mode(s)
    planes = find_planes(s, mode)
    single = {
        "rank": len(s.sizes),
        "block": block_size(s),
        "depth": block_depth(s),
        "dense": int(is_dense(s)),
        "groups": s.groups,
        "within": within,
        "of_group": s.of_group,
        "taps": taps,
        "indices": indices,
        "positions": count_positions(s, planes),
    }
    words = [0] * (sizeof(cls) // 8)
    for name, value in single.items():
        words[fields_of(cls)[name].offset // 8] = value
    axes = s._asdict() | planes._asdict()
    for name in AXES:
        start = fields_of(cls)[name].offset // 8
        neutral = int(name != "before")
        words[start : start + 3] = [neutral] * (3 - len(s.out)) + list(axes[name])
    return tuple(words)


def split_name(name: str) -> tuple[str, tuple[int, ...]]:
    """Return the name of the loop of a call, and the words of its geometry.

    The name has the number of axes and the mode, then the channels that tiles compute and their positions, or 1 if
    matrices of one row or column may be multiplied.
    """
    sizes = parse_sizes(name)
    mode = choose_mode(sizes)
    vectors = 1 in (sizes.of_group, math.prod(sizes.out), math.prod(sizes.sizes))
    detail = [sizes.of_group] if mode in TILED else [int(vectors)]
    if mode == rt_convolution.SHIFTED:
        detail.append(count_positions(sizes, find_planes(sizes, mode)))
    return ",".join(map(str, (len(sizes.sizes), mode, *detail))), make_geometry(sizes)


def find(name: str, dtypes: tuple[DType, ...]) -> Loop | str | None:
    """Return the loop for float32 or float64; None for other dtypes, the reason if there is none."""
    dtype, (axes, mode, *detail) = dtypes[0], map(int, name.split(","))
    if dtype not in (dt.float32, dt.float64) or len(set(dtypes)) != 1:
        return None
    symbol = f"tandem_convolve_{mode}_{dtype.name}"
    if mode in TILED:
        is_shifted = mode == rt_convolution.SHIFTED
        has_tiles = add_shifted_tiles(dtype, *detail) if is_shifted else add_window_tiles(dtype, *detail)
        code = compile_convolution(dtype, mode) if has_tiles else None
    else:
        symbol += "_vectors" * detail[0]
        code = compile_convolution(dtype, mode, vectors=bool(detail[0]))
    if code is None:
        return "it cannot be compiled, or there is no BLAS"
    return Loop(symbol, code["loop"], 0, parse_signature(SIGNATURES[axes]), Failures.NEVER, False)


@engine.KeepFirst
def compile_convolution(dtype: DType, mode: int, vectors: bool = False) -> engine.Code | None:
    """Return the code of convolutions of a mode, which needs its tiles in the table; None if there is none."""
    types, size = (("T", "f64" if dtype is dt.float64 else "f32"),), ("SIZE", dtype.itemsize)
    functions = (("copy_plane", rt_planes.copy_plane), ("copy_lines", rt_planes.copy_lines))
    copies = compile_together("copies of planes", functions, types, (size,), (), engine.Passes.CLEAN)
    if copies is None:
        return None
    needed: dict[str, engine.Code | None] = {}
    if mode == rt_convolution.WINDOWS:
        needed["transpose"] = convolution_tiles.compile_transpose(dtype)
    elif mode != rt_convolution.SHIFTED:
        needed["multiply_matrices"] = compile_product(dtype, vectors)
    imports = {"convolution_tiles": ctypes.addressof(convolution_tiles.tile_table(dtype)), **copies}
    for symbol, code in needed.items():
        if code is None:
            return None
        imports[symbol] = code["loop"]
    constants = (
        size,
        ("MODE", mode),
        ("TALLEST", max(tile_vectors())),
        ("WIDEST", max(tile_heights())),
        ("VECTOR", vector_target().vector_bytes),
    )
    passes = engine.Passes.QUICK if mode in TILED else engine.Passes.CLEAN
    function, given = rt_convolution.convolve, tuple(imports.items())
    return compile_function("convolve", function, types, constants, given, passes)
