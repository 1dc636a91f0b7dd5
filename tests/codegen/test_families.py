"""What the generator writes is by family: an operator that is added changes its family's files, its loops and lists."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from codegen.__main__ import generate, load_catalog
from codegen.catalog import Catalog
from codegen.emit_schema import _result_count, by_signature
from codegen.emit_seen import Names

YAML = Path(__file__, "../../../yaml").resolve()
LISTS = (
    r"Functions\.h|RegistrationDeclarations\.h|RegistrationMinimal\.h|reference\.md|_C\.(?:pyi|help)|python/Lists\.c|"
    r"Pointwise(Table|OpenCL)\.[ch]|Reduction(Table|OpenCL)\.[ch]|cpu/Reductions\.c"
)
ADDED = {
    "pointwise_unary": "  pointwise: {number: self * self}\n  autogen: added_, added.out\n  no_gradient: a test\n",
    "reduce": "  reduction: {dtypes: number, start: 0, step: acc + abs(x), join: a + b}\n",
    "view": "  composite: self.neg().t()\n",
}


@pytest.fixture(scope="module")
def whole() -> tuple[Catalog, dict[str, str]]:
    catalog = load_catalog(YAML)
    return catalog, generate(catalog)


@pytest.mark.parametrize("family", ADDED)
def test_a_new_operator_changes_its_family_alone(
    whole: tuple[Catalog, dict[str, str]], family: str, tmp_path: Path
) -> None:
    """Put in front of the others, so that every number and every line after it would move."""
    shutil.copytree(YAML, tmp_path / "yaml")
    path = tmp_path / f"yaml/native_functions/{family}.yaml"
    text = path.read_text()
    at = text.index("- func:")
    entry = f"- func: added(Tensor self) -> Tensor\n{ADDED[family]}  doc: Added.\n"
    path.write_text(text[:at] + entry + text[at:])
    before = whole[1]
    assert not any(str(YAML.parent) in text for text in before.values())  # nothing says where the tree lies
    after = generate(load_catalog(tmp_path / "yaml"))
    assert before.keys() == after.keys()
    changed = {name for name in after if after[name] != before[name]}
    loops = {name for name in changed if re.fullmatch(r"cpu/Pointwise_\d+\.c", name)}
    assert len(loops) == (family == "pointwise_unary")
    own = {f"ops/{family}.c", f"python/of_{family}.c"}
    assert {name for name in changed - loops - own if not re.fullmatch(LISTS, name)} == set()
    assert own <= changed


def test_boxed_entries_have_room_for_what_any_operator_returns(whole: tuple[Catalog, dict[str, str]]) -> None:
    """An entry is written for a signature; results that are arguments are no part of a C signature."""
    room = {op.c: _result_count(op) for op in by_signature(whole[0])}
    assert len(room) < len(whole[0].operators) / 3
    assert all(_result_count(op) >= len(op.schema.returns) for op in whole[0])


def test_pasted_names() -> None:
    text = "#define POOL(n, name) tp_pool##n##d(x); \\\n    int name##_##n##_back(void)\nPOOL(2, avg)\n"
    names = Names(text + "#define f(a) a##_x\ncalled(y);\n")
    assert all(name in names for name in ("tp_pool2d", "avg_2_back", "called", "avg_x"))
    assert not any(name in names for name in ("tp_pool3d", "max_2_back", "tp_called", "other_x"))
