"""Convolutions and transposed convolutions, of signals, images and volumes."""

from __future__ import annotations

import math
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn import functional as F
from tensorpy.nn import init
from tensorpy.nn.modules.lazy import LazyModuleMixin
from tensorpy.nn.modules.module import Module
from tensorpy.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from tensorpy.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions have: sizes, checks, parameters, repr. `_dims` is the number of spatial dimensions."""

    dilation: Any
    groups: int
    in_channels: int
    kernel_size: Any
    out_channels: int
    output_padding: Any
    stride: Any
    transposed: bool
    _dims: int
    weight: Tensor
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: bool,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.transposed, self.output_padding = transposed, output_padding
        self.groups, self.padding_mode = groups, padding_mode
        self._reversed_padding_repeated_twice = self._borders()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(_C.empty((*channels, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _borders(self) -> tuple[int, ...] | list[int]:
        """The padding as pad takes it: pairs, the last dimension first."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        borders = [0] * (2 * len(self.kernel_size))
        if self.padding == "same":
            for i, (k, d) in enumerate(zip(self.kernel_size[::-1], self.dilation[::-1], strict=True)):
                total = d * (k - 1)
                borders[2 * i], borders[2 * i + 1] = total // 2, total - total // 2
        return borders

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
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
        sized = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            sized(kernel_size),
            sized(stride),
            padding if isinstance(padding, str) else sized(padding),
            sized(dilation),
            False,
            sized(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        function = getattr(F, f"conv{self._dims}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._dims
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """A convolution of signals (N, C, L).

    Input (N, C, L) or (C, L), output with out_channels for C; floats or complex numbers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own
        bias: whether there is a bias
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular': what the padding is made of
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for groups that do not divide the channels, an unknown padding or padding_mode, and
        padding="same" with a stride.

    Example:
        >>> nn.Conv1d(4, 8, 3, padding=1)(tp.ones(2, 4, 10)).shape
        tensorpy.Size([2, 8, 10])
    """

    _dims = 1


class Conv2d(_Conv):
    """A convolution of images (N, C, H, W).

    Input (N, C, H, W) or (C, H, W), output with out_channels for C; floats or complex numbers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own
        bias: whether there is a bias
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular': what the padding is made of
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for groups that do not divide the channels, an unknown padding or padding_mode, and
        padding="same" with a stride.

    Example:
        >>> nn.Conv2d(4, 8, 3, padding=1)(tp.ones(2, 4, 10, 10)).shape
        tensorpy.Size([2, 8, 10, 10])
    """

    _dims = 2


class Conv3d(_Conv):
    """A convolution of volumes (N, C, D, H, W).

    Input (N, C, D, H, W) or (C, D, H, W), output with out_channels for C; floats or complex numbers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        groups: how many groups the channels are in, each of which is on its own
        bias: whether there is a bias
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular': what the padding is made of
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for groups that do not divide the channels, an unknown padding or padding_mode, and
        padding="same" with a stride.

    Example:
        >>> nn.Conv3d(4, 8, 3, padding=1)(tp.ones(2, 4, 5, 5, 5)).shape
        tensorpy.Size([2, 8, 5, 5, 5])
    """

    _dims = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: bool,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...] | list[int]:
        """What makes the output as large as it is asked to be."""
        if output_size is None:
            return self.output_padding
        dims, wanted = len(self.kernel_size), list(output_size)
        if len(wanted) == input.dim():
            wanted = wanted[-dims:]
        if len(wanted) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {dims + 2} elements "
                f"(got {len(wanted)})"
            )
        extra = []
        for i, size in enumerate(input.shape[-dims:]):
            span = self.dilation[i] * (self.kernel_size[i] - 1)
            least = (size - 1) * self.stride[i] - 2 * self.padding[i] + span + 1
            if not least <= wanted[i] < least + self.stride[i]:
                raise ValueError(
                    f"requested an output size of {wanted}, but dimension {i} goes from {least} to "
                    f"{least + self.stride[i] - 1} (for an input of {input.shape[2:]})"
                )
            extra.append(wanted[i] - least)
        return extra


class _ConvTranspose(_ConvTransposeNd):
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
        sized = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            sized(kernel_size),
            sized(stride),
            sized(padding),
            sized(dilation),
            True,
            sized(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        function = getattr(F, f"conv_transpose{self._dims}d")
        extra = self._output_padding(input, output_size)
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose):
    """The transpose of a convolution of signals.

    Input (N, C, L) or (C, L), output with out_channels for C; floats or complex numbers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        output_padding: what is added to one side of each dimension of the output, to tell sizes apart
        groups: how many groups the channels are in, each of which is on its own
        bias: whether there is a bias
        dilation: the distance between elements of the window
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular': what the padding is made of
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> nn.ConvTranspose1d(4, 8, 2, stride=2)(tp.ones(2, 4, 10)).shape
        tensorpy.Size([2, 8, 20])
    """

    _dims = 1


class ConvTranspose2d(_ConvTranspose):
    """The transpose of a convolution of images.

    Input (N, C, H, W) or (C, H, W), output with out_channels for C; floats or complex numbers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        output_padding: what is added to one side of each dimension of the output, to tell sizes apart
        groups: how many groups the channels are in, each of which is on its own
        bias: whether there is a bias
        dilation: the distance between elements of the window
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular': what the padding is made of
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> nn.ConvTranspose2d(4, 8, 2, stride=2)(tp.ones(2, 4, 10, 10)).shape
        tensorpy.Size([2, 8, 20, 20])
    """

    _dims = 2


class ConvTranspose3d(_ConvTranspose):
    """The transpose of a convolution of volumes.

    Input (N, C, D, H, W) or (C, D, H, W), output with out_channels for C; floats or complex numbers.

    Arguments:
        in_channels: how many channels the input has
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        output_padding: what is added to one side of each dimension of the output, to tell sizes apart
        groups: how many groups the channels are in, each of which is on its own
        bias: whether there is a bias
        dilation: the distance between elements of the window
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular': what the padding is made of
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> nn.ConvTranspose3d(4, 8, 2, stride=2)(tp.ones(2, 4, 5, 5, 5)).shape
        tensorpy.Size([2, 8, 10, 10, 10])
    """

    _dims = 3


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution whose in_channels is the number of channels of its first input."""

    bias: Any
    weight: Any
    in_channels: int
    out_channels: int
    _argument_names: tuple[str, ...]

    def __init__(self: Any, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(self._argument_names, args, strict=False)), **kwargs}
        bias = given.pop("bias", True)
        device, dtype = given.get("device"), given.get("dtype")
        super().__init__(0, 0, kernel_size, bias=False, **given)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self: Any) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]

    def initialize_parameters(self: Any, input: Tensor, *unused: Any, **options: Any) -> None:
        if not self.has_uninitialized_params():
            return
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise RuntimeError(
                f"Expected {self._dims + 1}D (unbatched) or {self._dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self._dims - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        with no_grad():
            self.weight.materialize((*channels, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyConv(_LazyConvXdMixin):
    _argument_names: tuple[str, ...] = (
        "stride",
        "padding",
        "dilation",
        "groups",
        "bias",
        "padding_mode",
        "device",
        "dtype",
    )


class _LazyConvTranspose(_LazyConvXdMixin):
    _argument_names: tuple[str, ...] = (
        "stride", "padding", "output_padding", "groups", "bias", "dilation", "padding_mode", "device", "dtype",
    )  # fmt: skip


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d whose in_channels comes from its first input.

    Input (N, C, L) or (C, L), output with out_channels for C; floats or complex numbers.

    Arguments:
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each

    Raises: ValueError for groups that do not divide the channels, an unknown padding or padding_mode, and
        padding="same" with a stride.

    Example:
        >>> nn.LazyConv1d(8, 3, padding=1)(tp.ones(2, 4, 10)).shape
        tensorpy.Size([2, 8, 10])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d whose in_channels comes from its first input.

    Input (N, C, H, W) or (C, H, W), output with out_channels for C; floats or complex numbers.

    Arguments:
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each

    Raises: ValueError for groups that do not divide the channels, an unknown padding or padding_mode, and
        padding="same" with a stride.

    Example:
        >>> nn.LazyConv2d(8, 3, padding=1)(tp.ones(2, 4, 10, 10)).shape
        tensorpy.Size([2, 8, 10, 10])
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d whose in_channels comes from its first input.

    Input (N, C, D, H, W) or (C, D, H, W), output with out_channels for C; floats or complex numbers.

    Arguments:
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each

    Raises: ValueError for groups that do not divide the channels, an unknown padding or padding_mode, and
        padding="same" with a stride.

    Example:
        >>> nn.LazyConv3d(8, 3, padding=1)(tp.ones(2, 4, 5, 5, 5)).shape
        tensorpy.Size([2, 8, 5, 5, 5])
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d whose in_channels comes from its first input.

    Input (N, C, L) or (C, L), output with out_channels for C; floats or complex numbers.

    Arguments:
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> nn.LazyConvTranspose1d(8, 2, stride=2)(tp.ones(2, 4, 10)).shape
        tensorpy.Size([2, 8, 20])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d whose in_channels comes from its first input.

    Input (N, C, H, W) or (C, H, W), output with out_channels for C; floats or complex numbers.

    Arguments:
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> nn.LazyConvTranspose2d(8, 2, stride=2)(tp.ones(2, 4, 10, 10)).shape
        tensorpy.Size([2, 8, 20, 20])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d whose in_channels comes from its first input.

    Input (N, C, D, H, W) or (C, D, H, W), output with out_channels for C; floats or complex numbers.

    Arguments:
        out_channels: how many channels the output has
        kernel_size: the size of the window: one number for all dimensions, or one for each

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> nn.LazyConvTranspose3d(8, 2, stride=2)(tp.ones(2, 4, 5, 5, 5)).shape
        tensorpy.Size([2, 8, 10, 10, 10])
    """

    cls_to_become = ConvTranspose3d
