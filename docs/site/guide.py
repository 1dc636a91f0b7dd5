"""The pages of docs/ as pages of the site: names are links, and links out of docs/ lead to copies."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from . import c_interface, examples
from .names import Names, Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
GENERATED = ("torch.md", "support.md", "coverage.md", "accuracy_16bit.md", "changelog.md", "index.md")
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]+)(#[^)]*)?\)")
FENCED = re.compile(r"(^```.*?^```$)", re.M | re.S)


def _moved(path: str, source: Path, body: str) -> str:
    """The page's links as seen from where it lies in the site."""

    def link(match: re.Match[str]) -> str:
        head, target, anchor = match[1], match[2], match[3] or ""
        if ":" in target:
            return match[0]
        inside = _place((source.parent / target).resolve())
        return f"{head}{os.path.relpath(inside, os.path.dirname(path))}{anchor})"

    parts = FENCED.split(body)
    return "".join(p.replace("\n\n```", "\n```") if p.startswith("```") else LINK.sub(link, p) for p in parts)


def _place(target: Path) -> str:
    """Where a file of the tree lies in the site."""
    if target.is_relative_to(DOCS):
        return str(target.relative_to(DOCS))
    name = str(target.relative_to(ROOT))
    if name in OUTSIDE:
        return OUTSIDE[name]
    return examples.place(target) or f"files/{name}"


def _row(match: re.Match[str], names: Names) -> str:
    """The first cell of a row of docs/support.md: an operator by its schema's name."""
    name = match[1].split(".")[0]
    places = (f"tensorpy.{m}{name.removeprefix(m.replace('.', '_'))}" for m in ("linalg.", "special.", "fft."))
    own = [f"tensorpy.{name}", *places, f"tensorpy.nn.functional.{name}", f"tensorpy.Tensor.{name}"]
    full = next((n for n in [*own, f"tensorpy.ops.aten.{name}"] if n in names.roles), None)
    return f"| {{py:obj}}`{match[1]} <{full}>` |" if full else match[0]


def linked(page: Page, names: Names) -> str:
    body = page.body
    if page.path == "support.md":
        body = re.sub(r"^\| `([\w.]+)` \|", lambda m: _row(m, names), body, flags=re.M)
    return body if page.path == "index.md" else names.links(body)


def pages() -> list[Page]:
    sources = {str(p.relative_to(DOCS)): p for p in sorted(DOCS.rglob("*.md"))}
    sources |= {path: ROOT / name for name, path in OUTSIDE.items() if path != "index.md"}
    del sources[c_interface.PATH]
    return [
        Page(path, _moved(path, source, source.read_text()), path not in GENERATED) for path, source in sources.items()
    ]


def copy_files(folder: Path) -> None:
    """What the pages link to beside pages: pictures, and files of the tree."""
    for page in folder.rglob("*.md"):
        for match in LINK.finditer(FENCED.sub("", page.read_text())):
            target = Path(os.path.normpath(page.parent / match[2]))
            if ":" in match[2] or target.exists() or target.suffix == ".md":
                continue
            inside = target.relative_to(folder)
            own = inside.parts[0] == "files"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT.joinpath(*inside.parts[1:]) if own else DOCS / inside, target)
