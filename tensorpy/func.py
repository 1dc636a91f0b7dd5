"""Functions of functions and of modules: without writes; a module called with other parameters than its own."""

from __future__ import annotations

from tensorpy._functionalize import functionalize
from tensorpy.nn.utils.stateless import functional_call

__all__ = ["functional_call", "functionalize"]
