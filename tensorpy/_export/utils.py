"""What export asks of an operator."""

from __future__ import annotations

from typing import Any

from tensorpy import _C

__all__: list[str] = []


def _is_cia_op(op: Any) -> bool:
    """Whether an operator's kernel is made of others that record gradients."""
    return any(row[1] == "CompositeImplicitAutograd" for row in _C._dispatch_table(op.name().removeprefix("aten::")))
