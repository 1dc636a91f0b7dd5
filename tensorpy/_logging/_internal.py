"""The logger that tests listen to while compiled functions run, and texts that are made when they are read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

trace_log = logging.getLogger("torch.__trace")


class LazyString:
    """A text that a function makes of its arguments when it is asked for."""

    def __init__(self, func: Callable[..., str], *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)
