"""How a model is quantized, by name."""

from __future__ import annotations

import enum

__all__ = ["QuantType"]


class QuantType(enum.IntEnum):
    """When the ranges of activations are found.

    Example:
        >>> tp.ao.quantization.QuantType.STATIC.name
        'STATIC'
    """

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


def _get_quant_type_to_str(quant_type: QuantType) -> str:
    return quant_type.name.lower()


def _quant_type_from_str(name: str) -> QuantType:
    try:
        return QuantType[name.upper()]
    except KeyError:
        raise ValueError(f"Unknown QuantType name '{name}': one of dynamic, static, qat, weight_only") from None
