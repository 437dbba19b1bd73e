"""Debugging: printing and callbacks from compiled code, NaN detection, errors as values.

api.py: the public functions; their implementation is imported at the first call
printing.py: ``print``
callbacks.py: operators that call Python functions
host_calls.py: the arguments and results of these functions
nan_mode.py: ``nans``
checks.py: ``checkify``: the mode, and the errors that it collects
checkify_bodies.py: ``checkify`` of loops and branches
index_checks.py: ``checkify`` of indices that are out of bounds
differences.py: calls whose meaning differs between libraries
name_checks.py: ``strict_names``, which raises for them
"""

from .api import callback as callback
from .api import nans as nans
from .api import print as print
from .api import strict_names as strict_names
