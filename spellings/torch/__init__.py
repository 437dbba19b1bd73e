"""``tandem.torch``: tandem with PyTorch's meaning of calls that PyTorch and NumPy both have.

reductions.py: max, min, median, std, var, sort, ...: values with indices, and N - 1
result_dtypes.py: sum, prod, cumsum, softmax, ...: int64 for unsigned integers, and ``dtype``
groups.py: unique_consecutive
positions.py: bucketize, searchsorted, msort
histograms.py: histc, histogram, histogramdd
shapes.py: split, transpose, repeat, nonzero, meshgrid, ...
combining.py: block_diag, cartesian_prod, combinations
diagonals.py: diag_embed, diagonal_scatter, slice_scatter
arithmetic.py: equal, allclose, float_power
complex_views.py: view_as_real, view_as_complex; conjugates
special_functions.py: igamma, polygamma, mvlgamma
creation.py: tensors from data; zeros, arange, ... with requires_grad and out
sampling.py: manual_seed, rand, randn, bernoulli, ...
distances.py: norm, dist, cdist, renorm
linear_algebra.py: cholesky_solve, svd, logdet, ...
spectra.py: stft, istft, windows
function_forms.py: batch_norm, embedding, fill, ...
calls.py: cond, set_printoptions
methods.py, in_place.py, filling.py: methods of tensors that PyTorch alone has
compiling.py: compile
settings.py: set_default_device, use_deterministic_algorithms, ...
devices.py: device, Size, memory_format
typed_tensors.py: FloatTensor, LongTensor, ...
files.py: load, save
func.py: torch.func, and vmap
amp.py: autocast and GradScaler
distributions: ``torch.distributions``
autograd: ``torch.autograd`` and its modules
backends: ``torch.backends``, settings without an effect
cuda: ``torch.cuda`` and ``torch.cuda.amp``
fft.py, linalg.py, random.py, special.py: the modules of these names
nn: the modules and functions of ``tandem.nn``, under ``torch.nn`` and its modules' names
utils: checkpoints, and data sets, samplers and loaders
optim: the optimizers and schedulers of ``tandem.optim``

All other names are those of ``tandem``. There is one class of tensors: methods follow NumPy, except for calls with a
keyword that only PyTorch has, such as ``x.max(dim=1)``.
"""

from .. import __version__ as __version__
from .. import lazy as _lazy
from ..eager.tensor.tensor import Tensor as _Tensor
from ..registry.dtypes import DType as dtype  # noqa: N813
from ..registry.dtypes import bfloat16 as bfloat16
from ..registry.dtypes import complex64 as cfloat
from ..registry.dtypes import complex128 as cdouble
from ..registry.dtypes import float16 as half
from ..registry.dtypes import float32 as float
from ..registry.dtypes import float64 as double
from ..registry.dtypes import int16 as short
from ..registry.dtypes import int32 as int
from ..registry.dtypes import int64 as long
from ..spellings.forwarding import add_in_place_functions as _add_in_place_functions
from ..spellings.forwarding import forward_to_tandem as _forward_to_tandem
from .arithmetic import allclose as allclose
from .arithmetic import equal as equal
from .arithmetic import float_power as float_power
from .creation import arange as arange
from .creation import as_tensor as as_tensor
from .creation import complex as complex
from .creation import empty as empty
from .creation import empty_like as empty_like
from .creation import empty_strided as empty_strided
from .creation import eye as eye
from .creation import from_file as from_file
from .creation import from_numpy as from_numpy
from .creation import frombuffer as frombuffer
from .creation import full as full
from .creation import full_like as full_like
from .creation import linspace as linspace
from .creation import logspace as logspace
from .creation import ones as ones
from .creation import ones_like as ones_like
from .creation import polar as polar
from .creation import range as range
from .creation import tensor as tensor
from .creation import tril_indices as tril_indices
from .creation import triu_indices as triu_indices
from .creation import zeros as zeros
from .creation import zeros_like as zeros_like
from .reductions import argsort as argsort
from .reductions import cumulative_trapezoid as cumulative_trapezoid
from .reductions import kthvalue as kthvalue
from .reductions import max as max
from .reductions import median as median
from .reductions import min as min
from .reductions import mode as mode
from .reductions import nanmedian as nanmedian
from .reductions import sort as sort
from .reductions import std as std
from .reductions import std_mean as std_mean
from .reductions import topk as topk
from .reductions import trapz as trapz
from .reductions import unique as unique
from .reductions import var as var
from .reductions import var_mean as var_mean
from .shapes import cross as cross
from .shapes import flip as flip
from .shapes import fliplr as fliplr
from .shapes import flipud as flipud
from .shapes import meshgrid as meshgrid
from .shapes import nonzero as nonzero
from .shapes import numel as numel
from .shapes import repeat as repeat
from .shapes import rot90 as rot90
from .shapes import select as select
from .shapes import split as split
from .shapes import squeeze as squeeze
from .shapes import tensor_split as tensor_split
from .shapes import transpose as transpose
from .shapes import where as where

# Other names whose modules are imported at their first use.
_own = _lazy.attach(
    __name__,
    {
        ".torch.calls": "cond finfo is_storage set_printoptions",
        ".torch.combining": "block_diag broadcast_tensors cartesian_prod combinations",
        ".torch.compiling": "compile",
        ".torch.complex_views": (
            "conj_physical imag is_conj real resolve_conj resolve_neg view_as_complex view_as_real"
        ),
        ".torch.devices": (
            "Size channels_last channels_last_3d contiguous_format device memory_format preserve_format"
        ),
        ".torch.diagonals": "diag_embed diagonal_scatter narrow_copy select_scatter slice_scatter",
        ".torch.distances": "cdist dist norm pdist renorm",
        ".torch.files": "load save",
        ".torch.func": "vmap",
        ".torch.function_forms": "batch_norm detach embedding fill group_norm instance_norm scalar_tensor",
        ".nn.functional": (
            "adaptive_avg_pool1d bilinear celu celu_ channel_shuffle cosine_similarity pairwise_distance pixel_shuffle "
            "pixel_unshuffle prelu rms_norm rrelu rrelu_ selu selu_ threshold threshold_"
        ),
        ".torch.groups": "unique_consecutive",
        ".torch.histograms": "histc histogram histogramdd",
        ".torch.linear_algebra": (
            "chain_matmul cholesky cholesky_inverse cholesky_solve geqrf logdet lu lu_solve lu_unpack matrix_exp orgqr "
            "ormqr pca_lowrank qr slogdet svd svd_lowrank triangular_solve"
        ),
        ".torch.methods": "index_reduce",
        ".torch.reductions": "gradient",
        ".torch.result_dtypes": ("cumprod cumsum log_softmax nansum prod softmax sum trace"),
        ".torch.positions": "bucketize msort searchsorted",
        ".torch.sampling": (
            "bernoulli get_rng_state initial_seed manual_seed multinomial normal poisson rand rand_like randint "
            "randint_like randn randn_like randperm seed set_rng_state"
        ),
        ".torch.settings": (
            "are_deterministic_algorithms_enabled get_default_device get_float32_matmul_precision "
            "is_deterministic_algorithms_warn_only_enabled set_default_device set_float32_matmul_precision "
            "use_deterministic_algorithms"
        ),
        ".torch.spectra": (
            "bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft"
        ),
        ".torch.special_functions": "hardshrink i0 igamma igammac mvlgamma polygamma",
        ".torch.typed_tensors": (
            "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
            "ShortTensor"
        ),
    },
    {
        "amp": ".torch.amp",
        "autograd": ".torch.autograd",
        "backends": ".torch.backends",
        "cuda": ".torch.cuda",
        "distributions": ".torch.distributions",
        "func": ".torch.func",
        "linalg": ".torch.linalg",
        "nn": ".torch.nn",
        "random": ".torch.random",
        "utils": ".torch.utils",
    },
)
__getattr__, __dir__ = _forward_to_tandem(__name__, _add_in_place_functions(__name__, _own, _Tensor))
