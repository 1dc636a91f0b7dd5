"""Whether what is generated is still what the generator would write: a digest of all that it reads, kept beside it.

Of a file of C it reads which names there are and what macros paste together, so that an edit inside a kernel, which is
most of them, generates nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

STAMP = "inputs.sha256"

_WORD = re.compile(r"\b[A-Za-z_]\w*")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*", re.M)
_HEAD = re.compile(r"^[A-Za-z_].*$", re.M)  # where a function begins


def _parts(root: Path) -> Iterator[str]:
    for folder, kind in (("yaml", "*.yaml"), ("codegen", "*.py"), ("csrc", "*.cl"), ("csrc", "*.h"), ("csrc", "*.inc")):
        for path in sorted((root / folder).rglob(kind)):
            yield f"{path.relative_to(root)}\n{path.read_text()}"
    for path in sorted((root / "csrc").rglob("*.c")):
        text = path.read_text()
        words = " ".join(sorted(set(_WORD.findall(text))))
        lines = "\n".join([*_DIRECTIVE.findall(text), *_HEAD.findall(text)])
        yield f"{path.relative_to(root)}\n{words}\n{lines}"


def digest(root: Path) -> str:
    """The stamp of the tree at `root`."""
    found = hashlib.sha256()
    for part in _parts(root):
        found.update(f"{len(part)}\n{part}".encode())
    return found.hexdigest()


def _names(out: Path, inputs: str) -> list[str]:
    """The files that were made of these inputs, if `out` has them all."""
    stamp = out / STAMP
    if not stamp.exists():
        return []
    made_of, *names = stamp.read_text().splitlines()
    return names if made_of == inputs and all((out / name).exists() for name in names) else []


def is_fresh(out: Path, inputs: str) -> bool:
    """Whether `out` has every file that was made of these inputs."""
    return bool(_names(out, inputs))


def built(root: Path, inputs: str) -> dict[str, str]:
    """The texts that a build of the tree at `root`, of any mode, has of these inputs; none where no build has them."""
    for out in (root / "build").glob("*/gen"):
        if names := _names(out, inputs):
            return {name: (out / name).read_text() for name in names}
    return {}


def write(out: Path, inputs: str, names: Iterable[str]) -> None:
    """After the files are there, so that a run that is cut off is begun anew."""
    (out / STAMP).write_text("\n".join([inputs, *sorted(names)]) + "\n")
