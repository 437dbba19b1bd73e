"""CUDA devices, streams, events and memory: what ``td.cuda`` offers.

Nothing here loads CUDA before a device is asked for. Names and meanings are PyTorch's.

Source: ``torch.cuda``.
"""

from .backends.cuda.devices import DeviceProperties as DeviceProperties
from .backends.cuda.devices import device_count as device_count
from .backends.cuda.info import current_device as current_device
from .backends.cuda.info import device as device
from .backends.cuda.info import get_device_capability as get_device_capability
from .backends.cuda.info import get_device_name as get_device_name
from .backends.cuda.info import get_device_properties as get_device_properties
from .backends.cuda.info import is_available as is_available
from .backends.cuda.info import set_device as set_device
from .backends.cuda.info import why_unavailable as why_unavailable
from .backends.cuda.memory import empty_cache as empty_cache
from .backends.cuda.memory import max_memory_allocated as max_memory_allocated
from .backends.cuda.memory import mem_get_info as mem_get_info
from .backends.cuda.memory import memory_allocated as memory_allocated
from .backends.cuda.memory import memory_reserved as memory_reserved
from .backends.cuda.memory import memory_stats as memory_stats
from .backends.cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from .backends.cuda.streams import Event as Event
from .backends.cuda.streams import Stream as Stream
from .backends.cuda.streams import current_stream as current_stream
from .backends.cuda.streams import default_stream as default_stream
from .backends.cuda.streams import synchronize as synchronize
from .errors import OutOfMemoryError as OutOfMemoryError

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("backends", "errors")]
