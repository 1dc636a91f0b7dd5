"""Errors of processes that torchrun started: `record` writes them where it looks, and it prints them with the rank."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["record"]

T = TypeVar("T")

VARIABLE = "TORCHELASTIC_ERROR_FILE"


def write(error: BaseException) -> None:
    """Puts an error into the file that torchrun said; without one nothing is done."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    about = {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {
            "py_callstack": "".join(traceback.format_exception(error)),
            "timestamp": str(int(time.time())),
        },
    }
    with open(path, "w") as file:
        json.dump({"message": about}, file)


def record(fn: Callable[..., T], error_handler: Any = None) -> Callable[..., T | None]:
    """A program's main function whose errors torchrun prints, with the rank of the process.

    Arguments:
        fn: the function
        error_handler: has record_exception(error), in the place of the file
    """

    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> T | None:
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code not in (None, 0):
                (error_handler.record_exception if error_handler else write)(end)
            raise
        except Exception as error:
            (error_handler.record_exception if error_handler else write)(error)
            raise

    return run
