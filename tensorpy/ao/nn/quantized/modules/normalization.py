"""Norms of quantized tensors, as modules."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized import single
from tensorpy.ao.nn.quantized.modules.utils import add_range
from tensorpy.ao.nn.quantized.packed import check_images
from tensorpy.nn.modules.batchnorm import _BatchNorm
from tensorpy.nn.modules.instancenorm import _InstanceNorm

__all__ = [
    "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
]  # fmt: skip


def _range_of(mod: Any) -> tuple[float, int]:
    """What the observer of a module's results says."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


# ---- over a batch ----


class _Batch(_BatchNorm):
    """What quantized batch norms have. `_dims` is the number of spatial dimensions."""

    scale: Tensor
    zero_point: Tensor
    _dims: int
    _relu = False

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        add_range(self, 1.0, 0, device)

    def _get_name(self) -> str:
        return f"QuantizedBatchNorm{self._dims}d"

    def forward(self, input: Tensor) -> Tensor:
        """The norm of a quantized tensor."""
        if self._relu:
            check_images(self._dims, input)
        return single._batch_norm(
            f"batch_norm{self._dims}d", (self._dims + 2,), self._relu, input, self.weight, self.bias,
            self.running_mean, self.running_var, self.eps, self.scale, self.zero_point,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a batch norm that was observed, alone or with what follows it."""
        scale, zero_point = _range_of(mod)
        mod = mod[0] if isinstance(mod, nni._FusedModule) else mod
        made = cls(mod.num_features, mod.eps)
        made.weight, made.bias = mod.weight, mod.bias
        made.running_mean, made.running_var = mod.running_mean, mod.running_var
        made.scale, made.zero_point = _C.tensor(scale), _C.tensor(zero_point)
        return made


class BatchNorm2d(_Batch, nn.BatchNorm2d):
    """nn.BatchNorm2d of quantized images, by the statistics that it has.

    Arguments:
        num_features: how many channels there are
        eps: added to the variance
        momentum: not read
        device: where the statistics are
        dtype: their dtype

    Example:
        >>> layer = tp.ao.nn.quantized.BatchNorm2d(2)
        >>> layer(tp.quantize_per_tensor(tp.ones(1, 2, 1, 1), 0.5, 0, tp.quint8)).int_repr().flatten()
        tensor([1, 1], dtype=tensorpy.uint8)
    """

    _dims = 2


class BatchNorm3d(_Batch, nn.BatchNorm3d):
    """nn.BatchNorm3d of quantized volumes, by the statistics that it has.

    Arguments:
        num_features: how many channels there are
        eps: added to the variance
        momentum: not read
        device: where the statistics are
        dtype: their dtype

    Example:
        >>> layer = tp.ao.nn.quantized.BatchNorm3d(2)
        >>> layer(tp.quantize_per_tensor(tp.ones(1, 2, 1, 1, 1), 0.5, 0, tp.quint8)).int_repr().flatten()
        tensor([1, 1], dtype=tensorpy.uint8)
    """

    _dims = 3


# ---- over an example ----


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm of quantized tensors.

    Arguments:
        normalized_shape: the sizes of the last dimensions, which are normalized together
        weight: the factors, a parameter
        bias: what is added, likewise
        scale: the scale of the result
        zero_point: its zero point
        eps: added to the variance
        elementwise_affine: whether there are factors
        device: where they are
        dtype: their dtype

    Example:
        >>> weight, bias = nn.Parameter(tp.ones(2)), nn.Parameter(tp.zeros(2))
        >>> layer = tp.ao.nn.quantized.LayerNorm(2, weight, bias, 0.5, 10)
        >>> layer(tp.quantize_per_tensor(tp.tensor([[0.0, 2.0]]), 0.5, 0, tp.quint8)).int_repr()
        tensor([[ 8, 12]], dtype=tensorpy.uint8)
    """

    weight: Any
    bias: Any
    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, normalized_shape: Any, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-5,
        elementwise_affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        add_range(self, scale, zero_point, device)

    def _get_name(self) -> str:
        return "QuantizedLayerNorm"

    def forward(self, input: Tensor) -> Tensor:
        """The norm of a quantized tensor."""
        return single.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps, self.scale, self.zero_point
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> LayerNorm:
        """Makes one of a norm that was observed."""
        return cls(mod.normalized_shape, mod.weight, mod.bias, *_range_of(mod), mod.eps, mod.elementwise_affine)


class GroupNorm(nn.GroupNorm):
    """nn.GroupNorm of quantized tensors.

    Arguments:
        num_groups: how many groups the channels are in
        num_channels: how many channels there are
        weight: the factors, a parameter
        bias: what is added, likewise
        scale: the scale of the result
        zero_point: its zero point
        eps: added to the variance
        affine: whether there are factors
        device: where they are
        dtype: their dtype

    Example:
        >>> weight, bias = nn.Parameter(tp.ones(2)), nn.Parameter(tp.zeros(2))
        >>> layer = tp.ao.nn.quantized.GroupNorm(1, 2, weight, bias, 0.5, 10)
        >>> layer(tp.quantize_per_tensor(tp.tensor([[0.0, 2.0]]), 0.5, 0, tp.quint8)).int_repr()
        tensor([[ 8, 12]], dtype=tensorpy.uint8)
    """

    weight: Any
    bias: Any
    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, num_groups: int, num_channels: int, weight: Any, bias: Any, scale: float, zero_point: int,
        eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        add_range(self, scale, zero_point, device)

    def _get_name(self) -> str:
        return "QuantizedGroupNorm"

    def forward(self, input: Tensor) -> Tensor:
        """The norm of a quantized tensor."""
        return single.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> GroupNorm:
        """Makes one of a norm that was observed."""
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, *_range_of(mod), mod.eps, mod.affine)


class _Instance(_InstanceNorm):
    """What quantized instance norms have."""

    weight: Any
    bias: Any
    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, num_features: int, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-5,
        momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        add_range(self, scale, zero_point, device)

    def _get_name(self) -> str:
        return "QuantizedInstanceNorm"

    def forward(self, input: Tensor) -> Tensor:
        """The norm of a quantized tensor."""
        return single.instance_norm(input, self.weight, self.bias, self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a norm that was observed."""
        return cls(mod.num_features, mod.weight, mod.bias, *_range_of(mod), mod.eps, affine=mod.affine)


class InstanceNorm1d(_Instance, nn.InstanceNorm1d):
    """nn.InstanceNorm1d of quantized signals.

    Arguments:
        num_features: how many channels there are
        weight: the factors, a parameter
        bias: what is added, likewise
        scale: the scale of the result
        zero_point: its zero point
        eps: added to the variance
        momentum: not read
        affine: whether there are factors
        track_running_stats: False
        device: where they are
        dtype: their dtype

    Example:
        >>> weight, bias = nn.Parameter(tp.ones(1)), nn.Parameter(tp.zeros(1))
        >>> layer = tp.ao.nn.quantized.InstanceNorm1d(1, weight, bias, 0.5, 10)
        >>> x = tp.tensor([0.0, 2.0]).reshape(1, 1, 2)
        >>> layer(tp.quantize_per_tensor(x, 0.5, 0, tp.quint8)).int_repr().flatten()
        tensor([ 8, 12], dtype=tensorpy.uint8)
    """


class InstanceNorm2d(_Instance, nn.InstanceNorm2d):
    """nn.InstanceNorm2d of quantized images.

    Arguments:
        num_features: how many channels there are
        weight: the factors, a parameter
        bias: what is added, likewise
        scale: the scale of the result
        zero_point: its zero point
        eps: added to the variance
        momentum: not read
        affine: whether there are factors
        track_running_stats: False
        device: where they are
        dtype: their dtype

    Example:
        >>> weight, bias = nn.Parameter(tp.ones(1)), nn.Parameter(tp.zeros(1))
        >>> layer = tp.ao.nn.quantized.InstanceNorm2d(1, weight, bias, 0.5, 10)
        >>> x = tp.tensor([0.0, 2.0]).reshape(1, 1, 2, 1)
        >>> layer(tp.quantize_per_tensor(x, 0.5, 0, tp.quint8)).int_repr().flatten()
        tensor([ 8, 12], dtype=tensorpy.uint8)
    """


class InstanceNorm3d(_Instance, nn.InstanceNorm3d):
    """nn.InstanceNorm3d of quantized volumes.

    Arguments:
        num_features: how many channels there are
        weight: the factors, a parameter
        bias: what is added, likewise
        scale: the scale of the result
        zero_point: its zero point
        eps: added to the variance
        momentum: not read
        affine: whether there are factors
        track_running_stats: False
        device: where they are
        dtype: their dtype

    Example:
        >>> weight, bias = nn.Parameter(tp.ones(1)), nn.Parameter(tp.zeros(1))
        >>> layer = tp.ao.nn.quantized.InstanceNorm3d(1, weight, bias, 0.5, 10)
        >>> x = tp.tensor([0.0, 2.0]).reshape(1, 1, 2, 1, 1)
        >>> layer(tp.quantize_per_tensor(x, 0.5, 0, tp.quint8)).int_repr().flatten()
        tensor([ 8, 12], dtype=tensorpy.uint8)
    """
