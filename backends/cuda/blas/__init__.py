"""Matrix products by cuBLAS.

cublas.py: the library's functions and handles
gemm_plan.py: the choice of calls for two layouts
gemm.py: callables that run one call
gemm_text.py: LLVM IR of products in compiled graphs
products.py: the eager kernel of matmul
"""
