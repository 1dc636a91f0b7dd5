"""torch.onnx's names: no model is written in that format, a call is an error."""

from __future__ import annotations

from typing import Any

from tensorpy._package import parts as _parts
from tensorpy._package.absent import absent
from tensorpy.onnx._enums import OperatorExportTypes, TensorProtoDataType, TrainingMode  # noqa: F401

export: Any = absent(__name__, "export")
dynamo_export: Any = absent(__name__, "dynamo_export")
ONNXProgram: Any = absent(__name__, "ONNXProgram")


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Any, opset_version: int, custom_opsets: Any = None
) -> None:
    """Says how an operator is to be written: nothing is.

    Arguments:
        symbolic_name: the operator's name
        symbolic_fn: the function
        opset_version: the version
        custom_opsets: further versions

    Example:
        >>> tp.onnx.register_custom_op_symbolic("mine::op", symbolic, 17)  # doctest: +SKIP
    """


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back what register_custom_op_symbolic() said: nothing was.

    Arguments:
        symbolic_name: the operator's name
        opset_version: the version

    Example:
        >>> tp.onnx.unregister_custom_op_symbolic("mine::op", 17)
    """


def is_in_onnx_export() -> bool:
    """Whether a model is being written: never.

    Returns: bool.

    Example:
        >>> tp.onnx.is_in_onnx_export()
        False
    """
    return False


TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.onnx import operators as operators
    from tensorpy.onnx import symbolic_helper as symbolic_helper
    from tensorpy.onnx import symbolic_opset11 as symbolic_opset11
else:
    __getattr__ = _parts(__name__, ("operators", "symbolic_helper", "symbolic_opset11"))
