"""Python's multiprocessing, and `spawn`, which starts a program's processes.

A tensor that is sent to another process is in memory that both see: see tensorpy/storage/shared.py.
"""

from __future__ import annotations

import multiprocessing
from typing import Any

from tensorpy.multiprocessing.spawn import ENV_VAR_PARALLEL_START as ENV_VAR_PARALLEL_START
from tensorpy.multiprocessing.spawn import ProcessContext as ProcessContext
from tensorpy.multiprocessing.spawn import ProcessException as ProcessException
from tensorpy.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from tensorpy.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from tensorpy.multiprocessing.spawn import spawn as spawn
from tensorpy.multiprocessing.spawn import start_processes as start_processes
from tensorpy.storage.shared import get_all_sharing_strategies as get_all_sharing_strategies
from tensorpy.storage.shared import get_sharing_strategy as get_sharing_strategy
from tensorpy.storage.shared import set_sharing_strategy as set_sharing_strategy

TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from multiprocessing import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
else:

    def __getattr__(name: str) -> Any:
        """All other names are those of Python's module."""
        if name.startswith("__"):
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return getattr(multiprocessing, name)
