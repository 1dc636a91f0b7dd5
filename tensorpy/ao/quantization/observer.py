"""Observers: modules that look at the tensors that pass, and say by which scale and zero point integers hold them."""

from __future__ import annotations

import ctypes
import warnings
from abc import ABCMeta, abstractmethod
from collections import OrderedDict
from functools import partial
from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from tensorpy.ao.quantization.utils import (
    calculate_qmin_qmax,
    check_min_max_valid,
    is_per_channel,
    is_per_tensor,
    is_symmetric,
    range_of,
    validate_qmin_qmax,
)

__all__ = [
    "FixedQParamsObserver", "HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerChannelMinMaxObserver",
    "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver", "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer", "default_debug_observer", "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer", "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer", "default_float_qparams_observer_4bit", "default_histogram_observer",
    "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer",
    "default_reuse_input_observer", "default_symmetric_fixed_qparams_observer", "default_weight_observer",
    "get_observer_state_dict", "load_observer_state_dict", "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]  # fmt: skip

_EPS = 2.0**-23  # float32's
_INF = float("inf")
_DTYPES = (
    _C.qint8, _C.quint8, _C.quint4x2, _C.qint32, _C.int8, _C.uint8, _C.int16, _C.int32, _C.float8_e5m2,
    _C.float8_e4m3fn, _C.uint16,
)  # fmt: skip


# ---- making them later ----


class _PartialWrapper:
    """What makes observers with some arguments given: those of `p`, and those that functions give when one is made.

    Arguments:
        p: makes one, with arguments of its own

    Returns: an observer, of the class that p makes.

    Example:
        >>> tp.ao.quantization.default_observer().quant_max, tp.ao.quantization.default_weight_observer().dtype
        (127, tensorpy.qint8)
    """

    def __init__(self, p: Any) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        made = {name: give() for name, give in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **made)

    def __repr__(self) -> str:
        return f"{self.p!r}{self.callable_args!r}"

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> _PartialWrapper:
        made = _PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


class ObserverBase(nn.Module, metaclass=ABCMeta):
    """What observers are: `forward` looks at a tensor and returns it, `calculate_qparams` says scale and zero point.

    Arguments:
        dtype: the dtype of the integers
        is_dynamic: whether each tensor is to be quantized by the range that it has itself

    Example:
        >>> issubclass(tp.ao.quantization.MinMaxObserver, tp.ao.quantization.ObserverBase)
        True
    """

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x: Any, /) -> Tensor:
        """Looks at a tensor and returns it."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point.

        Returns: two tensors.
        """

    @classmethod
    def with_args(cls, **kwargs: Any) -> Any:
        """What makes such observers with these arguments when it is called.

        Returns: a function.
        """
        return _with_args(cls, **kwargs)

    @classmethod
    def with_callable_args(cls, **kwargs: Any) -> Any:
        """The same with arguments that functions give at each call.

        Returns: a function.
        """
        return _with_callable_args(cls, **kwargs)


class UniformQuantizationObserverBase(ObserverBase):
    """Observers whose integers stand at even distances.

    Arguments:
        dtype: the dtype of the integers
        qscheme: per_tensor_affine or one of its kin
        reduce_range: whether half of the integers are used
        quant_min: the least integer; None takes the dtype's
        quant_max: the greatest integer; None takes the dtype's
        factory_kwargs: device and dtype of what is kept
        eps: the least scale
        is_dynamic: whether each tensor is to be quantized by the range that it has itself

    Example:
        >>> tp.ao.quantization.MinMaxObserver(quant_min=0, quant_max=127).quant_max
        127
    """

    has_customized_qrange: bool
    quant_min: int
    quant_max: int

    _version = 3
    eps: Tensor

    def __init__(
        self,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warnings.warn("reduce_range goes: quant_min and quant_max say the integers", stacklevel=3)
        self.reduce_range = reduce_range
        self.register_buffer("eps", _C.tensor([eps], **nn.factory_kwargs(factory_kwargs)))
        if not (is_per_tensor(qscheme) or is_per_channel(qscheme)):
            raise AssertionError(f"an observer has a scheme of quantization, not {qscheme}")
        if dtype not in _DTYPES:
            raise AssertionError(f"an observer's dtype is one of {_DTYPES}, not {dtype}")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        if local_metadata.get("version") in (None, 1):  # had no eps
            state_dict[prefix + "eps"] = _C.tensor([_EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _middle(self) -> int:
        """The integer that stands for 0 where the scheme is symmetric."""
        if self.dtype in (_C.quint8, _C.uint8):
            return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        return 2**15 if self.dtype == _C.uint16 else 0

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """The scale and the zero point for numbers from min_val to max_val, or those of each channel."""
        device = min_val.device
        if not check_min_max_valid(min_val, max_val):
            return _C.tensor([1.0], device=device), _C.tensor([0], device=device)
        steps = float(self.quant_max - self.quant_min)
        low = _C.minimum(min_val, _C.zeros_like(min_val))
        high = _C.maximum(max_val, _C.zeros_like(max_val))
        if is_symmetric(self.qscheme):
            scale = _C.maximum(_C.maximum(-low, high) / (steps / 2), self.eps.to(device))
            zero_point = _C.full(low.shape, self._middle(), dtype=_C.int64, device=device)
        elif self.qscheme is per_channel_affine_float_qparams:
            scale = (max_val - min_val) / steps
            scale = _C.where(scale > self.eps, scale, _C.ones_like(scale))
            zero_point = -1 * min_val / scale
        else:
            scale = _C.maximum((high - low) / steps, self.eps.to(device))
            zero_point = self.quant_min - (low / scale).round().to(_C.int32)
            zero_point = zero_point.clamp(self.quant_min, self.quant_max)
        return scale.reshape(-1), zero_point.reshape(-1)

    def reset_min_max_vals(self) -> None:
        """Forgets what was observed."""
        raise NotImplementedError(f"{type(self).__name__} has no least and greatest value to forget")


# ---- the range of everything ----


class _RangeObserver(UniformQuantizationObserverBase):
    """Keeps the least and the greatest number, of all or of each channel."""

    min_val: Tensor
    max_val: Tensor

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point for what was observed."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def _towards(self, least: Tensor, most: Tensor, part: float) -> tuple[Tensor, Tensor]:
        """What was kept, moved a part of the way to these."""
        return self.min_val + part * (least - self.min_val), self.max_val + part * (most - self.max_val)

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


class MinMaxObserver(_RangeObserver):
    """Keeps the least and the greatest number of all that passed.

    Arguments:
        dtype: the dtype of the integers
        qscheme: per_tensor_affine or per_tensor_symmetric
        reduce_range: whether half of the integers are used
        quant_min: the least integer; None takes the dtype's
        quant_max: the greatest integer; None takes the dtype's
        factory_kwargs: device and dtype of what is kept
        eps: the least scale
        is_dynamic: whether each tensor is to be quantized by the range that it has itself

    Raises: NotImplementedError for a scheme of another kind, AssertionError for an unknown dtype.

    Example:
        >>> observer = tp.ao.quantization.MinMaxObserver()
        >>> x = observer(tp.tensor([0.0, 51.0]))
        >>> observer.calculate_qparams()
        (tensor([0.2000]), tensor([0], dtype=tensorpy.int32))
    """

    def __init__(
        self,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if not is_per_tensor(qscheme):
            raise NotImplementedError(f"{type(self).__name__} takes a scheme per tensor, not {qscheme}")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        made = nn.factory_kwargs(factory_kwargs)
        self.register_buffer("min_val", _C.tensor(_INF, **made))
        self.register_buffer("max_val", _C.tensor(-_INF, **made))
        if qscheme is per_tensor_symmetric and reduce_range and dtype == _C.quint8:
            raise NotImplementedError("a symmetric scheme of quint8 has no reduced range")

    def forward(self, x_orig: Tensor) -> Tensor:
        """Looks at a tensor and returns it."""
        if x_orig.numel():
            least, most = _C.aminmax(x_orig.detach().to(self.min_val.dtype))
            self.min_val.copy_(_C.minimum(least, self.min_val))
            self.max_val.copy_(_C.maximum(most, self.max_val))
        return x_orig

    def reset_min_max_vals(self) -> None:
        """Forgets what was observed."""
        self.min_val.fill_(_INF)
        self.max_val.fill_(-_INF)


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Keeps averages of the least and the greatest numbers, which go towards those of each tensor.

    Arguments:
        averaging_constant: how much of the way the averages go
        dtype: the dtype of the integers
        qscheme: per_tensor_affine or per_tensor_symmetric
        reduce_range: whether half of the integers are used
        quant_min: the least integer; None takes the dtype's
        quant_max: the greatest integer; None takes the dtype's
        eps: the least scale
        is_dynamic: whether each tensor is to be quantized by the range that it has itself

    Raises: NotImplementedError for a scheme of another kind, AssertionError for an unknown dtype.

    Example:
        >>> observer = tp.ao.quantization.MovingAverageMinMaxObserver(averaging_constant=0.5)
        >>> x = observer(tp.tensor([0.0, 10.0])), observer(tp.tensor([0.0, 20.0]))
        >>> observer.max_val
        tensor(15.)
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(f"an observer of each tensor keeps no averages: {averaging_constant} is not 1")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def forward(self, x_orig: Tensor) -> Tensor:
        """Looks at a tensor and returns it."""
        if x_orig.numel() == 0:
            return x_orig
        least, most = _C.aminmax(x_orig.detach().to(self.min_val.dtype))
        if self.min_val.item() != _INF or self.max_val.item() != -_INF:
            least, most = self._towards(least, most, self.averaging_constant)
        self.min_val.copy_(least)
        self.max_val.copy_(most)
        return x_orig


# ---- the ranges of channels ----


class PerChannelMinMaxObserver(_RangeObserver):
    """Keeps the least and the greatest number of each channel.

    Arguments:
        ch_axis: the dimension of the channels
        dtype: the dtype of the integers
        qscheme: per_channel_affine or one of its kin
        reduce_range: whether half of the integers are used
        quant_min: the least integer; None takes the dtype's
        quant_max: the greatest integer; None takes the dtype's
        factory_kwargs: device and dtype of what is kept
        eps: the least scale
        is_dynamic: False

    Raises: NotImplementedError for a scheme of another kind, AssertionError for an unknown dtype.

    Example:
        >>> observer = tp.ao.quantization.PerChannelMinMaxObserver()
        >>> x = observer(tp.tensor([[0.0, 51.0], [0.0, 102.0]]))
        >>> observer.calculate_qparams()[0]
        tensor([0.2000, 0.4000])
    """

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: Any = _C.quint8,
        qscheme: Any = per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if not is_per_channel(qscheme):
            raise NotImplementedError(f"{type(self).__name__} takes a scheme per channel, not {qscheme}")
        if is_dynamic:
            raise NotImplementedError(f"{type(self).__name__} has no dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        made = nn.factory_kwargs(factory_kwargs)
        self.register_buffer("min_val", _C.tensor([], **made))
        self.register_buffer("max_val", _C.tensor([], **made))
        if qscheme is per_channel_symmetric and reduce_range and dtype == _C.quint8:
            raise NotImplementedError("a symmetric scheme of quint8 has no reduced range")

    def _ends(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the greatest number of each channel."""
        lines = x.detach().transpose(0, self.ch_axis).to(self.min_val.dtype).flatten(1)
        return _C.aminmax(lines, dim=1)

    def _keep(self, least: Tensor, most: Tensor) -> None:
        self.min_val.resize_(least.shape).copy_(least)
        self.max_val.resize_(most.shape).copy_(most)

    def forward(self, x_orig: Tensor) -> Tensor:
        """Looks at a tensor and returns it."""
        if x_orig.numel() == 0:
            return x_orig
        least, most = self._ends(x_orig)
        if self.min_val.numel() and self.max_val.numel():
            least, most = self._joined(least, most)
        self._keep(least, most)
        return x_orig

    def _joined(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        """What is kept of these and of what was kept before."""
        return _C.minimum(least, self.min_val), _C.maximum(most, self.max_val)

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, *rest: Any
    ) -> None:
        for name in ("min_val", "max_val"):  # made as large as what is loaded
            value = state_dict.get(prefix + name)
            if value is not None:
                getattr(self, name).resize_(value.shape)
            elif strict:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, *rest)

    def reset_min_max_vals(self) -> None:
        """Forgets what was observed."""
        self.min_val = self.min_val.new_empty(0)
        self.max_val = self.max_val.new_empty(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Keeps averages of each channel's least and greatest numbers, which go towards those of each tensor.

    Arguments:
        averaging_constant: how much of the way the averages go
        ch_axis: the dimension of the channels
        dtype: the dtype of the integers
        qscheme: per_channel_affine or one of its kin
        reduce_range: whether half of the integers are used
        quant_min: the least integer; None takes the dtype's
        quant_max: the greatest integer; None takes the dtype's
        eps: the least scale
        is_dynamic: False

    Raises: NotImplementedError for a scheme of another kind, AssertionError for an unknown dtype.

    Example:
        >>> observer = tp.ao.quantization.MovingAveragePerChannelMinMaxObserver(averaging_constant=0.5)
        >>> x = observer(tp.tensor([[0.0, 10.0]])), observer(tp.tensor([[0.0, 20.0]]))
        >>> observer.max_val
        tensor([15.])
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: Any = _C.quint8,
        qscheme: Any = per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs
        )
        self.averaging_constant = averaging_constant

    def _joined(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        return self._towards(least, most, self.averaging_constant)


# ---- the range that loses least ----


def _rounded(x: float) -> float:
    """A number as float32 has it, which sums in float32 are compared with."""
    return ctypes.c_float(x).value


class HistogramObserver(_RangeObserver):
    """Counts numbers in bins, and chooses the range whose integers have the least squared error.

    Arguments:
        bins: how many bins there are
        dtype: the dtype of the integers
        qscheme: per_tensor_affine or per_tensor_symmetric
        reduce_range: whether half of the integers are used
        quant_min: the least integer; None takes the dtype's
        quant_max: the greatest integer; None takes the dtype's
        factory_kwargs: device and dtype of what is kept
        eps: the least scale
        is_dynamic: False

    Raises: NotImplementedError for a scheme of another kind, AssertionError for an unknown dtype.

    Example:
        >>> observer = tp.ao.quantization.HistogramObserver(bins=8)
        >>> x = observer(tp.arange(16.0))
        >>> observer.histogram
        tensor([2., 2., 2., 2., 2., 2., 2., 2.])
    """

    dst_nbins: int
    histogram: Tensor

    def __init__(
        self,
        bins: int = 2048,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if not is_per_tensor(qscheme):
            raise NotImplementedError(f"HistogramObserver takes a scheme per tensor, not {qscheme}")
        if is_dynamic:
            raise NotImplementedError("HistogramObserver has no dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        made = nn.factory_kwargs(factory_kwargs)
        self.bins = bins
        self.register_buffer("histogram", _C.zeros(bins, **made))
        self.register_buffer("min_val", _C.tensor(_INF, **made))
        self.register_buffer("max_val", _C.tensor(-_INF, **made))
        low, high = range_of(dtype)
        self.dst_nbins = high - low + 1
        self.upsample_rate = 16  # bins are cut into so many parts before they are put into others

    @staticmethod
    def _square(begin: Any, end: Any, density: Tensor) -> Tensor:
        """The squared distances of numbers from begin to end, which lie evenly."""
        return density * ((end * end * end - begin * begin * begin) / 3)

    def _error(self, first: int, last: int, width: float) -> float:
        """The squared error where the integers go from one bin to another."""
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        begin = (_C.arange(self.bins, device=self.histogram.device) - first) * width
        end = begin + width
        at_begin = _C.div(begin, step, rounding_mode="floor").clamp(0, self.dst_nbins - 1)
        at_end = _C.div(end, step, rounding_mode="floor").clamp(0, self.dst_nbins - 1)
        density = self.histogram / width
        half = _C.full((self.bins,), step / 2, device=self.histogram.device)
        error = self._square(begin - (at_begin + 0.5) * step, half, density)
        error += (at_end - at_begin - 1) * self._square(_C.tensor(-step / 2), _C.tensor(step / 2), density)
        error += self._square(_C.tensor(-step / 2), end - (at_end * step + step / 2), density)
        return error.sum().item()

    def _non_linear_param_search(self) -> tuple[Tensor, Tensor]:
        """The range that loses least: bins are left out at the end that has fewer numbers, as long as that helps."""
        if self.histogram.shape[0] != self.bins:
            raise AssertionError(f"a histogram of {self.histogram.shape[0]} bins, not of {self.bins}")
        bin_width = (self.max_val - self.min_val) / self.bins
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        total, sums = self.histogram.sum().item(), self.histogram.cumsum(0).tolist()
        step, alpha, beta = 1e-5, 0.0, 1.0
        start, end, least = 0, self.bins - 1, _INF
        while alpha < beta:
            next_alpha, next_beta = alpha + step, beta - step
            left, right = start, end
            while left < end and sums[left] < _rounded(next_alpha * total):
                left += 1
            while right > start and sums[right] > _rounded(next_beta * total):
                right -= 1
            if left - start > end - right:
                alpha, first, last = next_alpha, left, end
            else:
                beta, first, last = next_beta, start, right
            if (first, last) == (start, end):
                continue
            error = self._error(first, last, width)
            if error > least:
                break
            least, start, end = error, first, last
        return self.min_val + bin_width * start, self.min_val + bin_width * (end + 1)

    def _moved(self, least: Tensor, most: Tensor) -> Tensor:
        """The histogram in the bins of a wider range."""
        if self.min_val.item() == self.max_val.item():
            counted = _C.histc(self.min_val, bins=self.bins, min=least.item(), max=most.item())
            return counted * self.histogram.sum()
        parts = self.bins * self.upsample_rate
        counts = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        middles = _C.linspace(self.min_val.item(), self.max_val.item(), parts + 1, device=counts.device)[:-1]
        middles = middles + 0.5 * ((self.max_val - self.min_val) / parts)
        borders = _C.linspace(least.item(), most.item(), self.bins + 1, device=counts.device)
        places = (_C.bucketize(middles, borders, right=True) - 1).clamp(0, self.bins - 1)
        return _C.bincount(places, weights=counts, minlength=self.bins)

    def reset_histogram(self, x: Tensor, min_val: Tensor, max_val: Tensor) -> None:
        """Begins with the numbers of x, which lie from min_val to max_val."""
        if min_val.numel() != 1 or max_val.numel() != 1:
            raise AssertionError("a histogram has one least and one greatest number")
        self._keep(_C.histc(x, self.bins, min=min_val.item(), max=max_val.item()), min_val, max_val)

    def _keep(self, histogram: Tensor, least: Tensor, most: Tensor) -> None:
        for kept, value in ((self.histogram, histogram), (self.min_val, least), (self.max_val, most)):
            kept.resize_(value.shape).copy_(value)

    def forward(self, x_orig: Tensor) -> Tensor:
        """Looks at a tensor and returns it."""
        x = x_orig.detach()
        if x.numel() and bool(x.isinf().any()):
            warnings.warn("infinite numbers are left out of the histogram", stacklevel=2)
            x = x[x.abs() != _INF]
        if x.numel() == 0:
            return x_orig
        least, most = _C.aminmax(x)
        if self.min_val.item() == _INF or self.max_val.item() == -_INF:
            self.reset_histogram(x, least, most)
            return x_orig
        least, most = _C.minimum(self.min_val, least), _C.maximum(self.max_val, most)
        counted = _C.histc(x, self.bins, min=least.item(), max=most.item()).to(self.histogram.device)
        same = bool(least == self.min_val) and bool(most == self.max_val)
        self._keep(counted + (self.histogram if same else self._moved(least, most)), least, most)
        return x_orig

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point of the range that loses least."""
        if not check_min_max_valid(self.min_val, self.max_val):
            device = self.min_val.device
            return _C.tensor([1.0], device=device), _C.tensor([0], device=device)
        return self._calculate_qparams(*self._non_linear_param_search())

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        version = local_metadata.get("version")
        for name, nothing in (("min_val", _INF), ("max_val", -_INF)):
            value = state_dict.get(prefix + name)
            if value is not None and (version is None or version < 3) and value.shape == (0,):
                value = state_dict[prefix + name] = _C.tensor(nothing)
            if value is not None:
                getattr(self, name).resize_(value.shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


# ---- those that do not look ----


class FixedQParamsObserver(ObserverBase):
    """Says a scale and a zero point that it was given.

    Arguments:
        scale: the scale
        zero_point: the zero point
        dtype: the dtype of the integers
        qscheme: the scheme
        quant_min: the least integer
        quant_max: the greatest integer
        is_dynamic: False

    Raises: NotImplementedError for is_dynamic=True.

    Example:
        >>> tp.ao.quantization.FixedQParamsObserver(0.5, 3).calculate_qparams()
        (tensor([0.5000]), tensor([3], dtype=tensorpy.int32))
    """

    quant_min: int
    quant_max: int
    qscheme: Any
    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver has no dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", _C.tensor([scale], dtype=_C.float32))
        self.register_buffer("zero_point", _C.tensor([zero_point], dtype=_C.int32))

    def forward(self, X: Tensor) -> Tensor:
        """Returns the tensor."""
        return X

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        return self.scale, self.zero_point


class _Blind(ObserverBase):
    """Does not look, and knows no scale."""

    def forward(self, x: Tensor) -> Tensor:
        """Returns the tensor."""
        return x

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Raises: it knows no scale."""
        raise Exception(f"{type(self).__name__} knows no scale")


class PlaceholderObserver(_Blind):
    """Says a dtype to the module that is made, and does not look at tensors.

    Arguments:
        dtype: the dtype
        custom_op_name: the name of an operator that is not observed
        compute_dtype: whether quantization is dynamic, as older programs say it
        quant_min: the least integer
        quant_max: the greatest integer
        qscheme: the scheme
        eps: the least scale
        is_dynamic: whether each tensor is to be quantized by the range that it has itself

    Example:
        >>> tp.ao.quantization.PlaceholderObserver(tp.float16)
        PlaceholderObserver(dtype=tensorpy.float16, is_dynamic=False)
    """

    qscheme: Any
    quant_min: int | None
    quant_max: int | None
    eps: float

    def __init__(
        self,
        dtype: Any = _C.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic or bool(compute_dtype))
        self.qscheme = per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            warnings.warn("compute_dtype goes: is_dynamic says it", stacklevel=2)

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_Blind):
    """Keeps copies of the tensors themselves.

    Arguments:
        dtype: the dtype of the integers

    Example:
        >>> observer = tp.ao.quantization.RecordingObserver()
        >>> x = observer(tp.tensor([1.0, 2.0]))
        >>> observer.get_tensor_value()
        [tensor([1., 2.])]
    """

    def __init__(self, dtype: Any = _C.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        """Keeps a copy of a tensor and returns it."""
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Tensor]:
        """The tensors."""
        return self.tensor_val


class NoopObserver(_Blind):
    """Says a dtype to the module that is made, and does not look at tensors.

    Arguments:
        dtype: the dtype
        custom_op_name: the name of an operator that is not observed

    Example:
        >>> tp.ao.quantization.NoopObserver().dtype
        tensorpy.float16
    """

    def __init__(self, dtype: Any = _C.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name


class ReuseInputObserver(_Blind):
    """Stands where the input's observer holds for the output too.

    Example:
        >>> tp.ao.quantization.ReuseInputObserver()(tp.tensor([1.0]))
        tensor([1.])
    """

    def __init__(self) -> None:
        super().__init__(_C.quint8, is_dynamic=False)


# ---- what they saw, in a state dict ----


def get_observer_state_dict(mod: Any) -> Any:
    """The entries of a model's state dict that its observers have.

    Arguments:
        mod: the model

    Returns: a dict of tensors.

    Example:
        >>> tp.ao.quantization.get_observer_state_dict(nn.Linear(2, 2))
        OrderedDict()
    """
    whole = mod.state_dict()
    found: Any = OrderedDict((name, value) for name, value in whole.items() if "activation_post_process" in name)
    found._metadata = whole._metadata
    return found


def load_observer_state_dict(mod: Any, obs_dict: Any) -> None:
    """Gives a model's observers what get_observer_state_dict had from others.

    Arguments:
        mod: the model
        obs_dict: the entries

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> tp.ao.quantization.load_observer_state_dict(layer, tp.ao.quantization.get_observer_state_dict(layer))
    """
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if isinstance(module, ObserverBase):
            module._load_from_state_dict(obs_dict, name + ".", {}, False, missing, unexpected, [])
    wrong = [key for key in missing + unexpected if "observer" in key or "activation_post_process" in key]
    if wrong:
        raise Exception(f"entries of observers that are missing or not asked for: {wrong}")


# ---- the ones that configurations name ----

default_observer: Any = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer: Any = PlaceholderObserver
default_debug_observer: Any = RecordingObserver
default_weight_observer: Any = MinMaxObserver.with_args(dtype=_C.qint8, qscheme=per_tensor_symmetric)
weight_observer_range_neg_127_to_127: Any = MinMaxObserver.with_args(
    dtype=_C.qint8, qscheme=per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_histogram_observer: Any = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer: Any = PerChannelMinMaxObserver.with_args(
    dtype=_C.qint8, qscheme=per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127: Any = PerChannelMinMaxObserver.with_args(
    dtype=_C.qint8, qscheme=per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer: Any = PlaceholderObserver.with_args(
    dtype=_C.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer: Any = PerChannelMinMaxObserver.with_args(
    dtype=_C.quint8, qscheme=per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit: Any = PerChannelMinMaxObserver.with_args(
    dtype=_C.quint4x2, qscheme=per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer: Any = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=_C.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer: Any = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=_C.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer: Any = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer: Any = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer: Any = ReuseInputObserver
