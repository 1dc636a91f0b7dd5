"""Calls in the order of arguments from before numbers were keywords: `x.add_(0.5, y)` for `x.add_(y, alpha=0.5)`.

PyTorch takes them still, and old programs have them. csrc/python/parse.c asks here when no signature fits a call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor

# The keywords that the numbers are, in the order of the call, and how many tensors there are beside self.
_FORMS: dict[str, tuple[tuple[str, ...], int]] = {
    "add": (("alpha",), 1),
    "sub": (("alpha",), 1),
    "addcdiv": (("value",), 2),
    "addcmul": (("value",), 2),
    "addbmm": (("beta", "alpha"), 2),
    "addmm": (("beta", "alpha"), 2),
    "addmv": (("beta", "alpha"), 2),
    "addr": (("beta", "alpha"), 2),
    "baddbmm": (("beta", "alpha"), 2),
}


def call(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the call gives in today's form; NotImplemented if it is in no form of these. args: self among them."""
    names, others = _FORMS.get(name.removesuffix("_"), ((), 0))
    numbers = [a for a in args if isinstance(a, (int, float, complex))]
    tensors = [a for a in args if isinstance(a, Tensor)]
    fits = 0 < len(numbers) <= len(names) and len(tensors) == others + 1 and len(args) == len(numbers) + len(tensors)
    if not fits or isinstance(args[-1], (int, float, complex)) or kwargs.keys() - {"out"}:
        return NotImplemented
    keywords = dict(zip(names, numbers, strict=False))
    shown = ", ".join(f"{key}={value}" for key, value in keywords.items())
    warnings.warn(
        f"This overload of {name} is deprecated, with numbers before tensors: give {shown} by name", stacklevel=2
    )
    return function(*tensors, **keywords, **kwargs)
