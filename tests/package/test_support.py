"""docs/support.md is what the YAML and the sample table say today."""

from __future__ import annotations

from pathlib import Path

from tensorpy.testing.support import dtypes_text, page

PAGE = Path(__file__).parents[2] / "docs" / "support.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "docs/support.md is stale: run `make support`"


def test_dtypes_are_named_by_class() -> None:
    assert dtypes_text(("float16", "bfloat16", "float32", "float64", "int8")) == "float int8"
    assert dtypes_text(("bool", "uint8", "complex64", "complex128")) == "bool complex uint8"
