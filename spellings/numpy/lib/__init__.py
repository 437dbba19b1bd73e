"""``tandem.numpy.lib``, also ``td.lib``: the submodule ``stride_tricks``."""

from . import stride_tricks as stride_tricks
