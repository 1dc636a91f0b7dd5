"""Calls that are large enough for the kernels that the samples of the table are too small for: whole work-groups that
share a row, tiles, several passes. Each is made on the CPU and on the device, in both tunings, and under oclgrind.

`python tests/opencl_large.py [DEVICE] [PATTERN...]` compares them.
"""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp

F = tp.nn.functional


def drawn(*shape: int, dtype: Any = tp.float32) -> tp.Tensor:
    """The same on every device."""
    return tp.randn(*shape, generator=tp.Generator().manual_seed(sum(shape))).to(dtype=dtype)


def gradient(function: Callable[[tp.Tensor], tp.Tensor], x: tp.Tensor) -> tp.Tensor | None:
    leaf = x.detach().clone().requires_grad_()
    function(leaf).square().sum().backward()
    return leaf.grad


def places(x: tp.Tensor) -> tp.Tensor:
    """A row of a table for each of its rows, some of them many times."""
    return (x[:, 0].abs() * 5).long()


def ctc(x: tp.Tensor) -> tp.Tensor:
    """The losses of targets of several lengths, one of them impossible."""
    lengths = [tp.tensor(n, device=x.device) for n in ([30, 25, 9], [12, 3, 10])]
    targets = (drawn(3, 12).abs() * 4).long() + 1
    losses = F.ctc_loss(x.log_softmax(2), targets.to(device=x.device), *lengths, reduction="none", zero_infinity=True)
    return losses * 0.01


def step(x: tp.Tensor, name: str, **options: Any) -> tp.Tensor:
    """A parameter after a fused step."""
    p = tp.nn.Parameter(x.detach().clone())
    p.grad = x.cos()
    getattr(tp.optim, name)([p], lr=0.1, fused=True, **options).step()
    return p.detach()


ROWS, LINE, PLANES = (3, 700), (5000,), (2, 3, 40, 50)
CALLS: dict[str, tuple[tuple[int, ...], Callable[[tp.Tensor], Any]]] = {
    "sum": (LINE, lambda x: x.sum()),
    "sum of rows": (ROWS, lambda x: x.sum(1)),
    "sum of columns": ((700, 33), lambda x: x.sum(0)),
    "sum of the outer and inner": (PLANES, lambda x: x.sum((0, 3))),
    "var": (ROWS, lambda x: x.var(1)),
    "argmax": (ROWS, lambda x: (x.argmax(1), x.argmin(), x.amax(0), x.max(1))),
    "prod": (ROWS, lambda x: (x * 0.01 + 1).prod(1)),
    "logsumexp": (ROWS, lambda x: x.logsumexp(1)),
    "norm": (ROWS, lambda x: x.norm(dim=1)),
    "any, all": (ROWS, lambda x: ((x > 3).any(1), (x > -3).all(1), (x > 0).count_nonzero(1))),
    "cumsum": (ROWS, lambda x: (x.cumsum(1), x.cumsum(0), x.cummax(1))),
    "softmax": (ROWS, lambda x: (x.softmax(1), x.log_softmax(1), x.softmax(0))),
    "softmax's gradient": (ROWS, lambda x: gradient(lambda t: t.softmax(1) * t, x)),
    "log_softmax's gradient": (ROWS, lambda x: gradient(lambda t: t.log_softmax(1) * t, x)),
    "layer_norm": (ROWS, lambda x: F.layer_norm(x, (700,))),
    "layer_norm's gradient": (ROWS, lambda x: gradient(lambda t: F.layer_norm(t, (700,)) * t, x)),
    "batch_norm": (PLANES, lambda x: F.batch_norm(x, None, None, training=True)),
    "mm": ((70, 90), lambda x: (x @ x.t(), x.t() @ x)),
    "bmm": ((3, 40, 50), lambda x: x @ x.transpose(1, 2)),
    "attention": ((2, 3, 33, 16), lambda x: F.scaled_dot_product_attention(x, x, x)),
    "add of columns": (ROWS, lambda x: x.t() + x[0].reshape(-1, 1)),
    "copy, turned": ((70, 90), lambda x: x.t().contiguous()),
    "index": (ROWS, lambda x: (x[:, x[0].argsort()], x.gather(1, x.argsort(1)), x[x > 0].sum())),
    "scatter": (ROWS, lambda x: x.scatter_add(1, (x.abs() * 10).long(), x)),
    "sort": (ROWS, lambda x: (x.sort(1), x.topk(50, 1), x.median(1))),
    "places of one line": ((17000,), lambda x: (x.topk(9), x.median(), x.kthvalue(300))),
    "unique": (LINE, lambda x: (x * 10).round().unique(return_counts=True)),
    "conv2d": (PLANES, lambda x: F.conv2d(x, drawn(4, 3, 3, 3).to(device=x.device), padding=1)),
    "conv2d's gradient": (PLANES, lambda x: gradient(lambda t: F.conv2d(t, drawn(4, 3, 3, 3).to(device=t.device)), x)),
    "max_pool2d": (PLANES, lambda x: F.max_pool2d(x, 3, 2)),
    "max_pool2d's gradient": (PLANES, lambda x: gradient(lambda t: F.max_pool2d(t, 3, 2) * 2, x)),
    "cross_entropy": (ROWS, lambda x: F.cross_entropy(x, x.argmin(1))),
    "embedding_bag's gradient": (
        (50, 33),
        lambda x: tuple(
            gradient(lambda t, mode=mode: F.embedding_bag(places(x).reshape(5, 10), t, mode=mode), x)  # type: ignore[misc]
            for mode in ("mean", "max")
        ),
    ),
    "grid_sample's gradient": (
        (2, 3, 12, 11),
        lambda x: (
            gradient(lambda t: F.grid_sample(t, x[:, :2].permute(0, 2, 3, 1), align_corners=False), x),
            gradient(lambda t: F.grid_sample(x, t[:, 1:].permute(0, 2, 3, 1), "bicubic", align_corners=True), x),
        ),
    ),
    "ctc_loss's gradient": ((30, 3, 11), lambda x: (ctc(x), gradient(ctc, x))),
    "Adam": ((5000,), lambda x: step(x, "Adam", amsgrad=True)),
    "SGD": ((5000,), lambda x: step(x, "SGD", momentum=0.9)),
    "Adagrad": ((5000,), lambda x: step(x, "Adagrad")),
    "embedding": ((50, 33), lambda x: F.embedding(places(x), x)),
}


def flat(results: Any) -> Iterator[tp.Tensor]:
    for r in [results] if isinstance(results, tp.Tensor) else results:
        yield from flat(r) if isinstance(r, tuple) else [r]


def differences(name: str, device: str) -> str:
    """What differs from the CPU's, or nothing."""
    shape, function = CALLS[name]
    x = drawn(*shape)
    try:
        for got, expected in zip(flat(function(x.to(device=device))), flat(function(x)), strict=True):
            tp.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-4)
    except (AssertionError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> int:
    device, *patterns = sys.argv[1:] or ["opencl"]
    tp.opencl.fallback = "allow"
    bad = 0
    for name in CALLS:
        if not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns):
            text = differences(name, device)
            bad += bool(text)
            print(f"{name}: {text or 'equal'}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
