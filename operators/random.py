"""``td.random``: random numbers as pure functions of a key.

A key is a uint32 tensor of four words. The same key gives the same numbers, eager, jitted and on every backend; new
numbers need a new key, from ``split`` or ``fold_in``. Nothing is kept between calls.

>>> import tandem as td
>>> first, second = td.random.split(td.random.key(0))
>>> td.random.normal(first, (2, 3)).shape
(2, 3)
>>> bool((td.random.uniform(second, 4) == td.random.uniform(second, 4)).all())
True
"""

from __future__ import annotations

from .random_keys import fold_in, key, random_bits, split
from .random_numbers import bernoulli, integers, normal, permutation, uniform

bits = random_bits

__all__ = ["bernoulli", "bits", "fold_in", "integers", "key", "normal", "permutation", "split", "uniform"]
