"""Configurations: which observers a layer's output and weight get."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from tensorpy import _C, nn
from tensorpy.ao.quantization.fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from tensorpy.ao.quantization.observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    _PartialWrapper,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)

__all__ = [
    "QConfig", "QConfigAny", "default_activation_only_qconfig", "default_debug_qconfig",
    "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit", "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig", "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig", "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig", "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
    "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig",
    "get_default_qconfig", "per_channel_dynamic_qconfig", "qconfig_equals",
]  # fmt: skip


class _QConfig(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_QConfig):
    """How a layer is quantized: what makes the observer of its output, and that of its weight.

    Arguments:
        activation: an observer's class, or what its with_args gives
        weight: the same for the weight

    Raises: ValueError for observers: their classes are wanted.

    Example:
        >>> MinMaxObserver = tp.ao.quantization.MinMaxObserver
        >>> qconfig = tp.ao.quantization.QConfig(MinMaxObserver, MinMaxObserver.with_args(dtype=tp.qint8))
        >>> qconfig.weight().dtype
        tensorpy.qint8
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> Any:
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError("a QConfig has classes of observers, or what with_args gives: no observers")
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None

default_qconfig: Any = QConfig(default_observer, default_weight_observer)
default_debug_qconfig: Any = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig: Any = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig: Any = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig: Any = QConfig(
    PlaceholderObserver.with_args(dtype=_C.float16, is_dynamic=True), PlaceholderObserver.with_args(dtype=_C.float16)
)
float16_static_qconfig: Any = QConfig(
    PlaceholderObserver.with_args(dtype=_C.float16), PlaceholderObserver.with_args(dtype=_C.float16)
)
per_channel_dynamic_qconfig: Any = QConfig(default_dynamic_quant_observer, default_per_channel_weight_observer)
float_qparams_weight_only_qconfig: Any = QConfig(default_placeholder_observer, default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit: Any = QConfig(default_placeholder_observer, default_float_qparams_observer_4bit)
default_qat_qconfig: Any = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig: Any = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig: Any = QConfig(nn.Identity, default_weight_fake_quant)
default_activation_only_qconfig: Any = QConfig(default_fake_quant, nn.Identity)
default_qat_qconfig_v2: Any = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig: Any = QConfig(default_reuse_input_observer, NoopObserver)
default_symmetric_qnnpack_qconfig: Any = QConfig(
    HistogramObserver.with_args(dtype=_C.qint8, reduce_range=False, eps=2**-12), weight_observer_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qconfig: Any = QConfig(
    HistogramObserver.with_args(dtype=_C.qint8, reduce_range=False, eps=2**-12),
    per_channel_weight_observer_range_neg_127_to_127,
)
default_embedding_qat_qconfig: Any = QConfig(NoopObserver.with_args(dtype=_C.float32), default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit: Any = QConfig(
    NoopObserver.with_args(dtype=_C.float32), default_embedding_fake_quant_4bit
)
default_quint8_weight_qconfig: Any = QConfig(HistogramObserver, MinMaxObserver)
_signed = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=_C.qint8, reduce_range=False, eps=2**-12
)
default_symmetric_qnnpack_qat_qconfig: Any = QConfig(_signed, fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig: Any = QConfig(
    _signed, fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

# backend -> whether activations use half of the integers, whether channels have scales of their own
_BACKENDS = {"fbgemm": (True, True), "x86": (True, True), "qnnpack": (False, False), "onednn": (False, True)}


def _backend(backend: str, version: Any, versions: tuple[int, ...]) -> tuple[bool, bool]:
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {list(_BACKENDS)}")
    if version not in versions:
        raise AssertionError(f"Version number: {version} is not supported. It is one of {versions}")
    return _BACKENDS[backend]


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The usual configuration for a model that is calibrated.

    Arguments:
        backend: 'x86', 'fbgemm', 'qnnpack' or 'onednn': by which PyTorch computes with such a model
        version: 0

    Returns: a QConfig.

    Example:
        >>> type(tp.ao.quantization.get_default_qconfig().weight()).__name__
        'PerChannelMinMaxObserver'
    """
    half, channels = _backend(backend, version, (0,))
    if backend == "onednn":
        warnings.warn("the integers of the configuration for onednn are not reduced", stacklevel=2)
    weight = default_per_channel_weight_observer if channels else default_weight_observer
    return QConfig(HistogramObserver.with_args(reduce_range=half), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The usual configuration for a model that is trained with fake quantization.

    Arguments:
        backend: 'x86', 'fbgemm', 'qnnpack' or 'onednn'
        version: 1, or 0 for modules that are not fused

    Returns: a QConfig.

    Example:
        >>> type(tp.ao.quantization.get_default_qat_qconfig().activation()).__name__
        'FusedMovingAvgObsFakeQuantize'
    """
    half, channels = _backend(backend, version, (0, 1))
    made: Any = FusedMovingAvgObsFakeQuantize if version == 1 else FakeQuantize
    given = {} if backend == "onednn" else {"reduce_range": half}
    activation = made.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **given)
    if version == 1:
        return QConfig(activation, default_fused_per_channel_wt_fake_quant if channels else default_fused_wt_fake_quant)
    return QConfig(activation, default_per_channel_weight_fake_quant if channels else default_weight_fake_quant)


def _same(a: Any, b: Any) -> bool:
    """Whether two things make the same observers."""
    if not isinstance(a, _PartialWrapper) or not isinstance(b, _PartialWrapper):
        return bool(a == b)
    given, other = dict(a.p.keywords), dict(b.p.keywords)
    if "observer" in given and "observer" in other and not _same(given.pop("observer"), other.pop("observer")):
        return False
    return a.p.func == b.p.func and a.p.args == b.p.args and given == other


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two configurations make the same observers.

    Arguments:
        q1: a configuration, or None
        q2: another one

    Returns: bool.

    Example:
        >>> get = tp.ao.quantization.get_default_qconfig
        >>> tp.ao.quantization.qconfig_equals(get("x86"), get("fbgemm"))
        True
    """
    if q1 is None or q2 is None:
        return q1 is q2
    return _same(q1.activation, q2.activation) and _same(q1.weight, q2.weight)


def _assert_valid_qconfig(qconfig: Any, mod: Any) -> None:
    """Refuses a scale for each channel of a transposed convolution's weight."""
    if qconfig is None or qconfig.weight is None:
        return
    if isinstance(mod, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
        if isinstance(qconfig.weight(), PerChannelMinMaxObserver):
            raise AssertionError("the weight of a transposed convolution has one scale, not one for each channel")


def _on_device_of(module: Any, qconfig: Any) -> Any:
    """A configuration whose observers are made on the device of a module."""
    if module is None or qconfig is None or getattr(qconfig, "_fields", ()) != ("activation", "weight"):
        return qconfig

    def place() -> Any:
        tensor = next(iter([*module.parameters(), *module.buffers()]), None)
        return None if tensor is None else {"device": tensor.device}

    def placed(made: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made.with_args(factory_kwargs=None)()
            return made.with_callable_args(factory_kwargs=place)
        except (AttributeError, TypeError):  # it is no observer, or knows no device
            return made

    return QConfig(placed(qconfig.activation), placed(qconfig.weight))


def _activation_is_memoryless(qconfig: Any) -> bool:
    """Whether each tensor is quantized by its own range alone."""
    made = qconfig.activation()
    watching = getattr(made, "activation_post_process", made) if isinstance(made, FakeQuantizeBase) else made
    return getattr(watching, "averaging_constant", None) == 1
