"""Operators on the parts of sparse and quantized tensors.

sparse.py: spmm and sddmm
quantized.py: quantize, dequantize, int_mm, requantize
"""
