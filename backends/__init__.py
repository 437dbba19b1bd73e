"""Backends: the kernels and compilers of the CPU and of CUDA."""
