"""CUDA C for the GPU: the kernels of the loop IR, and those that eager operators launch."""
