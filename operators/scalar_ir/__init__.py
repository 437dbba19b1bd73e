"""The scalar IR: bodies of elementwise operators and of folds.

nodes.py: the public functions of bodies, and ``instantiate``
expr.py: the node table and typed expressions
cost.py: the cost of an expression
fold.py: the declaration of a reduction or scan
numpy_evaluation.py: NumPy kernels from expressions
"""
