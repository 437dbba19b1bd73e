"""The kernels that no scalar body describes, in CUDA C: gathering and scattering, filling, counting, random words."""

from __future__ import annotations

from .emit.kernel import CudaKernel

THREADS = 256
BLOCKS = 1 << 16
"""The most blocks of a launch; each thread then takes several elements."""

EACH_LOOP = """\
#define EACH(i, count)                                                                    \\
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (count);     \\
         i += (long long)gridDim.x * blockDim.x)
"""

_SEGMENT = """\
// ---- some dimensions of an array: where the i-th of their elements lies ----
struct Segment {
    long long rank, count, sizes[8], strides[8];
};

__device__ inline long long place_in(const Segment& s, long long i) {
    long long at = 0;
    for (int d = (int)s.rank - 1; d >= 0; --d) {
        at += i % s.sizes[d] * s.strides[d];
        i /= s.sizes[d];
    }
    return at;
}
"""

_INDICES = """\
// ---- index tensors for consecutive axes ----
struct Indices {
    long long many, call;
    Segment layouts[8];
    long long limits[8], strides[8];
    const long long* at[8];
};

constexpr long long NOWHERE = -9223372036854775807LL - 1;  // places are negative along negative strides

// where the b-th of the indexed elements lies; NOWHERE and a note for the host if an index is out of bounds
__device__ inline long long indexed(const Indices& s, long long b, long long* fault) {
    long long at = 0;
    for (int j = 0; j < (int)s.many; ++j) {
        long long i = s.at[j][place_in(s.layouts[j], b)];
        if (i < -s.limits[j] || i >= s.limits[j]) {
            if (atomicCAS((unsigned long long*)fault, 0ULL, (unsigned long long)s.call) == 0ULL) {
                fault[1] = i;
                fault[2] = j;
            }
            return NOWHERE;
        }
        at += (i < 0 ? i + s.limits[j] : i) * s.strides[j];
    }
    return at;
}

struct Wide {
    unsigned long long low, high;
};
"""

_GATHER = """\
extern "C" __global__ void gather_{size}({type}* __restrict__ out, const {type}* __restrict__ from, long long* fault,
                                         long long count, const Segment before, const Indices indices,
                                         const Segment after, long long picked) {{
    EACH(i, count) {{
        const long long rest = i / after.count;
        const long long place = indexed(indices, rest % picked, fault);
        {type} found = {{}};
        if (place != NOWHERE) found = from[place_in(before, rest / picked) + place + place_in(after, i % after.count)];
        out[i] = found;
    }}
}}
"""

_WINNERS = """\
// of several values for one place the last stays: `last` has one more than its number
extern "C" __global__ void winners(unsigned long long* last, long long* fault, const Indices indices,
                                   long long picked) {
    EACH(b, picked) {
        const long long place = indexed(indices, b, fault);
        if (place != NOWHERE) atomicMax(last + place, (unsigned long long)(b + 1));
    }
}
"""

_SCATTER = """\
extern "C" __global__ void scatter_{size}({type}* out, const {type}* __restrict__ values,
                                          const unsigned long long* __restrict__ last, long long* fault,
                                          long long count, const Segment before, const Indices places,
                                          const Indices indices, const Segment after, const Segment value,
                                          long long picked) {{
    EACH(i, count) {{
        const long long rest = i / after.count, b = rest % picked;
        const long long place = indexed(indices, b, fault);
        if (place == NOWHERE) continue;
        if (last && last[indexed(places, b, fault)] != (unsigned long long)(b + 1)) continue;
        out[place_in(before, rest / picked) + place + place_in(after, i % after.count)] = values[place_in(value, i)];
    }}
}}
"""

_ADD = """\
extern "C" __global__ void scatter_add_{name}({type}* out, const {type}* __restrict__ values, long long* fault,
                                              long long count, const Segment before, const Indices indices,
                                              const Segment after, const Segment value, long long picked,
                                              long long parts) {{
    EACH(i, count) {{
        const long long rest = i / after.count;
        const long long place = indexed(indices, rest % picked, fault);
        if (place == NOWHERE) continue;
        const long long at = place_in(before, rest / picked) + place + place_in(after, i % after.count);
        const long long from = place_in(value, i);
        for (long long part = 0; part < parts; ++part)
            atomicAdd(out + at * parts + part, values[from * parts + part]);
    }}
}}
"""

_CHECKED = """\
// positions counted from the start; -1 and a note for the host for one that is out of bounds
extern "C" __global__ void checked_index(long long* __restrict__ out, const long long* __restrict__ index,
                                         long long* fault, long long count, long long limit, long long call) {
    EACH(i, count) {
        const long long at = index[i];
        const bool fits = at >= -limit && at < limit;
        if (!fits && atomicCAS((unsigned long long*)fault, 0ULL, (unsigned long long)call) == 0ULL) {
            fault[1] = at;
            fault[2] = 0;
        }
        out[i] = fits ? (at < 0 ? at + limit : at) : -1;
    }
}
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
// the number of bounds that are not above x, at most the last place
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
"""By size in bytes: the type that elements are moved as."""
NUMBERS = {
    "int32": "int",
    "int64": "long long",
    "uint32": "unsigned",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
ADDED = {"uint32": "unsigned", "uint64": "unsigned long long", "float32": "float", "float64": "double"}


def kernel(name: str) -> CudaKernel:
    """The kernel of a name, with all that it needs."""
    family, _, part = name.rpartition("_")
    if name in _WHOLE:
        text = _WHOLE[name]
    elif family in _BY_SIZE:
        text = _BY_SIZE[family].format(size=part, type=TYPES[int(part)])
    else:
        wide = "double" if part.startswith("float") else "long long"
        text = _BY_NAME[family].format(name=part, type=NUMBERS[part], wide=wide)
    source = "\n".join(["#ifndef EACH", EACH_LOOP, _SEGMENT, _INDICES, "#endif", text])
    return CudaKernel(name, source, (), (0, 1, 1), (THREADS, 1, 1), span=THREADS)


_WHOLE = {
    "winners": _WINNERS,
    "nonzero_places": _NONZERO,
    "checked_index": _CHECKED,
    "philox_words": _PHILOX,
    "philox_fold": _PHILOX,
    "philox_key": _PHILOX,
}
_BY_SIZE = {"gather": _GATHER, "scatter": _SCATTER, "fill": _FILL}
_BY_NAME = {"scatter_add": _ADD, "count_up": _COUNT, "pick": _PICK}
