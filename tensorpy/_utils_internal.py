"""Where test tools find the files beside the package, and where they may write."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def get_file_path(*path_components: str) -> str:
    """A path beside the package, by its parts."""
    return str(Path(__file__).resolve().parents[1].joinpath(*path_components))


def get_file_path_2(*path_components: str) -> str:
    """A path, by its parts."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """The folder itself where it may be written in, a new one otherwise."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))
