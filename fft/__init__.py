"""``td.fft``: discrete Fourier transforms, the extension of the array API standard; loaded at first use.

sums.py: the three primitives c2c, r2c and c2r
declared.py: declares transforms; normalization, axes and lengths
single.py: transforms along one axis
several.py: transforms along several axes
frequencies.py: fftfreq, fftshift and their variants
"""

from .. import lazy as _lazy
from .frequencies import fftfreq as fftfreq
from .frequencies import fftshift as fftshift
from .frequencies import ifftshift as ifftshift
from .frequencies import rfftfreq as rfftfreq
from .several import fft2 as fft2
from .several import fftn as fftn
from .several import ifft2 as ifft2
from .several import ifftn as ifftn
from .several import irfft2 as irfft2
from .several import irfftn as irfftn
from .several import rfft2 as rfft2
from .several import rfftn as rfftn
from .single import fft as fft
from .single import hfft as hfft
from .single import ifft as ifft
from .single import ihfft as ihfft
from .single import irfft as irfft
from .single import rfft as rfft

_lazy.refuse_unknown(__name__, "td.fft.")
