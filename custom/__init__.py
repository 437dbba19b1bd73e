"""Custom operators: definitions, kernels in other languages, registrations, and ``opcheck``.

api.py: the public functions
define.py: ``custom_op``, ``elementwise_op`` and ``composite_op``
op.py: ``CustomOp``, the callable that a definition returns
extend.py: registrations for any operator
adapt.py: Python functions as kernels
functional.py: definition of the functional form of a mutating operator; ``tracer/auto_functionalize.py`` records it
kernels.py: kernels in NumPy, C, LLVM IR and CUDA C
llvm.py: scalar functions in LLVM IR
c_types.py: check C signatures against the prototypes that ctypes or cffi has
c_arguments.py: the parameters of a C function, bound to arguments and results by name
casting.py: autocast kernels
opcheck.py: ``opcheck`` and its tests by name
check_kernels.py: opcheck's tests of kernels
check_layers.py: opcheck's tests of gradients, vmap and jit
tested_call.py: the call under test
"""

from __future__ import annotations
