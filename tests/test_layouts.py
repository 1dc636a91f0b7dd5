"""Every operator over every layout of its arguments.

The tag `flexible_layout` promises this of an operator; here it is asked of all that do not need dense elements or carry
one of the needs_*_strides tags.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from harness import arguments, call, check_same, function_of, over, to_tensor

import tensorpy as tp
from samples import Array, OpInfo
from samples.table import FLOATING

STRICT = {"needs_exact_strides", "needs_contiguous_strides", "needs_fixed_stride_order"}


def transposed(a: Array, device: str) -> tp.Tensor:
    """The first and the last dimension change places in memory."""
    if a.values.ndim < 2:
        return to_tensor(a, device)
    return to_tensor(Array(np.swapaxes(a.values, 0, -1), a.dtype), device).transpose(0, -1)


def apart(a: Array, device: str) -> tp.Tensor:
    """Every other element of every dimension of something larger, from its second row on."""
    if not a.values.size or not a.values.ndim:
        return to_tensor(a, device)
    wide = tp.zeros(tuple(2 * n + 1 for n in a.values.shape), dtype=getattr(tp, a.dtype), device=device)
    part = wide[tuple(slice(1, 2 * n + 1, 2) for n in a.values.shape)]
    return part.copy_(to_tensor(a, device))


def channels_last(a: Array, device: str) -> tp.Tensor:
    """The second dimension innermost in memory."""
    if a.values.ndim < 3:
        return to_tensor(a, device)
    return to_tensor(Array(np.moveaxis(a.values, 1, -1), a.dtype), device).movedim(-1, 1)


def expanded(a: Array, device: str) -> tp.Tensor:
    """One row for all; of places and flags, which may have to differ, the rows as they are."""
    if a.values.ndim < 1 or not a.values.size or a.dtype not in FLOATING:
        return to_tensor(a, device)
    return to_tensor(Array(a.values[:1], a.dtype), device).expand(a.values.shape)


def turned(a: Array, device: str) -> tp.Tensor:
    """Backwards in memory, where the source can say so (NumPy's negative strides); else turned by an index."""
    if not a.values.ndim or not a.values.size:
        return to_tensor(a, device)
    return to_tensor(Array(np.ascontiguousarray(a.values[::-1]), a.dtype), device).flip(0)


LAYOUTS = (transposed, apart, channels_last, expanded, turned)


@pytest.mark.parametrize("layout", LAYOUTS, ids=[f.__name__ for f in LAYOUTS])
@over(lambda info: info.op.tensor_arguments and not info.dense and not info.tags & STRICT)
def test_layout(info: OpInfo, layout: Callable[[Array, str], tp.Tensor], device: str) -> None:
    """Against the same values laid out in order; the variant in place writes to what is laid out so."""
    function = function_of(info)
    inplace = function_of(info, inplace=True) if info.variant("inplace") else None
    for sample in info.samples(info.main_dtype, 5):
        args, kwargs = arguments(sample, device, info, layout)
        plain, plain_kwargs = arguments(sample, device, info, lambda a, d: layout(a, d).contiguous().clone())
        what = f"{info.name}{sample}, {layout.__name__}"
        if info.op.kind != "inplace":
            expected = call(function, plain, plain_kwargs)
            for a, b in zip(call(function, args, kwargs), expected, strict=True):
                check_same(info, a, b, what, exact=False)
        if inplace is None or layout is expanded or "inplace_view" in info.tags:
            continue
        try:
            wanted = call(inplace, plain, plain_kwargs)[0]
        except RuntimeError:
            continue  # the result does not fit: test_ops.py
        check_same(info, call(inplace, args, kwargs)[0], wanted, f"{what}, in place", exact=False)


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
