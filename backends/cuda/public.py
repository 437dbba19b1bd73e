"""CUDA devices, streams, events and memory: what ``td.cuda`` offers.

Nothing here loads CUDA before a device is asked for. Names and meanings are PyTorch's.

Source: ``torch.cuda``.
"""

from ...errors import OutOfMemoryError as OutOfMemoryError
from .devices import DeviceProperties as DeviceProperties
from .devices import device_count as device_count
from .info import current_device as current_device
from .info import device as device
from .info import get_device_capability as get_device_capability
from .info import get_device_name as get_device_name
from .info import get_device_properties as get_device_properties
from .info import is_available as is_available
from .info import set_device as set_device
from .info import why_unavailable as why_unavailable
from .memory import empty_cache as empty_cache
from .memory import max_memory_allocated as max_memory_allocated
from .memory import mem_get_info as mem_get_info
from .memory import memory_allocated as memory_allocated
from .memory import memory_reserved as memory_reserved
from .memory import memory_stats as memory_stats
from .memory import reset_peak_memory_stats as reset_peak_memory_stats
from .streams import Event as Event
from .streams import Stream as Stream
from .streams import current_stream as current_stream
from .streams import default_stream as default_stream
from .streams import synchronize as synchronize

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("backends", "errors")]
