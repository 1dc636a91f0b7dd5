"""Control flow as functions of functions: calls of the branch, the loop's body, the function of each slice."""

from __future__ import annotations

from tensorpy._higher_order_ops._invoke_quant import InvokeQuant, invoke_quant, invoke_quant_packed
from tensorpy._higher_order_ops.associative_scan import associative_scan
from tensorpy._higher_order_ops.cond import cond
from tensorpy._higher_order_ops.map import map
from tensorpy._higher_order_ops.scan import scan
from tensorpy._higher_order_ops.while_loop import while_loop

__all__ = [
    "InvokeQuant", "associative_scan", "cond", "invoke_quant", "invoke_quant_packed", "map", "scan", "while_loop",
]  # fmt: skip
