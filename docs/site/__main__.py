"""`python -m docs.site FOLDER`: the sources of the site, for Sphinx."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from . import c_interface, examples, guide, modules, operators
from .names import Names


def write_sources(folder: Path) -> None:
    """All pages. What the reference has is known before a page is written, so that each can link to it."""
    names = Names()
    drafts = [*operators.pages(names), *modules.pages(names), c_interface.page(names), *examples.pages()]
    pages = guide.pages()
    names.collect_mentions(pages)
    shutil.rmtree(folder, ignore_errors=True)
    for page in pages:
        page.write(folder, guide.linked(page, names))
    for draft in drafts:
        draft.write(folder, names.text(draft))
    guide.copy_files(folder)


def main(arguments: Sequence[str]) -> int:
    """Writes into the folder that is named."""
    write_sources(Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
