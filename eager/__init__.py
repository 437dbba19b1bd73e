"""Eager tensors, the layers of the dispatcher that run on them, and compiled calls of eager functions.

tensor/: Tensor, its methods, construction and copies.
autograd/: reverse and forward mode.
layers/: transforms, functionalization, autocast, modes, subclasses.
meta/: tensors without data.
sparse/: sparse tensors.
quantized/: quantized tensors.
hot_calls.py: hot calls of pure functions, as compiled code.
"""
