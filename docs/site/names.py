"""What the reference has, by name, and which page of the guide speaks of it.

A draft is a page whose code spans are not links yet: `Names.text` makes links of those that name something, and puts
the guide's pages where `mentioned(name)` stands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# What is kept as it is: fenced blocks, heads of directives, headings, links, indented code, roles.
KEPT = r"^(?P<fence>`{3,}).*?^(?P=fence)[ ]*$|^(?:#+ |:{3})[^\n]*$|!?\[[^\]]*\]\([^)]*\)|^ {4}[^\n]*$|\{[\w:]+\}`[^`]*`"
SPAN = re.compile(rf"(?P<kept>{KEPT})|`(?P<code>[^`\n]+)`", re.M | re.S)
NAME = re.compile(r"(?:tp|tensorpy|nn|F|optim|func|fx|viz)(?:\.[A-Za-z_]\w*)+")
MENTIONED = "<!-- mentioned: {} -->"
SHORT = {"F": "nn.functional", "fw": "autograd.forward_ad", "viz": "utils.viz"}


@dataclass
class Page:
    """A page of the site: where it lies, and its Markdown."""

    path: str  # below the sources, with suffix
    body: str
    speaks: bool = True  # a page of the guide, which the reference names

    @property
    def title(self) -> str:
        found = re.search(r"^# (.*)$", self.body, re.M)
        return found[1].replace("`", "") if found else self.path

    def write(self, folder: Path, text: str) -> None:
        target = folder / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def mentioned(*names: str) -> str:
    """Stands in a draft for the guide's pages that speak of one of the names."""
    return MENTIONED.format(",".join(names))


@dataclass
class Names:
    """Full Python names, and names of the C interface, with the role that links to them."""

    roles: dict[str, str] = field(default_factory=dict)
    pages: dict[str, dict[str, str]] = field(default_factory=dict)  # name -> path -> title

    def add(self, name: str, role: str = "py:obj") -> bool:
        """False: another page has it already."""
        if name in self.roles:
            return False
        self.roles[name] = role
        return True

    def find(self, code: str) -> str | None:
        """The full name that a code span stands for: `tp.add(a, b)`, `nn.Linear`, `tp_def`; None for other words."""
        code = re.sub(r"^with (.*?)( as \w+)?:$", r"\1", code.strip())
        code = re.sub(r"\(.*\)$", "", code)
        if code in self.roles:
            return code
        first, _, rest = code.partition(".")
        if not rest:
            return None
        first = SHORT.get(first, first)
        full = f"tensorpy.{rest}" if first in ("tp", "tensorpy") else f"tensorpy.{first}.{rest}"
        return full if full in self.roles else None

    def link(self, code: str) -> str:
        """A code span, as a link where it names something."""
        name = self.find(code)
        return f"`{code}`" if name is None else f"{{{self.roles[name]}}}`{code} <{name}>`"

    def links(self, text: str) -> str:
        """The text with its code spans as links."""
        return SPAN.sub(lambda m: m["kept"] if m["code"] is None else self.link(m["code"]), text)

    def collect_mentions(self, pages: Iterable[Page]) -> None:
        """Notes which pages of the guide speak of a name, in the text or in code."""
        for page in pages:
            if not page.speaks:
                continue
            spans = {m["code"] for m in SPAN.finditer(page.body) if m["code"]}
            found = {self.find(word) for word in {*spans, *NAME.findall(page.body)}}
            for name in found - {None}:
                self.pages.setdefault(str(name), {})[page.path] = page.title

    def text(self, draft: Page) -> str:
        """The draft's text with links, and the guide's pages in their place."""

        def listed(match: re.Match[str]) -> str:
            pages = {path: title for name in match[1].split(",") for path, title in self.pages.get(name, {}).items()}
            here = os.path.dirname(draft.path)
            links = (f"[{title}]({os.path.relpath(path, here)})" for path, title in sorted(pages.items()))
            return f"- In the guide: {', '.join(links)}" if pages else ""

        text = re.sub(MENTIONED.format(r"(\S+)"), listed, draft.body)
        return re.sub(r"\n{3,}", "\n\n", self.links(text))


def escaped(words: str) -> str:
    """Plain text as Markdown: backquotes mean code, indented lines are code, and nothing else means anything."""
    out: list[str] = []
    for block in re.split(r"\n\s*\n", words.strip()):
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines) or lines[0].lstrip().startswith(">>>"):
            shown = "\n".join(line.removeprefix("    ") for line in lines)
            out.append(f"```{'pycon' if '>>>' in shown else 'text'}\n{shown}\n```")
            continue
        parts = re.split(r"(`[^`]+`)", "\n".join(line.strip() for line in lines))
        out.append("".join(p if p.startswith("`") else re.sub(r"[\\*_<>\[\]#$|{}`~]", r"\\\g<0>", p) for p in parts))
    return "\n\n".join(out)
