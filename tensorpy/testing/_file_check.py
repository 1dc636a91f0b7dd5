"""FileCheck: what a text has to say, and in which order."""

from __future__ import annotations

from typing import Any

__all__ = ["FileCheck"]


class FileCheck:
    """`FileCheck().check("a").check_next("b").check_not("c").check("d").run(text)`: "a", in the line below it "b", then
    no "c" before a "d". Checks are looked for from where the one before was found on."""

    def __init__(self) -> None:
        self._checks: list[tuple[str, str, Any]] = []

    def _with(self, kind: str, text: str, more: Any = None) -> FileCheck:
        self._checks.append((kind, text, more))
        return self

    def check(self, text: str) -> FileCheck:
        """The text is there."""
        return self._with("check", text)

    def check_not(self, text: str) -> FileCheck:
        """It is not, up to what the next check finds."""
        return self._with("check_not", text)

    def check_same(self, text: str) -> FileCheck:
        """It is there in the same line."""
        return self._with("check_same", text)

    def check_next(self, text: str) -> FileCheck:
        """It is there in the next line."""
        return self._with("check_next", text)

    def check_dag(self, text: str) -> FileCheck:
        """It is there, in any order with others of its kind beside it."""
        return self._with("check_dag", text)

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        """It is there so many times, and not once more if exactly."""
        return self._with("check_count", text, (count, exactly))

    def check_source_highlighted(self, text: str) -> FileCheck:
        """It is there, and the line below marks it."""
        return self._with("check", text)._with("check_next", "~" * len(text))

    def run(self, test_string: Any) -> None:
        """Looks; RuntimeError if something is not as it should be."""
        text = str(test_string)
        place = begin = 0
        banned: list[str] = []
        for kind, wanted, more in self._checks:
            if kind == "check_not":
                banned.append(wanted)
                continue
            if kind != "check_dag":
                begin = place
            found, end = self._find(kind, wanted, more, text, begin)
            self._refuse(banned, text[place:found])
            banned, place = [], max(place, end)
        self._refuse(banned, text[place:])

    def _find(self, kind: str, wanted: str, more: Any, text: str, begin: int) -> tuple[int, int]:
        limit = len(text)
        if kind in ("check_same", "check_next"):
            line_end = text.find("\n", begin)
            line_end = len(text) if line_end < 0 else line_end
            if kind == "check_next":
                begin = line_end + 1
                line_end = text.find("\n", begin)
            limit = len(text) if line_end < 0 else line_end
        count, exactly = more or (1, False)
        first, place = -1, begin
        for _ in range(count):
            at = text.find(wanted, place, limit)
            if at < 0:
                raise RuntimeError(f"Expected to find {wanted!r} but did not find it ({kind}) in:\n{text[begin:]}")
            first, place = at if first < 0 else first, at + len(wanted)
        if exactly and text.find(wanted, place) >= 0:
            raise RuntimeError(f"Expected {wanted!r} {count} times and not more (check_count) in:\n{text[begin:]}")
        return first, place

    def _refuse(self, banned: list[str], part: str) -> None:
        for text in banned:
            if text in part:
                raise RuntimeError(f"Expected to not find {text!r} but found it (check_not) in:\n{part}")
