"""`import` in a process of its own, over that of a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from .harness import Case
from .libraries import torch


def run(statement: str) -> None:
    subprocess.run([sys.executable, "-c", statement], check=True)


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
