"""Fake quantization: modules that watch a tensor and return what it would be after it was quantized and read again."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import (
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from tensorpy.ao.quantization.observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from tensorpy.ao.quantization.utils import is_per_channel, is_per_tensor, is_symmetric, range_of

__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant", "default_dynamic_fake_quant", "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit", "default_fake_quant", "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant", "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant", "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant", "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127", "fused_wt_fake_quant_range_neg_127_to_127",
]  # fmt: skip


class FakeQuantizeBase(nn.Module, metaclass=ABCMeta):
    """What fake quantization has: two switches, for watching and for quantizing.

    Example:
        >>> fake = tp.ao.quantization.FakeQuantize()
        >>> fake.disable_fake_quant()
        >>> fake.fake_quant_enabled
        tensor([0], dtype=tensorpy.uint8)
    """

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", _C.tensor([1], dtype=_C.uint8))
        self.register_buffer("observer_enabled", _C.tensor([1], dtype=_C.uint8))

    @abstractmethod
    def forward(self, x: Any, /) -> Tensor:
        """Watches a tensor and quantizes it."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point.

        Returns: two tensors.
        """

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Whether tensors are quantized."""
        self.fake_quant_enabled.fill_(1 if enabled else 0)

    def disable_fake_quant(self) -> None:
        """Tensors are returned as they are."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Whether tensors are watched."""
        self.observer_enabled.fill_(1 if enabled else 0)

    def disable_observer(self) -> None:
        """The scale stays as it is."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> Any:
        """What makes such modules with these arguments when it is called.

        Returns: a function.
        """
        return _with_args(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Returns (clamp(round(x / scale) + zero_point, quant_min, quant_max) - zero_point) * scale, of what was observed.

    Arguments:
        observer: what makes the observer
        quant_min: the least integer
        quant_max: the greatest integer
        is_dynamic: whether each tensor has a range of its own
        observer_kwargs: the observer's other arguments

    Raises: AssertionError for integers that the dtype does not have, or an unknown scheme.

    Example:
        >>> tp.ao.quantization.FakeQuantize()(tp.tensor([0.0, 0.3, 51.0]))
        tensor([ 0.0000,  0.4000, 51.0000])
    """

    activation_post_process: Any
    quant_min: Any
    quant_max: Any
    is_dynamic: Any
    dtype: Any
    qscheme: Any
    ch_axis: Any
    is_per_channel: bool
    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            given = getattr(getattr(observer, "p", None), "keywords", {})
            dtype = given.get("dtype", observer_kwargs.get("dtype", _C.quint8))
            low, high = range_of(dtype)
            if not low <= quant_min <= quant_max <= high:
                raise AssertionError(f"integers of {dtype} lie from {low} to {high}; got {quant_min} to {quant_max}")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.activation_post_process = watching = observer(**observer_kwargs, is_dynamic=is_dynamic)
        self.quant_min, self.quant_max = watching.quant_min, watching.quant_max
        self.is_dynamic, self.dtype, self.qscheme = watching.is_dynamic, watching.dtype, watching.qscheme
        whole = _C.float32 if self.qscheme is per_channel_affine_float_qparams else _C.int32
        self.register_buffer("scale", _C.tensor([1.0], dtype=_C.float32))
        self.register_buffer("zero_point", _C.tensor([0], dtype=whole))
        self.ch_axis = getattr(watching, "ch_axis", -1)
        if not (is_per_channel(self.qscheme) or is_per_tensor(self.qscheme)):
            raise AssertionError(f"fake quantization is per tensor or per channel, not {self.qscheme}")
        self.is_per_channel = is_per_channel(self.qscheme)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The observer's scale and zero point."""
        return self.activation_post_process.calculate_qparams()

    def _watch(self, X: Tensor) -> None:
        self.activation_post_process(X.detach())
        for kept, value in zip((self.scale, self.zero_point), self.calculate_qparams(), strict=True):
            if kept.shape != value.shape:
                kept.resize_(value.shape)
            kept.copy_(value)

    def forward(self, X: Tensor) -> Tensor:
        """Watches a tensor and quantizes it, as the switches say."""
        if self.observer_enabled.item() == 1:
            self._watch(X)
        if self.fake_quant_enabled.item() != 1:
            return X
        low, high = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return _C.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, low, high)
        return _C.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, low, high)

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, "
            f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, *rest: Any
    ) -> None:
        for name in ("scale", "zero_point"):  # made as large as what is loaded
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, *rest)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Fake quantization by a scale and a zero point that are given.

    Arguments:
        observer: what makes a FixedQParamsObserver

    Raises: AssertionError for integers that the dtype does not have, or an unknown scheme.

    Example:
        >>> observer = tp.ao.quantization.FixedQParamsObserver.with_args(scale=0.5, zero_point=0)
        >>> tp.ao.quantization.FixedQParamsFakeQuantize(observer)(tp.tensor([0.3]))
        tensor([0.5000])
    """

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer is a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point
        if not is_per_tensor(self.qscheme):
            raise AssertionError(f"{type(self).__name__} is per tensor, not {self.qscheme}")

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        watching = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, quant_min={watching.quant_min}, "
            f"quant_max={watching.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """FakeQuantize with averages of the range, in one operator.

    Arguments:
        observer: what makes the observer, which keeps averages
        quant_min: the least integer
        quant_max: the greatest integer
        observer_kwargs: the observer's other arguments

    Raises: AssertionError for integers that the dtype does not have, or an unknown scheme.

    Example:
        >>> tp.ao.quantization.FusedMovingAvgObsFakeQuantize()(tp.tensor([0.0, 0.3, 51.0]))
        tensor([ 0.0000,  0.4000, 51.0000])
    """

    is_symmetric_quant: bool

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        averages = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, averages):
            raise AssertionError(f"{type(self).__name__}'s observer keeps averages")
        self.register_buffer("fake_quant_enabled", _C.tensor([1], dtype=_C.int64))
        self.register_buffer("observer_enabled", _C.tensor([1], dtype=_C.int64))
        self.is_symmetric_quant = is_symmetric(self.activation_post_process.qscheme)

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        watching = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, quant_min={watching.quant_min}, "
            f"quant_max={watching.quant_max}, qscheme={self.qscheme}, reduce_range={watching.reduce_range}"
        )

    def forward(self, X: Tensor) -> Tensor:
        """Watches a tensor and quantizes it, as the switches say."""
        watching = self.activation_post_process
        return _C.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, watching.min_val, watching.max_val, self.scale,
            self.zero_point, watching.averaging_constant, watching.quant_min, watching.quant_max, self.ch_axis,
            self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip


# ---- switches of models ----


def disable_fake_quant(mod: Any) -> None:
    """`model.apply(disable_fake_quant)`: tensors are returned as they are.

    Arguments:
        mod: a module, which has switches or not

    Example:
        >>> model = nn.Sequential(tp.ao.quantization.FakeQuantize())
        >>> model.apply(tp.ao.quantization.disable_fake_quant)(tp.tensor([0.3]))
        tensor([0.3000])
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod: Any) -> None:
    """`model.apply(enable_fake_quant)`: tensors are quantized.

    Arguments:
        mod: a module, which has switches or not

    Example:
        >>> tp.ao.quantization.enable_fake_quant(tp.ao.quantization.FakeQuantize())
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod: Any) -> None:
    """`model.apply(disable_observer)`: scales stay as they are.

    Arguments:
        mod: a module, which has switches or not

    Example:
        >>> tp.ao.quantization.disable_observer(tp.ao.quantization.FakeQuantize())
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod: Any) -> None:
    """`model.apply(enable_observer)`: tensors are watched.

    Arguments:
        mod: a module, which has switches or not

    Example:
        >>> tp.ao.quantization.enable_observer(tp.ao.quantization.FakeQuantize())
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()


# ---- the ones that configurations name ----

_WEIGHT = {"quant_min": -128, "quant_max": 127, "dtype": _C.qint8}
_EVEN = {"dtype": _C.qint8, "quant_min": -127, "quant_max": 127, "eps": 2**-12}
_BYTES = {"quant_min": 0, "quant_max": 255, "dtype": _C.quint8}
_ALL = {"observer": MovingAverageMinMaxObserver}
_EACH = {"observer": MovingAveragePerChannelMinMaxObserver}

default_fake_quant: Any = FakeQuantize.with_args(**_ALL, **_BYTES, qscheme=per_tensor_affine, reduce_range=True)
default_weight_fake_quant: Any = FakeQuantize.with_args(
    **_ALL, **_WEIGHT, qscheme=per_tensor_symmetric, reduce_range=False
)
default_dynamic_fake_quant: Any = FakeQuantize.with_args(**_ALL, **_BYTES, is_dynamic=True, averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant: Any = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant: Any = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant: Any = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant: Any = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant: Any = FakeQuantize.with_args(
    **_EACH, **_WEIGHT, qscheme=per_channel_symmetric, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant: Any = FakeQuantize.with_args(
    **_EACH, **_BYTES, qscheme=per_channel_affine_float_qparams, ch_axis=0, averaging_constant=1
)
default_embedding_fake_quant_4bit: Any = FakeQuantize.with_args(
    **_EACH, qscheme=per_channel_affine_float_qparams, ch_axis=0, dtype=_C.quint4x2, averaging_constant=1
)
default_histogram_fake_quant: Any = FakeQuantize.with_args(
    observer=HistogramObserver, **_BYTES, qscheme=per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(**_ALL, **_BYTES)
default_fused_wt_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(
    **_ALL, **_WEIGHT, qscheme=per_tensor_symmetric
)
default_fused_per_channel_wt_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(
    **_EACH, **_WEIGHT, qscheme=per_channel_symmetric
)
fused_wt_fake_quant_range_neg_127_to_127: Any = FusedMovingAvgObsFakeQuantize.with_args(
    **_ALL, **_EVEN, qscheme=per_tensor_symmetric
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127: Any = FusedMovingAvgObsFakeQuantize.with_args(
    **_EACH, **_EVEN, qscheme=per_channel_symmetric
)
