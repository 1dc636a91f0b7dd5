"""What of PyTorch's compiler is logged, for programs that say it: there is none, so nothing is."""

from __future__ import annotations

from typing import Any


def set_logs(**what: Any) -> None:
    """Nothing: compiler.explain says what ran together, and why not.

    Arguments:
        what: levels of loggers, and names of what is to be logged

    Example:
        >>> tp._logging.set_logs(graph_breaks=True)
    """


__all__ = ["set_logs"]
