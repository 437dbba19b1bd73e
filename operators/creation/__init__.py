"""Creation operators.

creation.py: full, arange, linspace, eye
full.py: zeros, ones, empty and the ``_like`` variants
devices.py: checks of device arguments, and the CUDA loader
grids.py: identity, tri, logspace, geomspace, vander, and index functions
windows.py: window functions
"""
