"""Which operators a sampled run takes: the families that changed, and a part of the rest that goes round.

`pytest --part=2/3` takes the second third of the operators, `--part=auto/9` two ninths: the one that the commit at hand
stands for, and the one of the day, so that each operator has its turn within nine days, whatever is committed. A family
has changed if a file with its stem did in the hours before the commit at hand, or since TENSORPY_BASE; a change that
goes through most families is one of the generator, or of a key that it reads, and counts as none. Changed families
hold few operators, as a rule, and all of these are taken; of more than a thirty-second of the table every second,
third, ... is. What is no operator's (the generator, the dispatcher, the layers) has tests of its own: `--files=auto/8`
takes parts of the files in the same way, and with `--tree` those that read the whole tree beside them.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tensorpy.testing.samples import TABLE

ROOT = Path(__file__).resolve().parent.parent
WINDOW = 4 * 3600  # seconds of commits that count as one change
WHOLE = 32  # changed families that hold at most one operator in so many are taken whole
WHOLE_FILES = 16  # the same of files of tests
# What reads the sources or the whole catalog: any change may break these, whatever the turn.
TREE = frozenset(
    "test_abi test_completeness test_declining test_docs test_folders test_forward_ad test_headers test_help"
    " test_inner_operators test_keys test_layers test_opencl_exempt test_operator_names test_ops_only test_parts"
    " test_primitives test_registration test_rounding test_sdist test_simulated test_site test_stub_members"
    " test_tag_rules test_torch_names test_vmap test_wheels".split()
)
# Those of them that build something, which takes as long as all the others: every third turn.
BUILDS = frozenset({"test_registration", "test_sdist", "test_simulated", "test_wheels"})


def _git(*arguments: str) -> str:
    """What git says of the tree; nothing where there is no git or no history."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _base() -> str:
    """What changes are counted from; "" where nothing is known."""
    if named := os.environ.get("TENSORPY_BASE"):
        return _git("rev-parse", "--verify", named)
    now = _git("show", "-s", "--format=%ct", "HEAD")
    return _git("rev-list", "-1", f"--before={int(now) - WINDOW}", "HEAD") if now else ""


def families_of(files: Iterable[str]) -> set[str]:
    """`csrc/cpu/pool_loops.c` and `yaml/derivatives/pool.yaml` are of the family pool, as operators/test_pool.py is."""
    known = {info.op.family for info in TABLE.values()}
    stems = {re.sub(r"^test_", "", Path(file).stem) for file in files}
    return {name for name in known if any(stem == name or stem.startswith(name + "_") for stem in stems)}


@dataclass(frozen=True)
class Part:
    """The `numbers`, from 1, of `count` parts, and every `step`-th operator of `families`."""

    numbers: frozenset[int]
    count: int
    families: frozenset[str]
    since: str

    def takes(self, name: str) -> bool:
        """Of an operator's full name ("max.dim"), or of a function's of torch ("nn.functional.relu")."""
        place, turn = divmod(zlib.crc32(name.encode()), self.count)
        if turn + 1 in self.numbers:
            return True
        changed = name.partition(".")[0] in self._changed or name.rpartition(".")[2] in self._changed
        return changed and place % self.step == min(self.numbers) % self.step

    @functools.cached_property
    def _changed(self) -> set[str]:
        return {info.name.partition(".")[0] for info in TABLE.values() if info.op.family in self.families}

    @functools.cached_property
    def step(self) -> int:
        """One of how many operators is taken of the families that changed."""
        return -(-WHOLE * sum(info.op.family in self.families for info in TABLE.values()) // len(TABLE)) or 1

    def __str__(self) -> str:
        share = "all" if self.step == 1 else f"one in {self.step}"
        changed = f", and {share} of {', '.join(sorted(self.families))}" if self.families else ""
        since = f" (changed since {self.since[:9]})" if self.families else ""
        numbers = " and ".join(map(str, sorted(self.numbers)))
        return f"part {numbers} of {self.count} of the operators{changed}{since}"


@dataclass(frozen=True)
class Files:
    """The `numbers`, from 1, of `count` parts of the files of tests, and every `step`-th of those about what changed.

    The table of operators is always taken: it has parts of its own. So is, with `tree`, what reads the tree, or a third
    of it where it builds.
    """

    numbers: frozenset[int]
    count: int
    changed: frozenset[str]  # stems of files
    tree: bool = False

    def takes(self, file: Path) -> bool:
        place, turn = divmod(zlib.crc32(file.stem.encode()), self.count)
        number = min(self.numbers)
        reads = self.tree and file.stem in TREE and (file.stem not in BUILDS or place % 3 == number % 3)
        if reads or turn + 1 in self.numbers or file.stem == "test_table":
            return True
        return self._is_changed(file) and place % self.step == number % self.step

    def _is_changed(self, file: Path) -> bool:
        stem = file.stem.removeprefix("test_")
        return any(stem == name or stem.startswith(name + "_") for name in self.changed)

    @functools.cached_property
    def step(self) -> int:
        """One of how many is taken of the files about what changed."""
        files = list((ROOT / "tests").rglob("test_*.py"))
        return -(-WHOLE_FILES * sum(map(self._is_changed, files)) // len(files)) or 1

    def __str__(self) -> str:
        share = "those" if self.step == 1 else f"one in {self.step}"
        numbers = " and ".join(map(str, sorted(self.numbers)))
        tree = ", and those that read the tree" if self.tree else ""
        return f"part {numbers} of {self.count} of the files of tests, and {share} of what changed{tree}"


def _chosen(option: str, text: str) -> tuple[frozenset[int], int, str] | None:
    """Which parts of how many, and what changes are counted from."""
    if not text:
        return None
    number, slash, count = text.partition("/")
    if not slash or not count.isdigit() or not (number == "auto" or number.isdigit()):
        raise ValueError(f"{option} is NUMBER/COUNT or auto/COUNT, not {text}")
    commit, base = _git("rev-parse", "HEAD"), _base()
    if number == "auto" and not (commit and base):
        return None
    days = int(time.time()) // (24 * 3600)
    turns = (int(commit, 16), days) if number == "auto" else (int(number) - 1,)
    if number != "auto" and not 1 <= int(number) <= int(count):
        raise ValueError(f"{option}: there is no part {number} of {count}")
    return frozenset(turn % int(count) + 1 for turn in turns), int(count), base


def _changed_since(base: str) -> list[str]:
    return _git("diff", "--name-only", base, "HEAD").splitlines() if base else []


def part_of(text: str) -> Part | None:
    """`2/3`, `auto/9`; nothing for all of it, and where the history is not known."""
    found = _chosen("--part", text)
    if found is None:
        return None
    numbers, count, base = found
    changed = families_of(_changed_since(base))
    every = {info.op.family for info in TABLE.values()}
    return Part(numbers, count, frozenset(changed if 2 * len(changed) <= len(every) else ()), base)


_CHOSEN = """
NAMES = {names!r}


def pytest_collection_modifyitems(items):
    infos = [(item, getattr(item, "callspec", None) and item.callspec.params.get("info")) for item in items]
    items[:] = [item for item, info in infos if info is None or info.name in NAMES]
"""


def hand_on(text: str, folder: Path) -> float:
    """Has pytest in another folder take the operators that `--part=text` takes here; their share of all."""
    part = part_of(text)
    names = {name for name in TABLE if part is None or part.takes(name)}
    (folder / "conftest.py").write_text(_CHOSEN.format(names=names))
    return len(names) / len(TABLE)


def files_of(text: str, tree: bool = False) -> Files | None:
    """As part_of, of files; with those that read the tree, if asked for."""
    found = _chosen("--files", text)
    if found is None:
        return None
    numbers, count, base = found
    stems = {Path(file).stem.removeprefix("test_") for file in _changed_since(base)}
    return Files(numbers, count, frozenset(stems), tree)
