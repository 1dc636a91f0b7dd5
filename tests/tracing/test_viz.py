"""utils.viz: pictures of autograd graphs, and the boxes and arrows that they share with fx."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy.utils import _layers, viz


def texts(svg: str) -> list[str | None]:
    return [box.text for box in ElementTree.fromstring(svg).findall(".//{*}text")]


def test_leaves_calls_and_the_output() -> None:
    w, x = tp.rand(3, 4, requires_grad=True), tp.rand(4, requires_grad=True)
    picture = viz.graph((w * x).exp().sum(), {"w": w})
    expected = ["w (3, 4)", "leaf (4,)", "MulBackward0", "ExpBackward0", "SumBackward0", "output ()"]
    assert texts(str(picture)) == expected
    titles = [title.text or "" for title in ElementTree.fromstring(str(picture)).findall(".//{*}title")]
    assert titles[0] == titles[-1] == "tensorpy.float32 on cpu"
    assert all(re.fullmatch(r"\w+Backward0, call \d+", title) for title in titles[2:-1])
    assert repr(picture) == "AutogradGraph(nodes=4, leaves=2)"


@pytest.mark.parametrize("names", [lambda m: m, lambda m: m.named_parameters(), lambda m: dict(m.named_parameters())])
def test_names_of_parameters(names: object) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    found = texts(str(viz.graph(model(tp.rand(5, 4)).sum(), names(model))))  # type: ignore[operator]
    assert {"0.weight (8, 4)", "0.bias (8,)", "2.weight (3, 8)", "2.bias (3,)"} < set(found)


def test_a_leaf_that_is_used_twice_is_one_box() -> None:
    x = tp.rand(2, requires_grad=True)
    assert texts(str(viz.graph(x * x + x))).count("leaf (2,)") == 1


def test_several_tensors() -> None:
    x = tp.rand(2, requires_grad=True)
    y = x.exp()
    assert texts(str(viz.graph([y, x, y.sin()]))) == [
        "leaf (2,)",
        "ExpBackward0",
        "SinBackward0",
        "output (2,)",
        "output (2,)",
    ]
    assert texts(str(viz.graph(x, {"x": x}))) == ["x (2,)"]


def test_own_functions() -> None:
    class Twice(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return 2 * x

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            return 2 * grad

    found = texts(str(viz.graph(Twice.apply(tp.rand(2, requires_grad=True)))))
    assert found == ["leaf (2,)", "TwiceBackward", "output (2,)"]


def test_no_graph() -> None:
    with pytest.raises(ValueError, match="nothing that it was made from requires a gradient"):
        viz.graph(tp.rand(2))
    with pytest.raises(ValueError, match="has no graph"):
        viz.graph([tp.rand(2, requires_grad=True), tp.rand(2)])


def test_deep_graphs() -> None:
    y = x = tp.rand(1, requires_grad=True)
    for _ in range(3000):
        y = y + 1
    assert texts(str(viz.graph(y, {"x": x}))).count("AddBackward0") == 3000


def test_saving(tmp_path: Path) -> None:
    picture = viz.graph(tp.rand(2, requires_grad=True).exp(), {})
    picture.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text() == picture._repr_svg_() == str(picture)


# ---- the layout ----


def box(name: str, *takes: int) -> _layers.Box:
    return _layers.Box(name, name, _layers.CALL, takes)


LAYOUTS = {
    "nothing": [],
    "one": [box("a")],
    "a chain": [box("a"), box("b", 0), box("c", 1)],
    "a shortcut": [box("a"), box("a long name", 0), box("c", 1), box("d", 0, 2)],
    "many into one": [*(box(f"leaf {i}") for i in range(9)), box("sum", *range(9))],
    "one into many": [box("a"), *(box(f"user {i}", 0) for i in range(9))],
    "two that do not meet": [box("a"), box("b"), box("c", 0), box("d", 1)],
    "twice": [box("a"), box("b", 0, 0)],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_box_over_another_and_every_arrow_leads_down(name: str) -> None:
    boxes = LAYOUTS[name]
    root = ElementTree.fromstring(_layers.svg(boxes))
    rects = [{k: float(r.get(k, 0)) for k in ("x", "y", "width", "height")} for r in root.findall(".//{*}rect")]
    assert len(rects) == len(boxes)
    for a, b in combinations(rects, 2):
        apart = a["x"] + a["width"] < b["x"] or b["x"] + b["width"] < a["x"]
        assert apart or a["y"] + a["height"] < b["y"] or b["y"] + b["height"] < a["y"]
    for r in rects:
        assert r["x"] >= 0 and r["x"] + r["width"] <= float(root.get("width", 0))
        assert r["y"] + r["height"] <= float(root.get("height", 0))
    for i, taker in enumerate(boxes):
        for taken in taker.takes:
            assert rects[taken]["y"] < rects[i]["y"]


def test_a_long_arrow_passes_beside_the_boxes() -> None:
    boxes = LAYOUTS["a shortcut"]
    root = ElementTree.fromstring(_layers.svg(boxes))
    between = root.findall(".//{*}rect")[1]
    left, width = float(between.get("x", 0)), float(between.get("width", 0))
    path = next(p.get("d", "") for p in root.findall(".//{*}path") if " V" in p.get("d", ""))
    passing = [float(x) for x in re.findall(r"([\d.]+),\d+ V", path)]
    assert passing and not left <= passing[0] <= left + width
