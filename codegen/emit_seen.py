"""seen/<folder>/<source>/Functions.h and NativeFunctions.h: of the declarations of all operators, those that one source
of csrc/ names.

A source includes "Functions.h" as if it had everything; it is compiled with its own folder first on the include path
(ninja_file.py). So a new operator compiles what calls or defines it, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

from .catalog import Catalog
from .emit_backend import native_declarations, native_functions_h
from .emit_functions import declaration, functions_h

_INCLUDE = re.compile(r'^#include "(\w+(?:/\w+)+\.h)"', re.M)
_GENERATED = re.compile(r'^#include "(?:Native)?Functions\.h"', re.M)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+\w+\(([^)]*)\)((?:.*\\\n)*.*)", re.M)
_PASTED = re.compile(r"\w+(?:\s*##\s*\w+)+")


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


@cache
def _patterns(text: str) -> frozenset[str]:
    """What its macros paste together, as regular expressions: a parameter is a group."""
    found = set()
    for parameters, body in _MACRO.findall(text):
        given = {p.strip() for p in parameters.split(",")}
        for pasted in _PASTED.findall(body):
            parts = re.split(r"\s*##\s*", pasted)
            found.add("".join(r"(\w+)" if part in given else re.escape(part) for part in parts))
    return frozenset(found)


class Names:
    """The words of texts, with those that their macros paste together: `tp_##op` is `tp_` and a word of the texts."""

    def __init__(self, *texts: str) -> None:
        self.words = frozenset[str]().union(*map(_words, texts))
        self.patterns = [re.compile(p) for p in sorted(frozenset[str]().union(*map(_patterns, texts)))]

    @cached_property
    def _pasted(self) -> re.Pattern[str]:
        """Any of the patterns; matches nothing where there are none."""
        return re.compile("|".join(f"(?:{p.pattern})" for p in self.patterns).replace(r"(\w+)", r"\w+") or r"(?!)")

    def __contains__(self, name: str) -> bool:
        if name in self.words:
            return True
        return self._pasted.fullmatch(name) is not None and any(
            match is not None and all(part in self for part in match.groups())
            for match in (pattern.fullmatch(name) for pattern in self.patterns)
        )

    def among(self, names: frozenset[str]) -> set[str]:
        """Those of the names that the texts have."""
        found = set(self.words & names)
        for pattern in self.patterns:
            found |= {name for name, parts in _made_by(pattern, names) if all(part in self for part in parts)}
        return found


@cache
def _made_by(pattern: re.Pattern[str], names: frozenset[str]) -> list[tuple[str, tuple[str, ...]]]:
    """The names that a pattern fits, with what stands in its groups: many sources have the same macros."""
    return [(name, match.groups()) for name in names if (match := pattern.fullmatch(name))]


class _Texts:
    """A source's text with that of the tree's headers that it includes."""

    def __init__(self, csrc: Path) -> None:
        self.csrc = csrc
        self.headers: dict[str, str] = {}

    def header(self, name: str) -> str:
        if name not in self.headers:
            path = self.csrc / name
            self.headers[name] = path.read_text() if path.exists() else ""
        return self.headers[name]

    def whole(self, text: str) -> list[str]:
        seen: dict[str, str] = {}
        waiting = _INCLUDE.findall(text)
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen[name] = self.header(name)
                waiting += _INCLUDE.findall(seen[name])
        return [text, *seen.values()]


def sources(csrc: Path) -> Iterator[tuple[str, str]]:
    """(`native/nn/pool`, its text) of each source that includes the declarations of operators."""
    for path in sorted(csrc.rglob("*.c")):
        text = path.read_text()
        if _GENERATED.search(text):
            yield str(path.relative_to(csrc).with_suffix("")), text


def emit(catalog: Catalog, csrc: Path) -> dict[str, str]:
    texts = _Texts(csrc)
    operators = {f"tp_{op.c}": declaration(op) for op in catalog}
    natives = native_declarations(catalog)
    to_call, to_write = frozenset(operators), frozenset(natives)
    files = {}
    for name, text in sources(csrc):
        names = Names(*texts.whole(text))
        called, written = names.among(to_call), names.among(to_write)
        files[f"seen/{name}/Functions.h"] = functions_h(d for n, d in operators.items() if n in called)
        files[f"seen/{name}/NativeFunctions.h"] = native_functions_h(d for n, d in natives.items() if n in written)
    return files
