"""Elementwise operators.

arithmetic.py: add, mul, div, pow, neg, abs, sign, ...
bitwise.py: bitwise operators and shifts
comparison.py: comparisons, isnan, logic
rounding.py: floor, ceil, trunc, round
exponential.py: exponentials, logarithms, roots, erf
trigonometry.py: trigonometric and hyperbolic functions
activation.py: activation functions
selection.py: where, maximum, minimum, clip
casting.py: casts and copies
complex_parts.py: real, imag, conj
neighbours.py: nextafter
spacings.py: spacing
elementary.py: angle, sinc, nan_to_num
closeness.py: isclose, allclose, array_equal
number_parts.py: divmod, modf, frexp, ldexp, float_power, bitwise_count, around
options.py: add, sub, div and round with PyTorch's options
packing.py: packbits, unpackbits
scaling.py: degrees, cbrt, rint, heaviside, isposinf, isreal, ...
weighted_sums.py: lerp, addcmul, addcdiv, rsub, frac, clamp_min, clamp_max
"""
