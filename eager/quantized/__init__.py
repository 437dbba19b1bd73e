"""Quantized tensors: 8-bit integers with scales and zero points.

construct.py: quantize tensors, with checks.
kernels.py: operators on quantized tensors.
tensor.py: QuantizedTensor and its quantization scheme.
"""
