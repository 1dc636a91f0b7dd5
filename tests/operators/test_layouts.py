"""Layouts: strides of NumPy's, and what keeps them. That every operator takes every layout is a check of the table."""

from __future__ import annotations

import numpy as np
import pytest

import tensorpy as tp


def test_negative_strides_of_numpy() -> None:
    """They are taken as they are or refused as a whole, never read wrongly."""
    backwards = np.arange(12.0).reshape(3, 4)[::-1, ::-1]
    try:
        taken = tp.from_numpy(backwards)
    except ValueError:
        taken = tp.tensor(backwards)
    assert taken.tolist() == backwards.tolist()


IMAGES = {
    "conv2d": lambda x: tp.nn.functional.conv2d(x, tp.arange(36.0).reshape(1, 4, 3, 3)),
    "max_pool2d": lambda x: tp.nn.functional.max_pool2d(x, 2),
    "max_pool2d's places": lambda x: tp.nn.functional.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": lambda x: tp.nn.functional.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: tp.nn.functional.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda x: tp.nn.functional.adaptive_max_pool2d(x, 3),
    "batch_norm": lambda x: tp.nn.functional.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: tp.nn.functional.group_norm(x, 2),
    "pad": lambda x: tp.nn.functional.pad(x, (1, 2, 0, 1)),
    "reflect": lambda x: tp.nn.functional.pad(x, (1, 2, 0, 1), mode="reflect"),
    "interpolate": lambda x: tp.nn.functional.interpolate(x, scale_factor=2),
    "channel_shuffle": lambda x: tp.nn.functional.channel_shuffle(x, 2),
}


@pytest.mark.parametrize("name", IMAGES)
def test_channels_stay_last(name: str) -> None:
    tp.manual_seed(0)
    plain = tp.randn(2, 4, 6, 6)
    got = IMAGES[name](plain.contiguous(memory_format=tp.channels_last))
    expected = IMAGES[name](plain)
    assert got.is_contiguous(memory_format=tp.channels_last) and expected.is_contiguous()
    assert (got - expected).abs().max().item() < 1e-4
    meta = IMAGES[name](plain.contiguous(memory_format=tp.channels_last).to("meta")) if name != "conv2d" else got
    assert meta.stride() == got.stride()


def test_a_gradient_is_laid_out_as_its_leaf() -> None:
    for leaf in (tp.randn(2, 4, 6, 6).contiguous(memory_format=tp.channels_last), tp.randn(3, 5).t().clone()):
        leaf.requires_grad_()
        (leaf.contiguous() * tp.arange(float(leaf.numel())).reshape(leaf.shape)).sum().backward()
        assert leaf.grad.stride() == leaf.stride()
        assert leaf.grad.flatten().tolist() == list(range(leaf.numel()))
