"""Tensor, its methods, and the functions that create, convert and copy tensors.

at.py: ``x.at[index]``, functional updates.
attributes.py: attributes of tensors as PyTorch names them, and small methods.
deletion.py: deleted tensors, whose memory was donated or freed.
construct.py: ``asarray``, ``from_dlpack`` and moves between devices.
conversions.py: conversions to a dtype as methods: ``x.float()``.
complex_parts.py: ``x.real`` and ``x.imag``.
copied_writes.py: functional updates as writes into a copy
copies.py: pickling and copying.
dunders.py: the special methods of arithmetic, comparison, round, divmod and iteration.
element_count.py: ``x.size``.
forwards.py: functions of ``td.linalg`` and ``td.special`` under PyTorch's names.
flags.py: ``x.flags`` of tensors without an ndarray.
functions.py: the operator functions in the namespace ``td``.
generator.py: Generator, a stateful source of random numbers.
generator_state.py: hooks of Generator for tracing and replay.
index_tricks.py: s_, index_exp, mgrid, ogrid, r_, c_.
interop/: exchange with other libraries: NumPy's protocols, DLPack, the Array API, einops, files.
inplace.py: in-place operators, generated from functional ones.
integer_writes.py: floats that are assigned to elements of integer tensors.
layouts.py: functions and kernels of sparse and quantized tensors, which load at first use.
methods.py: the methods of Tensor.
printing.py: ``repr`` and ``str`` of tensors.
queries.py: ``array``, and NumPy's functions that ask about tensors or print them.
recorded_gathers.py: ``x[key]`` of tensors that require gradients, for positions and masks.
results.py: map over the results of an operator.
storage.py: Storage, the memory that tensors share.
tensor.py: the class Tensor, with the protocols of NumPy and DLPack.
transfer.py: the operator ``device::to``, which moves tensors between devices.
type_stubs.py: write the type stubs of functions and methods made from declarations.
weak_scalars.py: results of operators on Python numbers, and the kernel of the WeakScalar key.
"""
