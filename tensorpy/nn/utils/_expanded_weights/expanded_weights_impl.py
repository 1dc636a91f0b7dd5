"""ExpandedWeight: a parameter of which each sample of a batch has a copy, as far as gradients are concerned.

Functions meet it by __torch_function__; rules.py says what each of them does with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor

Rule = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
HANDLED: dict[Any, Rule] = {}


class ExpandedWeight(Tensor):
    """A weight whose gradient is kept for each sample, in `grad_sample` of the tensor that it is made of.

    Arguments:
        orig_weight: that tensor, which requires a gradient
        batch_size: how many samples there are
        loss_reduction: "sum", or "mean", where the loss divides by the number of samples and gradients do not
    """

    orig_weight: Tensor
    batch_size: int
    loss_reduction: str
    allow_smaller_batches: bool
    batch_first: bool

    def __new__(cls, orig_weight: Any, batch_size: int, loss_reduction: str = "sum") -> ExpandedWeight:
        if not isinstance(orig_weight, Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that requires_grad")
        made: ExpandedWeight = Tensor._make_subclass(cls, orig_weight.detach(), True)
        made.orig_weight, made.batch_size, made.loss_reduction = orig_weight, batch_size, loss_reduction
        made.allow_smaller_batches, made.batch_first = False, True
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("__get__", "__set__"):  # what is known of the tensor, its shape say
            return super().__torch_function__(func, types, args, kwargs or {})
        if func not in HANDLED:
            name = getattr(func, "__name__", func)
            raise RuntimeError(f"Expanded Weights encountered but cannot handle function {name}")
        return HANDLED[func](func, tuple(args), kwargs or {})

    def set_allow_smaller_batches(self, is_allow_smaller_batches: bool) -> None:
        """Whether a batch may have fewer samples than the weight has: the others' gradients are zero then."""
        self.allow_smaller_batches = is_allow_smaller_batches

    def set_batch_first(self, is_batch_first: bool = True) -> None:
        """Whether samples are counted by the first dimension of inputs, or by the second."""
        self.batch_first = is_batch_first
