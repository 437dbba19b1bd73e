"""Prewritten kernels in CUDA C: indexing (:mod:`.position_sources`), filling, counting, searching, random bits."""

from __future__ import annotations

from ..codegen.kernel import CudaKernel
from . import position_sources

THREADS = 256
BLOCKS = 1 << 16
"""The most blocks of a launch; each thread then takes several elements."""

EACH_LOOP = """\
#define EACH(i, count)                                                                    \\
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (count);     \\
         i += (long long)gridDim.x * blockDim.x)
"""

_PAIR = """\
struct Pair {
    unsigned long long low, high;
};
"""

_FILL = """\
extern "C" __global__ void fill_{size}({type}* __restrict__ out, long long count, const {type} value) {{
    EACH(i, count) out[i] = value;
}}
"""

_COUNT = """\
// start + i * step, in the widest type
extern "C" __global__ void count_up_{name}({type}* __restrict__ out, long long count, {type} start, {type} step) {{
    EACH(i, count) out[i] = start + ({type})({wide})i * step;
}}
"""

_NONZERO = """\
// order: how many elements up to each are not zero
extern "C" __global__ void nonzero_places(long long* __restrict__ out, const long long* __restrict__ order,
                                          long long count, long long size, const Segment shape) {
    EACH(i, count) {
        const long long number = order[i] - 1;
        if (number < 0 || number >= size || (i ? order[i - 1] : 0) > number) continue;
        long long rest = i;
        for (int d = (int)shape.rank - 1; d >= 0; --d) {
            out[d * size + number] = rest % shape.sizes[d];
            rest /= shape.sizes[d];
        }
    }
}
"""

_PICK = """\
// the number of bounds that are not above x, at most the last index
extern "C" __global__ void pick_{name}(long long* __restrict__ out, const {type}* __restrict__ bounds,
                                       const {type}* __restrict__ x, long long count, long long size,
                                       long long per_row) {{
    EACH(i, count) {{
        const {type}* row = bounds + i / per_row * size;
        const {type} given = x[i];
        long long low = 0, high = size;
        while (low < high) {{
            const long long middle = (low + high) / 2;
            if (given < row[middle] || (row[middle] != row[middle] && given == given)) high = middle;
            else low = middle + 1;
        }}
        out[i] = low < size ? low : (size ? size - 1 : 0);
    }}
}}
"""

_PHILOX = """\
// ---- Philox4x32-10 ----
__device__ inline void philox(unsigned* word, unsigned key0, unsigned key1) {
    for (int round = 0; round < 10; ++round) {
        const unsigned long long one = (unsigned long long)word[0] * 0xD2511F53u;
        const unsigned long long two = (unsigned long long)word[2] * 0xCD9E8D57u;
        const unsigned first = (unsigned)(two >> 32) ^ word[1] ^ key0, third = (unsigned)(one >> 32) ^ word[3] ^ key1;
        word[1] = (unsigned)two;
        word[3] = (unsigned)one;
        word[0] = first;
        word[2] = third;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

__device__ inline void block_of(unsigned* word, const unsigned* key, unsigned long long number, unsigned use) {
    word[0] = (unsigned)number;
    word[1] = ((unsigned)(number >> 32) & 0x3FFFFFFFu) | use << 30;
    word[2] = key[2];
    word[3] = key[3];
    philox(word, key[0], key[1]);
}

// the first `each` words of the stream of each key
extern "C" __global__ void philox_words(unsigned* __restrict__ out, const unsigned* __restrict__ keys,
                                        long long blocks, long long per_key, long long each, unsigned use) {
    EACH(i, blocks) {
        const long long row = i / per_key, number = i % per_key;
        unsigned word[4];
        block_of(word, keys + 4 * row, (unsigned long long)number, use);
        for (int w = 0; w < 4; ++w)
            if (4 * number + w < each) out[row * each + 4 * number + w] = word[w];
    }
}

extern "C" __global__ void philox_fold(unsigned* __restrict__ out, const unsigned* __restrict__ keys,
                                       const unsigned long long* __restrict__ numbers, long long count,
                                       unsigned use) {
    EACH(i, count) block_of(out + 4 * i, keys + 4 * i, numbers[i], use);
}

extern "C" __global__ void philox_key(unsigned* __restrict__ out, const unsigned long long* __restrict__ seeds,
                                      long long count) {
    EACH(i, count) {
        out[4 * i] = (unsigned)seeds[i];
        out[4 * i + 1] = (unsigned)(seeds[i] >> 32);
        out[4 * i + 2] = out[4 * i + 3] = 0;
    }
}
"""

TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long", 16: "Wide"}
"""Size in bytes -> the type in which elements are moved, and to which they are aligned."""
NUMBERS = {
    "int32": "int",
    "int64": "long long",
    "uint32": "unsigned",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
ADDED = {"uint32": "unsigned", "uint64": "unsigned long long", "float32": "float", "float64": "double"}


_PARTS = {
    "EACH": EACH_LOOP,
    "SEGMENT": position_sources.SEGMENT,
    "INDICES": position_sources.INDICES,
    "ROWS": position_sources.ROWS,
    "GATHER_ROWS": position_sources.GATHER_ROWS,
    "PUT_ROWS": position_sources.PUT_ROWS,
    "ORDER": position_sources.ORDER,
    "RUNS": position_sources.RUNS,
    "PAIR": _PAIR,
}
_ROWS = ("SEGMENT", "INDICES", "ROWS")
_ORDER = ("EACH", "SEGMENT", "INDICES", "ORDER")
_WHOLE = {
    "winners": (_ORDER[:3], position_sources.WINNERS),
    "nonzero_places": (("EACH", "SEGMENT"), _NONZERO),
    "philox_words": (("EACH",), _PHILOX),
    "philox_fold": (("EACH",), _PHILOX),
    "philox_key": (("EACH",), _PHILOX),
    "order_tile": (_ORDER, position_sources.ORDER_TILE),
    "order_words": (_ORDER, position_sources.ORDER_WORDS),
    "order_count": (_ORDER, position_sources.ORDER_COUNT),
    "order_sum": ((), position_sources.ORDER_SUM),
    "order_move": (_ORDER, position_sources.ORDER_MOVE),
}
_BY_SIZE = {
    "gather": ((*_ROWS, "GATHER_ROWS"), position_sources.GATHER),
    "scatter": ((*_ROWS, "PUT_ROWS"), position_sources.SCATTER),
    "fill": (("EACH", "PAIR"), _FILL),
}


def _by_combine(stem: str, text: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """The kernels that combine runs by adding and by multiplying."""
    parts = (*_ROWS, "ORDER", "RUNS")
    return {
        f"{stem}_{combine}": (parts, text.format(combine=combine, sign=sign, start=start))
        for combine, sign, start in (("add", "+", 0), ("mul", "*", 1))
    }


_BY_NAME = {
    "scatter_add": ((*_ROWS, "PUT_ROWS"), position_sources.ADD),
    **_by_combine("runs", position_sources.COMBINE_RUNS),
    **_by_combine("join", position_sources.JOIN_RUNS),
    "count_up": (("EACH",), _COUNT),
    "pick": (("EACH",), _PICK),
}


def kernel(name: str) -> CudaKernel:
    """The kernel with a name such as ``"gather_4"``, with the source of its helpers."""
    family, _, part = name.rpartition("_")
    if name in _WHOLE:
        parts, text = _WHOLE[name]
    elif family in _BY_SIZE:
        parts, text = _BY_SIZE[family]
        size = TYPES[int(part)] if family != "fill" or part != "16" else "Pair"
        text = text.format(size=part, type=size)
    else:
        parts, text = _BY_NAME[family]
        wide = "double" if part.startswith("float") else "long long"
        text = text.format(name=part, type=NUMBERS[part], wide=wide)
    shared = (f"#ifndef TANDEM_{one}\n#define TANDEM_{one}\n{_PARTS[one]}#endif" for one in parts)
    headers = ("runs",) if "RUNS" in parts else ("sort",) if name.startswith("order_") else ()
    return CudaKernel(name, "\n".join([*shared, text]), headers, (0, 1, 1), (THREADS, 1, 1), span=THREADS)
