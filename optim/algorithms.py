"""The optimizers that have a rule: SGD, Adam, RMSprop, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .rule_optimizer import RuleOptimizer
from .rules import RULES

if TYPE_CHECKING:
    from .rule_optimizer import Parameters

Pair = tuple[float, float]


class SGD(RuleOptimizer, rule=RULES["SGD"]):
    """Stochastic gradient descent.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        momentum: the share of the velocity that is kept.
        dampening: the share of the gradient that the velocity leaves out, but for the first.
        weight_decay: a factor of the parameter that is added to its gradient.
        nesterov: whether to look ahead by the momentum.
        maximize: whether to go up.
        implementation: PyTorch's ``foreach``, ``fused`` and ``capturable``, which change nothing.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> optimizer = td.optim.SGD([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params,
            implementation,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
        )


class ASGD(RuleOptimizer, rule=RULES["ASGD"]):
    """Averaged stochastic gradient descent; ``state[p]["ax"]`` is the average of a parameter.

    Args:
        params: the parameters, or groups of them.
        lr: the first learning rate.
        lambd: the decay of the parameters, and of the learning rate.
        alpha: the power with which the learning rate falls.
        t0: the step at which the average starts.
        weight_decay: a factor of the parameter that is added to its gradient.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params,
            implementation,
            lr=lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            maximize=maximize,
        )


class Rprop(RuleOptimizer, rule=RULES["Rprop"]):
    """Resilient propagation: steps by the sign of the gradient, whose sizes grow while the sign stays.

    Args:
        params: the parameters, or groups of them.
        lr: the first step size.
        etas: the factors of a step size after a change of the sign, and after none.
        step_sizes: the smallest and the largest step size.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        etas: Pair = (0.5, 1.2),
        step_sizes: Pair = (1e-6, 50.0),
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(params, implementation, lr=lr, etas=etas, step_sizes=step_sizes, maximize=maximize)


class Adagrad(RuleOptimizer, rule=RULES["Adagrad"]):
    """Adagrad: steps by gradients divided by the root of the sum of all their squares.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        lr_decay: how fast the learning rate falls with the steps.
        weight_decay: a factor of the parameter that is added to its gradient.
        initial_accumulator_value: the sum of the squares at the start.
        eps: a number added to the root.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params,
            implementation,
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
            maximize=maximize,
        )


class Adadelta(RuleOptimizer, rule=RULES["Adadelta"]):
    """Adadelta: steps whose size follows the size of the steps before.

    Args:
        params: the parameters, or groups of them.
        lr: a factor of the steps.
        rho: how much of the averages of squares a step keeps.
        eps: a number added to the averages.
        weight_decay: a factor of the parameter that is added to its gradient.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params, implementation, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize
        )


class RMSprop(RuleOptimizer, rule=RULES["RMSprop"]):
    """RMSprop: steps by gradients divided by the root of an average of their squares.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        alpha: how much of the average a step keeps.
        eps: a number added to the root.
        weight_decay: a factor of the parameter that is added to its gradient.
        momentum: the share of the velocity that is kept.
        centered: whether to divide by the deviation from the average gradient.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params,
            implementation,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            maximize=maximize,
        )


class Adam(RuleOptimizer, rule=RULES["Adam"]):
    """Adam: steps by averages of the gradients, divided by the root of averages of their squares.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        betas: how much of the two averages a step keeps.
        eps: a number added to the root.
        weight_decay: a factor of the parameter that is added to its gradient.
        amsgrad: whether to divide by the largest average of the squares so far.
        decoupled_weight_decay: whether the weight decay is that of :class:`AdamW`.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params,
            implementation,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )


class AdamW(Adam, rule=RULES["AdamW"]):
    """Adam with a weight decay of the parameter itself; the arguments are those of :class:`Adam`."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        decoupled_weight_decay: bool = True,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
            **implementation,
        )


class Adamax(RuleOptimizer, rule=RULES["Adamax"]):
    """Adamax: Adam that divides by the largest absolute gradient, which decays.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        betas: how much of the average and of the largest gradient a step keeps.
        eps: a number added to the absolute gradient.
        weight_decay: a factor of the parameter that is added to its gradient.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params, implementation, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize
        )


class NAdam(RuleOptimizer, rule=RULES["NAdam"]):
    """NAdam: Adam with Nesterov's momentum.

    Args:
        params: the parameters, or groups of them.
        lr, betas, eps, weight_decay: as for :class:`Adam`.
        momentum_decay: how fast the momentum rises to its final value.
        decoupled_weight_decay: whether the weight decay is that of :class:`AdamW`.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params,
            implementation,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )


class RAdam(RuleOptimizer, rule=RULES["RAdam"]):
    """RAdam: Adam whose first steps are plain, until the average of the squares is reliable.

    Args:
        params: the parameters, or groups of them.
        lr, betas, eps, weight_decay: as for :class:`Adam`.
        decoupled_weight_decay: whether the weight decay is that of :class:`AdamW`.
        maximize, implementation: as for :class:`SGD`.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: Pair = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ) -> None:
        super().__init__(
            params,
            implementation,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )
