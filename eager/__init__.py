"""Eager tensors, the dispatcher's layers above the backends, and the compilation of hot calls.

tensor/: Tensor, its methods, construction and copies.
autograd/: reverse and forward mode.
layers/: transforms, functionalization, autocast, modes, subclasses.
meta/: tensors with a shape and a dtype, without data.
sparse/: sparse tensors.
quantized/: quantized tensors.
hot_calls.py: compile pure functions after many calls of one kind.
compiled.py: the decorator of such functions.
"""
