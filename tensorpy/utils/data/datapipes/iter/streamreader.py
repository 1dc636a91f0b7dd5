"""A pipe of what open files hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe

__all__ = ["StreamReader"]


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe[Any]):
    """(label, bytes) of each open file, in pieces of `chunk`; None: in one."""

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for label, stream in self.datapipe:
            while piece := stream.read(-1 if self.chunk is None else self.chunk):
                yield label, piece
                if self.chunk is None:
                    break
            stream.close()
