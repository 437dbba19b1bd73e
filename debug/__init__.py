"""Debugging: printing and callbacks from compiled code, NaN detection, errors as values.

api.py: the public functions; their implementation is imported at the first call
printing.py: ``print``
callbacks.py, host_calls.py: operators that call Python functions, and their arguments and results
nan_mode.py: ``nans``
checks.py, checkify_bodies.py, bounds.py: ``checkify``: the mode, loops and branches, indices
"""

from .api import callback as callback
from .api import nans as nans
from .api import print as print
