"""Convolutions, pooling and normalisation with their gradients, against tensorpy's own CPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tensorpy as tp
import tensorpy.nn.functional as F

from ..harness import Case

Forward = Callable[..., tp.Tensor]


def step(function: Forward, tensors: list[tp.Tensor], device: str) -> Callable[[], None]:
    """The function and the gradients of all its tensors."""
    leaves = [t.to(device).requires_grad_() for t in tensors]

    def run() -> None:
        made = function(*leaves)
        tp.autograd.grad(made.sum(), leaves)
        if device != "cpu":
            tp.opencl.synchronize()

    return run


def cases(device: str) -> Iterator[Case]:
    images = tp.randn(8, 64, 32, 32)
    work: dict[str, tuple[Forward, list[tp.Tensor]]] = {
        "conv2d 64 to 64 channels, 3x3": (lambda x, w: F.conv2d(x, w, padding=1), [images, tp.randn(64, 64, 3, 3)]),
        "conv2d of each channel, 3x3": (
            lambda x, w: F.conv2d(x, w, padding=1, groups=64),
            [images, tp.randn(64, 1, 3, 3)],
        ),
        "max_pool2d 2x2": (lambda x: F.max_pool2d(x, 2), [images]),
        "batch_norm": (
            lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
            [images, tp.ones(64), tp.zeros(64)],
        ),
        "attention, 8 heads of 256x64": (
            F.scaled_dot_product_attention,
            [tp.randn(1, 8, 256, 64) for _ in range(3)],
        ),
    }
    for name, (function, tensors) in work.items():
        calls = {"tensorpy": step(function, tensors, device), "cpu": step(function, tensors, "cpu")}
        yield Case(f"{name}, forward and backward", calls)
