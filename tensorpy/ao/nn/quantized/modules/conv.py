"""Convolutions of integers."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import per_tensor_affine, per_tensor_symmetric
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized import packed_conv, packed_conv_transpose
from tensorpy.ao.nn.quantized.modules.utils import WeightedQuantizedModule, _quantize_weight, load_range, save_range
from tensorpy.ao.nn.quantized.packed import check_images
from tensorpy.nn import functional as F
from tensorpy.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from tensorpy.nn.utils.fusion import fuse_conv_bn_weights

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_ONE_SCALE = (per_tensor_affine, per_tensor_symmetric)
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(WeightedQuantizedModule):
    """What quantized convolutions have. `_dims` is the number of spatial dimensions."""

    in_channels: int
    out_channels: int
    kernel_size: Any
    stride: Any
    padding: Any
    dilation: Any
    groups: int
    transposed: bool
    output_padding: Any
    scale: float
    zero_point: int
    _dims: int
    _FLOAT_MODULE: Any
    _packed_params: packed_conv.ConvPackedParamsBase

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode is one of {', '.join(_PADDING_MODES)}, not {padding_mode!r}")
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} and {out_channels} channels are not {groups} groups")
        sized = _ntuple(self._dims)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = sized(kernel_size), sized(stride), sized(padding)
        self.dilation, self.groups, self.padding_mode = sized(dilation), groups, padding_mode
        self.transposed, self.output_padding = False, sized(0)
        integers = _C.zeros(self._sizes(), dtype=_C.int8, device=device)
        weight = _C._make_per_tensor_quantized_tensor(integers, 1.0, 0)
        self.set_weight_bias(weight, _C.zeros(out_channels, device=device) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    def _sizes(self) -> tuple[int, ...]:
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Takes a quantized weight and a bias."""
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        self._packed_params = packed_conv._prepack(self._dims, w, b, self.stride, padding, self.dilation, self.groups)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._packed_params.unpack()[0]

    def bias(self) -> Tensor | None:
        """The bias, in numbers."""
        return self._packed_params.unpack()[1]

    def _bordered(self, input: Tensor) -> Tensor:
        """An input with the border that is no zeros."""
        check_images(self._dims, input)
        if self.padding_mode != "zeros" and any(self.padding):
            integers, scale, zero_point = input.int_repr(), input.q_scale(), input.q_zero_point()
            border = _reverse_repeat_tuple(self.padding, 2)
            whole = F.pad(integers.to(_C.float32), border, mode=self.padding_mode).to(integers.dtype)
            return _C._make_per_tensor_quantized_tensor(whole, scale, zero_point)
        return input

    def _convolved(self, input: Tensor, relu: bool) -> Tensor:
        return self._packed_params(self._bordered(input), self.scale, self.zero_point, relu)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of a quantized tensor."""
        return self._convolved(input, False)

    def _get_name(self) -> str:
        return f"QuantizedConv{self._dims}d"

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )
        if any(self.padding):
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias() is not None else text + ", bias=False"

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"], destination[prefix + "bias"] = self._packed_params.unpack()
        save_range(self, destination, prefix)

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *rest: Any
    ) -> None:
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        load_range(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    @classmethod
    def _of(cls, conv: Any) -> Any:
        """One of the sizes of a convolution."""
        if isinstance(conv.padding, str):
            raise NotImplementedError(f"{cls.__name__} of padding={conv.padding!r}: give it as numbers")
        return cls(
            conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation,
            conv.groups, conv.bias is not None, conv.padding_mode,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a convolution that was observed, or trained with fake quantization."""
        made = cls._from_float(mod, use_precomputed_fake_quant)
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def _from_float(cls, mod: Any, use_precomputed_fake_quant: bool) -> Any:
        """The same, with the scale of the result left at 1."""
        if hasattr(mod, "weight_fake_quant"):
            conv, weight_watching = mod, mod.weight_fake_quant
            weight, bias = mod.weight, mod.bias
            if getattr(mod, "bn", None) is not None:
                bn = mod.bn
                weight, bias = fuse_conv_bn_weights(
                    weight, bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
                )
        else:
            if type(mod) not in cls._FLOAT_MODULE or not hasattr(mod, "qconfig"):
                names = [kind.__name__ for kind in cls._FLOAT_MODULE]
                raise AssertionError(f"{cls.__name__}.from_float is of {names} with a qconfig, not of {type(mod)}")
            conv = mod[0] if isinstance(mod, nni._FusedModule) else mod
            if issubclass(cls, _ConvTransposeNd) and mod.qconfig.weight().qscheme not in _ONE_SCALE:
                raise AssertionError(f"Per channel weight observer is not supported for {cls.__name__}.")
            weight, bias, weight_watching = conv.weight, conv.bias, mod.qconfig.weight()
        if not use_precomputed_fake_quant:
            weight_watching(weight)
        if weight_watching.dtype != _C.qint8:
            raise AssertionError(f"Weight observer must have a dtype of qint8, got {weight_watching.dtype}")
        made = cls._of(conv)
        bias = None if bias is None else bias.detach().float()
        made.set_weight_bias(_quantize_weight(weight.detach().float(), weight_watching), bias)
        return made

    @classmethod
    def from_reference(cls, ref_module: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """Makes one of a module that computes the same in floating point."""
        made = cls._of(ref_module)
        made.set_weight_bias(ref_module.get_quantized_weight(), ref_module.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class Conv1d(_ConvNd):
    """A convolution of quantized signals (N, C, L), computed with integers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window
        stride: how far the window moves
        padding: how many elements are added at both sides
        dilation: the distance between elements of the window
        groups: how many groups the channels are in
        bias: whether there is a bias
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'
        device: where the weight is
        dtype: not read

    Raises: ValueError for groups that do not divide the channels, or an unknown padding_mode.

    Example:
        >>> layer = tp.ao.nn.quantized.Conv1d(2, 3, 5)
        >>> layer(tp.quantize_per_tensor(tp.ones(1, 2, 8), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([1, 3, 4])
    """

    _dims = 1
    _FLOAT_MODULE = (nn.Conv1d, nni.ConvReLU1d)


class Conv2d(_ConvNd):
    """A convolution of quantized images (N, C, H, W), computed with integers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in
        bias: whether there is a bias
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'
        device: where the weight is
        dtype: not read

    Raises: ValueError for groups that do not divide the channels, or an unknown padding_mode.

    Example:
        >>> layer = tp.ao.nn.quantized.Conv2d(2, 3, 3, padding=1)
        >>> layer(tp.quantize_per_tensor(tp.ones(1, 2, 8, 8), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([1, 3, 8, 8])
    """

    _dims = 2
    _FLOAT_MODULE = (nn.Conv2d, nni.ConvReLU2d)


class Conv3d(_ConvNd):
    """A convolution of quantized volumes (N, C, D, H, W), computed with integers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in
        bias: whether there is a bias
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'
        device: where the weight is
        dtype: not read

    Raises: ValueError for groups that do not divide the channels, or an unknown padding_mode.

    Example:
        >>> layer = tp.ao.nn.quantized.Conv3d(2, 3, 2)
        >>> layer(tp.quantize_per_tensor(tp.ones(1, 2, 4, 4, 4), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([1, 3, 3, 3, 3])
    """

    _dims = 3
    _FLOAT_MODULE = (nn.Conv3d, nni.ConvReLU3d)


class _ConvTransposeNd(_ConvNd):
    """What quantized transposed convolutions have."""

    _more: Any  # the output padding, which the weight is packed with
    transposed: bool
    output_padding: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._more = _ntuple(self._dims)(output_padding)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, device=device, dtype=dtype
        )
        self.transposed, self.output_padding = True, self._more

    def _sizes(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Takes a quantized weight and a bias."""
        self._packed_params = packed_conv_transpose._prepack(
            self._dims, w, b, self.stride, self.padding, self._more, self.dilation, self.groups
        )

    def _get_name(self) -> str:
        return f"QuantizedConvTranspose{self._dims}d"

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        more = f", output_padding={self.output_padding}" if any(self.output_padding) else ""
        return super().extra_repr() + more

    @classmethod
    def _of(cls, conv: Any) -> Any:
        """One of the sizes of a transposed convolution."""
        return cls(
            conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, conv.output_padding,
            conv.groups, conv.bias is not None, conv.dilation, conv.padding_mode,
        )  # fmt: skip


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution of quantized signals (N, C, L), computed with integers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window
        stride: how far the window moves in the output
        padding: how many elements of the output are cut off at both sides
        output_padding: how many elements are added at the end
        groups: how many groups the channels are in
        bias: whether there is a bias
        dilation: the distance between elements of the window
        padding_mode: 'zeros'
        device: where the weight is
        dtype: not read

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> layer = tp.ao.nn.quantized.ConvTranspose1d(2, 3, 3, stride=2)
        >>> layer(tp.quantize_per_tensor(tp.ones(1, 2, 8), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([1, 3, 17])
    """

    _dims = 1
    _FLOAT_MODULE = (nn.ConvTranspose1d,)


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution of quantized images (N, C, H, W), computed with integers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window
        stride: how far the window moves in the output
        padding: how many elements of the output are cut off at both sides
        output_padding: how many elements are added at the end
        groups: how many groups the channels are in
        bias: whether there is a bias
        dilation: the distance between elements of the window
        padding_mode: 'zeros'
        device: where the weight is
        dtype: not read

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> layer = tp.ao.nn.quantized.ConvTranspose2d(2, 3, 3, stride=2)
        >>> layer(tp.quantize_per_tensor(tp.ones(1, 2, 8, 8), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([1, 3, 17, 17])
    """

    _dims = 2
    _FLOAT_MODULE = (nn.ConvTranspose2d,)


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution of quantized volumes (N, C, D, H, W), computed with integers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window
        stride: how far the window moves in the output
        padding: how many elements of the output are cut off at both sides
        output_padding: how many elements are added at the end
        groups: how many groups the channels are in
        bias: whether there is a bias
        dilation: the distance between elements of the window
        padding_mode: 'zeros'
        device: where the weight is
        dtype: not read

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> layer = tp.ao.nn.quantized.ConvTranspose3d(2, 3, 3, stride=2)
        >>> layer(tp.quantize_per_tensor(tp.ones(1, 2, 4, 4, 4), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([1, 3, 9, 9, 9])
    """

    _dims = 3
    _FLOAT_MODULE = (nn.ConvTranspose3d,)
