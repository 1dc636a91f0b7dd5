"""A pipe of the paths of files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import length_of
from tensorpy.utils.data.datapipes.iter.utils import IterableWrapper
from tensorpy.utils.data.datapipes.utils.common import match_masks

__all__ = ["FileLister"]


@functional_datapipe("list_files")
class FileLister(IterDataPipe[Any]):
    """The paths of the files in one folder or several, below them with `recursive`, whose names fit one of `masks`."""

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe[Any] = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        roots: Any = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapper(roots)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            top = os.path.abspath(root) if self.abspath else root
            if os.path.isfile(top):
                if match_masks(os.path.basename(top), self.masks):
                    yield top
                continue
            for folder, folders, files in os.walk(top, onerror=_warn_of_folder):
                if not self.non_deterministic:
                    files.sort()
                    folders.sort()
                if not self.recursive:
                    folders.clear()
                yield from (os.path.join(folder, name) for name in files if match_masks(name, self.masks))

    def __len__(self) -> int:
        return length_of(self)


def _warn_of_folder(error: OSError) -> None:
    warnings.warn(f"FileLister: {error.filename}: {error.strerror}", stacklevel=2)
    raise error
