"""Arguments whose gradient nobody has written: one that requires grad is an error, as in PyTorch, no gradient less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
import yaml
from tensorpy.nn import functional as F

ENTRIES = Path(__file__).resolve().parents[2] / "yaml" / "derivatives"


def norm_backward(mean: Any, var: Any) -> Any:
    x = tp.rand(2, 3)
    return tp.ops.aten.native_batch_norm_backward(x, x, None, mean, var, None, None, False, 1e-5, [True, False, False])


def observed(low: Any, high: Any, scale: Any) -> Any:
    on, zero = tp.ones(1, dtype=tp.int64), tp.zeros(1, dtype=tp.int32)
    return tp.ops.aten._fused_moving_avg_obs_fq_helper(tp.rand(3), on, on, low, high, scale, zero, 0.1, 0, 255, -1)


def sampled(dims: int, at: Any) -> Any:
    x = tp.rand(1, 2, *[5] * dims)
    return getattr(tp.ops.aten, f"fractional_max_pool{dims}d")(x, [2] * dims, [2] * dims, at)


def lost(total: Any, weight: Any) -> Any:
    return tp.ops.aten.nll_loss_backward(tp.ones(()), tp.rand(2, 3), tp.tensor([0, 1]), weight, 1, -100, total)


def fake(scale: Any, on: Any) -> Any:
    zero = tp.zeros(1, dtype=tp.int32)
    return tp.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(tp.rand(3), scale, zero, on, 0, 255)


def per_channel(scale: Any) -> Any:
    zero = tp.zeros(3, dtype=tp.int32)
    return tp.ops.aten.fake_quantize_per_channel_affine_cachemask(tp.rand(3), scale, zero, 0, 0, 255)


def norm(mean: Any, var: Any) -> Any:
    return F.batch_norm(tp.rand(2, 3), mean, var)


# (operator, argument) -> a call with that argument, and a value of it.
CALLS: dict[tuple[str, str], tuple[Callable[[Any], Any], Callable[[], tp.Tensor]]] = {
    ("nll_loss_forward", "weight"): (
        lambda w: F.cross_entropy(tp.rand(2, 3), tp.tensor([0, 1]), w),
        lambda: tp.rand(3),
    ),
    ("nll_loss_backward", "weight"): (lambda w: lost(tp.tensor(2.0), w), lambda: tp.rand(3)),
    ("nll_loss_backward", "total_weight"): (lambda t: lost(t, tp.ones(3)), lambda: tp.tensor(2.0)),
    ("linalg_pinv", "atol"): (lambda a: tp.linalg.pinv(tp.rand(2, 2), atol=a), lambda: tp.tensor(0.1)),
    ("linalg_pinv", "rtol"): (lambda a: tp.linalg.pinv(tp.rand(2, 2), rtol=a), lambda: tp.tensor(0.1)),
    ("native_batch_norm", "running_mean"): (lambda m: norm(m, tp.ones(3)), lambda: tp.rand(3)),
    ("native_batch_norm", "running_var"): (lambda v: norm(tp.zeros(3), v), lambda: tp.rand(3)),
    ("native_batch_norm_backward", "running_mean"): (lambda m: norm_backward(m, tp.ones(3)), lambda: tp.rand(3)),
    ("native_batch_norm_backward", "running_var"): (lambda v: norm_backward(tp.zeros(3), v), lambda: tp.rand(3)),
    ("fractional_max_pool2d", "random_samples"): (lambda r: sampled(2, r), lambda: tp.rand(1, 2, 2)),
    ("fractional_max_pool3d", "random_samples"): (lambda r: sampled(3, r), lambda: tp.rand(1, 2, 3)),
    ("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "scale"): (
        lambda s: fake(s, tp.ones(1)),
        lambda: tp.ones(1),
    ),
    ("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "fake_quant_enabled"): (
        lambda on: fake(tp.ones(1), on),
        lambda: tp.ones(1),
    ),
    ("fake_quantize_per_channel_affine_cachemask", "scale"): (per_channel, lambda: tp.ones(3)),
    ("_fused_moving_avg_obs_fq_helper", "running_min"): (
        lambda low: observed(low, tp.ones(1), tp.ones(1)),
        lambda: tp.zeros(1),
    ),
    ("_fused_moving_avg_obs_fq_helper", "running_max"): (
        lambda high: observed(tp.zeros(1), high, tp.ones(1)),
        lambda: tp.ones(1),
    ),
    ("_fused_moving_avg_obs_fq_helper", "scale"): (
        lambda scale: observed(tp.zeros(1), tp.ones(1), scale),
        lambda: tp.ones(1),
    ),
    ("resize_", "self"): (lambda x: x.resize_(2, 2), lambda: tp.ones(4)),
    ("resize_as_", "self"): (lambda x: x.resize_as_(tp.ones(2, 2)), lambda: tp.ones(4)),
}


def refused() -> set[tuple[str, str]]:
    """(operator, argument) of the entries that say so."""
    found = set()
    for path in ENTRIES.glob("*.yaml"):
        for entry in yaml.safe_load(path.read_text()) or []:
            name = entry["name"].partition("(")[0].partition(".")[0]
            found |= {(name, a.strip()) for key, text in entry.items() if text == "refused" for a in key.split(",")}
    return found


def test_each_has_a_call() -> None:
    assert refused() == set(CALLS)


@pytest.mark.parametrize("case", CALLS, ids=".".join)
def test_an_argument_that_requires_grad(case: tuple[str, str]) -> None:
    call, value = CALLS[case]
    with pytest.raises(RuntimeError, match=f"'{case[0]}' is not differentiable with respect to argument '{case[1]}'"):
        call(value().requires_grad_())
    with tp.no_grad():
        call(value().requires_grad_())
    call(value())


def test_a_computed_tensor_keeps_its_sizes() -> None:
    """Its graph would speak of others; a template that requires grad is asked for its sizes alone."""
    with pytest.raises(RuntimeError, match="'resize_' is not differentiable"):
        (tp.ones(4).requires_grad_() * 2).resize_(2, 2)
    taken = tp.ones(4).resize_as_(tp.ones(2, 2).requires_grad_() * 2)
    assert taken.shape == (2, 2) and not taken.requires_grad
