"""CUDA C of products of sparse matrices in CSR format; deterministic, without atomic operations."""

from __future__ import annotations

from ..codegen.kernel import CudaKernel
from .sources import EACH_LOOP, THREADS

WARP = 32

_COMMON = """\
// a complex number
template <class T> struct Two {
    T x, y;
};

template <class T> __device__ inline Two<T> operator+(const Two<T>& a, const Two<T>& b) {
    return {a.x + b.x, a.y + b.y};
}

template <class T> __device__ inline Two<T> operator*(const Two<T>& a, const Two<T>& b) {
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

// the sum of what the lanes of a warp have, in the first of them
template <class T> __device__ inline T down(const T& value, int step) {
    return __shfl_down_sync(0xffffffffu, value, step);
}

template <class T> __device__ inline Two<T> down(const Two<T>& value, int step) {
    return {down(value.x, step), down(value.y, step)};
}

template <class T> __device__ inline T joined(T sum) {
    for (int step = 16; step; step >>= 1) sum = sum + down(sum, step);
    return sum;
}

// a column; -1 and a note for the host if there is no such
__device__ inline long long column(long long i, long long columns, long long* fault, long long call) {
    if (i >= 0 && i < columns) return i;
    if (atomicCAS((unsigned long long*)fault, 0ULL, (unsigned long long)call) == 0ULL) {
        fault[1] = i;
        fault[2] = 0;
    }
    return -1;
}

#define EACH_WARP(i, count)                                                                \\
    for (long long i = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < (count); \\
         i += (long long)gridDim.x * blockDim.x / 32)
"""

_SPMM = """\
// a thread for each element of the result
extern "C" __global__ void spmm_{name}({type}* __restrict__ out, const long long* __restrict__ starts,
                                       const long long* __restrict__ positions, const {type}* __restrict__ values,
                                       const {type}* __restrict__ other, long long* fault, long long call,
                                       long long rows, long long columns, long long width, long long stored) {{
    EACH(i, rows * width) {{
        const long long row = i / width, j = i % width;
        const long long first = starts[row] > 0 ? starts[row] : 0;
        const long long end = starts[row + 1] < stored ? starts[row + 1] : stored;
        {wide} sum = {{}};
        for (long long k = first; k < end; ++k) {{
            const long long at = column(positions[k], columns, fault, call);
            if (at >= 0) sum = sum + ({wide})values[k] * ({wide})other[at * width + j];
        }}
        out[i] = ({type})sum;
    }}
}}
"""

_SPMV = """\
// a warp for each row
extern "C" __global__ void spmv_{name}({type}* __restrict__ out, const long long* __restrict__ starts,
                                       const long long* __restrict__ positions, const {type}* __restrict__ values,
                                       const {type}* __restrict__ other, long long* fault, long long call,
                                       long long rows, long long columns, long long width, long long stored) {{
    const int lane = threadIdx.x % 32;
    EACH_WARP(row, rows) {{
        const long long first = starts[row] > 0 ? starts[row] : 0;
        const long long end = starts[row + 1] < stored ? starts[row + 1] : stored;
        {wide} sum = {{}};
        for (long long k = first + lane; k < end; k += 32) {{
            const long long at = column(positions[k], columns, fault, call);
            if (at >= 0) sum = sum + ({wide})values[k] * ({wide})other[at];
        }}
        sum = joined(sum);
        if (lane == 0) out[row] = ({type})sum;
    }}
}}
"""

_SDDMM = """\
// a warp for each position
extern "C" __global__ void sddmm_{name}({type}* __restrict__ out, const long long* __restrict__ starts,
                                        const long long* __restrict__ positions, const {type}* __restrict__ one,
                                        const {type}* __restrict__ two, long long* fault, long long call,
                                        long long rows, long long columns, long long width, long long stored) {{
    const int lane = threadIdx.x % 32;
    EACH_WARP(k, stored) {{
        long long row = 0, beyond = rows;
        while (beyond - row > 1) {{
            const long long middle = (row + beyond) / 2;
            if (starts[middle] <= k) row = middle;
            else beyond = middle;
        }}
        const long long at = column(positions[k], columns, fault, call);
        {wide} sum = {{}};
        if (at >= 0)
            for (long long j = lane; j < width; j += 32)
                sum = sum + ({wide})one[row * width + j] * ({wide})two[at * width + j];
        sum = joined(sum);
        if (lane == 0) out[k] = ({type})sum;
    }}
}}
"""

_BODIES = {"spmm": _SPMM, "spmv": _SPMV, "sddmm": _SDDMM}
# name: (type of elements, type of sums); signed integers use the unsigned kernels, which wrap around alike
TYPES = {
    "float32": ("float", "float"),
    "float64": ("double", "double"),
    "complex64": ("Two<float>", "Two<float>"),
    "complex128": ("Two<double>", "Two<double>"),
    "uint8": ("unsigned char", "unsigned long long"),
    "uint16": ("unsigned short", "unsigned long long"),
    "uint32": ("unsigned", "unsigned long long"),
    "uint64": ("unsigned long long", "unsigned long long"),
}


def kernel(body: str, name: str) -> CudaKernel:
    """The kernel ``"spmm"``, ``"spmv"`` or ``"sddmm"`` for a dtype of ``TYPES``."""
    kind, wide = TYPES[name]
    text = _BODIES[body].format(name=name, type=kind, wide=wide)
    source = "\n".join([EACH_LOOP, _COMMON, text])
    return CudaKernel(f"{body}_{name}", source, (), (0, 1, 1), (THREADS, 1, 1), span=THREADS)
