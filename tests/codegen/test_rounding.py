"""How formulas round in 16 bits is said by their entries where the generator cannot count their steps."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codegen.__main__ import load_catalog
from codegen.errors import YamlErrors
from codegen.rounding import is_left_open, prologue, rounds_once

ROOT = Path(__file__).resolve().parents[2]


def test_formulas_of_unknown_steps_say_how_they_round() -> None:
    catalog = load_catalog(ROOT / "yaml")
    assert [str(op.schema.name) for op in catalog if is_left_open(op, catalog)] == []


def added(tmp_path: Path, rounding: str) -> Path:
    """The tree's yaml/ with another entry."""
    folder = tmp_path / "yaml"
    shutil.copytree(ROOT / "yaml", folder)
    (folder / "native_functions" / "added.yaml").write_text(
        "- func: summed(Tensor self, bool wide, int n) -> Tensor\n"
        f"  rounding: {rounding}\n"
        "  dispatch:\n    CompositeExplicitAutograd: summed_composite\n"
    )
    return folder


@pytest.mark.parametrize("rounding", ["once if other", "once if n", "once if", "each if wide", "twice"])
def test_a_flag_of_rounding_is_a_bool_argument(tmp_path: Path, rounding: str) -> None:
    with pytest.raises(YamlErrors, match="rounding"):
        load_catalog(added(tmp_path, rounding))


def test_an_operator_with_a_flag_is_rounded_where_it_is_true() -> None:
    """Each flag of an entry is in the condition; what adds up elements of 16 bits has one wherever it has the other."""
    catalog = load_catalog(ROOT / "yaml")
    flagged = [op for op in catalog if rounds_once(op, catalog) and op.function.origin.rounded_if]
    assert {str(op.schema.name) for op in flagged} == {
        str(op.schema.name)
        for op in catalog
        if op.kind == "functional"
        and op.function.origin.composite is None
        and any(a.name == "accumulate" for a in op.schema.arguments)
    }
    for op in flagged:
        assert prologue(op, "f")[0].startswith(f"if (tp_unlikely({op.function.origin.rounded_if} && (")
