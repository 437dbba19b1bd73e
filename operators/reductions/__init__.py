"""Reductions, scans and sorting.

folds.py: sum, prod, max, argmax, any, ...
scans.py: cumsum and cumprod
sorting.py: argsort and sort
statistics.py: mean, var, std
"""
