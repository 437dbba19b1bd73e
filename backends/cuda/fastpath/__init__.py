"""Native entries of eager calls on CUDA tensors; ``*_entries.py`` are compiled to machine code.

eager.py: the entries of operators, and their tables of cached calls
eager_entries.py: elementwise operators, also in place, matrix products, and the launch of every cached call
call_cache.py: cached calls with one tensor: views, reductions, copies
call_cache_entries.py: the lookup of those calls
result.py: the structs for allocating results
result_entries.py: allocation of results, finalizer of buffers
launch_entries.py: launches of kernels and of products
gemm_entries.py: calls of cuBLAS
"""
