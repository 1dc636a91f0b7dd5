"""Which configuration holds for which modules of a model, by type and by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy import nn
from tensorpy.ao.quantization.fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from tensorpy.ao.quantization.observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from tensorpy.ao.quantization.qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)
from tensorpy.nn import functional as F

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]

_ORDER = (
    "global_qconfig", "object_type_qconfigs", "module_name_regex_qconfigs", "module_name_qconfigs",
    "module_name_object_type_order_qconfigs",
)  # fmt: skip


class QConfigMapping:
    """Which configuration holds for which modules: of all, of a type, of a name; what is said later here goes first.

    Example:
        >>> mapping = tp.ao.quantization.QConfigMapping().set_object_type(nn.Linear, None)
        >>> mapping.to_dict()["object_type"]
        [(<class 'tensorpy.nn.modules.linear.Linear'>, None)]
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[tuple[str, Any, int], Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """What holds where nothing else does."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: Any) -> QConfigMapping:
        """What holds for a type of module, a function or a method's name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> QConfigMapping:
        """What holds for modules whose names a pattern fits; the first pattern that fits."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """What holds for the module of a name."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig: Any
    ) -> QConfigMapping:
        """What holds for the call number `index` of a type in the module of a name."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name in _ORDER:
            said = getattr(self, name)
            lines.append(f" {name}")
            lines += (
                [f"  {key}: {value}" for key, value in said.items()]
                if isinstance(said, dict) and said
                else [f"  {said}"]
            )
        return "\n".join([*lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """The same as lists of tuples, by "", "object_type", "module_name_regex" and so on."""
        found: dict[str, Any] = {"": self.global_qconfig}
        for name in _ORDER[1:]:
            said = getattr(self, name)
            whole = name == _ORDER[-1]
            found[name.removesuffix("_qconfigs")] = [(*k, v) if whole else (k, v) for k, v in said.items()]
        return found

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """A mapping of what to_dict gives; what is missing is nothing."""
        made = cls().set_global(qconfig_dict.get("", None))
        setters: dict[str, Callable[..., Any]] = {
            "object_type": made.set_object_type,
            "module_name_regex": made.set_module_name_regex,
            "module_name": made.set_module_name,
            "module_name_object_type_order": made.set_module_name_object_type_order,
        }
        for name, set_one in setters.items():
            for said in qconfig_dict.get(name, []):
                set_one(*said)
        return made


def _default(qconfig: QConfig, backend: str, training: bool) -> QConfigMapping:
    weight = default_weight_fake_quant if training else default_weight_observer
    turned = QConfig(qconfig.activation, weight) if backend in ("fbgemm", "x86") else qconfig
    norm = QConfig(qconfig.activation, default_placeholder_observer)
    made = QConfigMapping().set_global(qconfig).set_object_type("reshape", default_reuse_input_qconfig)
    for kind in (
        nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, F.conv_transpose1d, F.conv_transpose2d,
        F.conv_transpose3d,
    ):  # fmt: skip
        made.set_object_type(kind, turned)
    made.set_object_type(F.layer_norm, norm).set_object_type(nn.LayerNorm, norm)
    made.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    ranges = {
        default_fixed_qparams_range_0to1_observer: (
            nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, tp.sigmoid, "sigmoid",
            "sigmoid_", nn.Softmax,
        ),
        default_fixed_qparams_range_neg1to1_observer: (nn.Tanh, tp.tanh, "tanh", "tanh_"),
    }  # fmt: skip
    for observer, kinds in ranges.items():
        activation = FixedQParamsFakeQuantize.with_args(observer=observer) if training else observer
        for one in kinds:
            made.set_object_type(one, QConfig(activation, weight))
    return made


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The usual mapping for a model that is calibrated.

    Arguments:
        backend: 'x86', 'fbgemm', 'qnnpack' or 'onednn'
        version: 0

    Returns: a QConfigMapping.

    Example:
        >>> nn.PReLU in tp.ao.quantization.get_default_qconfig_mapping().object_type_qconfigs
        True
    """
    return _default(get_default_qconfig(backend, version), backend, False)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The usual mapping for a model that is trained with fake quantization.

    Arguments:
        backend: 'x86', 'fbgemm', 'qnnpack' or 'onednn'
        version: 1, or 0 for modules that are not fused

    Returns: a QConfigMapping.

    Example:
        >>> nn.PReLU in tp.ao.quantization.get_default_qat_qconfig_mapping().object_type_qconfigs
        True
    """
    return _default(get_default_qat_qconfig(backend, version), backend, True)
