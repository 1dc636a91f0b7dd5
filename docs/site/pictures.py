"""`make pictures`: the pictures of the guide and of the README, into docs/pictures/.

All but the profile's are the same wherever they are drawn; tests/package/test_site.py compares them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorpy as tp
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.utils import viz


def _drawn(tensor: tp.Tensor, names: Any) -> str:
    """A graph without the numbers of the calls, which depend on what the process did before."""
    return re.sub(r", call [0-9]+", "", str(viz.graph(tensor, names)))


def ten_lines() -> str:
    """What the README's ten lines record."""
    a = tp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = (a @ a.T + 1).log()
    return _drawn(b.sum(), {"a": a})


def network() -> str:
    """The graph of a small network's loss."""
    net = tp.nn.Sequential(tp.nn.Linear(8, 16), tp.nn.ReLU(), tp.nn.Linear(16, 2))
    loss = tp.nn.functional.cross_entropy(net(tp.rand(4, 8)), tp.tensor([0, 1, 0, 1]))
    return _drawn(loss, net)


def graph() -> str:
    """The graph that `make_fx` makes of docs/tracing.md's function."""

    def f(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        result: tp.Tensor = tp.nn.functional.linear(x, w).relu() + 1
        return result

    text: str = make_fx(f)(tp.rand(2, 3), tp.rand(4, 3))._repr_svg_()
    return text


def plan() -> str:
    """The plan of docs/compile.md's kind of function."""

    def rows(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        y = (x * 0.5 + 1).exp()
        if y.max() > 100:
            y = y / 2
        z = tp.nn.functional.layer_norm(y, (512,)) * 2
        result: tp.Tensor = tp.softmax(z @ w * 0.1, -1) + y
        return result

    text: str = tp.compiler.explain(rows)(tp.rand(512, 512), tp.rand(512, 512))._repr_svg_()
    return re.sub(r", [^ ,]*pictures\.py:[0-9]+", ", train.py:4", text)


def profile() -> str:
    """Two training steps of a small convolutional network."""
    tp.set_num_threads(1)
    nn = tp.nn
    layers = (nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 10))
    net = nn.Sequential(*layers)
    optimizer = tp.optim.AdamW(net.parameters())
    images, labels = tp.rand(64, 1, 8, 8), tp.randint(10, (64,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()

    for _ in range(5):
        step()
    with tp.profiler.profile() as p:
        for _ in range(2):
            with tp.profiler.record_function("step"):
                step()
    found = re.search(r"<svg.*?</svg>", p._repr_html_(), re.S)
    return found[0] if found else ""


SAME = {"ten_lines.svg": ten_lines, "network.svg": network, "graph.svg": graph, "plan.svg": plan}


def main(arguments: Sequence[str]) -> int:
    """Draws into the folder that is named."""
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in {**SAME, "profile.svg": profile}.items():
        (folder / name).write_text(draw().rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
