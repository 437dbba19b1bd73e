"""``td.optim.swa_utils``: averages of the parameters of a model, with PyTorch's names and arguments."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..eager.autograd.grad_modes import no_grad
from ..eager.tensor.construct import asarray
from ..errors import ValueArgumentError
from ..nn.module import Module
from ..registry.dtypes import int64
from .lr_scheduler.scheduler import LRScheduler, one_for_each_group

if TYPE_CHECKING:
    from ..registry.types import Tensor
    from .optimizer import Optimizer

Average = Callable[[Any, Any, Any], Any]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """A function for :class:`AveragedModel`: an exponential average, of which a step keeps ``decay``.

    Raises:
        ValueArgumentError: the decay is not between 0 and 1.
    """
    if not 0 <= decay <= 1:
        raise ValueArgumentError(f"get_ema_avg_fn: decay is between 0 and 1, not {decay}")
    return lambda average, value, count: average * decay + value * (1 - decay)


def get_swa_avg_fn() -> Average:
    """A function for :class:`AveragedModel`: the mean of all values."""
    return lambda average, value, count: average + (value - average) / (count + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """As :func:`get_ema_avg_fn`, for lists of tensors, which are written in place."""
    return _for_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """As :func:`get_swa_avg_fn`, for lists of tensors, which are written in place."""
    return _for_lists(get_swa_avg_fn())


def _for_lists(average: Average) -> Callable[..., None]:
    def write(averages: Iterable[Tensor], values: Iterable[Tensor], count: Any) -> None:
        for old, value in zip(averages, values):
            old[...] = average(old, value, count)

    return write


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those of the model.

    Args:
        model: the model.
        device: where the copy is; None: where the model is.
        avg_fn: ``avg_fn(average, value, count)`` returns the new average of a tensor; None: the mean of all values.
        multi_avg_fn: ``multi_avg_fn(averages, values, count)`` writes the new averages of lists of tensors.
        use_buffers: whether buffers are averaged as well; otherwise :meth:`update_parameters` copies these.

    >>> import tandem as td
    >>> model = td.nn.Linear(1, 1, bias=False)
    >>> averaged = td.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = td.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    2.0
    """

    def __init__(
        self,
        model: Module,
        device: str | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueArgumentError("AveragedModel: pass avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", asarray(0, dtype=int64))
        self.multi_avg_fn = multi_avg_fn or _for_lists(avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the copy."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the parameters of a model to the averages."""
        averages, values = list(self.module.parameters()), list(model.parameters())
        buffers = list(zip(self.module.buffers(), model.buffers()))
        with no_grad():
            if self.use_buffers:
                floats = [pair for pair in buffers if pair[0].dtype.is_inexact]
                averages += [old for old, _ in floats]
                values += [new for _, new in floats]
                buffers = [pair for pair in buffers if not pair[0].dtype.is_inexact]
            if int(self.n_averaged) == 0:
                buffers += list(zip(averages, values))
            else:
                self.multi_avg_fn(averages, values, self.n_averaged)
            for old, new in buffers:
                old[...] = new
            self.n_averaged.add_(1)


class SWALR(LRScheduler):
    """Go from the learning rate to ``swa_lr`` in ``anneal_epochs`` epochs, then stay.

    Args:
        optimizer: the optimizer.
        swa_lr: the last learning rate, or one for each group.
        anneal_epochs: the number of epochs.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: the number of steps before, -1 for none.

    Raises:
        ValueArgumentError: the strategy is unknown.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueArgumentError(f"SWALR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        self.swa_lrs = one_for_each_group("SWALR", swa_lr, optimizer)
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        self.first_lrs = [group["lr"] for group in optimizer.param_groups]
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The points of the way."""
        share = min(1.0, max(0, self.last_epoch) / max(1, self.anneal_epochs))
        if self.anneal_strategy == "cos":
            share = (1 - math.cos(math.pi * share)) / 2
        return [last * share + first * (1 - share) for first, last in zip(self.first_lrs, self.swa_lrs)]


def update_bn(loader: Iterable[Any], model: Module, device: str | None = None) -> None:
    """Compute the running statistics of batch normalizations again, as means over the batches of a loader.

    Args:
        loader: yields batches, or tuples whose first element is one.
        model: the model.
        device: where the batches are moved to.
    """
    layers: list[Any] = [one for one in model.modules() if getattr(one, "running_mean", None) is not None]
    if not layers:
        return
    momenta, was_training = [one.momentum for one in layers], model.training
    with no_grad():
        for one in layers:
            one.running_mean[...], one.running_var[...], one.num_batches_tracked[...] = 0.0, 1.0, 0
            one.momentum = None
    model.train()
    with no_grad():
        for batch in loader:
            inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(inputs if device is None else inputs.to(device))
    for one, momentum in zip(layers, momenta):
        one.momentum = momentum
    model.train(was_training)
