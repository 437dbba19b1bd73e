"""The operators, one declaration each, by family; ``families.py`` lists those that are loaded later."""

from . import arithmetic as arithmetic
from . import bitwise as bitwise
from . import casting as casting
from . import comparison as comparison
from . import contraction as contraction
from . import creation as creation
from . import exponential as exponential
from . import filled as filled
from . import gathering as gathering
from . import indexing as indexing
from . import picking as picking
from . import rearrange as rearrange
from . import reductions as reductions
from . import rounding as rounding
from . import scans as scans
from . import selection as selection
from . import slicing as slicing
from . import views as views
from .aliases import ALIASES as ALIASES
