"""The page of the C interface, with each name as a target."""

from __future__ import annotations

import re

from codegen import c_api

from .names import Names, Page

PATH = "extending/c_api.md"


def page(names: Names) -> Page:
    """docs/extending/c_api.md, whose entries other pages link to."""

    def entry(match: re.Match[str]) -> str:
        name, since = match.groups()
        if not names.add(name, "capi"):
            return match[0]
        return f":::{{capi}} {name}\n:::\n\nSince {since}.\n"

    return Page(PATH, re.sub(r"^\*\*`(\w+)`\*\* \(([\d.]+)\)$", entry, c_api.page(), flags=re.M))
