"""``tandem.jax.errors``: the errors of ``td.errors`` under the names of JAX's, where these mean the same.

``ConcretizationTypeError`` and the three errors of conversions are one class here.
"""

from ..errors import ConcretizationError as _ConcretizationError
from ..errors import LeakedTracerError as _LeakedTracerError
from ..errors import TracerError as _TracerError
from ..spellings.forwarding import forward_to as _forward_to

JAXTypeError = _TracerError
ConcretizationTypeError = _ConcretizationError
TracerArrayConversionError = TracerBoolConversionError = TracerIntegerConversionError = _ConcretizationError
UnexpectedTracerError = _LeakedTracerError
__getattr__, __dir__ = _forward_to(__name__, "errors")
