"""`each` and `foreach`: operators over lists from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.__main__ import load_catalog
from codegen.each import boxed_arguments
from codegen.errors import YamlError

BASE = """
- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  dispatch:
    CPU: add_cpu
  autogen: add_.Scalar
- func: larger(Tensor self, Tensor other) -> Tensor
  dispatch:
    CPU: larger_cpu
"""


def catalog_of(tmp_path: Path, text: str):
    (tmp_path / "tags.yaml").write_text("- tag: core\n  desc: x\n")
    (tmp_path / "native_functions.yaml").write_text(BASE + text)
    return load_catalog(tmp_path)


def test_an_entry_for_each_name(tmp_path: Path) -> None:
    text = """
- func: _foreach_<op>.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]
  foreach: add
  each: <op>.Scalar
  autogen: _foreach_<op>_.Scalar
  doc: <op> of each.
"""
    catalog = catalog_of(tmp_path, text)
    op, inplace = catalog.by_name["_foreach_add.Scalar"], catalog.by_name["_foreach_add_.Scalar"]
    assert (op.kernels[0].kind, op.kernels[0].name, op.function.doc) == ("each", "add.Scalar", "add of each.")
    assert inplace.kernels[0].name == "add_.Scalar" and op.is_implicit
    called = catalog.by_name["add.Scalar"].schema
    assert boxed_arguments(op.schema, called) == [
        "tp_box_Tl(self)",
        "tp_box_S(scalar)",
        "{.tag = TP_SCALAR, .scalar = TP_SCALAR_I(1)}",
    ]


@pytest.mark.parametrize(
    ("each", "what"), [("subtract", "unknown operator subtract"), ("larger", "larger has no in-place variant")]
)
def test_what_is_not_there_is_refused(tmp_path: Path, each: str, what: str) -> None:
    text = f"""
- func: _foreach_larger.List(Tensor[] self, Tensor[] other) -> Tensor[]
  each: {each}
  autogen: _foreach_larger_.List
"""
    with pytest.raises(YamlError, match=what):
        catalog_of(tmp_path, text)
