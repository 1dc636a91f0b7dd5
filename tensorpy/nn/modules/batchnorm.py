"""Batch normalisation, and what it shares with instance normalisation: running statistics."""

from __future__ import annotations

import sys
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn import init
from tensorpy.nn.modules.lazy import LazyModuleMixin
from tensorpy.nn.modules.module import Module
from tensorpy.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Scale and shift, running mean and variance, the number of batches seen. Version 2 of the state has the latter."""

    affine: bool
    eps: float
    momentum: float | None
    num_features: int
    track_running_stats: bool
    _version = 2
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(_C.empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        if track_running_stats:
            self.register_buffer("running_mean", _C.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", _C.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", _C.tensor(0, dtype=_C.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets what was seen: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Puts everything back to the start: scale 1, shift 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            state_dict[key] = _C.tensor(0, dtype=_C.int64) if own is None or own.is_meta else own
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean over all batches
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracked = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if tracked else (None, None)
        return self._normalize(input, mean, var, by_batch, factor)

    def _normalize(self, input: Tensor, mean: Any, var: Any, by_batch: bool, factor: float) -> Tensor:
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)


def _expect_dims(input: Tensor, *dims: int) -> None:
    if input.dim() not in dims:
        wanted = " or ".join(f"{n}D" for n in dims)
        raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of features (N, C) or signals (N, C, L).

    Input (N, C) or (N, C, L), output of the same shape; floats.

    Arguments:
        num_features: C, how many channels or features there are
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.BatchNorm1d(4)(tp.randn(3, 4, 5)).shape
        tensorpy.Size([3, 4, 5])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (N, C, H, W).

    Input (N, C, H, W), output of the same shape; floats.

    Arguments:
        num_features: C, how many channels or features there are
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.BatchNorm2d(4)(tp.randn(3, 4, 5, 5)).shape
        tensorpy.Size([3, 4, 5, 5])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 4)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (N, C, D, H, W).

    Input (N, C, D, H, W), output of the same shape; floats.

    Arguments:
        num_features: C, how many channels or features there are
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.BatchNorm3d(4)(tp.randn(3, 4, 2, 2, 2)).shape
        tensorpy.Size([3, 4, 2, 2, 2])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of any shape, while training by the statistics of the batches of all processes.

    Input (N, C, ...), output of the same shape; floats. A process may have an empty batch.

    Arguments:
        num_features: C, how many channels or features there are
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        process_group: the processes that share statistics; None takes all
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.SyncBatchNorm(4)(tp.randn(3, 4, 5, 5)).shape
        tensorpy.Size([3, 4, 5, 5])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _normalize(self, input: Tensor, mean: Any, var: Any, by_batch: bool, factor: float) -> Tensor:
        if by_batch and self.training and "tensorpy.distributed" in sys.modules:  # else there is one process
            from tensorpy import distributed

            if distributed.is_initialized() and distributed.get_world_size(self.process_group) > 1:
                from tensorpy.distributed import groups
                from tensorpy.nn.modules import _functions

                group = groups.of(self.process_group)
                return _functions.SyncBatchNorm.apply(input, self.weight, self.bias, mean, var, self.eps, factor, group)
        return super()._normalize(input, mean, var, by_batch, factor)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Module:
        """The module with SyncBatchNorm in place of every batch norm in it."""
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            for name in ("weight", "bias"):
                setattr(result, name, getattr(module, name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _LazyNormBase(LazyModuleMixin):
    """A norm whose num_features is the number of channels of its first input."""

    affine: bool
    bias: Any
    num_batches_tracked: Any
    num_features: Any
    running_mean: Any
    running_var: Any
    track_running_stats: bool
    weight: Any

    def __init__(
        self: Any,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = _C.tensor(0, dtype=_C.int64, device=device)

    def reset_parameters(self: Any) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]

    def initialize_parameters(self: Any, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        parameters = (self.weight, self.bias) if self.affine else ()
        statistics = (self.running_mean, self.running_var) if self.track_running_stats else ()
        for each in (*parameters, *statistics):
            if each is not None:
                each.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A BatchNorm1d whose num_features comes from its first input.

    Input (N, C) or (N, C, L), output of the same shape; floats.

    Arguments:
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.LazyBatchNorm1d()(tp.randn(3, 4, 5)).shape
        tensorpy.Size([3, 4, 5])
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A BatchNorm2d whose num_features comes from its first input.

    Input (N, C, H, W), output of the same shape; floats.

    Arguments:
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.LazyBatchNorm2d()(tp.randn(3, 4, 5, 5)).shape
        tensorpy.Size([3, 4, 5, 5])
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A BatchNorm3d whose num_features comes from its first input.

    Input (N, C, D, H, W), output of the same shape; floats.

    Arguments:
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.LazyBatchNorm3d()(tp.randn(3, 4, 2, 2, 2)).shape
        tensorpy.Size([3, 4, 2, 2, 2])
    """

    cls_to_become = BatchNorm3d
