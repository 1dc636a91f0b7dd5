"""`make bc`: the declared schemas against those of a released version.

A change that breaks who called the released operator is an error that says what callers will see, unless an entry of
the allow list explains it. `--save` writes the schemas of the tree, at a release.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from .check import load_registry
from .model import Argument, FunctionSchema, ListType, OptionalType, Type
from .schema import parse_schema

FILES = Path(__file__).resolve().parent.parent / "tests" / "compatibility"


@dataclass(frozen=True)
class Change:
    """What became of an operator, and what its callers will see."""

    operator: str
    what: str
    callers: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.what}\n    callers will see: {self.callers}"


@dataclass(frozen=True)
class Allowed:
    """An entry of the allow list: which operators, a pattern for the whole name, and why they may change."""

    operator: str
    reason: str


def _takes(new: Type, old: Type) -> bool:
    """Whether every value of the old type is one of the new type."""
    if str(new) == str(old):
        return True
    if isinstance(new, OptionalType):
        return _takes(new.elem, old.elem if isinstance(old, OptionalType) else old)
    if isinstance(new, ListType) and isinstance(old, ListType):
        return new.size in (None, old.size) and _takes(new.elem, old.elem)
    return (str(old), str(new)) in {("int", "SymInt"), ("SymInt", "int"), ("int", "Scalar"), ("float", "Scalar")}


def _annotation(argument: Argument) -> str:
    return str(argument.annotation or "")


def _argument_changes(old: Argument, new: Argument) -> Iterator[tuple[str, str]]:
    name = old.name
    if not _takes(new.type, old.type):
        yield f"'{name}' was {old.type} and is {new.type}", f"a TypeError where they pass what only {old.type} takes"
    if old.default is not None and new.default is None:
        yield f"'{name}' had the default {old.default} and has none", f"a TypeError where they leave '{name}' out"
    elif old.default is not None and new.default != old.default:
        yield (
            f"the default of '{name}' was {old.default} and is {new.default}",
            f"another result where they leave '{name}' out",
        )
    if _annotation(old) != _annotation(new):
        written = new.is_write and not old.is_write
        yield (
            f"'{name}' was annotated '{_annotation(old)}' and is '{_annotation(new)}'",
            f"'{name}' changed by the call" if written else "a result that shares memory otherwise than before",
        )


def compare(old: FunctionSchema, new: FunctionSchema) -> Iterator[tuple[str, str]]:
    """(what changed, what callers will see), for what breaks them."""
    known = {a.name: a for a in new.arguments}
    for argument in old.arguments:
        if argument.name not in known:
            yield f"'{argument.name}' is gone", f"a TypeError where they pass '{argument.name}'"
        else:
            yield from _argument_changes(argument, known[argument.name])
    there = [a.name for a in new.positional]
    for place, argument in enumerate(old.positional):
        if argument.name not in known or (place < len(there) and there[place] == argument.name):
            continue
        yield (
            f"'{argument.name}' was positional argument {place + 1} and is not",
            "a TypeError, or values in other arguments, where they pass it by position",
        )
    before = {a.name for a in old.arguments}
    for argument in new.arguments:
        if argument.name not in before and argument.default is None:
            yield f"'{argument.name}' is new and has no default", f"a TypeError for want of '{argument.name}'"
    if [str(r) for r in old.returns] != [str(r) for r in new.returns]:
        was, now = (", ".join(map(str, s.returns)) or "nothing" for s in (old, new))
        yield f"it returned {was} and returns {now}", "results of another number, kind or aliasing"


def changes(released: Mapping[str, str], current: Mapping[str, str]) -> Iterator[Change]:
    """What changed, operator by operator in the order of full names; a new operator breaks nobody."""
    for name, text in sorted(released.items()):
        if name not in current:
            yield Change(name, "it is gone", "an AttributeError, or another overload in its place")
        elif current[name] != text:
            for what, callers in compare(parse_schema(text), parse_schema(current[name])):
                yield Change(name, what, callers)


def read_schemas(path: Path) -> dict[str, str]:
    """A line each; by name."""
    return {line.partition("(")[0]: line for line in path.read_text().splitlines() if line and not line.startswith("#")}


def read_allowed(path: Path) -> list[Allowed]:
    """Each entry has an operator (a pattern) and a reason."""
    entries = yaml.safe_load(path.read_text()) or []
    for entry in entries:
        if set(entry) != {"operator", "reason"} or not entry["reason"].strip():
            raise ValueError(f"{path}: an entry has `operator` and `reason`, not {entry}")
    return [Allowed(**entry) for entry in entries]


def declared(folder: Path) -> dict[str, str]:
    """The schemas of the tree's operators, by name."""
    return {str(f.name): str(f.func) for f in load_registry(folder).functions}


def broken(
    released: Mapping[str, str], current: Mapping[str, str], allowed: list[Allowed]
) -> tuple[list[Change], list[Allowed]]:
    """Changes that nothing explains, and entries that explain nothing."""
    found, used = [], set()
    for change in changes(released, current):
        by = [entry for entry in allowed if re.fullmatch(entry.operator, change.operator)]
        used.update(by)
        if not by:
            found.append(change)
    return found, [entry for entry in allowed if entry not in used]


def main() -> int:
    parser = argparse.ArgumentParser(prog="codegen.compatibility", description=__doc__)
    parser.add_argument("--yaml", type=Path, default=Path("yaml"))
    parser.add_argument("--released", type=Path, default=FILES / "released.txt")
    parser.add_argument("--allowed", type=Path, default=FILES / "allowed.yaml")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    current = declared(given.yaml)
    if given.save:
        given.released.write_text("".join(f"{text}\n" for _, text in sorted(current.items())))
        return 0
    found, idle = broken(read_schemas(given.released), current, read_allowed(given.allowed))
    for change in found:
        print(change, file=sys.stderr)
    for entry in idle:
        print(f"{given.allowed}: the entry for {entry.operator} explains nothing: take it out", file=sys.stderr)
    if found:
        print(f"{len(found)} changes break callers: mend them, or explain them in {given.allowed}", file=sys.stderr)
    return bool(found or idle)


if __name__ == "__main__":
    sys.exit(main())
