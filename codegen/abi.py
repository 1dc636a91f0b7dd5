"""`make abi`: the binary interface of the public headers, as the compiler lays it out, against the saved one.

Sizes, offsets, enumerators and function types are read from the debug information (DWARF, printed by readelf) of a file
that includes the headers, so a change counts where the compiler sees one, and a comment or a name of a parameter does
not. What a library from outside has compiled in has to stay: a struct that begins with its own `size` may grow at its
end, a list of enumerators may get more, a union may get members that fit into it, everything else is equal. `--save`
writes the interface of the tree, with a hash; it refuses what the version does not say.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .c_headers import HEADERS, public_headers

ROOT = Path(__file__).resolve().parent.parent
SAVED = ROOT / "tests" / "compatibility" / "abi.txt"

PROBE = """
#ifndef TENSORPY_API_MINOR
#define TENSORPY_API_MINOR 0
#endif
enum tensorpy_abi { tensorpy_major = TENSORPY_API_VERSION, tensorpy_minor = TENSORPY_API_MINOR };
"""
GENERATED = "generated_api.h"  # what files that the generator wrote have compiled in
FLAGS = ["-std=c11", "-w", "-g", "-gdwarf-4", "-gno-strict-dwarf", "-fno-eliminate-unused-debug-types", "-c"]

# Typedefs of the C library that are the same on every machine; others are followed to what they stand for.
FIXED = frozenset(["size_t", *(f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64))])
OWN = re.compile(r"(tp|tensorpy)_")
COUNTS = re.compile(r"(TP|TENSORPY)_NUM_")  # how many there are: grows with the list


@dataclass(frozen=True)
class Shape:
    """A type of the interface. `rows` are (place, text): members by offset, enumerators by value, else what it is."""

    kind: str
    name: str
    size: int
    rows: tuple[tuple[int, str], ...]

    @property
    def grows(self) -> bool:
        """Libraries and tensorpy tell each other how much of it they know."""
        return self.kind == "struct" and self.rows[:1] == ((0, "size: size_t"),)

    def __str__(self) -> str:
        head = f"{self.kind} {self.name}" + (f" {self.size}" if self.size else "")
        return "\n".join([head, *(f"    {place} {text}" for place, text in self.rows)])


@dataclass(frozen=True)
class Abi:
    """The interface and its version."""

    version: tuple[int, int]
    shapes: dict[str, Shape]

    @property
    def body(self) -> str:
        return "\n".join(str(shape) for _, shape in sorted(self.shapes.items())) + "\n"

    @property
    def text(self) -> str:
        digest = hashlib.sha256(self.body.encode()).hexdigest()
        head = "# The binary interface of csrc/include/tensorpy. Written by `make abi ARGS=--save`; do not edit.\n"
        return f"{head}version {self.version[0]}.{self.version[1]}\nhash {digest}\n\n{self.body}"


# ---- debug information ----


@dataclass
class _Entry:
    """An entry of the debug information: its tag, its attributes, and what lies in it."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[_Entry] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    @property
    def size(self) -> int:
        return int(self.attributes.get("byte_size", "0"))


_ENTRY = re.compile(r" *<([0-9a-f]+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
_ATTRIBUTE = re.compile(r" *<[0-9a-f]+> +DW_AT_(\w+) *: (.*)")


def _value(text: str) -> str:
    text = text.strip().removeprefix("(indirect string, offset: ")
    text = re.sub(r"^0x[0-9a-f]+\): ", "", text)
    reference = re.fullmatch(r"<0x([0-9a-f]+)>", text)
    if reference:
        return reference[1]
    number = re.fullmatch(r"(?:\(\w+\) )?(-?\d+)(?:\s.*)?", text)
    return number[1] if number else text


def _entries(dump: str) -> tuple[list[_Entry], dict[str, _Entry]]:
    """Those at the top, and all by their number."""
    top, numbered, path = [], {}, list[_Entry]()
    for line in dump.splitlines():
        begun = _ENTRY.match(line)
        if begun:
            depth, entry = int(begun[1], 16), _Entry(begun[3])
            del path[depth:]
            if path:
                path[-1].children.append(entry)
            if depth == 1:
                top.append(entry)
            path.append(entry)
            numbered[begun[2]] = entry
        elif path and (attribute := _ATTRIBUTE.match(line)):
            path[-1].attributes[attribute[1]] = _value(attribute[2])
    return top, numbered


class _Reader:
    """Types as text, and the shapes of those that are tensorpy's."""

    def __init__(self, dump: str) -> None:
        self.top, self.numbered = _entries(dump)

    def target(self, entry: _Entry) -> _Entry | None:
        number = entry.attributes.get("type")
        return None if number is None else self.numbered[number]

    def type(self, entry: _Entry | None) -> str:
        """How it is written, without names of parameters."""
        if entry is None:
            return "void"
        target = self.target(entry)
        match entry.tag:
            case "typedef" if entry.name in FIXED or OWN.match(entry.name):
                return entry.name
            case "typedef":
                return self.type(target)
            case "pointer_type":
                inner = self.type(target)
                return inner + ("*" if inner.endswith("*") else " *")
            case "const_type":
                inner = self.type(target)
                return f"{inner}const" if inner.endswith("*") else f"const {inner}"
            case "array_type":
                counts = [int(c.attributes["upper_bound"]) + 1 for c in entry.children]
                return self.type(target) + "".join(f"[{n}]" for n in counts)
            case "subroutine_type":
                return f"{self.type(target)}({self.parameters(entry)})"
            case "base_type":
                return entry.name
            case "structure_type" | "union_type" | "enumeration_type" if not entry.name:
                return f"{{{'; '.join(text for _, text in self.rows(entry))}}}"
            case tag:
                return f"{tag.partition('_')[0].replace('structure', 'struct')} {entry.name}"

    def parameters(self, entry: _Entry) -> str:
        found = [
            "..." if c.tag == "unspecified_parameters" else self.type(self.target(c))
            for c in entry.children
            if c.tag in ("formal_parameter", "unspecified_parameters")
        ]
        return ", ".join(found) or "void"

    def rows(self, entry: _Entry) -> tuple[tuple[int, str], ...]:
        if entry.tag == "enumeration_type":
            return tuple((int(c.attributes["const_value"]), c.name) for c in entry.children)
        found = list[tuple[int, str]]()
        for member in entry.children:
            place, target = int(member.attributes.get("data_member_location", "0")), self.target(member)
            if member.tag != "member":
                continue
            if not member.name and target is not None:  # of an anonymous union: its members
                found += [(place + at, f"| {text}") for at, text in self.rows(target)]
            else:
                found.append((place, f"{member.name}: {self.type(target)}"))
        return tuple(found)

    def shape(self, name: str, entry: _Entry | None) -> Shape:
        match entry:
            case _Entry("structure_type" | "enumeration_type" as tag):
                return Shape(tag[:4] if tag[0] == "e" else "struct", name, entry.size, self.rows(entry))
            case _:
                return Shape("type", name, 0, ((0, self.type(entry)),))

    def shapes(self) -> Iterator[Shape]:
        for entry in self.top:
            target = self.target(entry)
            if entry.tag == "typedef" and OWN.match(entry.name):
                if target is None or "declaration" not in target.attributes:  # else nobody outside sees into it
                    yield self.shape(entry.name, target)
            elif entry.tag == "enumeration_type" and not entry.name:
                rows = self.rows(entry)
                if OWN.match(rows[0][1]):
                    yield Shape("enum", rows[0][1].rpartition("_")[0] + "_*", entry.size, rows)

    def version(self) -> tuple[int, int]:
        (entry,) = (e for e in self.top if e.name == "tensorpy_abi")
        values = {name: value for value, name in self.rows(entry)}
        return values["tensorpy_major"], values["tensorpy_minor"]


def read_abi(headers: Path = HEADERS) -> Abi:
    """What the compiler (CC, or cc) makes of the headers in a folder."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        includes = (f'#include "tensorpy/{header}"\n' for header in [*public_headers(headers), GENERATED])
        (folder / "probe.c").write_text("".join(includes) + PROBE)
        command = [*compiler, *FLAGS, f"-I{headers.resolve()}", "probe.c", "-o", "probe.o"]
        subprocess.run(command, cwd=folder, check=True)
        dump = subprocess.run(
            ["readelf", "--debug-dump=info", "probe.o"], cwd=folder, check=True, capture_output=True, text=True
        )
    reader = _Reader(dump.stdout)
    return Abi(reader.version(), {shape.name: shape for shape in reader.shapes()})


def load_abi(path: Path = SAVED) -> Abi:
    """A saved one. A text that was edited by hand does not have its hash."""
    version, shapes = (0, 0), dict[str, Shape]()
    for block in re.findall(r"^(?!#|version|hash)\S.*(?:\n    .*)*", path.read_text(), re.M):
        head, *rows = block.splitlines()
        kind, name, *size = head.split()
        places = (row.strip().partition(" ") for row in rows)
        shapes[name] = Shape(kind, name, int(size[0]) if size else 0, tuple((int(p), t) for p, _, t in places))
    found = re.search(r"^version (\d+)\.(\d+)$", path.read_text(), re.M)
    if found:
        version = int(found[1]), int(found[2])
    abi = Abi(version, shapes)
    if abi.text != path.read_text():
        raise ValueError(f"{path} was changed by hand: its hash is not that of what it says")
    return abi


# ---- changes ----


@dataclass(frozen=True)
class Change:
    """What became of a type; `breaks`: libraries that were built before see something else than tensorpy does."""

    what: str
    breaks: bool

    def __str__(self) -> str:
        return f"{'breaks libraries: ' if self.breaks else 'more than before: '}{self.what}"


def _row(row: tuple[int, str]) -> str:
    return f"'{row[1]}' at {row[0]}"


def _enum_changes(old: Shape, new: Shape) -> Iterator[Change]:
    now = {text: place for place, text in new.rows}
    for place, text in old.rows:
        if COUNTS.match(text):
            now.pop(text, None)
        elif text not in now:
            yield Change(f"{old.name}: {text} is gone", True)
        elif now[text] != place:
            yield Change(f"{old.name}: {text} was {place} and is {now[text]}", True)
    known = {text for _, text in old.rows}
    for text in now:
        if text not in known:
            yield Change(f"{old.name}: {text} = {now[text]}", False)


def _row_changes(old: Shape, new: Shape) -> Iterator[Change]:
    for place, row in enumerate(old.rows):
        there = new.rows[place] if place < len(new.rows) else None
        if there != row:
            yield Change(f"{old.name}: {_row(row)} " + (f"is {_row(there)} now" if there else "is gone"), True)
            return
    for row in new.rows[len(old.rows) :]:
        is_alternative = row[1].startswith("| ") and old.size == new.size  # of a union that is large enough
        yield Change(f"{old.name}: {_row(row)}", not (old.grows or is_alternative))
    if old.size != new.size and not old.grows:
        yield Change(f"{old.name}: it had {old.size} bytes and has {new.size}", True)


def changes(old: Abi, new: Abi) -> list[Change]:
    found = list[Change]()
    for name, shape in sorted(old.shapes.items()):
        now = new.shapes.get(name)
        if now is None:
            found.append(Change(f"{name} is gone", True))
        elif now.kind != shape.kind:
            found.append(Change(f"{name} was {shape.kind} and is {now.kind}", True))
        else:
            found += _enum_changes(shape, now) if shape.kind == "enum" else _row_changes(shape, now)
    found += [Change(f"{name} is new", False) for name in sorted(new.shapes.keys() - old.shapes.keys())]
    return found


def advice(saved: Abi, current: Abi) -> str:
    """What changed and what to do about it; nothing where the saved interface is that of the tree."""
    found = changes(saved, current)
    major, minor = saved.version
    lines = [str(change) for change in found]
    if any(change.breaks for change in found):
        if current.version[0] <= major:
            lines.append(f"take it back, and append instead; or raise TENSORPY_API_VERSION (api.h) from {major}: then")
            lines.append("every library has to be built again, and the headers are saved beside headers-v1")
    elif found and current.version <= saved.version:
        lines.append(f"raise TENSORPY_API_MINOR (api.h) from {minor}: what is new says 'Since {major}.{minor + 1}'")
    if not lines and current.text == saved.text:
        return ""
    return "\n".join([*lines, "then `make abi ARGS=--save`"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="codegen.abi", description=__doc__)
    parser.add_argument("--headers", type=Path, default=HEADERS)
    parser.add_argument("--saved", type=Path, default=SAVED)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    current = read_abi(given.headers)
    text = advice(load_abi(given.saved), current) if given.saved.exists() else ""
    refused = "raise TENSORPY_API" in text
    if given.save and not refused:
        given.saved.write_text(current.text)
        return 0
    if text:
        print(text, file=sys.stderr)
    return bool(text)


if __name__ == "__main__":
    sys.exit(main())
