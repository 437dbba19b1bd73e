"""The generator that initializers and dropout draw from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.tensor.generator import default_generator

if TYPE_CHECKING:
    from ..eager.tensor.generator import Generator


def manual_seed(seed: int) -> Generator:
    """Reset the generator that initializers and dropout draw from; return it.

    >>> import tandem as td
    >>> generator = td.nn.manual_seed(0)
    >>> first = td.nn.Linear(2, 3)
    >>> generator = td.nn.manual_seed(0)
    >>> bool((td.nn.Linear(2, 3).weight == first.weight).all())
    True
    """
    return default_generator.manual_seed(seed)
