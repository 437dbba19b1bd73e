"""``tandem.jax.scipy``: special functions, linear algebra and densities.

special.py: ``td.special`` with ``logsumexp`` and SciPy's other names
linalg.py: linear algebra with SciPy's arguments
stats/: densities and probabilities of distributions
combinatorial.py: factorial, poch, multigammaln, kl_div, rel_entr
exponential_integrals.py: exp1, expn
"""

from . import linalg as linalg
from . import special as special
from . import stats as stats
