"""CUDA C of gather, scatter and scatter-add in eager calls.

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
// ---- the order in which values are combined: a stable radix sort of words (the helper ``sort``) ----
struct Order {
    long long count, bits, limit, tiles;  // of positions, how many bits a position has, its targets, tiles of all words
};

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
    unsigned long long *from = passes % 2 ? other : words, *to = passes % 2 ? words : other;
    for (long long b = threadIdx.x; b < order.count; b += blockDim.x) from[b] = order_word(order, targets, b, fault);
    __syncthreads();
    sort_tile(from, to, order.count, (int)order.bits, (int)passes);
}
"""

ORDER_WORDS = """\
extern "C" __global__ void order_words(unsigned long long* __restrict__ words, long long* fault, const Order order,
                                       const Indices targets) {
    EACH(b, order.count) words[b] = order_word(order, targets, b, fault);
}
"""

ORDER_COUNT = """\
extern "C" __global__ void __launch_bounds__(1024) order_count(
    const unsigned long long* __restrict__ words, unsigned* __restrict__ starts, const Order order, long long shift) {
    count_digits(words, starts, order.count, order.tiles, (int)shift);
}
"""

ORDER_SUM = """\
extern "C" __global__ void __launch_bounds__(1024) order_sum(unsigned* __restrict__ starts, long long count) {
    sum_digits(starts, count);
}
"""

ORDER_MOVE = """\
extern "C" __global__ void __launch_bounds__(1024) order_move(
    const unsigned long long* __restrict__ words, unsigned long long* __restrict__ to,
    const unsigned* __restrict__ starts, const Order order, long long shift) {
    move_words(words, to, starts, order.count, order.tiles, (int)shift);
}
"""

RUNS = """\
// ---- combining the values for each position with an element (the helper ``runs``) ----
struct Heads {
    long long length, chunks, targets;
};

__device__ inline Runs runs_of(const Order& order, const Heads& heads) {
    return {order.count, heads.length, heads.chunks, order.bits, (unsigned long long)order.limit};
}

template <class Index, class T, class Combine>
__device__ inline void combine_runs(T* out, const T* __restrict__ values, const unsigned long long* __restrict__ words,
                                    T* __restrict__ heads, T* __restrict__ tails, long long* fault, const Rows& rows,
                                    const Order& order, const Runs& runs, const Segment& before,
                                    const Indices& indices, const Segment& after, const Segment& value_rows,
                                    const Segment& value_after, T start, const Combine& combine) {
    each_row<Index>(rows, [&](Index row, Index chunk, Index outer, Index from, Index stop, Index lanes) {
        for (Index j = from; j < stop; j += lanes) {
            T* const column = out + offset_in(before, outer) + offset_in(after, j);
            const T* const given = values + offset_in(value_after, j);
            const auto value = [&](unsigned long long b) {
                return given[offset_in(value_rows, (Index)(outer * (Index)order.count + (Index)b))];
            };
            const auto write = [&](unsigned long long, unsigned long long b, T state) {
                T* const to = column + indexed(indices, (Index)b, fault);
                *to = combine(*to, state);
            };
            const long long part = (long long)row * rows.width + j;
            fold_runs(words, runs, chunk, heads + part, tails + part, start, value, combine, write);
        }
    });
}

template <class Index, class T, class Combine>
__device__ inline void join_heads(T* out, const unsigned long long* __restrict__ words, const T* __restrict__ heads,
                                  const T* __restrict__ tails, long long* fault, const Rows& rows, const Runs& runs,
                                  const Segment& before, const Indices& indices, const Segment& after,
                                  const Combine& combine) {
    each_row<Index>(rows, [&](Index row, Index chunk, Index outer, Index from, Index stop, Index lanes) {
        for (Index j = from; j < stop; j += lanes) {
            T* const column = out + offset_in(before, outer) + offset_in(after, j);
            const auto write = [&](unsigned long long, unsigned long long b, T state) {
                T* const to = column + indexed(indices, (Index)b, fault);
                *to = combine(*to, state);
            };
            const long long part = (long long)row * rows.width + j;
            join_runs(words, runs, chunk, heads + part, tails + part, (long long)rows.width, combine, write);
        }
    });
}
"""

COMBINE_RUNS = """\
extern "C" __global__ void runs_{combine}_{{name}}({{type}}* out, const {{type}}* __restrict__ values,
                                               const unsigned long long* __restrict__ words, {{type}}* heads,
                                               {{type}}* tails, long long* fault, const Rows rows, const Order order,
                                               const Heads parts, const Segment before, const Indices indices,
                                               const Segment after, const Segment value_rows,
                                               const Segment value_after) {{{{
    const auto combine = []({{type}} a, {{type}} b) {{{{ return a {sign} b; }}}};
    const Runs runs = runs_of(order, parts);
    if (fits(rows) && parts.targets <= 0x7fffffff)
        combine_runs<unsigned>(out, values, words, heads, tails, fault, rows, order, runs, before, indices, after,
                               value_rows, value_after, ({{type}}){start}, combine);
    else
        combine_runs<unsigned long long>(out, values, words, heads, tails, fault, rows, order, runs, before, indices,
                                         after, value_rows, value_after, ({{type}}){start}, combine);
}}}}
"""

JOIN_RUNS = """\
extern "C" __global__ void join_{combine}_{{name}}({{type}}* out, const unsigned long long* __restrict__ words,
                                            {{type}}* heads, {{type}}* tails, long long* fault, const Rows rows,
                                            const Order order, const Heads parts, const Segment before,
                                            const Indices indices, const Segment after) {{{{
    const auto combine = []({{type}} a, {{type}} b) {{{{ return a {sign} b; }}}};
    const Runs runs = runs_of(order, parts);
    if (fits(rows))
        join_heads<unsigned>(out, words, heads, tails, fault, rows, runs, before, indices, after, combine);
    else
        join_heads<unsigned long long>(out, words, heads, tails, fault, rows, runs, before, indices, after, combine);
}}}}
"""
