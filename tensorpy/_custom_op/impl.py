"""Operators that `_custom_ops.custom_op` declared, and what a function that computes shapes asks for its sizes."""

from __future__ import annotations

from typing import Any

from tensorpy._custom_ops import CustomOp
from tensorpy._custom_ops import declared as global_registry
from tensorpy._library.infer_schema import infer_schema
from tensorpy._library.utils import lookup_op
from tensorpy.library import get_ctx

__all__ = ["CustomOp", "get_ctx", "get_op", "global_registry", "infer_schema"]


def get_op(qualname: str) -> Any:
    """The operator of a name, "mine::op"; ValueError if there is none."""
    try:
        return lookup_op(qualname)
    except AttributeError:
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered the operator and "
            "(if registered from C++) loaded it via torch.ops.load_library."
        ) from None
