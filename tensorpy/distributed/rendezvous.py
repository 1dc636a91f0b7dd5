"""Where processes meet. PyTorch has a function of this name and the module that it is in: this one can be called."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tensorpy.distributed.meeting import register_rendezvous_handler, rendezvous

__all__ = ["register_rendezvous_handler", "rendezvous"]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return rendezvous(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
