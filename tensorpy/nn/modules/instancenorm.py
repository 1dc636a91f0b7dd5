"""Instance normalisation: each channel of each element of the batch by itself."""

from __future__ import annotations

import warnings
from typing import Any

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    _dims: int

    def _get_no_batch_dim(self) -> int:
        return self._dims + 1

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        """A state of version 1 may hold statistics that are not used any more."""
        errors = rest[-1]
        if local_metadata.get("version") is None and not self.track_running_stats:
            stale = [n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if stale:
                errors.append(
                    f"Unexpected running stats buffer(s) {' and '.join(repr(prefix + n) for n in stale)} for "
                    f"{type(self).__name__} with track_running_stats=False."
                )
                for name in stale:
                    state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.dim() == self._dims + 1
        channels = input.shape[0 if single else 1]
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={0 if single else 1} to match num_features ({self.num_features}), "
                    f"but got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={0 if single else 1} does not match num_features. You can silence this warning "
                "by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        result = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of signals.

    Input (N, C, L) or (C, L), output of the same shape; floats.

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
        >>> nn.InstanceNorm1d(4)(tp.randn(3, 4, 5)).shape
        tensorpy.Size([3, 4, 5])
    """

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images.

    Input (N, C, H, W) or (C, H, W), output of the same shape; floats.

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
        >>> nn.InstanceNorm2d(4)(tp.randn(3, 4, 5, 5)).shape
        tensorpy.Size([3, 4, 5, 5])
    """

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes.

    Input (N, C, D, H, W) or (C, D, H, W), output of the same shape; floats.

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
        >>> nn.InstanceNorm3d(4)(tp.randn(3, 4, 2, 2, 2)).shape
        tensorpy.Size([3, 4, 2, 2, 2])
    """

    _dims = 3


class _LazyInstanceNorm(_LazyNormBase):
    _dims: int

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
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def initialize_parameters(self: Any, input: Tensor) -> None:
        super().initialize_parameters(input if input.dim() > self._dims + 1 else input.unsqueeze(0))


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """An InstanceNorm1d whose num_features comes from its first input.

    Input (N, C, L) or (C, L), output of the same shape; floats.

    Arguments:
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.LazyInstanceNorm1d()(tp.randn(3, 4, 5)).shape
        tensorpy.Size([3, 4, 5])
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """An InstanceNorm2d whose num_features comes from its first input.

    Input (N, C, H, W) or (C, H, W), output of the same shape; floats.

    Arguments:
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.LazyInstanceNorm2d()(tp.randn(3, 4, 5, 5)).shape
        tensorpy.Size([3, 4, 5, 5])
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """An InstanceNorm3d whose num_features comes from its first input.

    Input (N, C, D, H, W) or (C, D, H, W), output of the same shape; floats.

    Arguments:
        eps: a small number that keeps divisions in range
        momentum: how much the new statistics weigh in the running ones; None for an average of all
        affine: whether there are weights and biases to learn
        track_running_stats: whether running statistics are kept, for evaluation
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        bias: whether there is a bias

    Example:
        >>> nn.LazyInstanceNorm3d()(tp.randn(3, 4, 2, 2, 2)).shape
        tensorpy.Size([3, 4, 2, 2, 2])
    """

    cls_to_become = InstanceNorm3d
