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
elementary.py: angle, sinc, nan_to_num
"""
