"""The operators, one declaration each.

declare: declarations, kinds of operators, derivatives, shape rules, batching rules, docstrings
scalar_ir: the scalar IR, in which bodies of elementwise operators are written
elementwise, reductions, shape, indexing, creation, contraction, nn, random, sparse_quantized: the families
foreign: kernels in C and LLVM IR
collective.py: psum and all_gather along a named axis of vmap
remat.py: markers for ``checkpoint``

Importing this package declares the core operators; ``declare/lazy_modules.py`` lists those that are declared lazily.
"""

from .contraction import matmul as matmul
from .creation import creation as creation
from .creation import full as full
from .declare.aliases import ALIASES as ALIASES
from .elementwise import arithmetic as arithmetic
from .elementwise import bitwise as bitwise
from .elementwise import casting as casting
from .elementwise import comparison as comparison
from .elementwise import exponential as exponential
from .elementwise import rounding as rounding
from .elementwise import selection as selection
from .indexing import gather as gather
from .indexing import slicing as slicing
from .indexing import subscript as subscript
from .indexing import take as take
from .reductions import folds as folds
from .reductions import scans as scans
from .shape import rearrange as rearrange
from .shape import views as views
