"""Typical use, for mypy and pyright: what is right passes, what is wrong is marked, and an unused mark is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import nn, optim
from tensorpy.utils.data import DataLoader, TensorDataset

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value: object, _type: object) -> object:
        return value


def functions(a: tp.Tensor, b: tp.Tensor) -> None:
    assert_type(tp.add(a, b, alpha=2), tp.Tensor)
    assert_type(tp.add(a, 2.5), tp.Tensor)
    assert_type(tp.zeros(2, 3, dtype=tp.float64), tp.Tensor)
    assert_type(tp.cat([a, b], 1), tp.Tensor)
    assert_type(tp.split(a, 2), tuple[tp.Tensor, ...])
    assert_type(tp.equal(a, b), bool)
    assert_type(a.item(), int | float | bool)
    assert_type(a.shape, tp.Size)
    assert_type(a.dim(), int)


def operators(a: tp.Tensor, b: tp.Tensor) -> None:
    assert_type(a + b, tp.Tensor)
    assert_type(2 * a - 1.5, tp.Tensor)
    assert_type(a @ b, tp.Tensor)
    assert_type(-a, tp.Tensor)
    assert_type(a < b, tp.Tensor)
    assert_type(float(a), float)
    a += 1
    assert_type(a[0, 1:, ..., None], tp.Tensor)
    a[a > 0] = 3.0


def gradients(a: tp.Tensor) -> None:
    a.requires_grad_()
    with tp.no_grad():
        a.mul_(2)
    loss = F.relu(a).sum()
    loss.backward()
    if a.grad is not None:
        assert_type(a.grad * 2, tp.Tensor)
    assert_type(F.cross_entropy(a, a.argmax(1)), tp.Tensor)


def wrong(a: tp.Tensor) -> None:
    tp.add(a, "b")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    tp.exp(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tp.exp(a, nonsense=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    tp.softmax(a, "x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    a + "b"  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]
    tp.zeros(2, dtype="float32")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


def files(x: tp.Tensor) -> None:
    tp.save({"x": x}, "x.pt")
    tp.load("x.pt", map_location="cpu", mmap=True)
    tp.load("x.pt", "cpu", None, True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with tp.serialization.safe_globals([nn.Linear]):
        tp.save(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def networks(x: tp.Tensor) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.LSTMCell(3, 4, bias=False))
    assert_type(model.eval(), nn.Sequential)
    assert_type(nn.Conv2d(1, 2, 3, padding="same").double().requires_grad_(False), nn.Conv2d)
    assert_type([p.shape for p in model.parameters()], list[tp.Size])
    nn.Linear(2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    optimizer = optim.Adam(model.parameters(), lr=0.1, betas=(0.9, 0.99))
    optim.lr_scheduler.StepLR(optimizer, step_size=3).step()
    for batch in DataLoader(TensorDataset(x), batch_size=2, shuffle=True):
        F.mse_loss(model(batch), x).backward()
