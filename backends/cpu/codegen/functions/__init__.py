"""Elementary functions as vector instructions: an element's bits do not depend on its position in an array.

Polynomials were interpolated at Chebyshev nodes with 60 digits. Scalar code and vectors use the same formulas. Those of
exp, exp2, the logarithms, pow and atan2 hold for usual arguments; a vector with another one is computed by a function.

complex_circular.py: exp, expm1, sin, cos, tan, sinh, cosh, tanh of complex numbers
complex_functions.py: functions of complex numbers as nodes of the scalar IR; abs
complex_inverse.py: asin, acos, atan, asinh, acosh, atanh of complex numbers
complex_logarithm.py: sqrt, log, log2, log10, log1p of complex numbers
constants.py: tables of exponentials, logarithms, arctangents and coefficients of erf
error_function.py: erf, erfc
exponential.py: exp, exp2, expm1, sinh, cosh, tanh
inverse_error.py: erfinv
inverse_error_series.py: the coefficients of erfinv
inverse.py: asin, acos, atan, atan2
logarithm.py: log, log2, log10, log1p, asinh, acosh, atanh
lookup.py: elements of tables
pairs.py: double-double arithmetic
power.py: pow, hypot
quarters.py: functions as polynomials, one for each of 16 intervals
sampled_error_function.py: erfc as random numbers have it
single.py: functions of float32 in float32 arithmetic
single_error.py: erfc and erfinv of float32 in float32 arithmetic
single_inverse.py: asin, acos, atan and atanh of float32 in float32 arithmetic
single_circular.py: sin, cos and tan of float32 in float32 arithmetic
table.py: all functions as nodes of the scalar IR
trigonometry.py: sin, cos, tan
values.py: vector registers as values with operators
"""
