"""A stateful source of random numbers, for those who come from PyTorch; it makes a new key for each draw."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..operators import random
from ..operators.casting import astype
from ..operators.joining import concat
from ..operators.random_typed import Key
from ..registry.dtypes import int64, uint32
from .batched.tensor import wrap_batched
from .levels import stack
from .recompute import draws
from .tensor import Tensor, wrap

CHOICES = ("error", "same", "different")
WORDS = 4  # of the state: those of the key; behind them comes the number of keys that it has made
# What gives a state to draw from while a function is traced; the tracer registers it.
entrances: list[Callable[[Tensor], Tensor]] = []


class _Again(threading.local):
    """What is drawn again: by the id of a state it, and what is drawn from; and the levels that do not count."""

    def __init__(self) -> None:
        self.states: dict[int, tuple[Any, Any]] = {}
        self.levels: tuple[Any, ...] = ()
        self.mixed = False


_again = _Again()


@contextmanager
def drawing_again(
    states: Sequence[Any], instead: Sequence[Any], unbatched: bool, mixed: bool
) -> Iterator[None]:
    """For a ``with`` block, in which a function runs that has run before, draw the same numbers once more.

    Args:
        states: the states of the generators that it reaches by itself.
        instead: copies of what they were at first.
        unbatched: whether it ran under none of the levels of ``vmap`` that are open now.
        mixed: whether it ran under some of them, so that numbers of each example's own cannot be drawn again.
    """
    before = _again.states, _again.levels, _again.mixed
    _again.states = {**before[0], **{id(x): (x, other) for x, other in zip(states, instead, strict=True)}}
    _again.levels, _again.mixed = tuple(stack.levels) if unbatched else before[1], mixed or before[2]
    try:
        yield
    finally:
        _again.states, _again.levels, _again.mixed = before


def _seeded(seed: Any) -> Any:
    """The state of a generator that has made no key."""
    words = random.key(seed).words
    if words.shape != (WORDS,):
        raise ShapeError(f"Generator: takes one seed, not a tensor of shape {words.shape[:-1]}")
    return concat((astype(words, int64), wrap(np.zeros(1, np.int64))), 0)


@dataclass(eq=False, repr=False, init=False)
class Generator:
    """A stateful source of random numbers: each draw makes a new key, and every sampler of ``td.random`` is a method.

    In a jitted function its state is a hidden input that is written back after the call, whether the generator is an
    argument or reached by a closure. Where that cannot be (in the body of a loop or branch of the graph) a draw
    raises, and keys are what works.

    Args:
        seed: an int of at most 64 bits.
        randomness: what a draw under :func:`tandem.vmap` does: ``"error"`` raises, ``"same"`` gives all examples the
            same numbers, ``"different"`` gives each its own.

    Raises:
        DTypeError, ValueArgumentError: that is no seed.
        ArgumentError: another choice.

    >>> import tandem as td
    >>> gen = td.Generator(0)
    >>> gen.normal((2, 3)).shape
    (2, 3)
    >>> state = gen.get_state()
    >>> x = gen.uniform(4)
    >>> gen.set_state(state)
    >>> bool((gen.uniform(4) == x).all())
    True
    """

    _state: Any
    randomness: str = field(default="error", metadata={"static": True})

    def __init__(self, seed: Any = 0, *, randomness: str = "error"):
        if randomness not in CHOICES:
            raise ArgumentError(f"Generator: randomness is one of {', '.join(CHOICES)}, not {randomness!r}")
        self._state, self.randomness = _seeded(seed), randomness

    if TYPE_CHECKING:

        def __getattr__(self, sampler: str) -> Callable[..., Any]: ...

    def manual_seed(self, seed: Any) -> Generator:
        """Start again from a seed; returns the generator.

        Raises:
            DTypeError, ValueArgumentError: that is no seed.
            UnsupportedError: a function is being traced that cannot write the state back.
        """
        self._entered()[...] = _seeded(seed)
        return self

    def get_state(self) -> Tensor:
        """A copy of the state, an int64 tensor of five elements."""
        found: Tensor = self._entered().clone()
        return found

    def set_state(self, state: Any) -> None:
        """Go on from a state that :meth:`get_state` gave.

        Raises:
            DTypeError, ShapeError: that is none.
            UnsupportedError: a function is being traced that cannot write the state back.
        """
        if not isinstance(state, Tensor) or state.dtype is not int64:
            raise DTypeError(f"set_state takes what get_state gave, not {state!r}")
        if state.shape != (WORDS + 1,):
            raise ShapeError(
                f"set_state takes a state of {WORDS + 1} elements, not one of shape {state.shape}"
            )
        self._entered()[...] = state

    def _entered(self) -> Any:
        """The state, or what stands for it in a trace."""
        _, found = _again.states.get(id(self._state), (None, self._state))
        for entrance in entrances:
            found = entrance(found)
        draws(found)
        return found

    def key(self) -> Key:
        """A new key: the next one.

        Raises:
            UnsupportedError: a function is being traced that cannot write the state back; or this is under ``vmap``,
                and ``randomness`` says that it raises.
        """
        levels = [level for level in stack.levels if level.batch_size and level not in _again.levels]
        if levels and self.randomness == "error":
            raise UnsupportedError(
                f"a Generator draws under {levels[-1].name}; say Generator(seed, randomness='different') for numbers "
                "of each example's own, randomness='same' for the same ones, or pass a batch of keys: "
                "td.random.split(key, n)"
            )
        if levels and _again.mixed and self.randomness == "different":
            raise UnsupportedError(
                f"a jitted function has drawn from a Generator under vmap, and its gradient is taken under "
                f"{levels[-1].name} as well, where numbers of each example's own cannot be drawn again; pass a batch "
                "of keys: td.random.split(key, n)"
            )
        state = self._entered()
        made: Key = random.fold_in(Key(astype(state[:WORDS], uint32)), state[WORDS])
        state[WORDS] = state[WORDS] + 1
        if self.randomness == "different":
            for level in levels:
                made = random.fold_in(made, wrap_batched(level, wrap(np.arange(level.batch_size))))
        return made

    def __repr__(self) -> str:
        return f"<Generator, {self.randomness!r} under vmap>"


def _method(name: str) -> Callable[..., Any]:
    function = getattr(random, name)

    def draw(self: Generator, *args: Any, **kwargs: Any) -> Any:
        return function(self.key(), *args, **kwargs)

    draw.__doc__ = f"What :func:`tandem.random.{name}` gives for a new key; the other arguments are the same."
    draw.__name__, draw.__qualname__ = name, f"Generator.{name}"
    return draw


_NOT_DRAWN = ("Key", "clone", "fold_in", "key", "key_data", "wrap_key_data")
for _name in random.__all__:
    if _name not in _NOT_DRAWN:
        setattr(Generator, _name, _method(_name))
