"""Device functions for nodes of the scalar IR for which a C operator does not have NumPy's result."""

from __future__ import annotations

from ....operators.scalar_ir.expr import LARGEST_PRODUCT

Sources = dict[str, tuple[tuple[str, ...], str]]

_HALF = """\
// ---- 16-bit floats: kept as their bits, computed with as float ----
struct float16 { unsigned short bits; };
struct bfloat16 { unsigned short bits; };

#ifndef TANDEM_HOST
__device__ inline float half_value(unsigned short bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ inline unsigned short half_bits(float value) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ inline unsigned short half_bits(double value) {
    unsigned short bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
    return bits;
}

__device__ inline unsigned short bfloat_bits(float value) {
#if __CUDA_ARCH__ >= 800
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    const unsigned bits = __float_as_uint(value);
    return value != value ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}
#endif

__device__ inline float to_float(float16 x) { return half_value(x.bits); }
__device__ inline float to_float(bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
template <class T> __device__ inline float16 to_float16(T x) { return {half_bits(x)}; }
__device__ inline bfloat16 to_bfloat16(float x) { return {bfloat_bits(x)}; }
"""

_UNSIGNED = """\
// ---- integers wrap around, as NumPy's do; signed overflow is undefined in C ----
template <class T> struct Unsigned { using type = unsigned; };
template <> struct Unsigned<long long> { using type = unsigned long long; };
template <> struct Unsigned<unsigned long long> { using type = unsigned long long; };
template <class T> using unsigned_of = typename Unsigned<T>::type;

template <class T> __device__ inline T wrapping_add(T a, T b) { return (T)((unsigned_of<T>)a + (unsigned_of<T>)b); }
template <class T> __device__ inline T wrapping_sub(T a, T b) { return (T)((unsigned_of<T>)a - (unsigned_of<T>)b); }
template <class T> __device__ inline T wrapping_mul(T a, T b) { return (T)((unsigned_of<T>)a * (unsigned_of<T>)b); }
template <class T> __device__ inline T wrapping_neg(T a) { return (T)(0 - (unsigned_of<T>)a); }
"""

_DIVISION = """\
// ---- integer division: 0 where the divisor is 0, and no overflow at -1 ----
template <class T> __device__ inline T floor_divide_signed(T a, T b) {
    if (b == 0) return 0;
    if (b == -1) return wrapping_neg(a);
    const T quotient = (T)(a / b);
    return (T)(quotient - (quotient * b != a && (a < 0) != (b < 0)));
}

template <class T> __device__ inline T fmod_signed(T a, T b) { return b == 0 || b == -1 ? (T)0 : (T)(a % b); }

template <class T> __device__ inline T remainder_signed(T a, T b) {
    const T rest = fmod_signed(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}

template <class T> __device__ inline T floor_divide_unsigned(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); }
template <class T> __device__ inline T remainder_unsigned(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }
"""

_SHIFTS = """\
// ---- a shift by as much as there are bits, or by less than nothing, shifts everything out ----
template <class T> __device__ inline T shift_left(T a, T b) {
    const unsigned_of<T> count = (unsigned_of<T>)b;
    return count < 8 * sizeof(T) ? (T)((unsigned_of<T>)a << count) : (T)0;
}

template <class T> __device__ inline T shift_right_signed(T a, T b) {
    const unsigned_of<T> count = (unsigned_of<T>)b;
    return (T)(a >> (count < 8 * sizeof(T) ? count : 8 * sizeof(T) - 1));
}

template <class T> __device__ inline T shift_right_unsigned(T a, T b) { return b < 8 * sizeof(T) ? (T)(a >> b) : (T)0; }
"""

_POWER = """\
// ---- integer powers by squaring; a negative exponent gives the truncated quotient ----
template <class T> __device__ inline T power_unsigned(T base, T exponent) {
    unsigned_of<T> result = 1, square = (unsigned_of<T>)base;
    for (unsigned_of<T> rest = (unsigned_of<T>)exponent; rest != 0; rest >>= 1) {
        if (rest & 1) result *= square;
        square *= square;
    }
    return (T)result;
}

template <class T> __device__ inline T power_signed(T base, T exponent) {
    if (exponent >= 0) return power_unsigned(base, exponent);
    if (base == -1) return (T)(exponent & 1 ? -1 : 1);
    return (T)(base == 1);
}
"""

_UNIFORM_POWER = """\
// ---- powers of one exponent for all elements: products, quotients and roots where they are ----
__device__ inline TYPE uniform_power_TYPE(TYPE a, TYPE b) {
    if (b == 2) return a * a;
    if (b == -1) return 1 / a;
    if (b == (TYPE)0.5) return sqrtSUFFIX(a);
    if (b == 1) return a;
    if (b != truncSUFFIX(b) || fabsSUFFIX(b) > LARGEST) return powSUFFIX(a, b);
    double square = a, product = 1;
    for (int rest = (int)fabsSUFFIX(b); rest != 0; rest >>= 1, square *= square)
        if (rest & 1) product *= square;
    return (TYPE)(b < 0 ? 1 / product : product);
}
""".replace("LARGEST", str(LARGEST_PRODUCT))

_EXTREMA = """\
// ---- NaN if either is ----
template <class T> __device__ inline T larger(T a, T b) { return a != a ? a : a > b ? a : b; }
template <class T> __device__ inline T smaller(T a, T b) { return a != a ? a : a < b ? a : b; }

#ifndef TANDEM_HOST
#if __CUDA_ARCH__ >= 800
template <> __device__ inline float larger(float a, float b) {
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

template <> __device__ inline float smaller(float a, float b) {
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#else  // the same bits, of zeros of two signs and of NaN too
template <> __device__ inline float larger(float a, float b) {
    return a != a || b != b ? __int_as_float(0x7fffffff) : fmaxf(a, b);
}
template <> __device__ inline float smaller(float a, float b) {
    return a != a || b != b ? __int_as_float(0x7fffffff) : fminf(a, b);
}
#endif
#endif
"""

_DIVISOR = """\
// ---- many numbers over one: two products each; the scale keeps the reciprocal a normal number ----
template <class T> struct Divisor {
    T scale, reciprocal;
    __device__ T under(T x) const { return x * scale * reciprocal; }
};

__device__ inline Divisor<float> divisor(float x) {
    const float size = fabsf(x);
    const float scale = size > 0x1p100f ? 0x1p-64f : size < 0x1p-100f ? 0x1p64f : 1.0f;
    return {scale, 1.0f / (x * scale)};
}

__device__ inline Divisor<double> divisor(double x) {
    const double size = fabs(x);
    const double scale = size > 0x1p900 ? 0x1p-512 : size < 0x1p-900 ? 0x1p512 : 1.0;
    return {scale, 1.0 / (x * scale)};
}
"""

_TRUNCATION = """\
// ---- floats to integers: what does not fit as NumPy has it on x86-64 ----
__device__ inline int to_int32(float x) { return x >= -2147483648.0f && x < 2147483648.0f ? (int)x : -2147483647 - 1; }
__device__ inline int to_int32(double x) { return x > -2147483649.0 && x < 2147483648.0 ? (int)x : -2147483647 - 1; }

template <class T> __device__ inline long long to_int64(T x) {
    return x >= (T)-9223372036854775808.0 && x < (T)9223372036854775808.0 ? (long long)x
                                                                           : -9223372036854775807LL - 1;
}

template <class T> __device__ inline unsigned long long to_uint64(T x) {
    const T half = (T)9223372036854775808.0;
    if (x >= half) return (unsigned long long)to_int64(x - half) ^ 0x8000000000000000ULL;
    return (unsigned long long)to_int64(x);
}
"""

_REMAINDERS = """\
// ---- Python's % and // of TYPEs, as NumPy has them ----
__device__ inline TYPE remainder_TYPE(TYPE a, TYPE b) {
    const TYPE rest = fmodSUFFIX(a, b);
    if (rest == 0) return copysignSUFFIX((TYPE)0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

__device__ inline TYPE floor_divide_TYPE(TYPE a, TYPE b) {
    if (b == 0) return a / b;
    const TYPE rest = fmodSUFFIX(a, b);
    TYPE quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return copysignSUFFIX((TYPE)0, a / b);
    const TYPE whole = floorSUFFIX(quotient);
    return quotient - whole > (TYPE)0.5 ? whole + 1 : whole;
}
"""


def _typed(text: str, ctype: str, suffix: str) -> str:
    return text.replace("TYPE", ctype).replace("SUFFIX", suffix)


SOURCES: Sources = {
    "half": ((), _HALF),
    "wrapping": ((), _UNSIGNED),
    "division": (("wrapping",), _DIVISION),
    "shifts": (("wrapping",), _SHIFTS),
    "power": (("wrapping",), _POWER),
    "extrema": ((), _EXTREMA),
    "divisor": ((), _DIVISOR),
    "truncation": ((), _TRUNCATION),
    "uniform_power_float": ((), _typed(_UNIFORM_POWER, "float", "f")),
    "uniform_power_double": ((), _typed(_UNIFORM_POWER, "double", "")),
    "remainder_float": ((), _typed(_REMAINDERS, "float", "f")),
    "remainder_double": ((), _typed(_REMAINDERS, "double", "")),
}
"""Name -> (names of the helpers that it needs, its text)."""
