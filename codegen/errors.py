"""Mistakes in the YAML: where, what, and how to mend it.

Every check reports to a collector instead of raising, so one run shows all the mistakes. The collector raises once,
at the end of a phase whose successors would only repeat the same mistakes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Location:
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def in_tree(self) -> str:
        """From the folder of the YAML on: what generated files say, wherever the tree lies."""
        parts = Path(self.file).parts
        by_family = len(parts) > 2 and parts[-2] in ("native_functions", "derivatives")
        return f"{'/'.join(parts[-3 if by_family else -2 :])}:{self.line}"

    def seen_from(self, other: Location) -> str:
        """How a message at `other` speaks of this place: by the line alone in the same file."""
        return f"line {self.line}" if self.file == other.file else str(self)


class YamlError(Exception):
    """One mistake."""

    def __init__(self, location: Location, what: str, fix: str) -> None:
        super().__init__(location, what, fix)
        self.location = location
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.location}: {self.what}\n    fix: {self.fix}"


class YamlErrors(Exception):
    """All the mistakes of one run, in the order of the file."""

    def __init__(self, errors: Iterable[YamlError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        count = len(self.errors)
        return "\n".join([*map(str, self.errors), f"{count} mistake{'s' if count != 1 else ''}"])


class ErrorCollector:
    def __init__(self) -> None:
        self._errors: list[YamlError] = []

    def add(self, location: Location, what: str, fix: str) -> None:
        self._errors.append(YamlError(location, what, fix))

    def take(self, error: YamlError | YamlErrors) -> None:
        self._errors += error.errors if isinstance(error, YamlErrors) else [error]

    def __len__(self) -> int:
        return len(self._errors)

    def __iter__(self) -> Iterator[YamlError]:
        """By place; the first report of two identical ones."""
        seen: set[tuple[Location, str]] = set()
        for error in sorted(self._errors, key=lambda e: e.location):
            if (error.location, error.what) not in seen:
                seen.add((error.location, error.what))
                yield error

    def raise_if_any(self) -> None:
        if self._errors:
            raise YamlErrors(self)


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The valid name that `word` was probably meant to be."""
    names = list(valid)
    folded = {name.lower(): name for name in names}
    if word.lower() in folded:
        return folded[word.lower()]
    found = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return found[0] if found else None


def suggest(word: str, valid: Iterable[str], otherwise: str) -> str:
    """The text of a fix for a misspelt name."""
    name = nearest(word, valid)
    return f"did you mean '{name}'?" if name is not None else otherwise
