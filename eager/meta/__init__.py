"""Tensors on the device ``"meta"``: shape, dtype and strides without data.

kernel.py: the kernel of the Meta key, which runs shape rules.
memory.py: ``td.meta_memory``, which counts the bytes of meta tensors.
tensor.py: MetaTensor and its storage.
views.py: the strides of views.
"""
