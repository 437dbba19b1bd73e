"""``check_grads``: compare derivatives with finite differences in random directions.

Source: ``check_grads`` of HIPS autograd and of ``jax.test_util``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import pytree
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, GradientCheckError
from .arguments import check_callable, describe_leaf, name_of, tensor_leaves
from .forward import jvp
from .reverse import vjp

MODES = ("fwd", "rev")
# By the size of an element of a real dtype in bytes: the step of the differences, and the tolerance.
STEPS = {2: 2e-1, 4: 3e-2, 8: 2e-4}
TOLERANCES = {2: 2e-1, 4: 2e-2, 8: 1e-6}


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Compare the derivatives of a function with differences of its values, argument by argument.

    Each argument, and each tensor in it, is moved in a random direction; forward mode must give what a central
    difference (extrapolated) gives, and reverse mode the transpose of it. Then the derivatives are taken for functions
    and checked in their turn.

    Args:
        f: a function of trees of tensors that gives such a tree.
        args: where it is differentiated, a tuple or a list; float64 is best.
        order: how often it is differentiated.
        modes: ``"fwd"``, ``"rev"`` or both; at each order all are applied.
        atol, rtol: tolerances; None: by dtype, 1e-6 for float64.
        eps: the step of the differences; None: by dtype.
        seed: of the random directions.

    Raises:
        GradientCheckError: a derivative is wrong; the message names the argument, the mode, both numbers and the error.
        ArgumentError: an unknown mode, or ``args`` is no sequence.

    >>> import tandem as td
    >>> x = td.asarray([0.5, 1.5], dtype=td.float64)
    >>> td.check_grads(lambda x: (td.sin(x) * x).sum(), (x,), order=2)
    >>> td.check_grads(lambda x: td.stop_gradient(x) * x, (x,), order=1, modes=["rev"])
    Traceback (most recent call last):
    ...
    tandem.errors.GradientCheckError: check_grads(<lambda>), order 1, reverse mode: argument 0 ...
    """
    check_callable("check_grads", f)
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or isinstance(modes, str):
        raise ArgumentError(
            f"check_grads: modes is a list of {' and '.join(map(repr, MODES))}, not {modes!r}"
        )
    if not isinstance(args, (tuple, list)):
        raise ArgumentError("check_grads: args is a tuple or a list of the arguments")
    check = _Check(name_of("check_grads", f), tuple(modes), atol, rtol, eps, np.random.default_rng(seed))
    check.run(f, list(args), order, 1)


class _Check:
    """The options of one check."""

    def __init__(self, name: str, modes: tuple[str, ...], atol: Any, rtol: Any, eps: Any, rng: Any):
        self.name, self.modes = name, modes
        self.atol, self.rtol, self.eps, self.rng = atol, rtol, eps, rng

    def run(self, f: Callable[..., Any], args: list[Any], order: int, now: int) -> None:
        leaves, treedef = tensor_leaves(self.name, args, range(len(args)), False)

        def flat(*values: Any) -> list[Any]:
            out = pytree.leaves(f(*treedef.unflatten(values)))
            return [asarray(x) for x in out if asarray(x).dtype.is_inexact]

        for mode in self.modes:
            for index in range(len(leaves)):
                self._check_argument(
                    mode, flat, leaves, index, f"order {now}", describe_leaf(index, treedef, range(len(args)))
                )
        if order > 1:
            self._check_next_order(flat, leaves, order, now)

    def _check_argument(
        self, mode: str, f: Callable[..., Any], leaves: list[Any], index: int, when: str, where: str
    ) -> None:
        """One argument, one mode."""
        x = leaves[index]
        direction = self._draw_direction(x)

        def along(step: float) -> list[Any]:
            moved = x + direction * by_name("full")((), step, dtype=_real(x))
            return list(f(*leaves[:index], moved, *leaves[index + 1 :]))

        step = STEPS[_width(x)] if self.eps is None else self.eps
        wanted = _difference(along, step)
        weights = [self._draw_direction(y) for y in wanted]
        expected = _dot(weights, wanted)
        if mode == "fwd":
            zeros = [direction if i == index else by_name("zeros_like")(y) for i, y in enumerate(leaves)]
            result = _dot(weights, jvp(f, leaves, zeros)[1])
        else:
            result = _dot([direction], [vjp(f, *leaves)[1](weights)[index]])
        self._compare(
            mode, result, expected, x, f"{when}, {'forward' if mode == 'fwd' else 'reverse'} mode: {where}"
        )

    def _check_next_order(self, f: Callable[..., Any], leaves: list[Any], order: int, now: int) -> None:
        """The derivatives as functions."""
        directions = [self._draw_direction(x) for x in leaves]
        weights = [self._draw_direction(y) for y in f(*leaves)]
        if "fwd" in self.modes:
            self.run(lambda *xs: jvp(f, xs, directions)[1], leaves, order - 1, now + 1)
        if "rev" in self.modes:
            self.run(lambda *xs: vjp(f, *xs)[1](weights), leaves, order - 1, now + 1)

    def _draw_direction(self, like: Any) -> Any:
        values = self.rng.normal(size=like.shape)
        if like.dtype.kind == "c":
            values = values + 1j * self.rng.normal(size=like.shape)
        return asarray(np.asarray(values)).astype(like.dtype)

    def _compare(self, mode: str, found: float, expected: float, x: Any, when: str) -> None:
        usual = TOLERANCES[_width(x)]
        atol = usual if self.atol is None else self.atol
        rtol = usual if self.rtol is None else self.rtol
        error = abs(found - expected)
        if not error <= atol + rtol * abs(expected):
            raise GradientCheckError(
                f"{self.name}, {when} {_spec(x)}: the derivative in a random direction is {found:.8g}, and differences "
                f"give {expected:.8g}: the error is {error:.3g}, and {atol + rtol * abs(expected):.3g} is allowed"
            )


def _spec(x: Tensor) -> str:
    return f"({x.dtype.name}{list(x.shape)})"


def _width(x: Tensor) -> int:
    return x.itemsize // 2 if x.dtype.kind == "c" else x.itemsize


def _real(x: Any) -> Any:
    return by_name("real")(x).dtype if x.dtype.kind == "c" else x.dtype


def _difference(along: Callable[[float], list[Any]], step: float) -> list[Any]:
    """The derivative of a curve at 0, with the error of the fourth power of the step."""
    wide = zip(along(step), along(-step))
    near = zip(along(step / 2), along(-step / 2))
    return [(4.0 * ((c - d) / step) - (a - b) / (2.0 * step)) / 3.0 for (a, b), (c, d) in zip(wide, near)]


def _dot(one: Sequence[Any], two: Sequence[Any]) -> float:
    """The real part of the sum of products: what the transpose keeps."""
    total = 0.0
    for a, b in zip(one, two):
        total += float(np.sum(np.asarray(a.detach().numpy() * b.detach().numpy())).real)
    return total
