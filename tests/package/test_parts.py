"""Sampled runs: parts share the operators out, and what changed is in each of them."""

from __future__ import annotations

import parts
import pytest
from parts import Part, families_of, part_of

from tensorpy.testing.samples import TABLE


def test_every_operator_is_in_one_part() -> None:
    parts = [Part(frozenset({number}), 3, frozenset(), "") for number in (1, 2, 3)]
    sizes = [sum(part.takes(name) for name in TABLE) for part in parts]
    assert all(sum(part.takes(name) for part in parts) == 1 for name in TABLE)
    assert min(sizes) > len(TABLE) // 4


def test_what_changed_is_in_every_part() -> None:
    files = [
        "csrc/cpu/pool_loops.c",
        "yaml/derivatives/scan.yaml",
        "tests/operators/test_sort.py",
        "csrc/core/tensor.c",
    ]
    changed = families_of(files)
    assert changed == {"pool", "scan", "sort"}
    for number in (1, 2):
        part = Part(frozenset({number}), 2, frozenset(changed), "0123456789abcdef")
        assert all(part.takes(name) for name, info in TABLE.items() if info.op.family in changed)
        assert part.takes("nn.functional.max_pool2d") and part.takes("cumsum")
        assert "all of pool, scan, sort (changed since 012345678)" in str(part)


def test_a_change_of_many_families_is_sampled() -> None:
    """As many operators as an eighth of the table, about; other commits take the others."""
    families = {info.op.family for info in TABLE.values()}
    changed = frozenset(sorted(families)[::2])
    of_changed = {name for name, info in TABLE.items() if info.op.family in changed}
    taken: set[str] = set()
    for number in range(1, 25):
        part = Part(frozenset({number}), 24, changed, "0123456789abcdef")
        mine = {name for name in of_changed if part.takes(name)}
        assert len(mine) < len(TABLE) / 4 and f"one in {part.step} of" in str(part)
        taken |= mine
    assert taken == of_changed


def test_the_day_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within as many days as there are parts every operator is taken, of one commit too."""
    taken: set[str] = set()
    for day in range(4):
        monkeypatch.setattr(parts.time, "time", lambda day=day: day * 24 * 3600 + 5.0)
        part = part_of("auto/4")
        if part is None:  # there is no history
            return
        assert day + 1 in part.numbers and len(part.numbers) in (1, 2)
        taken |= {name for name in TABLE if part.takes(name)}
    assert taken == set(TABLE)


def test_all_of_it_where_nothing_is_asked_for() -> None:
    assert part_of("") is None


@pytest.mark.parametrize("text", ["3/2", "0/2", "2", "a/b", "auto", "1/0"])
def test_no_such_part(text: str) -> None:
    with pytest.raises(ValueError, match="part"):
        part_of(text)
