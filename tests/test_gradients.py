"""First and second gradients of every differentiable operator against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness import arguments, call, fresh, function_of, over

import tensorpy as tp
from samples import OpInfo
from tensorpy.autograd import gradcheck, gradgradcheck

DTYPES = ("float64", "complex128")


class Input:
    """Stands for the n-th floating tensor among arguments."""

    def __init__(self, n: int) -> None:
        self.n = n


def inputs_of(
    info: OpInfo, args: list[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], Callable[..., tuple[list[Any], dict[str, Any]]]]:
    """The floating tensors among the arguments, and how to put others in their place."""
    found: list[tp.Tensor] = []

    def collect(value: Any) -> Any:
        if isinstance(value, tp.Tensor) and (value.is_floating_point() or value.is_complex()):
            found.append(value.detach().clone().requires_grad_())
            return Input(len(found) - 1)
        return type(value)(collect(v) for v in value) if isinstance(value, (list, tuple)) else value

    names = [a.name for a in info.op.schema.arguments]
    fixed = info.constant
    shape = (
        [a if name in fixed else collect(a) for a, name in zip(args, names, strict=False)],
        {k: v if k in fixed else collect(v) for k, v in kwargs.items()},
    )

    def fill(value: Any, inputs: tuple[Any, ...]) -> Any:
        if isinstance(value, Input):
            return inputs[value.n]
        return type(value)(fill(v, inputs) for v in value) if isinstance(value, (list, tuple)) else value

    return tuple(found), lambda inputs: (
        [fill(a, inputs) for a in shape[0]],
        {k: fill(v, inputs) for k, v in shape[1].items()},
    )


@pytest.mark.parametrize("order", [1, 2])
@over(lambda info: info.differentiable and set(DTYPES) & set(info.dtypes))
def test_gradient(info: OpInfo, order: int, device: str) -> None:
    function = function_of(info)
    for dtype in DTYPES if order == 1 or info.gradgradcheck else ():
        for sample in info.samples(dtype, 6 if order == 1 else 3) if dtype in info.dtypes else ():
            args, kwargs = arguments(sample, device, info)
            inputs, fill = inputs_of(info, args, kwargs)
            if not any(t.numel() for t in inputs):
                continue

            def f(*given: Any, fill=fill) -> list[tp.Tensor]:
                a, k = fill(given)
                return call(function, fresh(info, a), k)

            if not any(r.requires_grad for r in f(*inputs)):
                continue
            try:
                check = gradcheck if order == 1 else gradgradcheck
                check(f, inputs, atol=1e-5 if order == 1 else 1e-4)
            except (RuntimeError, NotImplementedError) as e:
                pytest.fail(f"{info.name}{sample}, derivative {order}: {e}")
