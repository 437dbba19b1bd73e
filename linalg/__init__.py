"""``td.linalg``: linear algebra, the extension of the array API standard and NumPy's ``norm``; loaded at first use.

rules.py: declares operators on stacks of matrices; checks, the adjoint, Hermitian parts
cholesky.py: Cholesky factors
factorizations.py: QR, SVD and symmetric eigenvalues
eigen.py: eigenvalues of general matrices
solving.py: solve, inv, determinants, matrix_power
pseudo_inverses.py: pinv
norms.py: vector and matrix norms, matrix_rank
results.py: named tuples of the functions with several results
tensors.py: cond, lstsq, multi_dot, tensorinv, tensorsolve
triangular.py: solve_triangular
lu.py: LU factors, and what is solved with them
householder.py: products of Householder reflections
exponentials.py: matrix_exp
polynomials.py: poly, polyfit, roots
stacks.py: diagonal and trace with the standard's axes
"""

from .. import lazy as _lazy
from ..operators.contraction.kron import cross as cross
from ..operators.contraction.matmul import matmul as matmul
from ..operators.contraction.matmul import outer as outer
from ..operators.contraction.matmul import tensordot as tensordot
from ..operators.contraction.matmul import vecdot as vecdot
from ..operators.shape.rearrange import matrix_transpose as matrix_transpose
from .cholesky import cholesky as cholesky
from .cholesky import cholesky_ex as cholesky_ex
from .eigen import eigvals as eigvals
from .exponentials import matrix_exp as matrix_exp
from .factorizations import eigvalsh as eigvalsh
from .factorizations import svdvals as svdvals
from .householder import geqrf as geqrf
from .householder import householder_product as householder_product
from .householder import ormqr as ormqr
from .lu import LUFactorResult as LUFactorResult
from .lu import LUResult as LUResult
from .lu import lu as lu
from .lu import lu_factor as lu_factor
from .lu import lu_solve as lu_solve
from .lu import lu_unpack as lu_unpack
from .norms import matrix_norm as matrix_norm
from .norms import matrix_rank as matrix_rank
from .norms import norm as norm
from .norms import vector_norm as vector_norm
from .pseudo_inverses import pinv as pinv
from .results import EighResult as EighResult
from .results import EigResult as EigResult
from .results import LstsqResult as LstsqResult
from .results import QRResult as QRResult
from .results import SlogdetResult as SlogdetResult
from .results import SVDResult as SVDResult
from .results import eig as eig
from .results import eigh as eigh
from .results import lstsq as lstsq
from .results import qr as qr
from .results import slogdet as slogdet
from .results import svd as svd
from .solving import det as det
from .solving import inv as inv
from .solving import matrix_power as matrix_power
from .solving import solve as solve
from .stacks import diagonal as diagonal
from .stacks import trace as trace
from .tensors import cond as cond
from .tensors import multi_dot as multi_dot
from .tensors import tensorinv as tensorinv
from .tensors import tensorsolve as tensorsolve
from .triangular import solve_triangular as solve_triangular

_lazy.refuse_unknown(__name__, "td.linalg.")
