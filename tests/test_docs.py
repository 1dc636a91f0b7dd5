"""The documentation's examples run and print what they say; its YAML is accepted by the generator."""

from __future__ import annotations

import doctest
import re
import shutil
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


def yaml_blocks(page: Path) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)


def test_added_operators_generate(tmp_path: Path) -> None:
    """The new operators of docs/adding_an_operator.md pass the generator, next to all the others."""
    from codegen.__main__ import generate, load_catalog

    shutil.copytree(ROOT / "yaml", tmp_path / "yaml")
    added = 0
    for block in yaml_blocks(ROOT / "docs" / "adding_an_operator.md"):
        functions, _, derivatives = block.partition("# yaml/derivatives.yaml\n")
        names = re.findall(r"- func: ([\w.]+)\(", functions)
        existing = (tmp_path / "yaml/native_functions.yaml").read_text()
        if not names or any(f"- func: {name}(" in existing for name in names):
            continue
        with (tmp_path / "yaml/native_functions.yaml").open("a") as file:
            file.write("\n" + functions)
        with (tmp_path / "yaml/derivatives.yaml").open("a") as file:
            file.write("\n" + derivatives)
        added += len(names)
    assert added >= 2
    files = generate(load_catalog(tmp_path / "yaml"))
    assert "tp_cube_(" in files["Functions.h"] and "tp_cube_out(" in files["Functions.h"]
    assert "formula_sum_of_squares" in files["RegisterCompositeImplicitAutograd.c"]
