"""torch.onnx's names: no model is written in that format, a call is an error."""

from __future__ import annotations

from typing import Any

from tensorpy._absent import absent

export = absent(__name__, "export")
dynamo_export = absent(__name__, "dynamo_export")
register_custom_op_symbolic = absent(__name__, "register_custom_op_symbolic")
ONNXProgram = absent(__name__, "ONNXProgram")


def is_in_onnx_export() -> bool:
    """Whether a model is being written: never."""
    return False


def __getattr__(name: str) -> Any:
    """The one module below is imported at first use."""
    if name == "operators":
        import importlib

        return importlib.import_module("tensorpy.onnx.operators")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
