"""Names of axes: reads one side of a pattern such as "b (h w) ...", and whether two sides belong together."""

from __future__ import annotations

import keyword
import re
import warnings
from collections.abc import Mapping
from typing import Any

ELLIPSIS = "\u2026"  # one character for three dots, as it stands in what was read
_TOKEN = re.compile(r"\s*([()]|[\w\u2026]+)")


class AnonymousAxis:
    """An axis that is a size other than 1 instead of a name; each is its own."""

    def __init__(self, value: str) -> None:
        self.value = int(value)
        if self.value < 1:
            raise ValueError(f"an axis is a name or a size of at least 1, not {value}")

    def __repr__(self) -> str:
        return f"{self.value}-axis"


class ParsedExpression:
    """One side of a pattern: `composition` has for each dimension its axes, or ELLIPSIS; `identifiers` are all of them.

    Arguments:
        expression: names, parentheses around those of one dimension, sizes, and `...` at most once
        allow_underscore: whether `_` is a name
        allow_duplicates: whether a name may stand twice

    Example:
        >>> from tensorpy.func.axes import ParsedExpression
        >>> ParsedExpression("b (h w) 1").composition
        [['b'], ['h', 'w'], []]
    """

    def __init__(self, expression: str, *, allow_underscore: bool = False, allow_duplicates: bool = False) -> None:
        self.identifiers: set[str | AnonymousAxis] = set()
        self.has_non_unitary_anonymous_axes: bool = False
        self.has_ellipsis: bool = "..." in expression
        self.has_ellipsis_parenthesized: bool | None = None
        self.composition: list[list[str | AnonymousAxis] | str] = []
        self._underscore, self._twice = allow_underscore, allow_duplicates
        if expression.count(".") != 3 * self.has_ellipsis:
            raise ValueError(f"{expression!r}: dots stand only in one ellipsis (...)")
        self._read(expression.replace("...", ELLIPSIS))

    def _read(self, text: str) -> None:
        group: list[str | AnonymousAxis] | None = None
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"rearrange: cannot read {text[at:]!r} in {text!r}")
            at, token = found.end(), found.group(1)
            if token not in "()":
                self._add(token, group)
            elif (token == "(") != (group is None):
                raise ValueError(f"rearrange: parentheses of {text!r} do not match, or stand in others")
            elif token == "(":
                group = []
                self.composition.append(group)
            else:
                group = None
        if group is not None:
            raise ValueError(f"rearrange: parentheses of {text!r} do not match")

    def _add(self, token: str, group: list[str | AnonymousAxis] | None) -> None:
        if token in self.identifiers and not (self._twice or (self._underscore and token == "_")):
            raise ValueError(f"rearrange: the axis {token!r} stands twice")
        axis: str | AnonymousAxis = token
        if token == ELLIPSIS:
            self.has_ellipsis_parenthesized = group is not None
        elif token.isdecimal():
            if int(token) == 1:
                if group is None:
                    self.composition.append([])
                return
            axis, self.has_non_unitary_anonymous_axes = AnonymousAxis(token), True
        else:
            valid, reason = self.check_axis_name_return_reason(token, self._underscore)
            if not valid:
                raise ValueError(f"rearrange: {token!r} is no axis: {reason}")
        self.identifiers.add(axis)
        if group is not None:
            group.append(axis)
        else:
            self.composition.append(ELLIPSIS if token == ELLIPSIS else [axis])

    @staticmethod
    def check_axis_name_return_reason(name: str, allow_underscore: bool = False) -> tuple[bool, str]:
        """Whether a text names an axis, and if not why."""
        if not name.isidentifier():
            return False, "not a valid python identifier"
        if name[0] == "_" or name[-1] == "_":
            return (True, "") if name == "_" and allow_underscore else (False, "it starts or ends with an underscore")
        if keyword.iskeyword(name):
            warnings.warn(f"the axis {name} is called as a keyword of Python", RuntimeWarning, stacklevel=2)
        if name == "axis":
            warnings.warn("an axis should not be called 'axis'", FutureWarning, stacklevel=2)
        return True, ""

    @staticmethod
    def check_axis_name(name: str) -> bool:
        """Whether a text names an axis."""
        return ParsedExpression.check_axis_name_return_reason(name)[0]


def parse_pattern(pattern: str, axes_lengths: Mapping[str, int]) -> tuple[ParsedExpression, ParsedExpression]:
    """Both sides of `left -> right`; ValueError where the ellipsis cannot be what it says."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: {pattern!r} has not one '->'")
    left, right = map(ParsedExpression, sides)
    if ELLIPSIS in axes_lengths:
        raise ValueError(f"{ELLIPSIS} has no length")
    if right.has_ellipsis and not left.has_ellipsis:
        raise ValueError(f"{pattern!r} has an ellipsis on its right side alone")
    if left.has_ellipsis and left.has_ellipsis_parenthesized:
        raise ValueError(f"{pattern!r} has an ellipsis in parentheses on its left side")
    return left, right


def validate_rearrange_expressions(
    left: ParsedExpression, right: ParsedExpression, axes_lengths: Mapping[str, Any]
) -> None:
    """TypeError for a length that is no int; ValueError where the sides, and the lengths, are not of the same axes."""
    for axis, length in axes_lengths.items():
        if not isinstance(length, int):
            raise TypeError(f"the length of {axis} is an int, not {type(length).__name__}")
    if left.has_non_unitary_anonymous_axes or right.has_non_unitary_anonymous_axes:
        raise ValueError("rearrange: there are no sizes other than 1 in a pattern")
    if left.identifiers != right.identifiers:
        raise ValueError(f"rearrange: these axes stand on one side alone: {left.identifiers ^ right.identifiers}")
    if not set(axes_lengths) <= left.identifiers:
        raise ValueError(f"rearrange: these axes are not in the pattern: {set(axes_lengths) - left.identifiers}")
