"""Native kernels: inner loops with the calling convention of NumPy's generalized ufuncs.

- providers.py: find and verify the loops of NumPy's and SciPy's ufuncs; call a loop from Python
- emitted.py: the loops of this package, and the dtypes and sizes that they are compiled for; loop_code.py: their code
- rt_solvers.py, rt_sorting.py, rt_selection.py, rt_numpy_sorts.py, rt_extrema.py, rt_lapack.py, rt_triangles.py: their
  code
- convolutions.py, convolution_tiles.py, rt_convolution.py, rt_geometry.py, rt_planes.py, rt_shifted.py,
  rt_tiles.py, rt_windows.py: convolutions, a loop for each way to compute them, and the micro-kernels that a call needs
- rt_scratch.py: scratch memory that is kept for the next call
- rt_integers.py: the smaller and the larger of two integers, for both
- tables.py: the sizes and strides of a call; plans.py: all that an eager call needs
- calls.py: calls in compiled graphs; expand.py: conversions before and after them
- decompose.py: operators without a loop as others
- eager.py: calls of emitted loops by eager kernels; the native entry is fastpath/entries/rt_loop_calls.py
"""
