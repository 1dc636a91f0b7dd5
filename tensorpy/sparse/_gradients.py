"""Sparse gradients: of an embedding's weight, and what optimizers do with them."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.function import Function


class _Embedding(Function):
    _takes_transforms = True

    @staticmethod
    def forward(ctx: Any, weight: Tensor, index: Tensor, padding_idx: int) -> Any:
        ctx.index, ctx.size, ctx.padding_idx = index, tuple(weight.shape), padding_idx
        return _C.embedding(weight, index)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        rows, values = ctx.index.reshape(-1).to(_C.int64), grad.reshape(-1, ctx.size[1])
        if ctx.padding_idx >= 0:
            counted = (rows != ctx.padding_idx).nonzero().squeeze(1)
            rows, values = rows.index_select(0, counted), values.index_select(0, counted)
        return _C._coo(rows.unsqueeze(0), values, ctx.size, False), None, None


def embedding(weight: Tensor, index: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Rows of a weight, whose gradient is sparse: the rows that were taken."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    return _Embedding.apply(weight, index, padding_idx)


class _EmbeddingBag(Function):
    """Sums (mode 0) or means (1) of bags of rows."""

    _takes_transforms = True

    @staticmethod
    def forward(ctx: Any, weight: Tensor, each: Tensor | None, index: Tensor, bags: Any) -> Any:
        offsets, mode, include_last_offset, padding_idx = bags
        result = _C.embedding_bag(weight, index, offsets, False, mode, True, each, include_last_offset, padding_idx)[0]
        ctx.index, ctx.size, ctx.bags = index, tuple(weight.shape), bags
        ctx.save_for_backward(weight, each)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        offsets, mode, include_last_offset, padding_idx = ctx.bags
        weight, each = ctx.saved_tensors
        places = _C.arange(ctx.index.numel(), device=ctx.index.device)
        bag = _C.searchsorted(offsets.to(_C.int64).contiguous(), places, right=True) - 1
        if include_last_offset:  # what is beyond the last offset is in no bag
            bag = _C.where(bag < grad.shape[0], bag, -1)
        to_each = None
        if each is not None and ctx.needs_input_grad[1]:
            to_each = _C._embedding_bag_per_sample_weights_backward(
                grad,
                weight,
                ctx.index,
                offsets,
                bag.to(ctx.index.dtype),
                mode,
                -1 if padding_idx is None else padding_idx,
            )
        rows, scale = ctx.index.to(_C.int64), each
        if padding_idx is not None or include_last_offset:
            counted = ((rows != (-1 if padding_idx is None else padding_idx)) & (bag >= 0)).nonzero().squeeze(1)
            rows, bag = rows.index_select(0, counted), bag.index_select(0, counted)
            scale = None if scale is None else scale.index_select(0, counted)
        if mode == 1:
            scale = 1 / _C.bincount(bag, minlength=grad.shape[0]).to(grad.dtype).index_select(0, bag)
        values = grad.index_select(0, bag)
        values = values if scale is None else values * scale.unsqueeze(1)
        return _C._coo(rows.unsqueeze(0), values, ctx.size, False), to_each, None, None


def embedding_bag(
    weight: Tensor, each: Tensor | None, index: Tensor, bags: tuple[Any, int, bool, int | None], by_freq: bool
) -> Tensor:
    """Sums or means of bags of rows, whose gradient by the weight is sparse; `bags` is (offsets, mode,
    include_last_offset, padding_idx)."""
    if by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    return _EmbeddingBag.apply(weight, each, index, bags)


# ---- optimizers ----


def sgd(p: Tensor, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
    """A step of gradient descent."""
    if group["weight_decay"]:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    momentum = group["momentum"]
    if momentum:
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.detach().clone()
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
        grad = _C.add(grad, buffer, alpha=momentum) if group["nesterov"] else buffer
    p.add_(grad, alpha=-float(group["lr"]))


def adagrad(p: Tensor, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
    """A step of Adagrad: sums of squares of the values that there are."""
    if group["weight_decay"]:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    state["step"] += 1
    rate = float(group["lr"]) / (1 + (float(state["step"]) - 1) * group["lr_decay"])
    grad = grad.coalesce()
    values = grad._values()
    state["sum"].add_(_C._layout_like(grad, values * values))
    spread = state["sum"].sparse_mask(grad)._values().sqrt() + group["eps"]
    p.add_(_C._layout_like(grad, values / spread), alpha=-rate)


def adam(p: Tensor, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
    """A step of Adam in the places that the gradient has values for; means elsewhere stay as they are."""
    state["step"] += 1
    step, (beta1, beta2) = float(state["step"]), map(float, group["betas"])
    grad = grad.coalesce()
    values = grad._values()
    mean = state["exp_avg"].sparse_mask(grad)._values()
    square = state["exp_avg_sq"].sparse_mask(grad)._values()
    mean_change, square_change = (values - mean) * (1 - beta1), (values * values - square) * (1 - beta2)
    state["exp_avg"].add_(_C._layout_like(grad, mean_change))
    state["exp_avg_sq"].add_(_C._layout_like(grad, square_change))
    rate = float(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
    p.add_(_C._layout_like(grad, (mean + mean_change) / ((square + square_change).sqrt() + group["eps"])), alpha=-rate)
