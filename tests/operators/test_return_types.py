"""torch.return_types: the struct sequences of results with names, and those of calls with out=."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import tensorpy as tp

CALLS = {
    "max": lambda t, x, out: t.max(x, 0, out=out), "sort": lambda t, x, out: t.sort(x, out=out),
    "topk": lambda t, x, out: t.topk(x, 2, out=out), "mode": lambda t, x, out: t.mode(x, out=out),
    "kthvalue": lambda t, x, out: t.kthvalue(x, 1, out=out), "cummax": lambda t, x, out: t.cummax(x, 0, out=out),
    "nanmedian": lambda t, x, out: t.nanmedian(x, 0, out=out),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_with_out_gives_a_type_of_its_own(name: str) -> None:
    x = tp.randn(3, 3)
    out = (tp.empty(0), tp.empty(0, dtype=tp.int64))
    result = CALLS[name](tp, x, out)
    assert type(result) is getattr(tp.return_types, f"{name}_out")
    assert type(CALLS[name](tp, x, None)) is getattr(tp.return_types, name)
    assert result[0] is out[0] and repr(result).startswith(f"tensorpy.return_types.{name}_out(\n")
    assert type(pickle.loads(pickle.dumps(result))) is type(result)


def test_the_names_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")

    def fields(types: Any, name: str) -> tuple[str, ...]:
        return tuple(getattr(types, name).__match_args__)

    theirs = [name for name in dir(torch.return_types) if name.endswith("_out") and hasattr(tp.return_types, name)]
    ours = [name for name in dir(tp.return_types) if name.endswith("_out")]
    assert set(ours) <= set(dir(torch.return_types)) and len(ours) > 30
    assert {n: fields(tp.return_types, n) for n in theirs} == {n: fields(torch.return_types, n) for n in theirs}
    missing = {name for name in dir(torch.return_types) if name.endswith("_out")} - set(ours)
    assert not missing, missing
