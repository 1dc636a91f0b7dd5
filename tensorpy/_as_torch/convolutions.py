"""torch._C._select_conv_backend: what PyTorch calls the code that computes a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from tensorpy import ops
from tensorpy._C import Tensor

_ConvBackend = IntEnum(
    "_ConvBackend",
    "CudaDepthwise2d CudaDepthwise3d Cudnn CudnnTranspose Empty Miopen MiopenDepthwise MiopenTranspose Mkldnn "
    "MkldnnTranspose MkldnnEmpty NnpackSpatial Overrideable Slow2d Slow3d SlowDilated2d SlowDilated3d SlowTranspose2d "
    "SlowTranspose3d Winograd3x3Depthwise Xnnpack2d Mps MpsTranspose",
    start=0,
)


def _select_conv_backend(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    bias_sizes: Sequence[int] | None = None,
) -> _ConvBackend:
    """The name for what PyTorch's own code would do, since no other library computes tensorpy's convolutions.

    Raises: RuntimeError, as the convolution itself does for such arguments.
    """
    if 0 in input.shape[:2]:
        return _ConvBackend.Empty
    like = [None if t is None else t.detach().to("meta") for t in (input, weight, bias)]
    ops.aten.convolution(*like, stride, padding, dilation, transposed, output_padding, groups)  # checks
    kind = "SlowTranspose" if transposed else "SlowDilated" if any(step != 1 for step in dilation) else "Slow"
    return _ConvBackend[f"{kind}{max(input.ndim - 2, 2)}d"]


__all__ = ["_ConvBackend", "_select_conv_backend"]
