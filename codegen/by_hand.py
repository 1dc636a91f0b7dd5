"""What csrc/python binds by hand and no operator's entry speaks of: its signature and help (yaml/by_hand.yaml).

An entry's name is that of the function or type, or `Tensor.<method>`; its signature is Python's, without the object of
a method. A type that nobody calls has none. Every parameter has its words in `arguments`.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .errors import ErrorCollector, Location, suggest
from .loader import Document
from .model import RawMapping
from .text import wrapped

KEYS = ("name", "signature", "doc", "arguments", "returns", "raises", "example")


@dataclass(frozen=True, slots=True)
class ByHand:
    name: str
    signature: str | None  # "(data, *, dtype=None)"
    doc: str
    arguments: RawMapping | None
    returns: str | None
    raises: str | None
    example: str | None
    location: Location = field(compare=False)

    @property
    def is_method(self) -> bool:
        return "." in self.name

    @property
    def docstring(self) -> str:
        """As CPython takes it of a function in C."""
        if self.signature is None:
            return self.body
        given = self.signature[1:-1]
        inside = f"$self, {given or '/'}" if self.is_method else given
        return f"{self.name.rpartition('.')[2]}({inside})\n--\n\n{self.body}"

    @property
    def body(self) -> str:
        parts = [wrapped(self.doc)]
        if self.arguments is not None:
            rows = (wrapped(f"{name}: {text}", "    ", "        ") for name, text in self.arguments.items())
            parts.append("Arguments:\n" + "\n".join(rows))
        if self.returns:
            parts.append(wrapped(f"Returns: {self.returns.rstrip('.')}.", "", "    "))
        if self.raises:
            parts.append(wrapped(f"Raises: {self.raises}", "", "    "))
        if self.example:
            parts.append(f"Example:\n{textwrap.indent(self.example, '    ')}")
        return "\n\n".join(parts)


def _names(signature: str) -> list[str]:
    arguments = ast.parse(f"def f{signature}: ...").body[0].args  # type: ignore[attr-defined]
    starred = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred]]


def _check(entry: ByHand, errors: ErrorCollector) -> None:
    given = entry.arguments.keys() if entry.arguments is not None else ()
    try:
        names = _names(entry.signature or "()")
    except SyntaxError:
        fix = "write it as in Python: '(data, *, dtype=None)'"
        errors.add(entry.location, f"'{entry.signature}' of {entry.name} is no signature", fix)
        return
    for name in names:
        if name not in given:
            errors.add(
                entry.location, f"'{name}' of {entry.name} has no words", f"say below 'arguments' what {name} is"
            )
    for name in given:
        if name not in names:
            errors.add(entry.location, f"{entry.name} has no argument '{name}'", suggest(name, names, "take it out"))


def load_by_hand(source: Path, errors: ErrorCollector | None = None) -> tuple[ByHand, ...]:
    """In the order of the names."""
    collector = ErrorCollector() if errors is None else errors
    document = Document(source, collector)
    found: dict[str, ByHand] = {}
    for node in document.entries("- name: function"):
        given: dict[str, str | None] = dict.fromkeys(KEYS)
        arguments: RawMapping | None = None
        for key, key_node, value in document.mapping(node, "an entry", "write '- name: function'"):
            if key not in KEYS:
                document.error(key_node, f"unknown key '{key}'", suggest(key, KEYS, f"use one of {', '.join(KEYS)}"))
            elif key == "arguments":
                arguments = document.raw_mapping(value, key)
            else:
                given[key] = document.text(value, key)
        name, signature, doc = given["name"], given["signature"], given["doc"]
        if name is None or doc is None:
            document.error(node, "an entry without 'name' or 'doc'", "give both")
            continue
        entry = ByHand(
            name, signature, doc, arguments, given["returns"], given["raises"], given["example"], document.at(node)
        )
        if name in found:
            document.error(node, f"{name} stands twice", "take one out")
        found[name] = entry
        _check(entry, collector)
    if errors is None:
        collector.raise_if_any()
    return tuple(found[name] for name in sorted(found))


__all__: Sequence[str] = ["ByHand", "load_by_hand"]
