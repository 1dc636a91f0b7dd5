"""`import` in a process of its own, over that of a bare interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from .harness import Case
from .libraries import torch

# As a user's interpreter, which keeps bytecode.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(statement: str) -> None:
    subprocess.run([sys.executable, "-c", statement], check=True, env=ENVIRONMENT)


def cases(device: str) -> Iterator[Case]:
    calls = {
        "tensorpy": partial(run, "import tensorpy"),
        "bare": partial(run, "pass"),
        "numpy": partial(run, "import numpy"),
    }
    if torch is not None:
        calls["torch"] = partial(run, "import torch")
    for call in calls.values():
        call()  # writes the bytecode and fills the page cache
    yield Case("import", calls, over={"bare": 0.012})
