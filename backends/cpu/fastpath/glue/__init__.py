"""The Python side of the native call path: structs, stubs, and the loops of variants.

backward.py: installs the entry of reverse mode
batches.py: calls on values of levels of `vmap` and `jvp`
caching_stubs.py: stubs of views and of native loops, whose entries remember earlier calls
class_slots.py: offsets of the slots of tandem's classes, checked before use
debug.py: run an entry in Python, print its LLVM IR
folds.py: variants of reductions and scans
jit_layout.py: offsets of the structs of jitted functions, and opcodes of their programs
jit_structs.py: structs and programs of jitted functions
kernels.py: stubs of operators with a Python kernel
layout.py: offsets in the objects of CPython and NumPy, checked before use; inner loops of NumPy
loops.py: variants of elementwise operators
operand_stack.py: where operators have their operands on CPython's evaluation stack
patch_points.py: callables that have entries, and those that take what the entries do not
products.py: variants of `matmul`
protocols.py: `Tensor.__array_ufunc__`, `Tensor.__array_function__` and the buffer protocol
recording.py: how calls are recorded for autograd
runtime.py: the compiled entries of this process
special_methods.py: the special methods that slots of the type Tensor call
structs.py: memory that entries read; codes of operand types
stubs.py: stubs that count calls and install entries
subscript.py: `Tensor.__getitem__` and `Tensor.__setitem__`
table.py: which operators have which entries
traced.py: native entries under the dispatch trace
"""
