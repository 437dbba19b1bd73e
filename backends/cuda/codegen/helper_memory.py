"""Device functions for vector accesses, strided layouts, reductions and scans across threads."""

from __future__ import annotations

from collections.abc import Iterable

from .helper_scalars import Sources

_VECTORS = """\
// ---- several elements in one access ----
template <class T> __device__ inline T from_bits(unsigned short bits) {
    if constexpr (__is_class(T)) return T{bits};
    else return (T)bits;
}

template <class T, int N> struct alignas(sizeof(T) * N) Vec {
    T at[N];
};

// 16-bit floats come in pairs, which take fewer instructions to convert than halves of words
template <int N, class T> __device__ inline Vec<T, N> load(const T* from) {
    if constexpr (sizeof(T) == 2 && N > 1) {
        const auto words = *reinterpret_cast<const Vec<unsigned, N / 2>*>(from);
        Vec<T, N> value;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            value.at[k] = from_bits<T>((unsigned short)(words.at[k / 2] >> k % 2 * 16));
        }
        return value;
    } else {
        return *reinterpret_cast<const Vec<T, N>*>(from);
    }
}

template <class T, int N> __device__ inline void store(T* to, const Vec<T, N>& value) {
    *reinterpret_cast<Vec<T, N>*>(to) = value;
}
"""

_SHUFFLE = """\
// ---- a value of another lane ----
template <class T> __device__ inline T from_lane(T x, int mask) { return (T)__shfl_xor_sync(0xffffffffu, +x, mask); }
"""

_SCANS = """\
// ---- a value of the lane that is some lanes below; of this lane where there is none ----
template <class T> __device__ inline T from_below(T x, int step) { return (T)__shfl_up_sync(0xffffffffu, +x, step); }
"""

_LONG_SUM = """\
// ---- reductions: `take` one more element, `join` the result of another run; the same in any order of two ----
// the rounding errors of a long sum are kept (Neumaier); an infinite sum has an error of NaN, and none is added
template <class T> struct LongSum {
    T value, lost;
    __device__ void take(T x) {
        const T total = value + x, shadow = total - value;
        lost += (value - (total - shadow)) + (x - shadow);
        value = total;
    }
    __device__ void join(const LongSum& other) {
        const T errors = lost + other.lost;
        lost = T{};
        take(other.value);
        lost += errors;
    }
    __device__ LongSum across(int mask) const { return {from_lane(value, mask), from_lane(lost, mask)}; }
    __device__ T result() const { return lost == lost ? value + lost : value; }
};

"""
_ARG_REDUCER = """\
template <class T> struct {name} {{
    T value;
    long long at;
    __device__ static bool better(T x, T best) {{ return x {sign} best || (x != x && best == best); }}
    __device__ void take(T x, long long position) {{
        if (at < 0 || better(x, value)) value = x, at = position;
    }}
    __device__ void join(const {name}& other) {{
        const bool is_tie = !better(value, other.value) && other.at < at;
        if (other.at >= 0 && (at < 0 || better(other.value, value) || is_tie)) *this = other;
    }}
    __device__ {name} across(int mask) const {{ return {{from_lane(value, mask), from_lane(at, mask)}}; }}
    __device__ long long result() const {{ return at; }}
}};
"""
_ARG_REDUCERS = f"""\
// ---- positions: the first of equals, and the first NaN before all; `at` is -1 before the first element. `take` takes
// elements in the order of their positions ----
{_ARG_REDUCER.format(name="ArgMax", sign=">")}
{_ARG_REDUCER.format(name="ArgMin", sign="<")}"""

_JOIN = """\
// ---- all lanes of a group (a power of two) get the joined state ----
template <int WIDTH, class State> __device__ inline State join_lanes(State state) {
#pragma unroll
    for (int mask = WIDTH / 2; mask > 0; mask /= 2) state.join(state.across(mask));
    return state;
}

// the state of each warp, for `collect` after a barrier
template <class State> __device__ inline void share(State state, State* parts) {
    state = join_lanes<32>(state);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = state;
}

template <int WARPS, class State> __device__ inline State collect(const State* parts) {
    return join_lanes<WARPS>(parts[threadIdx.x % WARPS]);
}

// the states of all threads of a column, which lie STEP apart
template <int COUNT, int STEP, class State> __device__ inline State collect_column(const State* parts) {
    State state = parts[threadIdx.x];
#pragma unroll 4
    for (int y = 1; y < COUNT; ++y) state.join(parts[y * STEP + threadIdx.x]);
    return state;
}
"""

_LAYOUT = """\
// ---- where the elements of strided operands lie ----
template <int OPERANDS> struct Layout {
    long long rank, count, sizes[8], strides[OPERANDS][8];
};

template <int OPERANDS, class Index>
__device__ inline void locate(const Layout<OPERANDS>& layout, Index i, long long (&at)[OPERANDS]) {
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) at[k] = 0;
    for (int d = (int)layout.rank - 1; d >= 0; --d) {
        const Index rest = i / (Index)layout.sizes[d];
        const long long along = (long long)(i - rest * (Index)layout.sizes[d]);
#pragma unroll
        for (int k = 0; k < OPERANDS; ++k) at[k] += along * layout.strides[k][d];
        i = rest;
    }
}
"""

_POSITIONS = """\
// ---- a position along an axis, not negative; -1 and a note for the host if it is out of bounds ----
__device__ inline long long checked(long long i, long long size, int which, long long* fault, long long call) {
    if (i >= -size && i < size) return i < 0 ? i + size : i;
    if (atomicCAS((unsigned long long*)fault, 0ULL, (unsigned long long)call) == 0ULL) {
        fault[1] = i;
        fault[2] = which;
    }
    return -1;
}
"""

SOURCES: Sources = {
    "positions": ((), _POSITIONS),
    "vectors": ((), _VECTORS),
    "shuffle": ((), _SHUFFLE),
    "scans": ((), _SCANS),
    "sums": (("shuffle",), _LONG_SUM),
    "arg_reducers": (("shuffle",), _ARG_REDUCERS),
    "join": ((), _JOIN),
    "layout": ((), _LAYOUT),
}
"""Name -> (names of the helpers that it needs, its text)."""


def reducer_struct(name: str, ctype: str, lines: Iterable[str], value: str) -> str:
    """The struct of a reduction with one value.

    Args:
        name: its name.
        ctype: the type of the value.
        lines: statements before the value is replaced.
        value: the expression of the value combined with an element ``x``.
    """
    body = "".join(f"    {line}\n" for line in [*lines, f"    value = {value};"])
    return f"""\
struct {name} {{
    {ctype} value;
    __device__ void take({ctype} x) {{
{body}    }}
    __device__ void join(const {name}& other) {{ take(other.value); }}
    __device__ {name} across(int mask) const {{ return {{from_lane(value, mask)}}; }}
    __device__ {ctype} result() const {{ return value; }}
}};
"""
