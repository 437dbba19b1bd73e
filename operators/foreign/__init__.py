"""Kernels in other languages.

c_signature.py: parses C prototypes
functions.py: scalar and buffer functions as lowering and backends see them
"""
