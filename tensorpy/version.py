"""Which tensorpy this is, and which toolkits of devices it is built with: none, OpenCL is opened where it is found."""

from __future__ import annotations

from tensorpy import __version__

debug = False
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = "unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
