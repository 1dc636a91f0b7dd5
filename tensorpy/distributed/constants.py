"""How long messages wait for each other if nothing is said."""

from __future__ import annotations

from datetime import timedelta

from tensorpy.distributed.groups import DEFAULT_SECONDS

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout: timedelta = timedelta(seconds=DEFAULT_SECONDS)
default_pg_nccl_timeout: timedelta | None = None  # there is no NCCL
