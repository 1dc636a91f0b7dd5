"""Gradients, tangents and second gradients of every differentiable operator against finite differences."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck
from tensorpy.testing.harness import arguments, call, fresh, function_of, inputs_of, over
from tensorpy.testing.samples import OpInfo

DTYPES = ("float64", "complex128")


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
                a = info.kept(*a) if info.kept else a
                return call(function, fresh(info, a), k)

            if not any(r.requires_grad for r in f(*inputs)):
                continue
            try:
                if order == 1:
                    gradcheck(f, inputs, atol=1e-5, check_forward_ad=True)
                else:
                    gradgradcheck(f, inputs, atol=1e-4)
            except (RuntimeError, NotImplementedError) as e:
                pytest.fail(f"{info.name}{sample}, derivative {order}: {e}")
