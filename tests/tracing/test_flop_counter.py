"""FlopCounterMode's numbers are PyTorch's, by operator and by module."""

from __future__ import annotations

from typing import Any

import pytest
from side_by_side import torch

import tensorpy as tp
from tensorpy.utils import flop_counter


def counts_of(t: Any) -> list[dict[str, int]]:
    import importlib

    counter = importlib.import_module(f"{t.__name__}.utils.flop_counter")
    nn = t.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3, 2))
            self.last = nn.Linear(2, 5)

        def forward(self, x: Any) -> Any:
            y = self.first(x).mean((2, 3))
            return self.last(y) @ t.ones(2, 5, 4)

    found = []
    net = Net()
    shared = nn.Linear(5, 5)
    twice = nn.Sequential(shared, nn.Tanh(), shared, nn.Sequential(nn.Linear(5, 2)))
    for call in (
        lambda: net(t.ones(2, 3, 8, 8)),
        lambda: net(t.ones(2, 3, 8, 8, requires_grad=True)).sum().backward(),
        lambda: twice(t.ones(3, 5, requires_grad=True)).square().mm(t.ones(2, 2)).sum().backward(),
    ):
        with counter.FlopCounterMode(display=False) as mode:
            call()
        total = mode.get_total_flops()
        counts = {name: sum(by_operator.values()) for name, by_operator in mode.get_flop_counts().items()}
        assert total == counts["Global"] > 0
        found.append(counts)
    return found


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
def test_as_in_pytorch() -> None:
    ours, theirs = (counts_of(t) for t in (tp, torch))
    assert ours == theirs


def test_gradients_count_where_they_were_recorded() -> None:
    """Also where an input has none, where a module's output is used twice, and in a checkpoint."""
    first, last = tp.nn.Linear(3, 4), tp.nn.Linear(4, 2)
    net = tp.nn.Sequential(first, last)
    with flop_counter.FlopCounterMode(display=False) as mode:
        y = net(tp.ones(5, 3))
        (y + y.sin()).sum().backward()
    counts = {name: sum(c.values()) for name, c in mode.get_flop_counts().items()}
    assert counts == {"Global": 2 * 120 + 3 * 80, "Sequential": 480, "Sequential.0": 240, "Sequential.1": 240}
    with flop_counter.FlopCounterMode(display=False) as mode:
        # computed again up to what it saved, the input
        tp.utils.checkpoint.checkpoint(last, first(tp.ones(5, 3)), use_reentrant=False).sum().backward()
    assert sum(mode.get_flop_counts()["Linear"].values()) == mode.get_total_flops() == 240 + 3 * 80


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    with flop_counter.FlopCounterMode(depth=1):
        tp.nn.Sequential(tp.nn.Linear(100, 200))(tp.ones(1000, 100))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Module", "FLOP", "%", "Total"]
    assert lines[2].split() == ["Global", "40.000M", "100.00%"] and "aten.addmm" in lines[3]
    assert any(line.strip().startswith("Sequential") for line in lines) and "Sequential.0" not in "".join(lines)


def test_formulas_of_others() -> None:
    with flop_counter.FlopCounterMode(
        display=False, custom_mapping={tp.ops.aten.sin: lambda x, out_shape: x[0] * out_shape[1]}
    ) as mode:
        tp.ones(3, 4).sin()
    assert mode.get_total_flops() == 12
    with pytest.raises(RuntimeError, match="duplicate"):
        flop_counter.register_flop_formula(tp.ops.aten.mm)(lambda *args, **kwargs: 0)


def test_formulas_of_values_and_what_has_none() -> None:
    def of_values(*args: object, out_val: tp.Tensor) -> int:
        return out_val.numel()

    vars(of_values)["_get_raw"] = True
    with flop_counter.FlopCounterMode(display=False, custom_mapping={tp.ops.aten.sin: of_values}) as mode:
        tp.ones(3, 4).sin()
    assert mode.get_total_flops() == 12
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        flop_counter.register_flop_formula(tp.ops.aten.cos.default)(of_values)
    with pytest.warns(UserWarning, match="not needed"):
        flop_counter.FlopCounterMode(tp.nn.Linear(2, 2))
    assert tp.ops.aten.sin.op.__module__ == tp.ops.aten.sin.__module__
