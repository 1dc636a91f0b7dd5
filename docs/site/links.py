"""`python -m docs.site.links FOLDER`: every link inside the built site leads to a page and a place on it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from urllib.parse import unquote

ANCHOR = re.compile(r'\sid="([^"]+)"')
LINK = re.compile(r'\s(?:href|src)="([^"]+)"')


def broken(folder: Path) -> Iterator[str]:
    """A line for each link that leads nowhere."""
    texts = {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.html"))}
    anchors = {name: {unescape(a) for a in ANCHOR.findall(text)} for name, text in texts.items()}
    for name, text in texts.items():
        for link in sorted(set(LINK.findall(text))):
            target, _, anchor = unquote(unescape(link)).partition("#")
            target = target.partition("?")[0]
            if re.match(r"[a-z]+:", target):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(name), target)) if target else name
            if path not in texts and not (folder / path).exists():
                yield f"{name}: {link} is not there"
            elif anchor and path in texts and anchor not in anchors[path]:
                yield f"{name}: {path} has no #{anchor}"


def main(arguments: Sequence[str]) -> int:
    """1 if a link of the folder that is named leads nowhere."""
    found = list(broken(Path(arguments[0])))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
