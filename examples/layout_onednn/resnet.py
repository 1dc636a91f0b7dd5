"""A small ResNet, dense and packed: the same results, and how long both take. `python resnet.py`"""

from __future__ import annotations

import time
from typing import Any

from packed import pack

import tensorpy as tp
from tensorpy import nn


class Block(nn.Module):
    """Two convolutions and what they are added to."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        plain = stride == 1 and channels == out
        self.down = (
            None if plain else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.down is None else self.down(x)))


def resnet(width: int = 32, classes: int = 10) -> nn.Module:
    """A ResNet of four stages, with statistics as after a training."""
    tp.manual_seed(0)
    stages = [Block(width * max(1, 2 ** (i - 1)), width * 2**i, 1 + (i > 0)) for i in range(4)]
    model = nn.Sequential(
        nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *stages,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width * 8, classes),
    )  # fmt: skip
    model(tp.randn(8, 3, 64, 64))
    return model.eval()


def seconds(run: Any) -> float:
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    model, x = resnet(), tp.randn(4, 3, 128, 128)
    with tp.no_grad():
        dense, packed = model(x), model(pack(x)).unpack()
        print(f"largest difference {float((dense - packed).abs().max()):.1e} of {float(dense.abs().max()):.2f}")
        print(f"dense {seconds(lambda: model(x)) * 1e3:.1f} ms, packed {seconds(lambda: model(pack(x))) * 1e3:.1f} ms")
