"""A pipe of open files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import length_of
from tensorpy.utils.data.datapipes.utils.common import StreamWrapper, get_file_binaries_from_pathnames

__all__ = ["FileOpener"]


@functional_datapipe("open_files")
class FileOpener(IterDataPipe[Any]):
    """(path, open file) of each path; a file is closed when nothing refers to it."""

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}: FileOpener takes 'b', 't', 'rb', 'rt' or 'r'")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.encoding, self.length = datapipe, encoding, length
        self.mode = mode if "r" in mode else f"r{mode}"

    def __iter__(self) -> Iterator[tuple[str, StreamWrapper]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        return length_of(self)
