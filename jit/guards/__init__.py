"""Guards: the conditions under which a specialization may run a call.

leaves.py: cache keys and guards of argument leaves
externals.py: closure cells and globals
integer_ranges.py: ranges of integer parameters
versions.py: versions of the registry's operators
"""
