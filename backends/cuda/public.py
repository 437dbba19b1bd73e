"""The public namespace ``td.cuda``: devices, streams, events and memory.

Nothing here loads CUDA before a device is used. Names and meanings are PyTorch's.

Source: ``torch.cuda``.
"""

from ...errors import OutOfMemoryError as OutOfMemoryError
from .runtime.devices import DeviceProperties as DeviceProperties
from .runtime.devices import current_device as current_device
from .runtime.devices import device as device
from .runtime.devices import device_count as device_count
from .runtime.devices import get_device_capability as get_device_capability
from .runtime.devices import get_device_name as get_device_name
from .runtime.devices import get_device_properties as get_device_properties
from .runtime.devices import is_available as is_available
from .runtime.devices import set_device as set_device
from .runtime.devices import why_unavailable as why_unavailable
from .runtime.memory import empty_cache as empty_cache
from .runtime.memory import max_memory_allocated as max_memory_allocated
from .runtime.memory import mem_get_info as mem_get_info
from .runtime.memory import memory_allocated as memory_allocated
from .runtime.memory import memory_reserved as memory_reserved
from .runtime.memory import memory_stats as memory_stats
from .runtime.memory import reset_peak_memory_stats as reset_peak_memory_stats
from .runtime.streams import Event as Event
from .runtime.streams import Stream as Stream
from .runtime.streams import current_stream as current_stream
from .runtime.streams import default_stream as default_stream
from .runtime.streams import synchronize as synchronize

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("backends", "errors")]
