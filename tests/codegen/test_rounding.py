"""How formulas round in 16 bits is said by their entries where the generator cannot count their steps."""

from __future__ import annotations

from pathlib import Path

from codegen.__main__ import load_catalog
from codegen.rounding import is_left_open

ROOT = Path(__file__).resolve().parents[2]


def test_formulas_of_unknown_steps_say_how_they_round() -> None:
    catalog = load_catalog(ROOT / "yaml")
    assert [str(op.schema.name) for op in catalog if is_left_open(op, catalog)] == []
