"""Functions that a generator of code would keep as one operator: calls of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def invoke_quant_packed(subgraph: Callable[..., Any], *operands: Any, **how: Any) -> Any:
    """What a function of tensors gives.

    Arguments:
        subgraph: the function
        operands: its arguments
        how: the scheme and the options, which a generator of code would read

    Example:
        >>> tp._higher_order_ops.invoke_quant_packed(tp.neg, tp.ones(1), scheme="nf4")
        tensor([-1.])
    """
    return subgraph(*operands)


invoke_quant = invoke_quant_packed


@dataclass(frozen=True)
class InvokeQuant:
    """Options, with which a function is called.

    Arguments:
        codegen_low_precision: whether generated code would compute in the dtypes of the function's tensors

    Example:
        >>> tp._higher_order_ops.InvokeQuant()(tp.neg, tp.ones(1))
        tensor([-1.])
    """

    codegen_low_precision: bool = True

    def __call__(self, *args: Any, scheme: str | None = None, **kwargs: Any) -> Any:
        return args[0](*args[1:], **kwargs)
