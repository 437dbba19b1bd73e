"""Declarations of operators, and the functions that make them by kind.

declaration.py: the ``Declaration`` of an operator, test inputs, and ``declare``
kinds.py: functions that declare an operator of a kind: ``unary``, ``reduction``, ``array_op``, ``composite``, ...
derivatives.py: the forms of a declared derivative: ``Partials``, ``Linear``, ``Rule``, ...
shape_rules.py: promotion, broadcasting and checks that shape rules share
batching.py: helpers of batching rules, and the rules of the kinds
docstrings.py: the docstring parts that operators of a kind share
lazy_modules.py: the operators that are declared lazily, by module
aliases.py: other names of operators, written from the declarations
array_arguments.py: a decorator of functions written in Python, which converts arrays
named_results.py: functions that return the results of an operator as a named tuple
ownership.py: copies composite results that alias an argument
native_kernel.py: the inner loops that compute an operator
quiet.py: runs NumPy functions without floating-point warnings
view_spec.py: views as one rule from sizes, strides and offset to the same
"""
