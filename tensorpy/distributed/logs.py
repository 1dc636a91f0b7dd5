"""Where the output of processes goes that torchrun starts: to the console, to a file for each, or to both."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

NAMES = ("stdout", "stderr")


def streams_of(text: str, count: int) -> list[int]:
    """Which streams of each local rank are meant: 1 stdout, 2 stderr, 3 both; "3" for all, "0:1,1:2" for some."""
    chosen = [0] * count
    try:
        if ":" not in text:
            chosen = [int(text)] * count
        else:
            for part in text.split(","):
                rank, _, number = part.partition(":")
                if int(rank) < count:
                    chosen[int(rank)] = int(number)
    except ValueError:
        chosen = [-1]
    if any(number not in range(4) for number in chosen):
        raise ValueError(f"{text!r} says no streams: 0 none, 1 stdout, 2 stderr, 3 both; or 0:1,1:2 for some ranks")
    return chosen


class Streams:
    """stdout and stderr of one process: what Popen is given, and what is done with what comes."""

    def __init__(self, folder: Path, redirected: int, teed: int, shown: bool, prefix: str) -> None:
        self._prefix, self._shown = prefix, shown
        self._files: list[IO[bytes] | None] = []
        self._teed = [bool((teed >> i) & 1) for i in range(2)]
        for i, name in enumerate(NAMES):
            wanted = (redirected | teed) >> i & 1
            self._files.append(open(folder / f"{name}.log", "wb", buffering=0) if wanted else None)
        self._threads: list[threading.Thread] = []

    def targets(self) -> list[Any]:
        """What Popen takes for stdout and stderr."""
        found: list[Any] = []
        for file, teed in zip(self._files, self._teed, strict=True):
            if teed:
                found.append(subprocess.PIPE)
            elif file is not None:
                found.append(file)
            else:
                found.append(None if self._shown else subprocess.DEVNULL)
        return found

    def follow(self, process: subprocess.Popen[bytes]) -> None:
        """Begins to copy what comes."""
        for i, pipe in enumerate((process.stdout, process.stderr)):
            if pipe is not None:
                thread = threading.Thread(target=self._copy, args=(pipe, i), daemon=True)
                thread.start()
                self._threads.append(thread)

    def _copy(self, pipe: IO[bytes], i: int) -> None:
        console, file = (sys.stdout, sys.stderr)[i], self._files[i]
        for line in pipe:
            if file is not None:
                file.write(line)
            if self._shown:
                console.write(f"{self._prefix}{line.decode(errors='replace')}")
                console.flush()

    def end(self) -> None:
        """Takes what is still to come of a process that has ended."""
        for thread in self._threads:
            thread.join(5)
        for file in self._files:
            if file is not None:
                file.close()
