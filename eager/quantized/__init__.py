"""Quantized tensors: 8-bit integers with scales and zero points.

construct.py: quantize tensors, with checks.
kernels.py: operators on quantized tensors.
tensor.py: QuantizedTensor and its quantization scheme.
"""

# First: modules of operators that are imported alone would be materialized in the middle of their definitions.
from . import kernels as kernels
