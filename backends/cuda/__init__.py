"""The CUDA backend, loaded at the first use of a CUDA device.

load.py: registration of the backend's kernels
public.py: the namespace td.cuda
runtime/: driver, devices, streams, memory, copies, launches
kernels/: eager kernels of operators, and CudaTensor
codegen/: printers of CUDA C
blas/: matrix products by cuBLAS
launches/: compiled graphs
fastpath/: native entries of eager calls
"""
