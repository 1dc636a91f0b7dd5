"""The tutorials of docs/ that leave Python, followed to the letter in an empty folder, in an environment of its own.

A page's blocks count in their order: one after a paragraph that ends with a file's name, or begins with it, is that
file's text, or more of it; `sh` is run, and `text` is what the run before it printed, with ... for what differs.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import tensorpy as tp

ROOT = Path(__file__).parents[2]
PAGES = [p for p in sorted((ROOT / "docs" / "tutorials").glob("*.md")) if "```sh\n" in p.read_text()]
BLOCK = re.compile(r"(?:(?P<before>[^\n]*(?:\n[^\n]+)*)\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.S)
FILE = re.compile(r"`([\w/]+\.(?:c|py|yaml|toml))`")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A fresh environment that has this tensorpy, and the packages of the tests: pip fetches nothing."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    mine = [path for path in sys.path if path.endswith("-packages")]
    subprocess.run([folder / "bin" / "pip", "-q", "uninstall", "-y", "setuptools"], check=True)  # the tests' is newer
    (site / "tests.pth").write_text("\n".join([str(Path(tp.__file__).parents[1]), *mine]))
    alone = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {**alone, "PATH": os.pathsep.join([str(folder / "bin"), alone["PATH"]]), "PIP_NO_INDEX": "1"}


def steps(page: Path) -> list[tuple[str, str, str]]:
    """(kind, file or "", text) of each block; a C file's second block is more of it."""
    found = []
    for block in BLOCK.finditer(page.read_text()):
        names = FILE.findall(block["before"] or "")
        kind = block["kind"]
        found.append((kind, names[-1] if names and kind not in ("sh", "text") else "", block["text"]))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_tutorial_followed_to_the_letter(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    folder, said, ran = tmp_path / "empty", "", 0
    folder.mkdir()
    for kind, name, text in steps(page):
        if kind == "sh":
            run = ["bash", "-euc", text]
            done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
            said, ran = done.stdout, ran + 1
            assert done.returncode == 0, f"{text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        elif kind == "text":
            assert doctest.OutputChecker().check_output(text, said, doctest.ELLIPSIS), f"{text}\n--\n{said}"
        else:
            assert name, f"no file is named before\n{text}"
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(f"\n{text}" if path.exists() and path.stat().st_size else text)
    assert ran > 2


def test_pages_that_leave_python_are_followed() -> None:
    assert {p.stem for p in PAGES} == {"own_device", "own_operator"}
