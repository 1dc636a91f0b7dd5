"""Settings of files: `config` has what load and save do where they are not told."""

from __future__ import annotations

from tensorpy.utils.serialization import config

__all__ = ["config"]
