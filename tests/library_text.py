"""What the generator writes for a library from outside, without a build."""

from __future__ import annotations

from pathlib import Path

from codegen.emit_library import generate_library
from codegen.library import load_library


def library_files(namespace: str, yaml: Path) -> dict[str, str]:
    """The text of each file that a library's YAML becomes, by the file's name."""
    return generate_library(load_library(yaml, namespace), namespace)
