"""``tandem.jax.ops``: reductions of segments."""

from ..operators.reductions.segments import segment_max as segment_max
from ..operators.reductions.segments import segment_min as segment_min
from ..operators.reductions.segments import segment_prod as segment_prod
from ..operators.reductions.segments import segment_sum as segment_sum
from ..spellings.forwarding import refuse_unknown as _refuse_unknown

__getattr__ = _refuse_unknown(__name__)
