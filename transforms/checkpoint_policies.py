"""Policies for ``td.checkpoint``: choose the results that are saved instead of recomputed."""

from .checkpoint import checkpoint_dots as checkpoint_dots
from .checkpoint import checkpoint_dots_with_no_batch_dims as checkpoint_dots_with_no_batch_dims
from .checkpoint import dots_saveable as dots_saveable
from .checkpoint import dots_with_no_batch_dims_saveable as dots_with_no_batch_dims_saveable
from .checkpoint import everything_saveable as everything_saveable
from .checkpoint import nothing_saveable as nothing_saveable
from .checkpoint import save_any_names_but_these as save_any_names_but_these
from .checkpoint import save_from_both_policies as save_from_both_policies
from .checkpoint import save_only_these_names as save_only_these_names
