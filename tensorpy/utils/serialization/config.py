"""What load and save do where they are not told: `load.mmap`, `save.compute_crc32` and their kin, or for a while."""

from __future__ import annotations

import mmap
import sys
from contextlib import ContextDecorator
from types import SimpleNamespace
from typing import Any

_UNSET = object()

load: Any = SimpleNamespace(
    mmap=False,  # whether tensors stay in their file
    endianness=None,  # the order of bytes of a file that does not say it
    mmap_flags=mmap.MAP_PRIVATE,
    calculate_storage_offsets=False,  # may be set; where a record lies is read from the archive
)
save: Any = SimpleNamespace(
    compute_crc32=True,  # may be set; records have checksums all the same
    use_pinned_memory_for_d2h=False,
    storage_alignment=64,  # of each storage in the file, in bytes
)


class patch(ContextDecorator):
    """Settings for a while: in a with block, or while a function runs. A name may have dots.

    Example:
        >>> from tensorpy.utils.serialization import config
        >>> with config.patch("load.mmap", True):
        ...     config.load.mmap
        True
    """

    def __init__(self, settings: Any = None, value: Any = None, **more: Any) -> None:
        given = {settings: value} if isinstance(settings, str) else dict(settings or {})
        self.settings = given | more
        self._before: list[dict[str, Any]] = []

    def _place(self, name: str) -> tuple[Any, str]:
        """The object that has a setting, and its name there."""
        place: Any = sys.modules[type(self).__module__]
        *groups, last = name.split(".")
        for group in groups:
            place = getattr(place, group)
        return place, last

    def __enter__(self) -> None:
        self._before.append({name: getattr(*self._place(name), _UNSET) for name in self.settings})
        for name, value in self.settings.items():
            setattr(*self._place(name), value)

    def __exit__(self, *error: Any) -> None:
        for name, value in self._before.pop().items():
            if value is _UNSET:
                delattr(*self._place(name))
            else:
                setattr(*self._place(name), value)


__all__ = ["load", "patch", "save"]
