"""``tandem.jax.scipy``: special functions, linear algebra and densities.

special.py: ``td.special`` with ``logsumexp`` and SciPy's other names
linalg.py: linear algebra with SciPy's arguments
stats.py: densities of the normal distribution
"""

from . import linalg as linalg
from . import special as special
from . import stats as stats
