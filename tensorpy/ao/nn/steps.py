"""What ao.quantization is to modules that are quantized part by part: ao.quantization.quantize puts it here."""

from __future__ import annotations

from typing import Any

__all__ = ["DeQuantStub", "FloatFunctional", "QuantStub", "convert", "prepare", "prepare_qat", "prepared"]

prepare: Any = None
prepare_qat: Any = None
convert: Any = None
QuantStub: Any = None
DeQuantStub: Any = None
FloatFunctional: Any = None


def prepared(module: Any, training: bool) -> Any:
    """A module whose parts are observed, or fake-quantized where it is trained."""
    return prepare_qat(module.train(), inplace=True) if training else prepare(module.eval(), inplace=True)
