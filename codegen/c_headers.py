"""The public headers (csrc/include/tensorpy) as declarations with their comments: the one parser of them.

It reads C as these headers write it: a comment that ends on the line before a declaration, or begins after it on its
line, belongs to it; `/* ---- words ---- */` begins a section; what a file defines and undefines again is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

HEADERS = Path(__file__).resolve().parent.parent / "csrc" / "include"

Kind: TypeAlias = Literal["macro", "function", "type", "member"]

# How kernels are boxed: included by library.h, whose macros are what people write. What the generator writes against.
INSIDE = ("batching.h", "boxing.h", "expressions.h", "generated.h", "generated_api.h", "tangents.h")
# Functions of numbers, compiled in, for kernels of a device too: nothing of them passes between a library and tensorpy.
COMPILED_IN = re.compile(r"valid OpenCL C\b|\(part of math\.h\)")
SINCE = re.compile(r"\b[Ss]ince (\d+\.\d+)")
OWN = re.compile(r"(tp|TP|tensorpy|TENSORPY)_\w+")


@dataclass(frozen=True)
class Declaration:
    """`text` is what stands in the file, without the comment of its own; of a macro or a function, without its body."""

    header: str
    section: str
    kind: Kind
    name: str
    text: str
    comment: str
    parent: str = ""  # of a member: the struct
    around: tuple[str, ...] = ()  # what is said of all of the struct, the section, the file

    @property
    def since(self) -> str | None:
        """The version that its comment names, or what is said of all that it stands among."""
        found = (SINCE.search(words) for words in (self.comment, *self.around))
        return next((match[1] for match in found if match), None)

    @property
    def where(self) -> str:
        return f"{self.header}: {self.parent}{'.' if self.parent else ''}{self.name}"


@dataclass(frozen=True)
class Header:
    """A file: its name, the words at its top, what it declares."""

    name: str
    about: str
    declarations: tuple[Declaration, ...]


def public_headers(folder: Path = HEADERS) -> list[str]:
    """What a library includes, but for functions of numbers."""
    paths = [path for path in sorted((folder / "tensorpy").glob("*.h")) if path.name not in INSIDE]
    return [path.name for path in paths if not COMPILED_IN.search(_about(path.read_text()))]


def _about(text: str) -> str:
    """The comment at a file's top."""
    found = re.match(r"\s*/\*.*?\*/", text, re.S)
    return _plain(found[0].strip()) if found else ""


# ---- statements ----


@dataclass
class _Statement:
    text: str  # as it stands, with the comments in it
    comment: str
    section: str


def _plain(comment: str) -> str:
    """The words of a comment, a paragraph's lines kept."""
    lines = comment.removeprefix("/*").removesuffix("*/").split("\n")
    return "\n".join(re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines).strip()


_TOKEN = re.compile(r"/\*.*?\*/|#(?:[^\n\\]|\\.|\\\n)*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{};]|\n", re.S)
_SECTION = re.compile(r"---- (.*) ----", re.S)


def _statements(text: str) -> Iterator[_Statement]:
    """Declarations, definitions and directives, each with its comment."""
    begin, depth, section = 0, 0, ""
    before: tuple[int, str] = (-1, "")  # where the last comment of its own ended
    waiting: _Statement | None = None  # may be followed by a comment on its line
    braces = re.compile(r'extern "C"\s*$')
    opened = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        head = text[begin : token.start()].strip()
        if word == "\n":
            if waiting and not head:
                yield waiting
                waiting = None
            continue
        if word.startswith("/*"):
            if waiting and not head and depth == 0:
                waiting.comment = waiting.comment or _plain(word)
                begin = token.end()
            elif not head and depth == 0:
                title = _SECTION.search(word)
                section = title[1] if title else section
                before = (-1, "") if title else (token.end(), _plain(word))
                begin = token.end()
            continue
        if word.startswith("#"):
            if depth == 0 and not head:
                if waiting:
                    yield waiting
                waiting = None
                own = before[1] if text[before[0] : token.start()].count("\n") == 1 and before[0] >= 0 else ""
                if own and re.match(r"#\s*if", word):  # said of what the condition chooses between
                    before = (token.end(), own)
                trailing = re.search(r"/\*.*?\*/\s*$", word)
                comment = own or (_plain(trailing[0]) if trailing else "")
                waiting = _Statement(word[: trailing.start()].rstrip() if trailing else word, comment, section)
                begin = token.end()
            continue
        if word == "{":
            if depth == 0 and braces.search(head):
                opened, begin = opened + 1, token.end()
            else:
                depth += 1
        elif word == "}" and depth == 0:
            opened, begin = opened - 1, token.end()
        elif word == "}":
            depth -= 1
        ends = depth == 0 and (
            word == ";" or (word == "}" and not re.match(r"(__extension__ )?typedef|union|struct|enum", head))
        )
        if ends:
            start = begin + re.match(r"\s*", text[begin:]).end()  # type: ignore[union-attr]
            own = before[1] if before[0] >= 0 and text[before[0] : start].count("\n") == 1 else ""
            if waiting:
                yield waiting
            waiting = _Statement(text[start : token.end()], own, section)
            begin = token.end()
    if waiting:
        yield waiting


def _bare(text: str) -> str:
    """Without comments and directives, on one line."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return " ".join(re.sub(r"^\s*#(?:[^\n\\]|\\\n)*", " ", text, flags=re.M).split())


def _declared_names(declaration: str) -> list[str]:
    """The names that `int (*f)(int)`, `const char *ns, *key` or `tp_tensor *v[2]` declares."""
    pointer = re.search(r"\(\*\s*(\w+)\)", declaration)
    if pointer:
        return [pointer[1]]
    parts = re.sub(r"\[.*?\]", "", declaration.rstrip("; ")).split(",")
    return [part.replace("*", " ").split()[-1] for part in parts]


def _members(header: str, parent: str, words: tuple[str, ...], body: str) -> Iterator[Declaration]:
    for statement in _statements(body):
        text = _bare(statement.text)
        if not text or re.match(r"(union|struct) \{", text):  # an anonymous one: its members are named by a tag
            continue
        for name in _declared_names(text):
            around = (statement.section, *words)
            place = (header, statement.section)
            yield Declaration(*place, "member", name, statement.text, statement.comment, parent, around)


def _of_statement(header: str, about: str, statement: _Statement) -> Iterator[Declaration]:
    text, bare = statement.text, _bare(statement.text)
    place, around = (header, statement.section), (statement.section, about)
    macro = re.match(r"#\s*define\s+(\w+)(\([^)]*\))?", text)
    if macro:
        yield Declaration(*place, "macro", macro[1], text, statement.comment, around=around)
    elif re.match(r"(__extension__ )?typedef", bare):
        aggregate = re.search(r"\{(.*)\}", text, re.S)
        (name,) = _declared_names(re.sub(r"\{.*\}", " ", bare))
        yield Declaration(*place, "type", name, text, statement.comment, around=around)
        if aggregate and "enum" not in bare.partition("{")[0]:
            yield from _members(header, name, (statement.comment, *around), aggregate[1])
    elif function := re.match(
        r"(?:(?:TENSORPY_INLINE|TP_\w*FN|TP_SHARED|static inline) )?(.*?\b(\w+)\(.*?\)) ?[{;]", bare
    ):
        yield Declaration(*place, "function", function[2], function[1] + ";", statement.comment, around=around)


def read_header(path: Path) -> Header:
    """What is declared in a file, in order; of two definitions under conditions, the one with a comment."""
    text = path.read_text()
    about, start = _about(text), max(text.find("*/") + 2, 0)
    undefined = set(re.findall(r"^#\s*undef (\w+)", text, re.M))
    guard = re.search(r"#ifndef (\w+)\n#define \1", text)
    found: dict[tuple[str, str], Declaration] = {}
    for statement in _statements(text[start:]):
        for declaration in _of_statement(path.name, about, statement):
            name = declaration.name
            if name in undefined or (guard and name == guard[1]) or name.endswith("_"):
                continue
            if declaration.kind != "member" and not OWN.fullmatch(name):
                continue
            key = (declaration.parent, name)
            if key not in found or not found[key].comment:
                found[key] = declaration
    return Header(path.name, about, tuple(found.values()))


def read_headers(folder: Path = HEADERS) -> list[Header]:
    return [read_header(folder / "tensorpy" / name) for name in public_headers(folder)]
