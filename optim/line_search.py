"""A line search that meets the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..named_tuple import NamedTuple

if TYPE_CHECKING:
    from ..registry.types import Tensor

DECREASE, CURVATURE = 1e-4, 0.9
MAX_EVALUATIONS = 25


class Point(NamedTuple):
    """A point of the line.

    Attributes:
        t: the step.
        loss: the loss there.
        gradient: the gradient there.
        slope: the derivative of the loss along the line.
    """

    t: float
    loss: float
    gradient: Tensor
    slope: float


def minimize_cubic(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """The minimum of the cubic through two points and their slopes, clipped to bounds; the middle if there is none."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    if a.t > b.t:
        a, b = b, a
    d2 = math.sqrt(square)
    curve = b.slope - a.slope + 2 * d2
    position = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / curve) if curve else math.nan
    return min(max(position, low), high) if position == position else (low + high) / 2


def search(
    evaluate: Callable[[float], Point], start: Point, t: float, longest: float, tolerance: float
) -> tuple[Point, int]:
    """A point that meets the strong Wolfe conditions, or the best one found.

    Args:
        evaluate: computes the point of a step.
        start: the point of step 0, whose slope is negative.
        t: the first step to try.
        longest: the largest absolute element of the direction.
        tolerance: the search ends when the elements of the interval differ by less.

    Returns:
        The point, and the number of evaluations.
    """
    previous, point = start, evaluate(t)
    evaluations = 1
    for count in range(MAX_EVALUATIONS):
        if _rises(point, start) or (count > 1 and point.loss >= previous.loss):
            break
        if abs(point.slope) <= -CURVATURE * start.slope:
            return point, evaluations
        if point.slope >= 0:
            break
        bounds = (point.t + 0.01 * (point.t - previous.t), point.t * 10)
        t = minimize_cubic(previous, point, bounds)
        previous, point = point, evaluate(t)
        evaluations += 1
    else:
        previous = start
    return _zoom(evaluate, start, previous, point, evaluations, longest, tolerance)


def _rises(point: Point, start: Point) -> bool:
    """Whether the loss is not low enough for the length of the step."""
    return not point.loss <= start.loss + DECREASE * point.t * start.slope


def _zoom(
    evaluate: Callable[[float], Point],
    start: Point,
    previous: Point,
    point: Point,
    evaluations: int,
    longest: float,
    tolerance: float,
) -> tuple[Point, int]:
    """Narrow an interval that contains a point that meets the conditions."""
    ends = [previous, point]
    low, high = (0, 1) if previous.loss <= point.loss else (1, 0)
    is_near_end = False
    while evaluations <= MAX_EVALUATIONS:
        first, last = sorted((ends[0].t, ends[1].t))
        if (last - first) * longest < tolerance:
            break
        t, is_near_end = _move_off_ends(minimize_cubic(ends[0], ends[1]), first, last, is_near_end)
        point = evaluate(t)
        evaluations += 1
        if _rises(point, start) or point.loss >= ends[low].loss:
            ends[high] = point
            low, high = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
            continue
        is_done = abs(point.slope) <= -CURVATURE * start.slope
        if not is_done and point.slope * (ends[high].t - ends[low].t) >= 0:
            ends[high] = ends[low]
        ends[low] = point
        if is_done:
            break
    return ends[low], evaluations


def _move_off_ends(t: float, first: float, last: float, is_near_end: bool) -> tuple[float, bool]:
    """A step that is a tenth of the interval from its ends, if the one before was close to an end, too."""
    margin = 0.1 * (last - first)
    if min(last - t, t - first) >= margin:
        return t, False
    if is_near_end or t >= last or t <= first:
        return (last - margin if abs(t - last) < abs(t - first) else first + margin), False
    return t, True
