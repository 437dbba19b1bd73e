"""``tandem.numpy.lib``, also ``td.lib``.

stride_tricks.py: ``sliding_window_view``, and broadcasting
"""

from . import stride_tricks as stride_tricks
