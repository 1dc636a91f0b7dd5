"""The stubs have each name that modules, classes and named tuples of the extension module have, and no other."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import tensorpy as tp


def stubbed(body: list[ast.stmt]) -> set[str]:
    """The names that a module's or a class's part of the stub has."""
    found = {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return found | {ast.unparse(n.target) for n in body if isinstance(n, ast.AnnAssign)}


TREE = ast.parse((Path(tp.__file__).parent / "_C.pyi").read_text())
# Python's protocols that no checker asks for; __div__ and its kin are Python 2's.
UNSEEN = {
    "__array_function__", "__array_interface__", "__array_priority__", "__array_wrap__", "__del__", "__delitem__",
    "__dict__", "__div__", "__idiv__", "__long__", "__nonzero__", "__rdiv__", "__setstate__", "__torch_dispatch__",
    "__module__", "__weakref__", "__annotations__", "__slotnames__", "__release_buffer__", "how",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(n.name for n in TREE.body if isinstance(n, ast.ClassDef) and n.name[0] != "_"))
def test_stubs_have_each_member_of_a_class(name: str) -> None:
    (node,) = (n for n in TREE.body if isinstance(n, ast.ClassDef) and n.name == name)
    kind, known = getattr(tp._C, name), stubbed(node.body)
    base = {*dir(object), *dir(kind.__mro__[1]), *UNSEEN}
    assert set(dir(kind)) - base <= known
    of_checkers = {"__getattr__"} if sys.version_info >= (3, 12) else {"__getattr__", "__buffer__"}
    assert all(hasattr(kind, member) for member in known - of_checkers)


def test_stubs_have_each_name_of_the_module() -> None:
    names = {n for n in dir(tp._C) if not n.startswith("__")}
    known = stubbed(TREE.body) | {"return_types"}
    assert names <= known, names - known
    assert {n for n in known if not hasattr(tp._C, n)} <= {"_Array"}


@pytest.mark.parametrize("name", "fft linalg special return_types".split())
def test_stubs_of_modules_have_their_names(name: str) -> None:
    module = getattr(tp, name)
    path = Path(tp.__file__).parent / f"{name}.pyi"
    tree = ast.parse((path if path.exists() else path.with_suffix("") / "__init__.pyi").read_text())
    public = {n for n in dir(module) if not n.startswith("_")} - {"annotations", "TYPE_CHECKING"}
    assert {n for n in stubbed(tree.body) if not n.startswith("_")} == public


def test_stubs_of_named_tuples_have_their_fields() -> None:
    tree = ast.parse((Path(tp.__file__).parent / "return_types.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            fields = [ast.unparse(n.target) for n in node.body if isinstance(n, ast.AnnAssign)]
            kind = getattr(tp.return_types, node.name)
            assert kind.n_fields == len(fields) and all(hasattr(kind, field) for field in fields)
