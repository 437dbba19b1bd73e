"""Guards: the conditions under which a specialization may run a call.

guard.py: what every guard has: check, explain, emit
leaves.py: cache keys and guards of argument leaves
externals.py: closure cells and globals
captured.py: captured tensors
integer_ranges.py: ranges of integer parameters
versions.py: versions of the registry's operators
"""
