"""The programs of examples/ as pages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from .names import Page, escaped

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SHOWN = {".py": "python", ".c": "c", ".h": "c", ".toml": "toml", ".yaml": "yaml"}


def place(target: Path) -> str | None:
    """The page of a file or folder of examples/; None: it has none."""
    if target == EXAMPLES:
        return "examples/index.md"
    if not target.is_relative_to(EXAMPLES) or target.suffix == ".ipynb":
        return None
    name = target.relative_to(EXAMPLES).parts[0]
    return f"examples/{Path(name).stem}.md"


def _listing(path: Path) -> str:
    return f"```{SHOWN[path.suffix]}\n{path.read_text().strip()}\n```\n"


def _about(path: Path) -> str:
    """The docstring of a program, or the comment that a C file begins with."""
    text = path.read_text()
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    found = re.match(r"\s*/\*(.*?)\*/", text, re.S)
    return re.sub(r"\n \* ?", "\n", found[1]).strip() if found else ""


def _folder(folder: Path) -> Page:
    readme = folder / "README.md"
    text = re.sub(r"^# ", "## ", readme.read_text(), flags=re.M) + "\n" if readme.exists() else ""
    files = [p for p in sorted(folder.rglob("*")) if p.suffix in SHOWN and "build" not in p.parts]
    listings = (f"## {escaped(str(p.relative_to(folder)))}\n\n{_listing(p)}" for p in files)
    return Page(f"examples/{folder.name}.md", f"# examples/{folder.name}\n\n{text}" + "\n".join(listings))


def pages() -> list[Page]:
    programs = sorted(EXAMPLES.glob("*.py"))
    folders = [p for p in sorted(EXAMPLES.iterdir()) if p.is_dir() and any(p.rglob("*.[cp]*"))]
    found = [
        Page(f"examples/{p.stem}.md", f"# examples/{p.name}\n\n{escaped(_about(p))}\n\n{_listing(p)}") for p in programs
    ]
    found += [_folder(folder) for folder in folders]
    tree = "\n".join(Path(page.path).stem for page in found)
    about = "What each trains and draws is [a table](../programs.md#examples); all of them are run by the tests."
    head = f"# Examples\n\n{about}\n"
    return [*found, Page("examples/index.md", f"{head}\n```{{toctree}}\n:maxdepth: 1\n\n{tree}\n```\n")]
