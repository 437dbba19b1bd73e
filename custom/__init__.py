"""Custom operators: definitions, kernels in other languages, registrations, and ``opcheck``.

api.py: the public functions
define.py, op.py: definitions, and the ``CustomOp`` that they return
extend.py: registrations for any operator
adapt.py: Python functions as kernels
functional.py: functional forms of mutating operators
kernels.py, llvm.py, c_types.py, c_arguments.py: kernels in NumPy, C, LLVM IR and CUDA C
casting.py: autocast kernels
opcheck.py, tested_call.py, check_kernels.py, check_layers.py: tests of an operator's registrations
"""

from __future__ import annotations
