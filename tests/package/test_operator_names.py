"""Operators' names stand in the YAML, in the files of their family and in tests: what a layer knows of an operator is
data of its entry. The exceptions are listed with why, and each is still needed. csrc/python is left out: it defines
methods and Python's operators by their names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tensorpy as tp
from codegen.__main__ import load_catalog

ROOT = Path(__file__).resolve().parents[2]
CATALOG = load_catalog(ROOT / "yaml")
# Short names (t, mm) are words of their own, and every name of PyTorch's is qualified by its overload elsewhere.
NAMES = {n for op in CATALOG for n in (op.schema.name.unqualified, str(op.schema.name)) if len(n) > 2}

LAYERS = (
    "core",
    "iter",
    "dispatch",
    "prim",
    "autograd",
    "autocast",
    "forward",
    "batched",
    "conjugate",
    "functionalize",
    "nested",
    "outside",
    "plan",
)

IN_C = {
    "core/layout.c": (
        {"indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"},
        "the names of the parts of sparse layouts, as PyTorch's methods are called that give them",
    ),
    "autograd/view.c": ({"as_strided"}, "names the node of a view whose entry has no formula, as PyTorch's"),
    "batched/lines.c": ({"dim"}, "the name of an argument"),
    "forward/call.c": ({"storage_offset"}, "the name of an argument"),
    "nested/fallback.c": ({"dim", "size"}, "the names of arguments"),
    "functionalize/fallback.c": ({"storage_offset"}, "the name of an argument"),
    "functionalize/geometry.c": ({"resize_", "set_"}, "their own kernels at the key, which say what they refuse"),
    "functionalize/step.c": ({"view"}, "what an inverse calls the part that was written"),
    "outside/api.c": ({"as_strided"}, "the C interface has a function of this name"),
    "outside/generated.c": ({"dim"}, "the name of an argument"),
    "outside/opaque.c": (
        {"copy_", "set_.source_Tensor", "set_.source_Tensor_storage_offset"},
        "the three that move handles of a device that shows no memory; the core's kernels serve them",
    ),
    "prim/program.c": ({"mul", "div"}, "steps of scalar programs, which are no operators"),
}
IN_PYTHON = {
    "distributed/_functional_operators.py": "the kernels of the functional collectives, whose entries leave them to it",
    "distributed/tensor/_index_rules.py": "which of a family add to what is there",
    "distributed/tensor/_rules.py": "which of a family's operators are sums of sums, and which reductions come later",
    "_package/deprecated.py": "PyTorch's old signatures, which no schema has",
    "_package/nearby.py": "what a name that is not there may have meant",
    "_subclasses/fake_tensor.py": "the two operators between numbers and tensors, by which constants are followed",
    "_tensor/numpy_functions.py": "NumPy's protocol names functions, not operators",
    "masked/_masks.py": "what PyTorch's package has beside the operators of masked elements, by their names",
    "masked/maskedtensor/core.py": "a class's own rules, by the functions and operators that it answers for",
    "nn/init.py": "gains of activations, by the names that callers pass",
    "profiler/_flops.py": "the formulas of the operators that a profile counts, by the names that events have",
}

IN_GENERATOR = {
    "check.py": "what drops values draws from the default generator, by PyTorch's schemas",
    "emit_inplace_or_view.py": "what detach gives shares memory and version, and no gradient flows through it",
    "emit_variable_type.py": "what detach gives says of no output that it lacks a gradient",
}


def literals(path: Path) -> set[str]:
    """The string literals of a C file, without includes and comments."""
    text = re.sub(r"/\*.*?\*/|^\s*#include[^\n]*", "", path.read_text(), flags=re.S | re.M)
    return {m.removeprefix("aten::") for m in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)}


def test_layers_in_c() -> None:
    found = {}
    for folder in LAYERS:
        for path in sorted((ROOT / "csrc" / folder).rglob("*.[ch]")):
            if names := literals(path) & NAMES:
                found[str(path.relative_to(ROOT / "csrc"))] = names
    assert found == {file: names for file, (names, _) in IN_C.items()}


@pytest.mark.parametrize("folder", ["native", "cpu", "opencl"])
def test_no_family_asks_for_the_name_that_it_serves(folder: str) -> None:
    """But for api_name, by which PyTorch's _linalg_check_errors is told what failed."""
    wrong = [
        path.name
        for path in sorted((ROOT / "csrc" / folder).rglob("*.[ch]"))
        for _ in re.findall(r"\bstr(?:n?cmp|str)\((?:op|\w+->op|\w+->info->name|api_name)\b", path.read_text())
    ]
    assert wrong == (["linalg.c"] if folder == "native" else [])


def words(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.split()
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        return [word for element in node.elts for word in words(element)]
    if isinstance(node, ast.Dict):
        return [word for key in node.keys if key is not None for word in words(key)]
    return []


def asks_by_name(node: ast.AST) -> bool:
    """Whether an operator is told from others by its name: it is compared, or looked for in a table of names."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
        sides = [node.left, *node.comparators]
        named = any(isinstance(s, ast.Name | ast.Attribute) and re.search("name|^op$", ast.unparse(s)) for s in sides)
        return named and any(word.removeprefix("aten::") in NAMES for side in sides for word in words(side))
    if isinstance(node, ast.Set | ast.Dict):
        known = [word for word in words(node) if word.removeprefix("aten::") in NAMES]
        return len(known) >= 3 and 2 * len(known) >= len(words(node))
    return False


def test_python() -> None:
    found = set()
    for path in sorted((ROOT / "tensorpy").rglob("*.py")):
        if "testing" not in path.parts and any(map(asks_by_name, ast.walk(ast.parse(path.read_text())))):
            found.add(str(path.relative_to(ROOT / "tensorpy")))
    assert found == IN_PYTHON.keys()


def test_the_generator() -> None:
    """It tells operators apart by their entries, not by their names; words of its own languages are no operators."""
    found = set()
    for path in sorted((ROOT / "codegen").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and re.search(r"(schema|function|func)\.name", ast.unparse(node)):
                if asks_by_name(node):
                    found.add(path.name)
    assert found == IN_GENERATOR.keys()


def test_the_class_of_an_error_is_data() -> None:
    refusing = {op.schema.name.unqualified for op in CATALOG if op.function.origin.empty_list == "ValueError"}
    assert refusing >= {"cat", "concat", "concatenate"}
    for name in refusing:
        with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
            getattr(tp, name)([])
    for name in ("stack", "hstack", "vstack", "dstack", "column_stack", "meshgrid"):
        with pytest.raises(RuntimeError, match=f"^{name} expects a non-empty TensorList"):
            getattr(tp, name)([])
