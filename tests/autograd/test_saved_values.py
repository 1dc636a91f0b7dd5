"""y.grad_fn._saved_self and its kin: what a node keeps for backward, under PyTorch's names."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp

CALLS = {
    "exp": lambda t, x: x.exp(), "mul": lambda t, x: x * (x + 1), "pow": lambda t, x: x**2,
    "max": lambda t, x: x.max(0)[0],
    "where": lambda t, x: t.where(x > 0, x, x * 2), "gather": lambda t, x: x.gather(0, t.tensor([0, 1])),
    "sigmoid": lambda t, x: x.sigmoid(), "sqrt": lambda t, x: x.sqrt(), "mm": lambda t, x: x[None] @ x[:, None],
}  # fmt: skip


def saved(node: Any) -> dict[str, Any]:
    """Tensors that a node saves, by name."""
    found = {name: getattr(node, name) for name in dir(node) if name.startswith("_saved_")}
    return {name: v.tolist() for name, v in found.items() if hasattr(v, "tolist")}


@pytest.mark.parametrize("name", CALLS)
def test_saved_tensors_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (saved(CALLS[name](t, t.tensor([1.0, 4.0], requires_grad=True)).grad_fn) for t in (tp, torch))
    assert ours and ours == {name: theirs[name] for name in ours}


def test_saved_values_are_those_that_backward_uses() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    assert y.grad_fn._saved_self is x and y.grad_fn._saved_other is x
    e = x.exp()
    assert e.grad_fn._saved_result.equal(e) and e.grad_fn._saved_result.requires_grad
    assert "_saved_result" in dir(e.grad_fn) and not hasattr(e.grad_fn, "_saved_no_such")
    e.sum().backward()
    with pytest.raises(RuntimeError, match="saved"):
        e.grad_fn._saved_result  # noqa: B018
    z = (x * 2).sin()
    before = z.grad_fn._saved_self
    before.detach().zero_()
    with pytest.raises(RuntimeError, match=r"in-?place|changed"):
        z.grad_fn._saved_self  # noqa: B018
