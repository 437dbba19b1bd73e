"""The compiler of the native language, a typed subset of Python.

dsl.py: the names that native functions use: machine types, memory access, calls
engine.py: LLVM IR to machine code in this process, with the disk cache
interpret.py: native functions in Python, step by step
lang.py: native functions to LLVM IR: statements and modules
lang_expr.py: native functions to LLVM IR: expressions
lang_names.py: native functions to LLVM IR: names
passes.py: which of LLVM's passes run over a module
structs.py: structs with typed fields at fixed offsets
"""
