"""utils.data.collate, under the name that programs import."""

from __future__ import annotations

from tensorpy.utils.data.collate import default_collate, default_convert

__all__ = ["default_collate", "default_convert"]
