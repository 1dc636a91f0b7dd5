"""In words, where two numbers or two tensors are not close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._utils import unravel

Names = str | Callable[[str], str] | None  # what is compared, or a function of what it is called usually


def _not_alike(names: Names, usual: str, kind: str) -> str:
    name = usual if names is None else names(usual) if callable(names) else names
    return f"{name} are not {kind}!"


def _allowed(rtol: float, atol: float) -> tuple[str, str, str]:
    """What was asked, and how far apart values may be: absolutely and in proportion."""
    if rtol == atol == 0:
        return "equal", "", ""
    return "close", f" (up to {atol} allowed)", f" (up to {rtol} allowed)"


def of_numbers(actual: Any, expected: Any, gap: Any, rtol: float, atol: float, names: Names = None) -> str:
    """That two numbers are `gap` apart."""
    kind, absolute, proportional = _allowed(rtol, atol)
    ratio = gap / abs(expected) if expected else float("inf")
    return (
        f"{_not_alike(names, 'Scalars', kind)}\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {gap}{absolute}\nRelative difference: {ratio}{proportional}"
    )


def of_tensors(actual: Tensor, expected: Tensor, matches: Tensor, rtol: float, atol: float, names: Names = None) -> str:
    """That two tensors differ where `matches` is False: how many elements, and where they do most."""
    if not matches.dim():
        x, y = actual.item(), expected.item()
        return of_numbers(x, y, abs(x - y), rtol, atol, names)
    shape, total = tuple(matches.shape), matches.numel()
    kind, absolute, proportional = _allowed(rtol, atol)
    a, b, matches = actual.detach().reshape(-1), expected.detach().reshape(-1), matches.reshape(-1)
    count = total - int(matches.sum())
    counted = f"Mismatched elements: {count} / {total} ({count / total:.1%})"
    if actual.dtype.itemsize == 1 and actual.dtype.is_floating_point:
        first = unravel(int((~matches).to(_C.uint8).argmax()), shape)
        where = f"The first mismatched element is at index {first}."
        return f"{_not_alike(names, 'Tensor-likes', repr('equal'))}\n\n{counted}\n{where}"
    if not (a.is_floating_point() or a.is_complex()):
        a, b = a.to(_C.int64), b.to(_C.int64)
    gap = (a - b).abs().masked_fill(matches, 0)
    ratio = (gap / b.abs()).masked_fill(matches, 0)
    far, farther = int(gap.argmax()), int(ratio.argmax())  # the first NaN, where there is one
    return (
        f"{_not_alike(names, 'Tensor-likes', kind)}\n\n{counted}\n"
        f"Greatest absolute difference: {gap[far].item()} at index {unravel(far, shape)}{absolute}"
        f": got {a[far].item()}, expected {b[far].item()}\n"
        f"Greatest relative difference: {ratio[farther].item()} at index {unravel(farther, shape)}{proportional}"
    )
