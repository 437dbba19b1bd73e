"""``tandem.numpy``: tandem with NumPy's default dtypes: float64, complex128 and int64.

array_likes.py: lists of numbers as arguments
array_type.py: ``ndarray``
decompositions.py: linear algebra with NumPy's arguments
elementwise.py: reciprocal, nan_to_num
grids.py: meshgrid, indices
histograms.py: the number of bins by NumPy's rules
mapping.py: vectorize
padding.py: pad, also with a function
polynomials.py: polydiv
quantiles.py: quantiles with weights
linalg.py, fft.py: ``td.linalg`` and ``td.fft`` for such arguments
emath.py: functions that are complex outside of their domain
lib: ``lib.stride_tricks``
composed_distributions.py: distributions from samples of others
creation.py: creation functions with these defaults, ``array``
random.py: generators with NumPy's methods
reductions.py: sum, mean, max, ... with ``dtype``, ``initial`` and ``where``
shapes.py: joining, reshaping, clipping, and indexing with NumPy's arguments
files.py: npy and npz files
floating_errors.py: ``errstate``, ``seterr``
methods.py: methods of NumPy's arrays, such as ``x.fill`` and ``x.tobytes``
layouts.py: tensors like others, copies and casts, with the arguments ``order``, ``shape`` and ``casting``
memory.py: memory and text as tensors, and questions about memory
searching.py: sort, argwhere, flatnonzero, intersect1d
wrappers.py: callables that share the native entry of an operator's function
writing.py: functions that write into a tensor

All other names are those of ``tandem``, which follows NumPy.
"""

from numpy import False_ as False_
from numpy import True_ as True_
from numpy import base_repr as base_repr
from numpy import binary_repr as binary_repr
from numpy import character as character
from numpy import exceptions as exceptions
from numpy import flexible as flexible
from numpy import format_float_positional as format_float_positional
from numpy import format_float_scientific as format_float_scientific
from numpy import mintypecode as mintypecode
from numpy import ndindex as ndindex
from numpy import object_ as object_
from numpy import typename as typename

from .. import __version__ as __version__
from .. import lazy as _lazy
from ..registry.dtypes import DType as _DType
from ..spellings.forwarding import adapt_own as _adapt_own
from ..spellings.forwarding import forward_to_tandem as _forward_to_tandem
from . import emath as emath
from . import fft as fft
from . import linalg as linalg
from .array_likes import accept_lists as _accept_lists
from .array_type import ndarray as ndarray
from .creation import arange as arange
from .creation import array as array
from .creation import asarray as asanyarray
from .creation import asarray as asarray
from .creation import bartlett as bartlett
from .creation import blackman as blackman
from .creation import c_ as c_
from .creation import empty as empty
from .creation import eye as eye
from .creation import fromfunction as fromfunction
from .creation import full as full
from .creation import geomspace as geomspace
from .creation import hamming as hamming
from .creation import hanning as hanning
from .creation import identity as identity
from .creation import kaiser as kaiser
from .creation import linspace as linspace
from .creation import logspace as logspace
from .creation import mgrid as mgrid
from .creation import ogrid as ogrid
from .creation import ones as ones
from .creation import r_ as r_
from .creation import tri as tri
from .creation import zeros as zeros
from .decompositions import cross as cross
from .elementwise import nan_to_num as nan_to_num
from .elementwise import reciprocal as reciprocal
from .files import load as load
from .files import save as save
from .files import savetxt as savetxt
from .files import savez as savez
from .files import savez_compressed as savez_compressed
from .floating_errors import errstate as errstate
from .floating_errors import geterr as geterr
from .floating_errors import seterr as seterr
from .grids import indices as indices
from .grids import meshgrid as meshgrid
from .histograms import histogram as histogram
from .histograms import histogram_bin_edges as histogram_bin_edges
from .layouts import astype as astype
from .layouts import copy as copy
from .layouts import empty_like as empty_like
from .layouts import full_like as full_like
from .layouts import ones_like as ones_like
from .layouts import require as require
from .layouts import zeros_like as zeros_like
from .mapping import vectorize as vectorize
from .memory import asarray_chkfinite as asarray_chkfinite
from .memory import ascontiguousarray as ascontiguousarray
from .memory import asfortranarray as asfortranarray
from .memory import common_type as common_type
from .memory import einsum as einsum
from .memory import einsum_path as einsum_path
from .memory import frombuffer as frombuffer
from .memory import fromfile as fromfile
from .memory import fromiter as fromiter
from .memory import fromstring as fromstring
from .memory import genfromtxt as genfromtxt
from .memory import imag as imag
from .memory import isfortran as isfortran
from .memory import loadtxt as loadtxt
from .memory import may_share_memory as may_share_memory
from .memory import min_scalar_type as min_scalar_type
from .memory import ndenumerate as ndenumerate
from .memory import real as real
from .memory import real_if_close as real_if_close
from .memory import shares_memory as shares_memory
from .padding import pad as pad
from .polynomials import polydiv as polydiv
from .quantiles import nanpercentile as nanpercentile
from .quantiles import nanquantile as nanquantile
from .quantiles import percentile as percentile
from .quantiles import quantile as quantile
from .reductions import all as all
from .reductions import amax as amax
from .reductions import amin as amin
from .reductions import any as any
from .reductions import average as average
from .reductions import max as max
from .reductions import mean as mean
from .reductions import min as min
from .reductions import nanargmax as nanargmax
from .reductions import nanargmin as nanargmin
from .reductions import nanmax as nanmax
from .reductions import nanmean as nanmean
from .reductions import nanmin as nanmin
from .reductions import nanprod as nanprod
from .reductions import nanstd as nanstd
from .reductions import nansum as nansum
from .reductions import nanvar as nanvar
from .reductions import prod as prod
from .reductions import std as std
from .reductions import sum as sum
from .reductions import var as var
from .searching import argsort as argsort
from .searching import argwhere as argwhere
from .searching import flatnonzero as flatnonzero
from .searching import intersect1d as intersect1d
from .searching import sort as sort
from .shapes import angle as angle
from .shapes import around as around
from .shapes import clip as clip
from .shapes import concat as concat
from .shapes import concatenate as concatenate
from .shapes import hstack as hstack
from .shapes import ravel as ravel
from .shapes import reshape as reshape
from .shapes import roll as roll
from .shapes import round as round
from .shapes import stack as stack
from .shapes import take as take
from .shapes import vstack as vstack
from .shapes import where as where
from .writing import copyto as copyto
from .writing import fill_diagonal as fill_diagonal
from .writing import place as place
from .writing import put as put
from .writing import put_along_axis as put_along_axis
from .writing import putmask as putmask

dtype = _DType
_own = _lazy.attach(__name__, {}, {"random": ".numpy.random", "testing": "numpy.testing"})
_adapt_own(__name__, [_name for _name in vars() if not _name.startswith("_")], _accept_lists)
__getattr__, __dir__ = _forward_to_tandem(__name__, _own, _accept_lists)
