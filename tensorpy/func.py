"""Functions of modules: a module called with other parameters than its own."""

from __future__ import annotations

from tensorpy.nn.utils.stateless import functional_call

__all__ = ["functional_call"]
