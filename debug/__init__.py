"""Looking into programs: printing and calling Python from compiled code, finding the first NaN, errors as values.

What this runs on is loaded at first use.
"""

from .doors import callback as callback
from .doors import nans as nans
from .doors import print as print
