"""`make bc`: which changes of a schema break its callers."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.compatibility import FILES, Allowed, broken, changes, declared, read_allowed, read_schemas

ROOT = Path(__file__).parents[2]
OLD = "f(Tensor self, int a, *, float b=1.0) -> Tensor"
BREAKS = {
    "f(Tensor self, *, float b=1.0) -> Tensor": "'a' is gone",
    "f(Tensor self, int[] a, *, float b=1.0) -> Tensor": "'a' was int and is int[]",
    "f(Tensor self, int a, *, float b) -> Tensor": "'b' had the default 1.0 and has none",
    "f(Tensor self, int a, *, float b=2.0) -> Tensor": "the default of 'b' was 1.0 and is 2.0",
    "f(Tensor(a!) self, int a, *, float b=1.0) -> Tensor": "'self' was annotated '' and is 'a!'",
    "f(Tensor self, *, int a, float b=1.0) -> Tensor": "'a' was positional argument 2 and is not",
    "f(Tensor self, int c=0, int a=0, *, float b=1.0) -> Tensor": "'a' was positional argument 2 and is not",
    "f(Tensor self, int a, int c, *, float b=1.0) -> Tensor": "'c' is new and has no default",
    "f(Tensor self, int a, *, float b=1.0) -> (Tensor, Tensor)": "it returned Tensor and returns Tensor, Tensor",
    "f(Tensor self, int a, *, float b=1.0) -> Tensor[]": "it returned Tensor and returns Tensor[]",
}
FITS = [
    OLD,
    "f(Tensor? self, SymInt? a, *, Scalar b=1.0) -> Tensor",
    "f(Tensor self, int a, float b=1.0) -> Tensor",
    "f(Tensor self, int a, bool c=False, *, float b=1.0, str? d=None) -> Tensor",
]


@pytest.mark.parametrize("new", BREAKS)
def test_what_breaks_callers(new: str) -> None:
    found = list(changes({"f": OLD}, {"f": new}))
    assert len(found) == 1 and found[0].what == BREAKS[new]
    assert str(found[0]).startswith("f: ") and "callers will see: " in str(found[0])


@pytest.mark.parametrize("new", FITS)
def test_what_does_not(new: str) -> None:
    assert not list(changes({"f": OLD}, {"f": new, "g": "g() -> Tensor"}))


def test_an_operator_that_is_gone() -> None:
    assert [c.what for c in changes({"f": OLD, "g": OLD}, {"g": OLD})] == ["it is gone"]


def test_the_allow_list(tmp_path: Path) -> None:
    """An entry explains what matches it as a whole; one that explains nothing is told of."""
    entries = [Allowed("f", "why"), Allowed("g.*", "why")]
    assert broken({"f": OLD}, {}, entries) == ([], entries[1:])
    assert len(broken({"ff": OLD}, {}, entries)[0]) == 1
    (tmp_path / "allowed.yaml").write_text("- operator: f\n")
    with pytest.raises(ValueError, match="`operator` and `reason`"):
        read_allowed(tmp_path / "allowed.yaml")


def test_the_tree_breaks_nobody() -> None:
    found, idle = broken(
        read_schemas(FILES / "released.txt"), declared(ROOT / "yaml"), read_allowed(FILES / "allowed.yaml")
    )
    assert not found and not idle, "\n".join(map(str, found))
