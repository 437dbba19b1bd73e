"""Generator: a stateful source of random numbers, as in PyTorch; each draw uses a new key."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...operators.elementwise.casting import astype
from ...operators.random import namespace
from ...operators.random.typed_keys import Key
from ...operators.shape.joining import concat
from ...registry.dtypes import int64, uint32
from ..autograd.recompute import note_draws
from ..compiled import compile_when_hot, compile_writes_when_hot
from ..hot_calls import kind_of, kinds_of_containers
from ..layers.levels import stack
from ..layers.vmap.tensor import wrap_batched
from .generator_state import replays, state_lifters
from .tensor import Tensor, wrap

if TYPE_CHECKING:
    from ...registry.types import Function, TensorLike

CHOICES = ("error", "same", "different")
KEY_SIZE = 4  # the first elements of the state are the key; the last is the number of keys made from it


def _make_state(seed: TensorLike) -> Tensor:
    """The initial state of a generator with a seed."""
    words = namespace.key(seed).words
    if words.shape != (KEY_SIZE,):
        raise ShapeError(f"Generator: takes one seed, not a tensor of shape {words.shape[:-1]}")
    return concat((astype(words, int64), wrap(np.zeros(1, np.int64))), 0)


@dataclass(eq=False, repr=False, init=False)
class Generator:
    """A stateful source of random numbers: each draw uses a new key, and every sampler of ``td.random`` is a method.

    In a jitted function its state is a hidden input that is written back after the call, whether the generator is an
    argument or captured by a closure. In the body of a traced loop or branch a draw raises; use keys there.

    Args:
        seed: an int of at most 64 bits.
        randomness: what a draw under :func:`tandem.vmap` does: ``"error"`` raises, ``"same"`` gives all examples the
            same numbers, ``"different"`` gives each its own.

    Raises:
        DTypeError, ValueArgumentError: the seed is invalid.
        ArgumentError: ``randomness`` has another value.

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

    _state: Tensor
    randomness: str = field(default="error", metadata={"static": True})

    def __init_subclass__(cls, **kwargs: object):
        super().__init_subclass__(**kwargs)
        if cls.key is Generator.key:  # compiled calls would not run another method
            kinds_of_containers[cls] = _find_kind

    def __init__(self, seed: TensorLike = 0, *, randomness: str = "error"):
        if randomness not in CHOICES:
            raise ArgumentError(f"Generator: randomness is one of {', '.join(CHOICES)}, not {randomness!r}")
        self._state, self.randomness = _make_state(seed), randomness

    if TYPE_CHECKING:

        def __getattr__(self, sampler: str) -> Callable[..., Any]: ...

    def manual_seed(self, seed: TensorLike) -> Generator:
        """Reset the generator to a seed; return the generator.

        Raises:
            DTypeError, ValueArgumentError: the seed is invalid.
            UnsupportedError: a function is being traced that cannot write the state back.
        """
        self._current_state()[...] = _make_state(seed)
        return self

    def initial_seed(self) -> int:
        """The seed that the generator was last reset to.

        >>> import tandem as td
        >>> td.Generator(7).initial_seed()
        7
        """
        low, high = self._current_state()[:2].tolist()
        return int(low | high << 32)

    def get_state(self) -> Tensor:
        """A copy of the state, an int64 tensor of five elements."""
        result: Tensor = self._current_state().clone()
        return result

    def set_state(self, state: object) -> None:
        """Restore a state returned by :meth:`get_state`.

        Raises:
            DTypeError, ShapeError: the argument is not such a state.
            UnsupportedError: a function is being traced that cannot write the state back.
        """
        if not isinstance(state, Tensor) or state.dtype is not int64:
            raise DTypeError(f"set_state takes a result of get_state, not {state!r}")
        if state.shape != (KEY_SIZE + 1,):
            raise ShapeError(
                f"set_state takes a state of {KEY_SIZE + 1} elements, not one of shape {state.shape}"
            )
        self._current_state()[...] = state

    def _current_state(self) -> Tensor:
        """The state, or its traced or replayed counterpart."""
        _, result = replays.states.get(id(self._state), (None, self._state))
        for lifter in state_lifters:
            result = lifter(result)
        note_draws(result)
        return result

    def key(self) -> Key:
        """Return the next key.

        Raises:
            UnsupportedError: a function is being traced that cannot write the state back; or this is under ``vmap``,
                and ``randomness`` is ``"error"``.
        """
        levels = [level for level in stack.levels if level.batch_size and level not in replays.levels]
        if levels and self.randomness == "error":
            raise UnsupportedError(
                f"a Generator draws under {levels[-1].name}; use Generator(seed, randomness='different') for "
                "different numbers in each example, randomness='same' for the same ones, or pass a batch of keys: "
                "td.random.split(key, n)"
            )
        if levels and replays.mixed and self.randomness == "different":
            raise UnsupportedError(
                f"a jitted function has drawn from a Generator under vmap, and its gradient is taken under "
                f"{levels[-1].name} as well, where different numbers for each example cannot be drawn again; pass "
                "a batch of keys: td.random.split(key, n)"
            )
        state = self._current_state()
        words, state[...] = _take_key(state)
        result = Key(words)
        if self.randomness == "different":
            for level in levels:
                result = namespace.fold_in(result, wrap_batched(level, wrap(np.arange(level.batch_size))))
        return result

    def __repr__(self) -> str:
        return f"<Generator, {self.randomness!r} under vmap>"


def _find_kind(generator: Generator) -> object:
    """Return what compiled code depends on of a generator."""
    kind = kind_of(generator._state)
    return None if kind is None else (type(generator), generator.randomness, kind)


kinds_of_containers[Generator] = _find_kind


@compile_when_hot
def _take_key(state: Tensor) -> tuple[Tensor, Tensor]:
    """Make the next key of a state; returns its words and the state after it."""
    words = namespace.fold_in(astype(state[:KEY_SIZE], uint32), state[KEY_SIZE])
    return words, concat((state[:KEY_SIZE], state[KEY_SIZE:] + 1), 0)


def _method(name: str) -> Function:
    function = getattr(namespace, name)

    def draw(self: Generator, *args: object, **kwargs: object) -> object:
        return function(self.key(), *args, **kwargs)

    parameters = list(inspect.signature(function).parameters.values())
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    draw.__signature__ = inspect.Signature([first, *parameters[1:]])  # type: ignore[attr-defined]
    draw.__doc__ = f"Call :func:`tandem.random.{name}` with the next key; the other arguments are the same."
    draw.__name__, draw.__qualname__ = name, f"Generator.{name}"
    return compile_writes_when_hot(draw)


_NOT_DRAWN = ("Key", "clone", "fold_in", "key", "key_data", "wrap_key_data")
for _name in namespace.__all__:
    if _name not in _NOT_DRAWN:
        setattr(Generator, _name, _method(_name))

# What initializers, dropout and PyTorch's samplers draw from.
default_generator = Generator(0)
