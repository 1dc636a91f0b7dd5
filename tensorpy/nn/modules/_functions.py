"""SyncBatchNorm's function: statistics of a batch that lies in several processes, and what follows for gradients."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd import Function
from tensorpy.distributed import all_gather_into_tensor, all_reduce
from tensorpy.distributed.groups import ProcessGroup


class SyncBatchNorm(Function):
    """Normalises by the statistics of all processes' batches; a process may have an empty one."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        eps: float,
        momentum: float,
        group: ProcessGroup,
    ) -> Tensor:
        channels, count = input.shape[1], input.numel() // max(input.shape[1], 1)
        wide = input.dtype if input.dtype == _C.float64 else _C.float32
        mine = _C.zeros(2 * channels + 1, dtype=wide, device=input.device)
        if count:
            mean, invstd = _C.batch_norm_stats(input, eps)
            mine[:channels], mine[channels:-1], mine[-1] = mean, invstd, count
        everyone = _C.empty(group.size() * mine.numel(), dtype=wide, device=input.device)
        all_gather_into_tensor(everyone, mine, group)
        rows = everyone.view(group.size(), -1)
        rows = rows[rows[:, -1] > 0]
        counts = rows[:, -1].contiguous()
        if counts.sum() == 1:
            raise ValueError("SyncBatchNorm: expected more than 1 value per channel in all processes together")
        mean, invstd = _C.batch_norm_gather_stats_with_counts(
            input, rows[:, :channels], rows[:, channels:-1], running_mean, running_var, momentum, eps, counts
        )
        ctx.save_for_backward(input, weight, mean, invstd, counts.to(_C.int32))
        ctx.group, ctx.bias_dtype = group, None if bias is None else bias.dtype
        if not count:
            return _C.empty_like(input)
        return _C.batch_norm_elemt(input, weight, bias, mean, invstd, eps).to(input.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        input, weight, mean, invstd, counts = ctx.saved_tensors
        (grad,) = grads
        of_input, of_weight, of_bias = ctx.needs_input_grad[:3]
        channels = input.shape[1]
        sums = _C.zeros(2, channels, dtype=mean.dtype, device=input.device)
        grad_weight: Any = None
        grad_bias: Any = None
        if input.numel():
            sum_dy, sum_dy_xmu, grad_weight, grad_bias = _C.batch_norm_backward_reduce(
                grad, input, mean, invstd, weight, of_input, of_weight, of_bias
            )
            sums[0], sums[1] = sum_dy, sum_dy_xmu
        elif weight is not None:  # a process without elements adds nothing
            grad_weight = grad_bias = _C.zeros(channels, dtype=mean.dtype, device=input.device)
        grad_input = None
        if of_input:
            all_reduce(sums, group=ctx.group)
            grad_input = _C.empty_like(input)
            if input.numel():
                grad_input = _C.batch_norm_backward_elemt(
                    grad, input, mean, invstd, weight, sums[0], sums[1], counts
                ).to(input.dtype)
        if not of_weight or weight is None or grad_weight is None:
            grad_weight = None
        else:
            grad_weight = grad_weight.to(weight.dtype)
        grad_bias = grad_bias.to(ctx.bias_dtype) if of_bias and grad_bias is not None else None
        return (grad_input, grad_weight, grad_bias, *[None] * 5)
