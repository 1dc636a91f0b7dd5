"""Enums of torch.onnx that programs name where they describe an export."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class _ByName(IntEnum):
    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


_made: Any = _ByName  # called with a name and members, it makes an enum of them
OperatorExportTypes = _made("OperatorExportTypes", "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH", start=0)
TrainingMode = _made("TrainingMode", "EVAL PRESERVE TRAINING", start=0)
TensorProtoDataType = _made(
    "TensorProtoDataType",
    "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 COMPLEX128 "
    "BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ",
    start=0,
)
OperatorExportTypes.__doc__ = """How operators that the format lacks are to be written.

Example:
    >>> int(tp.onnx.OperatorExportTypes.ONNX_ATEN_FALLBACK)
    2
"""
TrainingMode.__doc__ = """Whether a model is written as it is, for use or for training.

Example:
    >>> tp.onnx.TrainingMode.EVAL
    <TrainingMode.EVAL: 0>
"""
TensorProtoDataType.__doc__ = """The format's numbers of dtypes.

Example:
    >>> int(tp.onnx.TensorProtoDataType.BFLOAT16)
    16
"""
