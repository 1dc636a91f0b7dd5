"""What compile() logs: why a function needs another graph. The rest of PyTorch's logs has nothing to say."""

from __future__ import annotations

import logging
from typing import Any


def set_logs(*, recompiles: bool = False, **what: Any) -> None:
    """Has compile(backend=function) say why a function needs another graph, on stderr. The rest of PyTorch's logs has
    nothing to say: compiler.explain says what ran together, and why not.

    Arguments:
        recompiles: whether it does
        what: levels of loggers, and names of what else is to be logged

    Example:
        >>> tp._logging.set_logs(graph_breaks=True)
    """
    logger = logging.getLogger("tensorpy._dynamo.recompiles")
    logger.setLevel(logging.INFO if recompiles else logging.WARNING)
    if recompiles and not logger.handlers:
        logger.addHandler(logging.StreamHandler())


__all__ = ["set_logs"]
