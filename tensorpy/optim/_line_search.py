"""A step that satisfies Wolfe's strong conditions: algorithms 3.5 and 3.6 of Nocedal & Wright, with cubic steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorpy._C import Tensor


class _Point(NamedTuple):
    """A step, and there the loss, the gradient, and the slope along the direction."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def _cubic_minimum(a: Any, b: Any, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with these slopes is lowest, within bounds."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    left, right = (a, b) if a.t <= b.t else (b, a)
    lowest = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return min(max(lowest, low), high)


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Tensor]],
    t: float,
    largest: float,
    direction: Tensor,
    loss: float,
    grad: Tensor,
    slope: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:
    """The loss, the gradient and the step that were found, and the number of evaluations."""

    def at(step: float) -> _Point:
        value, gradient = evaluate(step)
        return _Point(step, value, gradient.clone(), float(gradient.dot(direction)))

    def too_high(p: _Point) -> bool:
        return p.loss > loss + c1 * p.t * slope

    def flat(p: _Point) -> bool:
        return abs(p.slope) <= -c2 * slope

    # Steps grow until two of them have a good one between them.
    before, now, calls = _Point(0.0, loss, grad.clone(), slope), at(t), 1
    done, count = False, 0
    bracket: list[_Point] = []
    while count < max_ls:
        if too_high(now) or (count > 1 and now.loss >= before.loss):
            bracket = [before, now]
            break
        if flat(now):
            bracket, done = [now], True
            break
        if now.slope >= 0:
            bracket = [before, now]
            break
        bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10)
        following = _cubic_minimum(before, now, bounds)
        before, now = now, at(following)
        calls += 1
        count += 1
    if count == max_ls:
        bracket = [_Point(0.0, loss, grad, slope), now]

    # The bracket shrinks around it.
    stuck = False
    low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    while not done and count < max_ls:
        ends = [p.t for p in bracket]
        if abs(ends[1] - ends[0]) * largest < tolerance_change:
            break
        t = _cubic_minimum(bracket[0], bracket[1])
        margin = 0.1 * (max(ends) - min(ends))
        if min(max(ends) - t, t - min(ends)) < margin:  # too near to an end
            if stuck or t >= max(ends) or t <= min(ends):
                t = max(ends) - margin if abs(t - max(ends)) < abs(t - min(ends)) else min(ends) + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        now = at(t)
        calls += 1
        count += 1
        if too_high(now) or now.loss >= bracket[low].loss:
            bracket[high] = now
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        if flat(now):
            done = True
        elif now.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = now
    best = bracket[low if len(bracket) > 1 else 0]
    return best.loss, best.grad, best.t, calls
