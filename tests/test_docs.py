"""The documentation's examples run and print what they say; its links and named notes lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples(page: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert result.failed == 0


def test_links() -> None:
    """Every relative link of the documentation leads to a file."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_named_notes_exist() -> None:
    """A note that is referred to by name is written down somewhere."""
    texts = {p: p.read_text() for p in (ROOT / "csrc").rglob("*.[ch]")}
    written = {name for text in texts.values() for name in re.findall(r"Note \[([^\]]+)\]\n", text)}
    for page, text in texts.items():
        for name in re.findall(r"Note \[([^\]\n]+)\]", re.sub(r"\s*\n\s*\*?\s*", " ", text)):
            assert name in written, f"{page} refers to Note [{name}]"
