"""Lists that stand once: dispatch keys, devices, promotions, and what C and the generator both know of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tensorpy as tp
from codegen import keys
from codegen.pointwise import PROMOTIONS

ROOT = Path(__file__).resolve().parents[2]


def test_the_generator_knows_the_dispatchers_keys() -> None:
    assert set(keys.KEYS) == set(tp._C._KEYS) and len(keys.KEYS) == len(set(keys.KEYS))
    assert tuple(keys.ALIASES) == tuple(tp._C._ALIAS_KEYS)


def test_devices_and_layouts_are_keys() -> None:
    assert set(keys.DEVICES) | set(keys.LAYOUTS) < set(keys.KEYS)
    assert {layer + device for layer in keys.PER_DEVICE for device in keys.DEVICES} < set(keys.KEYS)
    assert [tp.dispatch.backend_key(d) for d in ("cpu", "meta", "opencl")] == list(keys.DEVICES[:3])


def test_what_an_entry_names_is_in_the_grammar() -> None:
    assert keys.OF_ENTRIES <= keys.GRAMMAR
    assert not keys.OF_ENTRIES & set(keys.RULED) and set(keys.RULED) < set(keys.KEYS)
    assert not set(keys.ABSENT) & set(keys.KEYS)


def test_promotions_are_those_of_c() -> None:
    text = (ROOT / "csrc/include/tensorpy/expressions.h").read_text()
    assert re.findall(r"^ +TP_PROMOTE_(\w+),", text, re.M) == [name.upper() for name in PROMOTIONS]


def lists_of(path: Path) -> list[set[str]]:
    """What the literals of a Python file hold, words of one text included."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            found.append({e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)})
        elif isinstance(node, ast.Dict):
            pairs = [*filter(None, node.keys), *node.values]
            found.append({e.value for e in pairs if isinstance(e, ast.Constant) and isinstance(e.value, str)})
    return found


@pytest.mark.parametrize("folder", ["codegen", "tensorpy"])
def test_no_second_list_of_devices_or_promotions(folder: str) -> None:
    """Four of the devices' keys, or all promotions, side by side are a list of them."""
    wrong = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path == ROOT / "codegen" / "keys.py" or path == ROOT / "codegen" / "pointwise.py":
            continue
        for names in lists_of(path):
            if len(names & set(keys.DEVICES)) >= 4 or names >= set(PROMOTIONS):
                wrong.append((path.name, names))
    assert not wrong
