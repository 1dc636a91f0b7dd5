"""Convolutions of residual networks and of the demo's: forward, and the gradients by input and by weight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import tensorpy as tp

from .harness import Case
from .libraries import tensors, torch

# Input, weight, stride, padding, groups.
SHAPES = (
    ((8, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
    ((8, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
    ((8, 128, 28, 28), (128, 128, 3, 3), 1, 1, 1),
    ((8, 256, 14, 14), (256, 256, 3, 3), 1, 1, 1),
    ((8, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1),
    ((8, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1),
    ((8, 64, 56, 56), (128, 64, 1, 1), 2, 0, 1),
    ((8, 32, 56, 56), (32, 1, 3, 3), 1, 1, 32),
    ((64, 1, 28, 28), (32, 1, 3, 3), 1, 1, 1),
    ((64, 32, 14, 14), (64, 32, 3, 3), 1, 1, 1),
)


def cases(device: str) -> Iterator[Case]:
    if torch is None:
        return
    rng = np.random.default_rng(0)
    for x_shape, w_shape, stride, padding, groups in SHAPES:
        made = tensors(rng.standard_normal(x_shape, np.float32), rng.standard_normal(w_shape, np.float32))
        made.pop("numpy")
        rest = (None, [stride] * 2, [padding] * 2, [1] * 2)
        forward = {"tensorpy": tp.convolution, "torch": torch.convolution}
        backward = {"tensorpy": tp.convolution_backward, "torch": torch.ops.aten.convolution_backward}
        calls = {lib: partial(f, *made[lib], *rest, False, [0] * 2, groups) for lib, f in forward.items()}
        name = f"conv {'x'.join(map(str, x_shape))}, {w_shape[0]} of {w_shape[2]}x{w_shape[3]}, stride {stride}"
        yield Case(name + (f", {groups} groups" if groups > 1 else ""), calls, {"best": 1.0})
        grads = {lib: calls[lib]() for lib in calls}
        for what, mask in (("input", [True, False, False]), ("weight", [False, True, False])):
            calls = {
                lib: partial(f, grads[lib], *made[lib], *rest, False, [0] * 2, groups, mask)
                for lib, f in backward.items()
            }
            yield Case(f"{name}, gradient by {what}", calls, {"best": 1.0})
