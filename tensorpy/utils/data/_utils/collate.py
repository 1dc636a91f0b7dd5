"""utils.data.collate, under the name that programs import."""

from __future__ import annotations

from tensorpy.utils.data.collate import (
    collate,
    collate_float_fn,
    collate_int_fn,
    collate_str_fn,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    default_convert,
)

__all__ = [
    "collate", "collate_float_fn", "collate_int_fn", "collate_str_fn", "collate_tensor_fn", "default_collate",
    "default_collate_fn_map", "default_convert",
]  # fmt: skip
