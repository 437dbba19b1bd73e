"""Modules of one recurrent step: RNNCell, LSTMCell and GRUCell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..errors import ShapeError
from ..operators.creation.full import empty, zeros
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter
from .recurrent import Cell, State, gru_cell, lstm_cell, relu_cell, tanh_cell

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


class RecurrentCell(Module):
    """The base class of modules that compute the next state from a state and one input.

    Args:
        input_size, hidden_size: the features of the input and of the hidden state.
        bias: whether there are biases.
        device, dtype: of the parameters.

    Attributes:
        weight_ih, weight_hh: ``(gates * hidden_size, features)``, for the input and for the hidden state.
        bias_ih, bias_hh: ``(gates * hidden_size,)``, or None.
    """

    gates: int
    states: int = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), dtype=dtype, device=device))
        self.weight_hh = Parameter(empty((rows, hidden_size), dtype=dtype, device=device))
        for name in ("bias_ih", "bias_hh"):
            value = Parameter(empty((rows,), dtype=dtype, device=device)) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again, uniform within ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    @property
    def cell(self) -> Cell:
        """The pure function of one step."""
        raise NotImplementedError

    def forward(self, input: Tensor, hx: Tensor | State | None = None) -> Tensor | State:
        """Compute the next state.

        Args:
            input: ``(batch, input_size)`` or ``(input_size,)``.
            hx: the state, ``(batch, hidden_size)`` or ``(hidden_size,)``, a pair of those for LSTMCell; None: zeros.

        Returns:
            The next state; a pair for LSTMCell.

        Raises:
            ShapeError: the input or a state has another shape.
        """
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: takes an input of 1 or 2 axes, the last of size {self.input_size}, not one "
                f"of shape {input.shape}"
            )
        shape = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            state = tuple(zeros(shape, dtype=input.dtype, device=input.device) for _ in range(self.states))
        else:
            state = tuple(hx) if self.states > 1 else (hx,)  # type: ignore[assignment]
        for tensor in state:
            if tensor.shape != shape:
                raise ShapeError(f"{type(self).__name__}: a state has shape {tensor.shape}, not {shape}")
        projected = F.linear(input, self.weight_ih, self.bias_ih)
        result = self.cell(state, projected, self.weight_hh, self.bias_hh)
        return result if self.states > 1 else result[0]

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"


class RNNCell(RecurrentCell):
    """One step of :class:`.recurrent.RNN`; ``nonlinearity`` is ``"tanh"`` or ``"relu"``."""

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    @property
    def cell(self) -> Cell:
        """The function of one step."""
        return relu_cell if self.nonlinearity == "relu" else tanh_cell


class LSTMCell(RecurrentCell):
    """One step of :class:`.recurrent.LSTM`, whose state is a pair.

    >>> import tandem as td
    >>> h, c = td.nn.LSTMCell(3, 8)(td.ones((5, 3)))
    >>> h.shape, c.shape
    ((5, 8), (5, 8))
    """

    gates, states = 4, 2

    @property
    def cell(self) -> Cell:
        """The function of one step."""
        return lstm_cell


class GRUCell(RecurrentCell):
    """One step of :class:`.recurrent.GRU`."""

    gates = 3

    @property
    def cell(self) -> Cell:
        """The function of one step."""
        return gru_cell
