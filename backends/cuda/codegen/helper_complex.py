"""Device functions for complex numbers: NumPy's results, and those of C99's annex G at infinities and NaN.

The inverse functions are those of Hull, Fairgrieve & Tang, "Implementing the complex arcsine and arccosine functions
using exception handling" (1997), sqrt and tanh those of Kahan, "Branch cuts for complex elementary functions" (1987).
"""

from __future__ import annotations

from .helper_scalars import Sources

_COMPLEX = """\
// ---- complex numbers ----
template <class T> struct alignas(2 * sizeof(T)) Complex {
    T re, im;
};
using complex64 = Complex<float>;
using complex128 = Complex<double>;

template <class T> __device__ inline complex64 to_complex64(T x) { return {(float)x, 0}; }
template <class T> __device__ inline complex64 to_complex64(Complex<T> x) { return {(float)x.re, (float)x.im}; }
template <class T> __device__ inline complex128 to_complex128(T x) { return {(double)x, 0}; }
template <class T> __device__ inline complex128 to_complex128(Complex<T> x) { return {(double)x.re, (double)x.im}; }

#define EACH template <class T> __device__ inline
EACH Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
EACH Complex<T> operator-(Complex<T> a, Complex<T> b) { return {a.re - b.re, a.im - b.im}; }
EACH Complex<T> operator-(Complex<T> a) { return {-a.re, -a.im}; }
EACH Complex<T> operator*(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
EACH Complex<T> operator*(Complex<T> a, T b) { return {a.re * b, a.im * b}; }
EACH Complex<T>& operator+=(Complex<T>& a, Complex<T> b) { return a = a + b; }
EACH bool operator==(Complex<T> a, Complex<T> b) { return a.re == b.re && a.im == b.im; }
EACH bool operator!=(Complex<T> a, Complex<T> b) { return !(a == b); }
EACH bool is_true(Complex<T> a) { return a.re != 0 || a.im != 0; }
EACH Complex<T> conjugate(Complex<T> a) { return {a.re, -a.im}; }
EACH Complex<T> swapped(Complex<T> a) { return {a.im, a.re}; }
#undef EACH
"""

_LANES = """\
// ---- complex numbers of other lanes ----
template <class T> __device__ inline Complex<T> from_lane(Complex<T> x, int mask) {
    return {from_lane(x.re, mask), from_lane(x.im, mask)};
}
"""

_LANES_BELOW = """\
template <class T> __device__ inline Complex<T> from_below(Complex<T> x, int step) {
    return {from_below(x.re, step), from_below(x.im, step)};
}
"""

_QUOTIENT = """\
// ---- quotients, without overflow on the way (Smith 1962) ----
template <class T> __device__ inline Complex<T> operator/(Complex<T> a, Complex<T> b) {
    const T re = b.re <= 0 ? 0 - b.re : b.re, im = b.im <= 0 ? 0 - b.im : b.im;
    if (re == 0 && im == 0) return {a.re / re, a.im / re};
    if (re >= im) {
        const T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
"""

_CLASSES = """\
// ---- kinds of numbers ----
#define EACH template <class T> __device__ inline bool
EACH is_nan(T x) { return x != x; }
EACH is_finite(T x) { return x - x == 0; }
EACH is_infinite(T x) { return x == x && x - x != 0; }
EACH is_nan(Complex<T> z) { return is_nan(z.re) || is_nan(z.im); }
EACH is_finite(Complex<T> z) { return is_finite(z.re) && is_finite(z.im); }
EACH is_infinite(Complex<T> z) { return is_infinite(z.re) || is_infinite(z.im); }
#undef EACH
"""

_PARTS = """\
// ---- magnitude, rounding ----
__device__ inline TYPE complex_abs(NAME z) { return hypotSUFFIX(z.re, z.im); }
__device__ inline NAME complex_rint(NAME z) { return {rintSUFFIX(z.re), rintSUFFIX(z.im)}; }
"""

_EXP = """\
// ---- e**z; e**x is taken in two steps where it may overflow ----
__device__ inline NAME complex_exp(NAME z) {
    if (z.im == 0) return {expSUFFIX(z.re), z.im};
    if (is_infinite(z.re) && !is_finite(z.im)) return z.re < 0 ? NAME{0, 0} : NAME{z.re, z.im - z.im};
    const TYPE step = z.re > EXP_LIMIT && is_finite(z.re) ? z.re / 2 : 0;
    const TYPE size = expSUFFIX(z.re - step), rest = expSUFFIX(step);
    return {size * cosSUFFIX(z.im) * rest, size * sinSUFFIX(z.im) * rest};
}

__device__ inline NAME complex_expm1(NAME z) {
    const TYPE half = sinSUFFIX(z.im / 2);
    const TYPE imag = z.im == 0 ? z.im : expSUFFIX(z.re) * sinSUFFIX(z.im);
    return {expm1SUFFIX(z.re) * cosSUFFIX(z.im) - 2 * half * half, imag};
}
"""

_LOG = """\
// ---- logarithms; that of a magnitude near 1 from the squares and their rounding errors ----
__device__ inline TYPE log_of_magnitude(TYPE x, TYPE y) {
    x = fabsSUFFIX(x), y = fabsSUFFIX(y);
    const TYPE a = x > y ? x : y, b = x > y ? y : x, size = hypotSUFFIX(a, b);
    if (size > (TYPE)0.5 && size < 2) {
        const TYPE aa = a * a, bb = b * b;
        const TYPE lost = fmaSUFFIX(a, a, -aa) + fmaSUFFIX(b, b, -bb);
        return log1pSUFFIX(aa - 1 + bb + lost) / 2;
    }
    if (is_finite(a) && is_infinite(size)) return logSUFFIX(hypotSUFFIX(a / 2, b / 2)) + (TYPE)0.6931471805599453;
    return logSUFFIX(size);
}

__device__ inline NAME complex_log(NAME z) { return {log_of_magnitude(z.re, z.im), atan2SUFFIX(z.im, z.re)}; }
__device__ inline NAME complex_log2(NAME z) { return complex_log(z) * (TYPE)1.4426950408889634; }
__device__ inline NAME complex_log10(NAME z) { return complex_log(z) * (TYPE)0.4342944819032518; }
__device__ inline NAME complex_log1p(NAME z) {
    const bool is_small = fabsSUFFIX(z.re) < 0.5 && fabsSUFFIX(z.im) < 0.5;
    if (!is_small) return complex_log(NAME{z.re + 1, z.im});
    return {log1pSUFFIX(z.re * (z.re + 2) + z.im * z.im) / 2, atan2SUFFIX(z.im, z.re + 1)};
}
"""

_SQRT = """\
// ---- square roots, scaled away from overflow and underflow ----
__device__ inline NAME complex_sqrt(NAME z) {
    if (z.re == 0 && z.im == 0) return {0, z.im};
    if (is_infinite(z.im)) return {fabsSUFFIX(z.im), z.im};
    if (is_infinite(z.re)) {
        const TYPE rest = z.im - z.im;
        return z.re < 0 ? NAME{fabsSUFFIX(rest), copysignSUFFIX(z.re, z.im)} : NAME{z.re, copysignSUFFIX(rest, z.im)};
    }
    TYPE x = fabsSUFFIX(z.re), y = fabsSUFFIX(z.im), scale = 1;
    if (x > HUGE || y > HUGE) x /= 16, y /= 16, scale = 4;
    else if (x < TINY && y < TINY) x *= SCALE * SCALE, y *= SCALE * SCALE, scale = 1 / SCALE;
    const TYPE root = sqrtSUFFIX((x + hypotSUFFIX(x, y)) / 2), other = y / (2 * root) * scale;
    if (z.re >= 0) return {root * scale, copysignSUFFIX(other, z.im)};
    return {other, copysignSUFFIX(root * scale, z.im)};
}
"""

_HYPERBOLIC = """\
// ---- hyperbolic functions and, turned by a right angle, those of the circle ----
__device__ inline NAME complex_sinh(NAME z) {
    if (z.im == 0) return {sinhSUFFIX(z.re), z.im};
    if (!is_finite(z.im) && (z.re == 0 || is_infinite(z.re))) return {z.re, z.im - z.im};
    const TYPE x = fabsSUFFIX(z.re), c = cosSUFFIX(z.im), s = sinSUFFIX(z.im);
    if (x < EXP_LIMIT || !is_finite(x)) return {sinhSUFFIX(z.re) * c, coshSUFFIX(z.re) * s};
    const TYPE half = expSUFFIX(x / 2);
    return {copysignSUFFIX(half, z.re) / 2 * c * half, half / 2 * s * half};
}

__device__ inline NAME complex_cosh(NAME z) {
    const TYPE sign = copysignSUFFIX((TYPE)1, z.re);
    if (z.im == 0) return {coshSUFFIX(z.re), sign * z.im};
    if (!is_finite(z.im) && z.re == 0) return {z.im - z.im, z.re};
    if (!is_finite(z.im) && is_infinite(z.re)) return {fabsSUFFIX(z.re), z.im - z.im};
    const TYPE x = fabsSUFFIX(z.re), c = cosSUFFIX(z.im), s = sinSUFFIX(z.im);
    if (x < EXP_LIMIT || !is_finite(x)) return {coshSUFFIX(z.re) * c, sinhSUFFIX(z.re) * s};
    const TYPE half = expSUFFIX(x / 2);
    return {half / 2 * c * half, sign * half / 2 * s * half};
}

__device__ inline NAME complex_tanh(NAME z) {
    if (z.im == 0) return {tanhSUFFIX(z.re), z.im};
    if (z.re == 0 && !is_finite(z.im)) return {z.re, z.im - z.im};
    const TYPE x = fabsSUFFIX(z.re), c = cosSUFFIX(z.im), s = sinSUFFIX(z.im), one = copysignSUFFIX((TYPE)1, z.re);
    if (is_infinite(x)) return {one, is_finite(z.im) ? copysignSUFFIX((TYPE)0, s * c) : copysignSUFFIX((TYPE)0, z.im)};
    if (x > TANH_LIMIT) {
        const TYPE small = expSUFFIX(-x);
        return {one, 4 * s * c * small * small};
    }
    const TYPE t = tanSUFFIX(z.im), beta = 1 + t * t, h = sinhSUFFIX(z.re), rho = sqrtSUFFIX(1 + h * h);
    const TYPE under = 1 + beta * h * h;
    return {beta * rho * h / under, t / under};
}

__device__ inline NAME complex_sin(NAME z) {
    const NAME turned = complex_sinh(NAME{-z.im, z.re});
    return {turned.im, -turned.re};
}

__device__ inline NAME complex_cos(NAME z) { return complex_cosh(NAME{-z.im, z.re}); }

__device__ inline NAME complex_tan(NAME z) {
    const NAME turned = complex_tanh(NAME{-z.im, z.re});
    return {turned.im, -turned.re};
}
"""

_POWER = """\
// ---- powers: small whole exponents by squaring, in NumPy's order ----
__device__ inline complex128 complex_pow(complex128 a, complex128 b) {
    if (!is_true(b)) return {1, 0};
    if (!is_true(a)) {
        const double none = b.re > 0 ? 0.0 : __longlong_as_double(0x7ff8000000000000LL);
        return {none, none};
    }
    const bool is_whole = b.im == 0 && b.re > -100 && b.re < 100 && b.re == (double)(int)b.re;
    if (!is_whole) return complex_exp(b * complex_log(a));
    if (b.re == 1) return a;
    if (b.re == 2) return a * a;
    if (b.re == 3) return a * (a * a);
    complex128 result = {1, 0}, square = a;
    for (int rest = (int)(b.re < 0 ? -b.re : b.re); rest; rest >>= 1) {
        if (rest & 1) result = result * square;
        if (rest > 1) square = square * square;
    }
    return b.re < 0 ? complex128{1, 0} / result : result;
}

__device__ inline complex64 complex_pow(complex64 a, complex64 b) {
    return to_complex64(complex_pow(to_complex128(a), to_complex128(b)));
}
"""

_INVERSE = """\
// ---- inverse functions; those of complex64 are computed in complex128 ----
struct Arcs {
    double sine, cosine, imaginary;
};

// of x + iy in the first quadrant: the real parts of arcsine and arccosine, and the imaginary part of either
__device__ inline Arcs arcs(double x, double y) {
    if (x > 0x1p500 || y > 0x1p500)
        return {atan2(x, y), atan2(y, x), log(hypot(x / 4, y / 4)) + 2.0794415416798357};
    const double r = hypot(x + 1, y), s = hypot(x - 1, y), a = (r + s) / 2, far = r + (x + 1);
    double root, more;  // sqrt(a*a - x*x), and a - 1 + sqrt(a*a - 1)
    if (x <= 1) {
        const double near = s + (1 - x);
        root = sqrt((a + x) * (y * y / far + near) / 2);
        const double part = near < 0x1p-1000 ? 0 : (1 / far + 1 / near) / 2;
        more = y * y * part + y * sqrt(part * (a + 1));
    } else {
        const double near = s + (x - 1), less = (y * y / far + near) / 2;
        root = y * sqrt((a + x) * (1 / far + 1 / near) / 2);
        more = less + sqrt(less * (a + 1));
    }
    return {atan2(x, root), atan2(root, x), log1p(more)};
}

__device__ inline complex128 complex_asinh(complex128 z) {
    if (is_nan(z)) {
        if (is_infinite(z.re)) return z;
        if (is_infinite(z.im)) return {z.im, z.re};
        return {z.re + z.im, z.im == 0 ? z.im : z.re + z.im};
    }
    const Arcs found = arcs(fabs(z.im), fabs(z.re));
    return {copysign(found.imaginary, z.re), copysign(found.sine, z.im)};
}

__device__ inline complex128 complex_asin(complex128 z) { return swapped(complex_asinh(swapped(z))); }

__device__ inline complex128 complex_acos(complex128 z) {
    if (is_nan(z)) {
        if (is_infinite(z.re)) return {z.im, z.re};
        if (is_infinite(z.im)) return {z.re, -z.im};
        return {z.re == 0 ? 1.5707963267948966 : z.re + z.im, z.re + z.im};
    }
    const Arcs found = arcs(fabs(z.re), fabs(z.im));
    return {z.re < 0 ? 3.141592653589793 - found.cosine : found.cosine, copysign(found.imaginary, -z.im)};
}

__device__ inline complex128 complex_acosh(complex128 z) {
    const complex128 found = complex_acos(z);
    return {fabs(found.im), copysign(found.re, z.im)};
}

__device__ inline complex128 complex_atanh(complex128 z) {
    const double x = fabs(z.re), y = fabs(z.im), quarter = copysign(1.5707963267948966, z.im);
    if (is_nan(z)) {
        if (is_infinite(z.re)) return {copysign(0.0, z.re), z.im};
        if (is_infinite(z.im)) return {copysign(0.0, z.re), quarter};
        return {z.re == 0 ? z.re : z.re + z.im, z.re + z.im};
    }
    if (is_infinite(z)) return {copysign(0.0, z.re), quarter};
    double real;
    if (x > 0x1p500 || y > 0x1p500) {
        const double size = hypot(x / 2, y / 2);
        return {copysign(x / 4 / size / size, z.re), quarter};
    }
    if (x == 1) real = (log(hypot(2.0, y)) - log(y)) / 2;
    else real = log1p(4 * x / ((1 - x) * (1 - x) + y * y)) / 4;
    return {copysign(real, z.re), copysign(atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2, z.im)};
}

__device__ inline complex128 complex_atan(complex128 z) { return swapped(complex_atanh(swapped(z))); }

#define NARROW(name) \\
    __device__ inline complex64 name(complex64 z) { return to_complex64(name(to_complex128(z))); }
NARROW(complex_asin)
NARROW(complex_acos)
NARROW(complex_atan)
NARROW(complex_asinh)
NARROW(complex_acosh)
NARROW(complex_atanh)
#undef NARROW
"""

_WORDS = {
    "complex64": {
        "NAME": "complex64", "TYPE": "float", "SUFFIX": "f", "EXP_LIMIT": "88", "TANH_LIMIT": "11",
        "HUGE": "0x1p120f", "TINY": "0x1p-100f", "SCALE": "0x1p24f",
    },
    "complex128": {
        "NAME": "complex128", "TYPE": "double", "SUFFIX": "", "EXP_LIMIT": "709", "TANH_LIMIT": "22",
        "HUGE": "0x1p1000", "TINY": "0x1p-900", "SCALE": "0x1p54",
    },
}  # fmt: skip
_TYPED = {
    "parts": ((), _PARTS),
    "exp": (("complex_classes",), _EXP),
    "log": (("complex_classes",), _LOG),
    "sqrt": (("complex_classes",), _SQRT),
    "hyperbolic": (("complex_classes",), _HYPERBOLIC),
}


def _typed(text: str, name: str) -> str:
    for word, instead in _WORDS[name].items():
        text = text.replace(word, instead)
    return text


SOURCES: Sources = {
    "complex": ((), _COMPLEX),
    "complex_lanes": (("complex", "shuffle"), _LANES),
    "complex_below": (("complex", "scans"), _LANES_BELOW),
    "complex_quotient": (("complex",), _QUOTIENT),
    "complex_classes": (("complex",), _CLASSES),
    "complex_power": (("complex_exp_complex128", "complex_log_complex128", "complex_quotient"), _POWER),
    "complex_inverse": (("complex_classes",), _INVERSE),
    **{
        f"complex_{part}_{name}": (("complex", *needs), _typed(text, name))
        for part, (needs, text) in _TYPED.items()
        for name in _WORDS
    },
}
"""Name -> (names of the helpers that it needs, its text)."""
