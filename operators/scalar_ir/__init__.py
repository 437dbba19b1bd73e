"""The scalar IR: bodies of elementwise operators.

nodes.py: the public functions of bodies, and ``instantiate``
expr.py: the node table and typed expressions
cost.py: the cost of an expression
numpy_evaluation.py: NumPy kernels from expressions
"""
