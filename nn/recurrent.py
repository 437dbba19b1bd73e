"""Recurrent layers: RNN, LSTM and GRU; recurrent_cells.py has the modules of one step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..control.api import scan
from ..eager.compiled import compile_when_hot
from ..errors import ShapeError, ValueArgumentError
from ..operators.creation.creation import arange
from ..operators.creation.full import empty, zeros
from ..operators.elementwise.activation import relu, sigmoid
from ..operators.elementwise.selection import where
from ..operators.elementwise.trigonometry import tanh
from ..operators.indexing.take import take
from ..operators.shape.joining import concat, stack
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor

State = tuple["Tensor", ...]
Result = tuple["Tensor | PackedSequence", "Tensor | State"]
Cell = Callable[["State", "Tensor", "Tensor", "Tensor | None"], "State"]


# -- one layer ---------------------------------------------------------------------------------------------------------
@compile_when_hot
def run_layer(
    cell: Cell,
    input: Tensor,
    initial: State,
    weights: tuple[Tensor, Tensor, Tensor | None],
    biases: tuple[Tensor | None, Tensor | None],
    lengths: Tensor | None,
    is_reversed: bool,
) -> tuple[Tensor, State]:
    """Run one direction of a layer over a sequence; returns the results and the last state.

    Args:
        cell: the function of one step: state, projected input, weight and bias of the state to the next state.
        input: ``(sequence, batch, features)``.
        initial: the first state.
        weights: for the input and for the state, and the projection of the hidden state, or None.
        biases: for the input and for the state.
        lengths: the length of each sequence, behind which its state does not change; None: all are equally long.
        is_reversed: whether to start at the end of the sequence.
    """
    projected = F.linear(input, weights[0], biases[0])

    def compute(state: State, x: Tensor) -> State:
        state = cell(state, x, weights[1], biases[1])
        return state if weights[2] is None else (F.linear(state[0], weights[2]), *state[1:])

    def advance(state: State, x: Tensor) -> tuple[State, Tensor]:
        state = compute(state, x)
        return state, state[0]

    def advance_unended(state: State, x: tuple[Tensor, Tensor]) -> tuple[State, Tensor]:
        projected, is_element = x
        state = tuple(where(is_element, new, old) for new, old in zip(compute(state, projected), state))
        return state, state[0]

    if lengths is None:
        final, outputs = scan(advance, initial, projected, reverse=is_reversed)
    else:
        steps = arange(input.shape[0], device=input.device).reshape((-1, 1, 1))
        is_element = steps < lengths.unsqueeze(1)
        final, outputs = scan(advance_unended, initial, (projected, is_element), reverse=is_reversed)
    return outputs, final


def relu_cell(state: State, projected: Tensor, weight: Tensor, bias: Tensor | None) -> State:
    """The next hidden state of :class:`RNN` with ``nonlinearity="relu"``."""
    return (relu(projected + F.linear(state[0], weight, bias)),)


def tanh_cell(state: State, projected: Tensor, weight: Tensor, bias: Tensor | None) -> State:
    """The next hidden state of :class:`RNN`."""
    return (tanh(projected + F.linear(state[0], weight, bias)),)


def lstm_cell(state: State, projected: Tensor, weight: Tensor, bias: Tensor | None) -> State:
    """The next hidden and cell state of :class:`LSTM`."""
    hidden, cell = state
    i, f, g, o = (projected + F.linear(hidden, weight, bias)).split(4, axis=-1)
    cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(cell), cell


def gru_cell(state: State, projected: Tensor, weight: Tensor, bias: Tensor | None) -> State:
    """The next hidden state of :class:`GRU`."""
    hidden = state[0]
    r_in, z_in, n_in = projected.split(3, axis=-1)
    r_state, z_state, n_state = F.linear(hidden, weight, bias).split(3, axis=-1)
    update = sigmoid(z_in + z_state)
    new = tanh(n_in + sigmoid(r_in + r_state) * n_state)
    return (new + update * (hidden - new),)


# -- modules -----------------------------------------------------------------------------------------------------------


class Recurrent(Module):
    """The base class of recurrent layers.

    Args:
        input_size, hidden_size: the features of the input and of the hidden state.
        num_layers: the number of layers, each on the results of the one before.
        bias: whether there are biases.
        batch_first: whether inputs are ``(batch, sequence, features)``, not ``(sequence, batch, features)``.
        dropout: the probability with which results of a layer that is not the last are dropped in training mode.
        bidirectional: whether a second direction of each layer goes through the sequence from its end.
        proj_size: the features to which an LSTM projects its hidden state in each step; 0: none.
        device, dtype: of the parameters.

    Attributes:
        weight_ih_l0, weight_hh_l0: ``(gates * hidden_size, features)`` of the first layer, for the input and the hidden
            state; those of other layers end in ``_l1``, those of the second direction in ``_reverse``.
        bias_ih_l0, bias_hh_l0: ``(gates * hidden_size,)``.
        weight_hr_l0: ``(proj_size, hidden_size)``, with ``proj_size``.
    """

    gates: int
    states: int = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        if proj_size and (self.states == 1 or not 0 < proj_size < hidden_size):
            raise ValueArgumentError(
                f"{type(self).__name__}: proj_size is for LSTM, from 1 up to below hidden_size, not {proj_size}"
            )
        self.proj_size = proj_size
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = (
            bias,
            batch_first,
            dropout,
            bidirectional,
        )
        outputs = proj_size or hidden_size
        for layer in range(num_layers):
            features = outputs * len(self._suffixes(0)) if layer else input_size
            for suffix in self._suffixes(layer):
                rows = self.gates * hidden_size
                shapes: dict[str, tuple[int, ...]]
                shapes = {"weight_ih": (rows, features), "weight_hh": (rows, outputs)}
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(empty(shape, dtype=dtype, device=device)))
        self.reset_parameters()

    def flatten_parameters(self) -> None:
        """Do nothing: PyTorch's programs call it for cuDNN."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each direction of each layer."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return [
            [getattr(self, name + suffix) for name in names if hasattr(self, name + suffix)]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def _suffixes(self, layer: int) -> tuple[str, ...]:
        return (f"_l{layer}", f"_l{layer}_reverse") if self.bidirectional else (f"_l{layer}",)

    def reset_parameters(self) -> None:
        """Draw the parameters again, uniform within ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    @property
    def cell(self) -> Cell:
        """The pure function from a state and a projected input to the next state, whose first tensor is the result."""
        raise NotImplementedError

    def _run(self, input: Tensor, state: State, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        """The results and last states for an input ``(sequence, batch, features)``; states stack layers."""
        last: list[State] = []
        for layer in range(self.num_layers):
            results = []
            for suffix in self._suffixes(layer):
                initial = tuple(tensor[len(last)] for tensor in state)
                output, final = self._run_layer(input, initial, suffix, lengths)
                results.append(output)
                last.append(final)
            input = results[0] if len(results) == 1 else concat(results, -1)
            if layer < self.num_layers - 1:
                input = F.dropout(input, self.dropout, self.training)
        return input, tuple(stack(tensors) for tensors in zip(*last))

    def _run_layer(
        self, input: Tensor, initial: State, suffix: str, lengths: Tensor | None
    ) -> tuple[Tensor, State]:
        w_in, w_state = (getattr(self, name + suffix) for name in ("weight_ih", "weight_hh"))
        w_out = getattr(self, "weight_hr" + suffix, None)
        b_in, b_state = (getattr(self, name + suffix, None) for name in ("bias_ih", "bias_hh"))
        is_reversed = suffix.endswith("reverse")
        return run_layer(
            self.cell, input, initial, (w_in, w_state, w_out), (b_in, b_state), lengths, is_reversed
        )

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | State | None = None) -> Result:
        """Run over a sequence.

        Args:
            input: ``(sequence, batch, input_size)``, or with ``batch_first`` ``(batch, sequence, input_size)``, or
                ``(sequence, input_size)``; or packed sequences.
            hx: the initial state, ``(layers * directions, batch, hidden_size)``, a pair of those for LSTM; None: zeros.

        Returns:
            The results, with ``hidden_size`` features for each direction, and the last state. Those of packed sequences
            are packed.

        Raises:
            ShapeError: the input or a state has another shape.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: takes an input of 2 or 3 axes, the last of size {self.input_size}, not one "
                f"of shape {input.shape}"
            )
        is_single = input.ndim == 2
        x = input.unsqueeze(1) if is_single else input.swapaxes(0, 1) if self.batch_first else input
        state = self._initial_state(x, hx, is_single)
        output, final = self._run(x, state)
        if is_single:
            output, final = output.squeeze(1), tuple(tensor.squeeze(1) for tensor in final)
        elif self.batch_first:
            output = output.swapaxes(0, 1)
        return output, final if self.states > 1 else final[0]

    def _forward_packed(self, input: PackedSequence, hx: Tensor | State | None) -> Result:
        x = input.pad()
        if x.ndim != 3 or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: takes packed elements ({self.input_size},), not {input.data.shape[1:]}"
            )
        state = self._initial_state(x, hx, False)
        if hx is not None:
            state = _reorder(state, input.sorted_indices)
        output, final = self._run(x, state, input.lengths.to(x.device))
        final = _reorder(final, input.unsorted_indices)
        return input.pack(output), final if self.states > 1 else final[0]

    def _initial_state(self, x: Tensor, hx: Tensor | State | None, is_single: bool) -> State:
        count = (self.num_layers * len(self._suffixes(0)), x.shape[1])
        shapes = [(*count, self.proj_size or self.hidden_size), (*count, self.hidden_size)][: self.states]
        if hx is None:
            return tuple(zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes)
        given: State = tuple(hx) if self.states > 1 else (hx,)  # type: ignore[assignment]
        state = tuple(tensor.unsqueeze(1) for tensor in given) if is_single else given
        for tensor, shape in zip(state, shapes):
            if tensor.shape != shape:
                raise ShapeError(f"{type(self).__name__}: a state has shape {tensor.shape}, not {shape}")
        return state

    def extra_repr(self) -> str:
        """The sizes, and the arguments that are not the defaults."""
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            parts += [f"{name}={value}"] if value != default else []
        return ", ".join(parts)


_DEFAULTS = {
    "proj_size": 0,
    "num_layers": 1,
    "bias": True,
    "batch_first": False,
    "dropout": 0.0,
    "bidirectional": False,
}


def _reorder(state: State, order: Tensor | None) -> State:
    return state if order is None else tuple(take(tensor, order, 1) for tensor in state)


class RNN(Recurrent):
    """A recurrent layer ``h = tanh(x @ weight_ih.mT + h @ weight_hh.mT + biases)``.

    Args:
        input_size, hidden_size, num_layers: as for :class:`Recurrent`.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        args, kwargs: as for :class:`Recurrent`, from ``bias`` on.
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )
        self.nonlinearity = nonlinearity

    @property
    def cell(self) -> Cell:
        """The function of one step."""
        return relu_cell if self.nonlinearity == "relu" else tanh_cell


class LSTM(Recurrent):
    """Long short-term memory, with the gates in PyTorch's order: input, forget, cell, output.

    The state is a pair: hidden state and cell state. See :class:`Recurrent` for the arguments.

    >>> import tandem as td
    >>> lstm = td.nn.LSTM(3, 8, num_layers=2)
    >>> y, (h, c) = lstm(td.ones((5, 1, 3)))
    >>> y.shape, h.shape, c.shape
    ((5, 1, 8), (2, 1, 8), (2, 1, 8))
    """

    gates, states = 4, 2

    @property
    def cell(self) -> Cell:
        """The function of one step."""
        return lstm_cell


class GRU(Recurrent):
    """Gated recurrent units, with the gates in PyTorch's order: reset, update, new. See :class:`Recurrent`."""

    gates = 3

    @property
    def cell(self) -> Cell:
        """The function of one step."""
        return gru_cell
