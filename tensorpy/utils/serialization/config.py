"""What load and save do where they are not told: `load.mmap`, `save.compute_crc32` and their kin, or for a while."""

from __future__ import annotations

import mmap
from typing import Any

from tensorpy.utils import _config_module

load: Any = _config_module.Group(
    f"{__name__}.load",
    mmap=False,  # whether tensors stay in their file
    endianness=None,  # the order of bytes of a file that does not say it
    mmap_flags=mmap.MAP_PRIVATE,
    calculate_storage_offsets=False,  # may be set; where a record lies is read from the archive
)
save: Any = _config_module.Group(
    f"{__name__}.save",
    compute_crc32=True,  # may be set; records have checksums all the same
    use_pinned_memory_for_d2h=False,
    storage_alignment=64,  # of each storage in the file, in bytes
)


class patch(_config_module.patch):
    """Settings for a while: in a with block, or while a function runs. A name may have dots.

    Example:
        >>> from tensorpy.utils.serialization import config
        >>> with config.patch("load.mmap", True):
        ...     config.load.mmap
        True
    """


_config_module.install(__name__, {})

__all__ = ["load", "patch", "save"]
