"""Tensor, its methods, and the functions that create, convert and copy tensors.

at.py: ``x.at[index]``, functional updates.
construct.py: ``asarray``, ``from_dlpack`` and moves between devices.
copies.py: pickling and copying.
dunders.py: the special methods of arithmetic and comparison.
functions.py: the operator functions in the namespace ``td``.
generator.py: Generator, a stateful source of random numbers.
generator_state.py: hooks of Generator for tracing and replay.
inplace.py: in-place operators, generated from functional ones.
layouts.py: functions and kernels of sparse and quantized tensors, which load at first use.
methods.py: the methods of Tensor.
printing.py: ``repr`` and ``str`` of tensors.
results.py: map over the results of an operator.
storage.py: Storage, the memory that tensors share.
tensor.py: the class Tensor.
transfer.py: the operator ``device::to``, which moves tensors between devices.
type_stubs.py: write the type stubs of functions and methods made from declarations.
weak_scalars.py: results of operators on Python numbers, and the kernel of the WeakScalar key.
"""
