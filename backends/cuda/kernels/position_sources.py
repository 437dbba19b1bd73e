"""CUDA C of gather, scatter and scatter-add.

An index tensor selects rows, the elements along the last axes. Several lanes of a warp copy a row, so that the
divisions that locate it are done once for a row, in 32 bits if the counts allow; :mod:`.positions` passes dense and
aligned rows as elements of up to 16 bytes.
"""

from __future__ import annotations

SEGMENT = """\
// ---- some dimensions of an array: where the i-th of their elements lies ----
struct Segment {
    long long rank, count, sizes[8], strides[8];
};

// a division of 32 bits takes a fifth of the time of one of 64; one dimension takes none
template <class Index> __device__ inline long long offset_in(const Segment& s, Index i) {
    long long at = 0;
    for (int d = (int)s.rank - 1; d > 0; --d) {
        const Index size = (Index)s.sizes[d], rest = i / size;
        at += (long long)(i - rest * size) * s.strides[d];
        i = rest;
    }
    return at + (long long)i * s.strides[0];
}
"""

INDICES = """\
// ---- index tensors for consecutive axes ----
struct Indices {
    long long many, call;
    Segment layouts[8];
    long long limits[8], strides[8];
    const long long* at[8];
};

constexpr long long NOWHERE = -9223372036854775807LL - 1;  // targets are negative along negative strides

// where the b-th of the indexed elements lies; NOWHERE and a note for the host if an index is out of bounds
template <class Index> __device__ inline long long indexed(const Indices& s, Index b, long long* fault) {
    long long at = 0;
    for (int j = 0; j < (int)s.many; ++j) {
        long long i = s.at[j][offset_in(s.layouts[j], b)];
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
"""

ROWS = """\
// ---- rows, each served by some lanes; a long row in pieces of `chunk` elements ----
struct Rows {
    long long count, picked, width, lanes, chunk, pieces;
};

struct alignas(16) Wide {
    unsigned long long low, high;
};

// calls body(row, the number of its index, the number before the indexed axes, the first and the last element, lanes)
template <class Index, class Body> __device__ inline void each_row(const Rows& rows, const Body& body) {
    const Index lanes = (Index)rows.lanes, pieces = (Index)rows.pieces, picked = (Index)rows.picked;
    const Index all = (Index)rows.count * pieces, each = blockDim.x / lanes, width = (Index)rows.width;
    for (Index i = blockIdx.x * each + threadIdx.x / lanes; i < all; i += gridDim.x * each) {
        const Index row = pieces == 1 ? i : i / pieces, first = (i - row * pieces) * (Index)rows.chunk;
        const Index before = picked == (Index)rows.count ? 0 : row / picked;
        const Index left = width - first, length = left < (Index)rows.chunk ? left : (Index)rows.chunk;
        body(row, row - before * picked, before, first + threadIdx.x % lanes, first + length, lanes);
    }
}

__device__ inline bool fits(const Rows& rows) {
    return rows.count * rows.pieces <= 0x7fffffff && rows.width <= 0x7fffffff;
}
"""

GATHER_ROWS = """\
template <class Index, class T>
__device__ inline void gather_rows(T* __restrict__ out, const T* __restrict__ from, long long* fault, const Rows& rows,
                                   const Segment& before, const Indices& indices, const Segment& after) {
    each_row<Index>(rows, [&](Index row, Index b, Index outer, Index first, Index stop, Index lanes) {
        const long long offset = indexed(indices, b, fault);
        T* const to = out + (long long)row * rows.width;
        if (offset == NOWHERE) {
            for (Index j = first; j < stop; j += lanes) to[j] = T{};
            return;
        }
        const T* const start = from + offset + offset_in(before, outer);
        if (after.rank <= 1) {
            const long long stride = after.strides[0];
#pragma unroll 4
            for (Index j = first; j < stop; j += lanes) to[j] = start[(long long)j * stride];
        } else {
            for (Index j = first; j < stop; j += lanes) to[j] = start[offset_in(after, j)];
        }
    });
}
"""

GATHER = """\
extern "C" __global__ void gather_{size}({type}* __restrict__ out, const {type}* __restrict__ from, long long* fault,
                                         const Rows rows, const Segment before, const Indices indices,
                                         const Segment after) {{
    if (fits(rows)) gather_rows<unsigned>(out, from, fault, rows, before, indices, after);
    else gather_rows<unsigned long long>(out, from, fault, rows, before, indices, after);
}}
"""

WINNERS = """\
// of several values for one position the last stays: `last` has one more than its number
extern "C" __global__ void winners(unsigned long long* last, long long* fault, const Indices indices,
                                   long long picked) {
    EACH(b, picked) {
        const bool few = picked <= 0x7fffffff;
        const long long offset = few ? indexed(indices, (unsigned)b, fault) : indexed(indices, b, fault);
        if (offset != NOWHERE) atomicMax(last + offset, (unsigned long long)(b + 1));
    }
}
"""

PUT_ROWS = """\
#define GIVEN(last, targets) \\
    out, values, last, fault, rows, before, targets, indices, after, value_rows, value_after, put

template <class Index, class T, class Put>
__device__ inline void put_rows(T* out, const T* __restrict__ values, const unsigned long long* __restrict__ last,
                                long long* fault, const Rows& rows, const Segment& before, const Indices& targets,
                                const Indices& indices, const Segment& after, const Segment& value_rows,
                                const Segment& value_after, const Put& put) {
    each_row<Index>(rows, [&](Index row, Index b, Index outer, Index first, Index stop, Index lanes) {
        const long long offset = indexed(indices, b, fault);
        if (offset == NOWHERE) return;
        if (last && last[indexed(targets, b, fault)] != (unsigned long long)b + 1) return;
        T* const start = out + offset + offset_in(before, outer);
        const T* const given = values + offset_in(value_rows, row);
        if (after.rank <= 1 && value_after.rank <= 1) {
            const long long stride = after.strides[0], step = value_after.strides[0];
#pragma unroll 4
            for (Index j = first; j < stop; j += lanes) put(start + (long long)j * stride, given[(long long)j * step]);
        } else {
            for (Index j = first; j < stop; j += lanes)
                put(start + offset_in(after, j), given[offset_in(value_after, j)]);
        }
    });
}
"""

SCATTER = """\
extern "C" __global__ void scatter_{size}({type}* out, const {type}* __restrict__ values,
                                          const unsigned long long* __restrict__ last, long long* fault,
                                          const Rows rows, const Segment before, const Indices targets,
                                          const Indices indices, const Segment after, const Segment value_rows,
                                          const Segment value_after) {{
    const auto put = []({type}* to, const {type}& value) {{ *to = value; }};
    if (fits(rows)) put_rows<unsigned>(GIVEN(last, targets));
    else put_rows<unsigned long long>(GIVEN(last, targets));
}}
"""

ADD = """\
// integers, whose sums do not depend on the order; and any numbers where there is one index
extern "C" __global__ void scatter_add_{name}({type}* out, const {type}* __restrict__ values, long long* fault,
                                              const Rows rows, const Segment before, const Indices indices,
                                              const Segment after, const Segment value_rows,
                                              const Segment value_after) {{
    const auto put = []({type}* to, {type} value) {{ atomicAdd(to, value); }};
    const unsigned long long* const none = nullptr;
    if (fits(rows)) put_rows<unsigned>(GIVEN(none, indices));
    else put_rows<unsigned long long>(GIVEN(none, indices));
}}
"""

ORDER = """\
// ---- the order in which values are added: a stable radix sort of words, four bits at a time ----
struct Order {
    long long count, bits, limit, tiles;  // of positions, how many bits a position has, its targets, tiles of all words
};

// counts[digit * threads + thread]: how many words of the tile come before the thread's first one of that digit
__device__ inline void rank_tile(const unsigned long long* words, long long first, long long count, int shift,
                                 unsigned short* counts, unsigned* sums) {
    const int t = threadIdx.x, threads = blockDim.x;
    for (int d = 0; d < 16; ++d) counts[d * threads + t] = 0;
    for (int k = 0; k < 16; ++k) {
        const long long i = first + t * 16 + k;
        if (i < count) ++counts[(words[i] >> shift & 15) * threads + t];
    }
    __syncthreads();
    unsigned sum = 0;
    for (int k = 0; k < 16; ++k) {
        const unsigned own = counts[t * 16 + k];
        counts[t * 16 + k] = (unsigned short)sum;
        sum += own;
    }
    sums[t] = sum;
    __syncthreads();
    for (int step = 1; step < threads; step *= 2) {
        const unsigned below = t >= step ? sums[t - step] : 0;
        __syncthreads();
        sums[t] += below;
        __syncthreads();
    }
    for (int k = 0; k < 16; ++k) counts[t * 16 + k] += (unsigned short)(sums[t] - sum);
    __syncthreads();
}

__device__ inline unsigned long long order_word(const Order& order, const Indices& targets, long long b,
                                                long long* fault) {
    const bool few = order.count <= 0x7fffffff;
    const long long offset = few ? indexed(targets, (unsigned)b, fault) : indexed(targets, b, fault);
    return (unsigned long long)(offset == NOWHERE ? order.limit : offset) << order.bits | (unsigned long long)b;
}
"""

ORDER_TILE = """\
// all words of one tile; the sorted ones are in `words`
extern "C" __global__ void __launch_bounds__(1024) order_tile(
    unsigned long long* words, unsigned long long* other, long long* fault, const Order order, const Indices targets,
    long long passes) {
    __shared__ unsigned short counts[16 * 1024];
    __shared__ unsigned sums[1024];
    const int t = threadIdx.x, threads = blockDim.x;
    unsigned long long *from = passes % 2 ? other : words, *to = passes % 2 ? words : other;
    for (long long b = t; b < order.count; b += threads) from[b] = order_word(order, targets, b, fault);
    __syncthreads();
    for (int pass = 0; pass < (int)passes; ++pass) {
        const int shift = (int)order.bits + 4 * pass;
        rank_tile(from, 0, order.count, shift, counts, sums);
        for (int k = 0; k < 16; ++k) {
            const long long i = t * 16 + k;
            if (i < order.count) to[counts[(from[i] >> shift & 15) * threads + t]++] = from[i];
        }
        __syncthreads();
        unsigned long long* const swapped = from;
        from = to;
        to = swapped;
    }
}
"""

ORDER_WORDS = """\
extern "C" __global__ void order_words(unsigned long long* __restrict__ words, long long* fault, const Order order,
                                       const Indices targets) {
    EACH(b, order.count) words[b] = order_word(order, targets, b, fault);
}
"""

ORDER_COUNT = """\
// starts[digit * tiles + tile]: how many words of a tile have a digit
extern "C" __global__ void __launch_bounds__(1024) order_count(
    const unsigned long long* __restrict__ words, unsigned* __restrict__ starts, const Order order, long long shift) {
    __shared__ unsigned short counts[16 * 1024];
    __shared__ unsigned sums[1024];
    const int t = threadIdx.x, threads = blockDim.x;
    for (long long tile = blockIdx.x; tile < order.tiles; tile += gridDim.x) {
        const long long first = tile * 16 * threads, left = order.count - first;
        const unsigned all = (unsigned)(left < 16 * threads ? left : 16 * threads);
        rank_tile(words, first, order.count, (int)shift, counts, sums);
        if (t < 16) starts[t * order.tiles + tile] = (t < 15 ? counts[(t + 1) * threads] : all) - counts[t * threads];
        __syncthreads();
    }
}
"""

ORDER_SUM = """\
// how many words come before those of each digit and tile
extern "C" __global__ void __launch_bounds__(1024) order_sum(unsigned* __restrict__ starts, long long count) {
    __shared__ unsigned sums[1024];
    const int t = threadIdx.x, threads = blockDim.x;
    unsigned base = 0;
    for (long long first = 0; first < count; first += threads) {
        const long long i = first + t;
        const unsigned own = i < count ? starts[i] : 0;
        sums[t] = own;
        __syncthreads();
        for (int step = 1; step < threads; step *= 2) {
            const unsigned below = t >= step ? sums[t - step] : 0;
            __syncthreads();
            sums[t] += below;
            __syncthreads();
        }
        if (i < count) starts[i] = base + sums[t] - own;
        base += sums[threads - 1];
        __syncthreads();
    }
}
"""

ORDER_MOVE = """\
extern "C" __global__ void __launch_bounds__(1024) order_move(
    const unsigned long long* __restrict__ words, unsigned long long* __restrict__ to,
    const unsigned* __restrict__ starts, const Order order, long long shift) {
    __shared__ unsigned short counts[16 * 1024], heads[16];
    __shared__ unsigned sums[1024];
    const int t = threadIdx.x, threads = blockDim.x;
    for (long long tile = blockIdx.x; tile < order.tiles; tile += gridDim.x) {
        const long long first = tile * 16 * threads;
        rank_tile(words, first, order.count, (int)shift, counts, sums);
        if (t < 16) heads[t] = counts[t * threads];
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            const long long i = first + t * 16 + k;
            if (i >= order.count) break;
            const int digit = (int)(words[i] >> shift & 15);
            to[starts[digit * order.tiles + tile] + (counts[digit * threads + t]++ - heads[digit])] = words[i];
        }
        __syncthreads();
    }
}
"""

RUNS = """\
// Values for one position are adjacent in `words`. `length` of them at a time are added in their order: a run within
// them goes into the array; one that began before leaves a head, and one that goes on a tail, which are joined. Nothing
// depends on which thread is ahead, so that every run of the program gives the same bits.
struct Runs {
    long long length, chunks, targets;
};

template <class Index, class T>
__device__ inline void add_runs(T* out, const T* __restrict__ values, const unsigned long long* __restrict__ words,
                                T* __restrict__ heads, T* __restrict__ tails, long long* fault, const Rows& rows,
                                const Order& order, const Runs& runs, const Segment& before, const Indices& indices,
                                const Segment& after, const Segment& value_rows, const Segment& value_after) {
    const unsigned long long mask = (1ULL << order.bits) - 1;
    each_row<Index>(rows, [&](Index row, Index chunk, Index outer, Index from, Index stop, Index lanes) {
        const long long first = (long long)chunk * runs.length, end = first + runs.length;
        const long long last = end < order.count ? end : order.count;
        for (Index j = from; j < stop; j += lanes) {
            T* const column = out + offset_in(before, outer) + offset_in(after, j);
            const T* const given = values + offset_in(value_after, j);
            unsigned long long key = words[first] >> order.bits;
            bool began = first > 0 && words[first - 1] >> order.bits == key;
            T sum = {};
            for (long long s = first; s < last; ++s) {
                const Index b = (Index)(words[s] & mask);
                sum = sum + given[offset_in(value_rows, (Index)(outer * (Index)order.count + b))];
                const bool ends = s + 1 == order.count || words[s + 1] >> order.bits != key;
                if (!ends && s + 1 < last) continue;
                if (key != (unsigned long long)order.limit) {
                    if (began) heads[(long long)row * rows.width + j] = sum;
                    else if (!ends) tails[(long long)row * rows.width + j] = sum;
                    else {
                        T* const to = column + indexed(indices, b, fault);
                        *to = *to + sum;
                    }
                }
                if (s + 1 < last) key = words[s + 1] >> order.bits;
                began = false;
                sum = T{};
            }
        }
    });
}

template <class Index, class T>
__device__ inline void join_runs(T* out, const unsigned long long* __restrict__ words, const T* __restrict__ heads,
                                 const T* __restrict__ tails, long long* fault, const Rows& rows, const Order& order,
                                 const Runs& runs, const Segment& before, const Indices& indices,
                                 const Segment& after) {
    const unsigned long long mask = (1ULL << order.bits) - 1;
    each_row<Index>(rows, [&](Index row, Index chunk, Index outer, Index from, Index stop, Index lanes) {
        const long long first = (long long)chunk * runs.length, end = first + runs.length;
        if (end >= order.count) return;
        const unsigned long long key = words[end - 1] >> order.bits;
        const bool goes_on = words[end] >> order.bits == key;
        const bool began = first > 0 && words[first - 1] >> order.bits == key;
        if (!goes_on || began || key == (unsigned long long)order.limit) return;
        const long long offset = indexed(indices, (Index)(words[end - 1] & mask), fault) + offset_in(before, outer);
        for (Index j = from; j < stop; j += lanes) {
            T sum = tails[(long long)row * rows.width + j];
            for (long long c = (long long)chunk + 1; c < runs.chunks; ++c) {
                sum = sum + heads[((long long)row + c - chunk) * rows.width + j];
                const long long next = (c + 1) * runs.length;
                if (next >= order.count || words[next] >> order.bits != key) break;
            }
            T* const to = out + offset + offset_in(after, j);
            *to = *to + sum;
        }
    });
}
"""

ADD_RUNS = """\
extern "C" __global__ void add_runs_{name}({type}* out, const {type}* __restrict__ values,
                                           const unsigned long long* __restrict__ words, {type}* heads, {type}* tails,
                                           long long* fault, const Rows rows, const Order order, const Runs runs,
                                           const Segment before, const Indices indices, const Segment after,
                                           const Segment value_rows, const Segment value_after) {{
    if (fits(rows) && runs.targets <= 0x7fffffff)
        add_runs<unsigned>(out, values, words, heads, tails, fault, rows, order, runs, before, indices, after,
                           value_rows, value_after);
    else
        add_runs<unsigned long long>(out, values, words, heads, tails, fault, rows, order, runs, before, indices,
                                     after, value_rows, value_after);
}}
"""

JOIN_RUNS = """\
extern "C" __global__ void join_runs_{name}({type}* out, const unsigned long long* __restrict__ words, {type}* heads,
                                            {type}* tails, long long* fault, const Rows rows, const Order order,
                                            const Runs runs, const Segment before, const Indices indices,
                                            const Segment after) {{
    if (fits(rows)) join_runs<unsigned>(out, words, heads, tails, fault, rows, order, runs, before, indices, after);
    else join_runs<unsigned long long>(out, words, heads, tails, fault, rows, order, runs, before, indices, after);
}}
"""

CHECKED = """\
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
