"""NumPy's arrays as arguments of public functions that are written in Python.

Operators convert their arguments by their schemas. A function that is written with operators reads the shape of an
argument or asks whether it is a tensor before it calls one, so its arrays are converted when it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ...registry.values import converters

P = ParamSpec("P")
R = TypeVar("R")


def accept_arrays(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: arrays among the arguments, and in lists and tuples of them, are converted to tensors."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = [convert(value) for value in args]
        options: Any = {name: convert(value) for name, value in kwargs.items()}
        return function(*given, **options)

    vars(call)["accepts_arrays"] = True
    return call


def convert(value: object) -> object:
    """The tensor of an array; lists and tuples with their items converted; other values unchanged."""
    if isinstance(value, np.ndarray):
        return converters[np.ndarray](value)
    if isinstance(value, np.generic):
        return converters[np.generic](value)
    if type(value) is list:
        return [convert(item) for item in value]
    return tuple([convert(item) for item in value]) if type(value) is tuple else value
