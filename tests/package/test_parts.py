"""What a sampled run takes: each operator and each file has its turn, and what changed is taken before its turn."""

from __future__ import annotations

import pytest
from parts import BUILDS, ROOT, TREE, WHOLE_FILES, Files, Part, _chosen

from tensorpy.testing.samples import TABLE

FILES = sorted((ROOT / "tests").rglob("test_*.py"))


def test_each_has_one_turn() -> None:
    parts = [Part(frozenset({n}), 5, frozenset(), "") for n in range(1, 6)]
    assert all(sum(part.takes(name) for part in parts) == 1 for name in TABLE)
    rounds = [Files(frozenset({n}), 5, frozenset()) for n in range(1, 6)]
    for file in FILES:
        assert sum(r.takes(file) for r in rounds) == (5 if file.stem == "test_table" else 1), file


def test_what_changed_is_taken() -> None:
    for n in range(1, 9):
        files = Files(frozenset({n}), 8, frozenset({"sparse"}))
        assert files.step == 1 and all(files.takes(file) for file in FILES if file.stem.startswith("test_sparse"))
        part = Part(frozenset({n}), 8, frozenset({"sort"}), "")
        assert part.step == 1 and part.takes("sort.stable")


def test_what_reads_the_tree_is_always_taken() -> None:
    assert {file.stem for file in FILES} >= TREE >= BUILDS
    turns = [Files(frozenset({n}), 24, frozenset(), tree=True) for n in range(1, 25)]
    for file in FILES:
        if file.stem in TREE:
            taken = sum(turn.takes(file) for turn in turns)
            assert taken >= 8 if file.stem in BUILDS else taken == 24, file
    sources = [file for file in FILES if "rglob(" in file.read_text() and file.parent.name == "package"]
    assert {file.stem for file in sources} <= TREE | {"test_examples"}


def test_much_that_changed_is_sampled() -> None:
    every = frozenset(file.stem.removeprefix("test_") for file in FILES)
    files = Files(frozenset({1}), 8, every)
    assert files.step == WHOLE_FILES and sum(map(files.takes, FILES)) < len(FILES) / 3


@pytest.mark.parametrize("text", ["3", "0/4", "5/4", "auto/", "a/4", "1/x"])
def test_a_part_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="--files"):
        _chosen("--files", text)
