"""Helpers that sort positions and fold the values of equal ones, in the same order in every run of a program.

A *word* is a position, then the number of the value for it in the low bits. A stable radix sort brings the words of one
position together, in the order of their values; a thread folds a *chunk* of neighbouring words, and the states of
positions that several chunks share are joined in their order.
"""

from __future__ import annotations

import math

from ....named_tuple import NamedTuple
from .helper_scalars import Sources

TILE_WORDS, TILE_THREADS = 16, 1024
"""Words of a thread that sorts, and the maximum number of threads of its block."""
MIN_CHUNK = 64
"""The minimum number of words of a chunk."""
ALIGNMENT = 16


class SortPlan(NamedTuple):
    """The sizes of a sort.

    Attributes:
        size: the number of words.
        limit: the number of positions; it is also the position of words that are out of bounds.
        bits: the bits of a word that number its value.
        passes: the number of passes, each of which sorts by four bits of the position.
        threads: of a block.
        tiles: the words are sorted in that many blocks.
        chunk: the number of words of a chunk.
    """

    size: int
    limit: int
    bits: int
    passes: int
    threads: int
    tiles: int
    chunk: int

    @property
    def fits(self) -> bool:
        """Whether a word has enough bits."""
        return self.bits + self.limit.bit_length() <= 64

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return -(-self.size // self.chunk)

    @property
    def buffer_bytes(self) -> int:
        """Bytes of all words, in a buffer."""
        return -(-8 * self.size // ALIGNMENT) * ALIGNMENT

    @property
    def nbytes(self) -> int:
        """Bytes of scratch memory: words, the words of the pass before, and the numbers of each digit in each tile."""
        starts = -(-64 * self.tiles // ALIGNMENT) * ALIGNMENT if self.tiles > 1 else 0
        return 2 * self.buffer_bytes + starts


def plan_sort(count: int, limit: int) -> SortPlan:
    """Plan the sort of ``count`` positions below ``limit``."""
    threads = min(TILE_THREADS, max(32, 1 << (-(-count // TILE_WORDS) - 1).bit_length()))
    chunk = max(MIN_CHUNK, 1 << math.isqrt(count).bit_length())
    passes, tiles = -(-limit.bit_length() // 4), -(-count // (threads * TILE_WORDS))
    return SortPlan(count, limit, (count - 1).bit_length(), passes, threads, tiles, chunk)


_SORT = """\
// ---- a stable radix sort of words, four bits at a time, in blocks of at most 1024 threads ----
typedef unsigned long long Word;

// counts[digit * threads + thread]: how many words of the tile come before the thread's first one of that digit
__device__ inline void rank_tile(const Word* words, long long first, long long count, int shift,
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

// all words of one tile; they are in `words` after an even number of passes, and in `other` after an odd one
__device__ inline void sort_tile(Word* words, Word* other, long long count, int bits, int passes) {
    __shared__ unsigned short counts[16 * 1024];
    __shared__ unsigned sums[1024];
    const int t = threadIdx.x, threads = blockDim.x;
    for (int pass = 0; pass < passes; ++pass) {
        const int shift = bits + 4 * pass;
        rank_tile(words, 0, count, shift, counts, sums);
        for (int k = 0; k < 16; ++k) {
            const long long i = t * 16 + k;
            if (i < count) other[counts[(words[i] >> shift & 15) * threads + t]++] = words[i];
        }
        __syncthreads();
        Word* const swapped = words;
        words = other;
        other = swapped;
    }
}

// starts[digit * tiles + tile]: how many words of a tile have a digit
__device__ inline void count_digits(const Word* words, unsigned* starts, long long count, long long tiles, int shift) {
    __shared__ unsigned short counts[16 * 1024];
    __shared__ unsigned sums[1024];
    const int t = threadIdx.x, threads = blockDim.x;
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const long long first = tile * 16 * threads, left = count - first;
        const unsigned all = (unsigned)(left < 16 * threads ? left : 16 * threads);
        rank_tile(words, first, count, shift, counts, sums);
        if (t < 16) starts[t * tiles + tile] = (t < 15 ? counts[(t + 1) * threads] : all) - counts[t * threads];
        __syncthreads();
    }
}

// how many words come before those of each digit and tile
__device__ inline void sum_digits(unsigned* starts, long long count) {
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

__device__ inline void move_words(const Word* words, Word* to, const unsigned* starts, long long count,
                                  long long tiles, int shift) {
    __shared__ unsigned short counts[16 * 1024], heads[16];
    __shared__ unsigned sums[1024];
    const int t = threadIdx.x, threads = blockDim.x;
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const long long first = tile * 16 * threads;
        rank_tile(words, first, count, shift, counts, sums);
        if (t < 16) heads[t] = counts[t * threads];
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            const long long i = first + t * 16 + k;
            if (i >= count) break;
            const int digit = (int)(words[i] >> shift & 15);
            to[starts[digit * tiles + tile] + (counts[digit * threads + t]++ - heads[digit])] = words[i];
        }
        __syncthreads();
    }
}
"""

_RUNS = """\
// ---- folds of the values for each position: `length` sorted words at a time, in their order ----
// A run of one position within the words is written. One that began before leaves a head, and one that goes on a tail,
// which are joined. Nothing depends on which thread is ahead, so that every run of the program gives the same bits.
struct Runs {
    long long count, length, chunks, bits;
    unsigned long long limit;
};

template <class T, class Value, class Combine, class Write>
__device__ inline void fold_runs(const unsigned long long* words, const Runs& runs, long long chunk, T* head, T* tail,
                                 T start, const Value& value, const Combine& combine, const Write& write) {
    const unsigned long long mask = (1ULL << runs.bits) - 1;
    const long long first = chunk * runs.length, end = first + runs.length;
    const long long last = end < runs.count ? end : runs.count;
    unsigned long long key = words[first] >> runs.bits;
    bool began = first > 0 && words[first - 1] >> runs.bits == key;
    T state = start;
    for (long long s = first; s < last; ++s) {
        const unsigned long long number = words[s] & mask;
        state = combine(state, value(number));
        const bool ends = s + 1 == runs.count || words[s + 1] >> runs.bits != key;
        if (!ends && s + 1 < last) continue;
        if (key != runs.limit) {
            if (began) *head = state;
            else if (!ends) *tail = state;
            else write(key, number, state);
        }
        if (s + 1 < last) key = words[s + 1] >> runs.bits;
        began = false;
        state = start;
    }
}

// the heads of the chunks after one are `stride` apart
template <class T, class Combine, class Write>
__device__ inline void join_runs(const unsigned long long* words, const Runs& runs, long long chunk, const T* heads,
                                 const T* tail, long long stride, const Combine& combine, const Write& write) {
    const long long first = chunk * runs.length, end = first + runs.length;
    if (end >= runs.count) return;
    const unsigned long long mask = (1ULL << runs.bits) - 1, key = words[end - 1] >> runs.bits;
    const bool goes_on = words[end] >> runs.bits == key;
    const bool began = first > 0 && words[first - 1] >> runs.bits == key;
    if (!goes_on || began || key == runs.limit) return;
    T state = *tail;
    for (long long c = chunk + 1; c < runs.chunks; ++c) {
        state = combine(state, heads[(c - chunk) * stride]);
        const long long next = (c + 1) * runs.length;
        if (next >= runs.count || words[next] >> runs.bits != key) break;
    }
    write(key, words[end - 1] & mask, state);
}
"""

SOURCES: Sources = {"sort": ((), _SORT), "runs": ((), _RUNS)}
"""Name -> (names of the helpers that it needs, its text)."""
