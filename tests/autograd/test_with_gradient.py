"""No operator computes another way because a gradient is asked for: results with and without are equal to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.testing.harness import arguments, call, function_of, inputs_of, over
from tensorpy.testing.samples import OpInfo

DTYPES = ("float32", "float64", "bfloat16")


def bits(t: tp.Tensor) -> np.ndarray:
    """A result's elements; every NaN is one."""
    t = t.detach()
    t = t.float() if t.dtype == tp.bfloat16 else t
    return np.array(t.tolist())


def check_equal_to_the_bit(got: list[tp.Tensor], expected: list[tp.Tensor], what: str) -> None:
    assert len(got) == len(expected), what
    for g, e in zip(got, expected, strict=True):
        assert (g.dtype, g.shape, g.stride()) == (e.dtype, e.shape, e.stride()), (
            f"{what}: {g.dtype} {g.shape} {g.stride()}, without a gradient {e.dtype} {e.shape} {e.stride()}"
        )
        a, b = bits(g), bits(e)
        assert np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"), f"{what}: other values than without a gradient"
        if a.dtype.kind == "f":
            assert np.array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)])), f"{what}: zeros' signs"


@over(lambda info: not info.unset and set(DTYPES) & set(info.dtypes) and info.op.kind != "inplace")
def test_results_do_not_depend_on_it(info: OpInfo) -> None:
    function = function_of(info)
    for dtype in DTYPES:
        for sample in info.samples(dtype) if dtype in info.dtypes else ():
            args, kwargs = arguments(sample, "cpu", info)
            inputs, fill = inputs_of(info, args, kwargs)
            if not inputs:
                continue
            given, named = fill(tuple(t.detach() for t in inputs))
            expected = call(function, given, named)
            recorded, named = fill(inputs)
            check_equal_to_the_bit(call(function, recorded, named), expected, f"{info.name}{sample}")


def functional(name: str) -> Any:
    return getattr(tp.nn.functional, name)


# What nn.functional writes in Python, and kernels that only large tensors meet.
CALLS: dict[str, Any] = {
    "circular pad": lambda x: functional("pad")(x.reshape(1, 4, -1), (-1, 2), "circular"),
    "circular pad of planes": lambda x: functional("pad")(x.reshape(1, 1, 4, -1), (1, 1, -1, 2), "circular"),
    "attention": lambda x: functional("scaled_dot_product_attention")(*[x[: 160 * 8].reshape(1, 1, 160, 8)] * 3),
    "attention with a mask": lambda x: functional("scaled_dot_product_attention")(
        *[x[: 160 * 8].detach().reshape(1, 1, 160, 8)] * 3, attn_mask=x[: 160 * 160].reshape(160, 160)
    ),
    "embedding": lambda x: functional("embedding")(tp.tensor([1, 2]), x.reshape(-1, 4)),
    "layer_norm": lambda x: functional("layer_norm")(x.reshape(-1, 64), (64,)),
    "batch_norm": lambda x: functional("batch_norm")(x.reshape(4, 8, -1), None, None, training=True),
    "convolution": lambda x: functional("conv2d")(x.reshape(1, 16, -1, 16), x[: 16 * 16 * 9].reshape(16, 16, 3, 3)),
    "softmax": lambda x: functional("softmax")(x.reshape(-1, 128), -1),
    "matmul": lambda x: x.reshape(128, -1) @ x.reshape(-1, 128),
    "logsumexp": lambda x: x.reshape(-1, 100).logsumexp(1),
    "var": lambda x: x.reshape(-1, 128).var(0),
    "norm": lambda x: x.norm(),
    "prod": lambda x: x[:40].prod(),
    "cumsum": lambda x: x.cumsum(0),
    "cdist": lambda x: tp.cdist(x[:2048].reshape(-1, 8), x[2048:4096].reshape(-1, 8)),
    "max_pool": lambda x: functional("max_pool2d")(x.reshape(1, 16, -1, 16), 2),
    "interpolate": lambda x: functional("interpolate")(x.reshape(1, 16, -1, 16), scale_factor=2, mode="bilinear"),
    "det": lambda x: tp.linalg.det(x[:400].reshape(20, 20)),
    "solve": lambda x: tp.linalg.solve(x[:400].reshape(20, 20), x[400:420]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_larger_calls_do_not_depend_on_it(name: str, dtype: str) -> None:
    x = tp.tensor(np.random.RandomState(5).uniform(-2, 2, 25600).tolist(), dtype=getattr(tp, dtype))
    got = CALLS[name](x.clone().requires_grad_())
    assert got.requires_grad
    check_equal_to_the_bit([got], [CALLS[name](x)], name)


def test_gradient_of_the_mask_is_that_of_the_products() -> None:
    """With the CPU's kernel of attention, and by the operators that it stands for."""
    rng = np.random.RandomState(2)
    q, k, v = (tp.tensor(rng.uniform(-1, 1, (2, 2, 150, 8)).tolist()) for _ in range(3))
    for shape in ((150, 150), (2, 1, 1, 150), (1, 2, 150, 1)):
        mask = tp.tensor(rng.uniform(-1, 1, shape).tolist(), requires_grad=True)
        tp.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).square().sum().backward()
        twin = mask.detach().double().requires_grad_()
        scores = q.double() @ k.double().mT / 8**0.5 + twin
        (scores.softmax(-1) @ v.double()).square().sum().backward()
        assert mask.grad is not None and twin.grad is not None
        assert mask.grad.shape == mask.shape and tp.allclose(mask.grad.double(), twin.grad, atol=1e-4)
