"""Checks of forward mode against the same finite differences, and of batched tangents against one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.forward_ad import dual_level, make, tangent_of


def directions(t: Tensor) -> Iterator[Tensor]:
    """Element by element, real then imaginary."""
    for element in range(t.numel()):
        for step in (1, 1j) if t.is_complex() else (1,):
            flat = _C.zeros(t.numel(), dtype=t.dtype, device=t.device)
            flat[element] = step
            yield flat.reshape(t.shape)


def _fresh(v: Any) -> Any:
    """A leaf of its own where a tensor wants a gradient, which inside of a vmap is no word of the user's."""
    if not isinstance(v, Tensor):
        return v
    return _C._want_gradient(v.detach()) if v.requires_grad else v.detach()


def tangents(
    func: Callable[..., Any], values: Sequence[Any], along: Mapping[int, Tensor], tensors: Any
) -> list[Tensor]:
    """The tangents of the outputs, where these inputs move."""
    return _moved([_fresh(v) for v in values], func, along, tensors)


def _moved(given: list[Any], func: Callable[..., Any], along: Mapping[int, Tensor], tensors: Any) -> list[Tensor]:
    with dual_level() as number:
        for which, tangent in along.items():
            given[which] = make(given[which], tangent, number)
        outputs = tensors(func(*given))
        found = [tangent_of(o, number) for o in outputs]
        return [_C.zeros_like(o) if t is None else t for o, t in zip(outputs, found, strict=True)]


def forward_mismatch(
    func: Callable[..., Any],
    values: Sequence[Any],
    which: int,
    numeric: list[list[Any]],
    tensors: Callable[[Any], list[Tensor]],
    numbers: Callable[[Tensor], list[Any]],
    close: Callable[[complex, complex, int], bool],
) -> tuple[int, bool, str] | None:
    """None, or the first place where a tangent is not the derivative along its direction, imaginary directions first:
    the place among all outputs' elements, whether the direction is imaginary, and words."""
    parts = 2 if values[which].is_complex() else 1
    rows = sorted(enumerate(directions(values[which].detach())), key=lambda row: -(row[0] % parts))
    for row, along in rows:
        moved = [n for t in tangents(func, values, {which: along}, tensors) for n in numbers(t)]
        for place, (got, expected) in enumerate(zip(moved, numeric[row], strict=True)):
            if not close(got, expected, place):
                text = f"output element {place} along direction {row}: forward {got!r}, numerical {expected!r}"
                return place, row % parts == 1, text
    return None


def zero_tangent_problem(
    func: Callable[..., Any],
    values: Sequence[Any],
    which: int,
    along: Mapping[int, Tensor],
    tensors: Callable[[Any], list[Tensor]],
    atol: float,
) -> str | None:
    """None, or that an input without a tangent is not as one whose tangent is zeros, where the others move."""
    zeros = tangents(func, values, {**along, which: _C.zeros_like(along[which])}, tensors)
    none = tangents(func, values, {i: t for i, t in along.items() if i != which}, tensors)
    for i, (a, b) in enumerate(zip(zeros, none, strict=True)):
        if not _C.allclose(a, b, atol=atol, equal_nan=True):
            return (
                f"Expected forward mode to take input {which} without a tangent as one with zeros, but output {i} has "
                f"the tangent {b.tolist()} in place of {a.tolist()}"
            )
    return None


def _repeated(v: Any, count: int) -> Any:
    return v.expand(count, *v.shape) if isinstance(v, Tensor) else v


def batched_mismatch(
    func: Callable[..., Any],
    values: Sequence[Any],
    which: int,
    rows: list[Tensor],
    tensors: Callable[[Any], list[Tensor]],
    atol: float,
) -> str | None:
    """None, or where tangents of several directions at once, under vmap, are not those of one direction at a time."""
    from tensorpy.func.vmap import vmap

    if not rows:
        return None
    # Each input is batched, so that a function may write to one what hangs on another's tangent.
    whole = [_repeated(_fresh(v), len(rows)) for v in values]
    mapped = tuple(0 if isinstance(v, Tensor) else None for v in whole)
    together = vmap(lambda along, *given: tuple(_moved(list(given), func, {which: along}, tensors)), (0, *mapped))(
        _C.stack(rows), *whole
    )
    for row, along in enumerate(rows):
        for i, (got, alone) in enumerate(zip(together, tangents(func, values, {which: along}, tensors), strict=True)):
            if not _C.allclose(got[row], alone, atol=atol, equal_nan=True):
                return f"output {i} along direction {row}: {got[row].tolist()} under vmap, {alone.tolist()} alone"
    return None
