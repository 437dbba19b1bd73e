"""``td.linalg``: linear algebra, the extension of the array API standard and NumPy's ``norm``; loaded at first use.

rules.py: declares operators on stacks of matrices; checks, the adjoint, Hermitian parts
cholesky.py: Cholesky factors
factorizations.py: QR, SVD and symmetric eigenvalues
eigen.py: eigenvalues of general matrices
solving.py: solve, inv, determinants, pinv, matrix_power
norms.py: vector and matrix norms, matrix_rank
stacks.py: diagonal and trace with the standard's axes
"""

from ..operators.contraction.kron import cross as cross
from ..operators.contraction.matmul import matmul as matmul
from ..operators.contraction.matmul import outer as outer
from ..operators.contraction.matmul import tensordot as tensordot
from ..operators.contraction.matmul import vecdot as vecdot
from ..operators.shape.rearrange import matrix_transpose as matrix_transpose
from .cholesky import cholesky as cholesky
from .cholesky import cholesky_ex as cholesky_ex
from .eigen import eig as eig
from .eigen import eigvals as eigvals
from .factorizations import eigh as eigh
from .factorizations import eigvalsh as eigvalsh
from .factorizations import qr as qr
from .factorizations import svd as svd
from .factorizations import svdvals as svdvals
from .norms import matrix_norm as matrix_norm
from .norms import matrix_rank as matrix_rank
from .norms import norm as norm
from .norms import vector_norm as vector_norm
from .solving import det as det
from .solving import inv as inv
from .solving import matrix_power as matrix_power
from .solving import pinv as pinv
from .solving import slogdet as slogdet
from .solving import solve as solve
from .stacks import diagonal as diagonal
from .stacks import trace as trace
