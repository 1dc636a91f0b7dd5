"""An operator's schema: its text, and what it says of arguments and results."""

from __future__ import annotations

import ast
import re
from functools import cache, cached_property
from typing import Any, NamedTuple

from tensorpy import _C

_ARGUMENT = re.compile(r"(?P<type>.+?)\s+(?P<name>[A-Za-z_]\w*)(?:\s*=\s*(?P<default>.+))?", re.DOTALL)
_ALIAS = re.compile(r"\((?P<before>[^()]*?)(?P<write>!?)(?: -> (?P<after>[^()]*))?\)")


class AliasInfo(NamedTuple):
    """Which memory an argument or result shares with others, and whether it is written."""

    is_write: bool
    before_set: frozenset[str]
    after_set: frozenset[str]


class Argument(NamedTuple):
    """One argument, or one result."""

    name: str
    type: str
    N: int | None
    default_value: Any
    default: str | None  # as the schema writes it
    kwarg_only: bool
    alias_info: AliasInfo | None

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self.default is not None

    @property
    def real_type(self) -> str:
        return self.type

    @property
    def is_out(self) -> bool:
        """Whether it is where the result goes."""
        return self.kwarg_only and self.is_write

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write


_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")


def _depths(text: str) -> list[tuple[str, int]]:
    """Each sign, and in how many brackets it stands; what is quoted stands in one more."""
    hidden = _QUOTED.sub(lambda match: "(" + " " * (len(match[0]) - 2) + ")", text)
    found, depth = [], 0
    for sign, seen in zip(text, hidden, strict=True):
        depth += (seen in "([{") - (seen in ")]}")
        found.append((sign, depth))
    return found


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no brackets and no quotation marks."""
    parts = [""]
    for sign, depth in _depths(text):
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _kind(text: str) -> tuple[str, int | None]:
    """A type as PyTorch names it, and how long a list one value stands for: "int[2]?" is Optional[List[int]] and 2."""
    if text.startswith("(") and text.endswith(")"):
        return f"Tuple[{', '.join(_kind(part)[0] for part in _split(text[1:-1]))}]", None
    if text.endswith("?"):
        inner, count = _kind(text[:-1])
        return f"Optional[{inner}]", count
    if text.endswith("]"):
        inner, _, length = text[:-1].rpartition("[")
        return f"List[{_kind(inner)[0]}]", int(length) if length else None
    return {"Scalar": "number", "SymInt": "int", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}.get(
        text, text
    ), None


# PyTorch's numbers of dtypes, by which its schemas say defaults.
_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 "
    "bfloat16"
).split()


def _value(text: str | None, kind: str = "") -> Any:
    if text is None:
        return None
    if kind.startswith("Device") and text != "None":
        return _C.device(text.strip("\"'"))
    if kind.startswith("ScalarType"):
        name = {"float": "float32", "double": "float64", "long": "int64", "int": "int32"}.get(text, text)
        return _DTYPES.index(name) if name in _DTYPES else None
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError):
        return text


_NUMBERS = {"Mean": 1, "Sum": 2, "contiguous_format": 0, "strided": 0}  # of words that stand for ints


def _printed_float(value: float) -> str:
    return f"{int(value)}." if abs(value) < 2**63 and value == int(value) else f"{value:.17g}"


def _printed(kind: str, default: str) -> str:
    """A default as PyTorch prints it: "2." of a float 2, "[1, 2]" of a list, a number of a dtype."""
    base, fixed, rest = kind.removesuffix("?").partition("[")
    if default in _NUMBERS and base != "str":
        return str(_NUMBERS[default])
    value = _value(default, kind)
    if base == "str" and isinstance(value, str) and default[:1] in "\"'":
        inside = value.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'").replace("\n", "\\n")
        return f'"{inside}"'
    if base == "Device" and value is not None:
        return str(value)
    if base == "ScalarType" and isinstance(value, int):
        return str(value)
    if fixed and isinstance(value, (int, float)) and not isinstance(value, bool):
        value = [value] * int(rest.rstrip("]") or 1)
    if isinstance(value, list):
        if base == "int" and rest != "]" and len(value) > 1 and len(set(value)) == 1:
            return str(value[0])
        return f"[{', '.join(_printed(base, str(item)) for item in value)}]"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    return _printed_float(value) if base == "float" or isinstance(value, float) else default


def _printed_argument(text: str) -> str:
    match = _ARGUMENT.fullmatch(text)
    if match is None or match["default"] is None:
        return text
    kind = _ALIAS.sub("", match["type"])
    return f"{text[: match.start('default')]}{_printed(kind, match['default'])}"


def _argument(text: str, only_keyword: bool, is_result: bool = False) -> Argument:
    if is_result and text.startswith("("):  # a tuple of one
        return Argument("", _kind(text)[0], None, None, None, False, None)
    alias = _ALIAS.search(text.partition("=")[0])
    info = None
    if alias is not None:
        before = frozenset(alias["before"].split("|"))
        after = frozenset(alias["after"].split("|")) if alias["after"] else before
        info = AliasInfo(bool(alias["write"]), before, after)
        text = text[: alias.start()] + text[alias.end() :]
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        if not is_result:
            raise RuntimeError(f"the argument {text!r} of a schema has no name")
        return Argument("", *_kind(text), None, None, False, info)
    kind, count = _kind(match["type"])
    value = _value(match["default"], match["type"])
    return Argument(match["name"], kind, count, value, match["default"], only_keyword, info)


def _is_part(one: str, other: str) -> bool:
    """Whether what is of one type is of the other."""
    return one == other or other == f"Optional[{one}]"


class FunctionSchema(str):
    """The text of a schema, "add.Tensor(Tensor self, ...) -> Tensor"; its parts are attributes.

    str() of it has the namespace in front, "aten::add.Tensor(Tensor self, ...) -> Tensor", and defaults as PyTorch
    prints them.
    """

    space: str = ""  # of the name, where the text has none

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __format__(self, format_spec: str) -> str:
        return format(str(self), format_spec)

    @cached_property
    def _text(self) -> str:
        whole = self.space + str.__str__(self)
        if "=" not in whole:
            return whole
        before, arguments = whole.partition("(")[0], ", ".join(map(_printed_argument, _split(self._sides[0])))
        return f"{before}({arguments}) -> {self._sides[1]}"

    @cached_property
    def _head(self) -> tuple[str, str]:
        match = re.fullmatch(r"\s*((?:\w+::)?\w+)(?:\.(\w+))?", self.partition("(")[0])
        if match is None or " -> " not in self:
            raise RuntimeError(f"{str(self)!r} is no schema: it is name.overload(arguments) -> results")
        return self.space + match[1], match[2] or ""

    @property
    def name(self) -> str:
        """The operator's name and its namespace: "aten::add"."""
        return self._head[0]

    @property
    def overload_name(self) -> str:
        return self._head[1]

    @cached_property
    def _sides(self) -> tuple[str, str]:
        _, bracket, text = self.partition("(")
        for place, (_, depth) in enumerate(_depths(bracket + text)):
            if not depth:
                return text[: place - 1], text[place:].partition("->")[2].strip()
        raise RuntimeError(f"expected ) but found 'eof' in the schema {str(self)!r}")

    @cached_property
    def arguments(self) -> list[Argument]:
        found, only_keyword = [], False
        for part in _split(self._sides[0]):
            if part == "*":
                only_keyword = True
            else:
                found.append(_argument(part, only_keyword))
        return found

    @cached_property
    def returns(self) -> list[Argument]:
        text = self._sides[1]
        inside = text[1:-1] if text.startswith("(") and text.endswith(")") else None
        return [_argument(part, False, is_result=True) for part in (_split(inside) if inside is not None else [text])]

    @property
    def is_mutable(self) -> bool:
        """Whether a call writes one of its arguments."""
        return any(argument.is_write for argument in self.arguments)

    def is_backward_compatible_with(self, old_schema: FunctionSchema) -> bool:
        """Whether each call of an older schema is one of this, and gives the same."""
        if (self.name, self.overload_name) != (old_schema.name, old_schema.overload_name):
            return False
        if len(self.returns) != len(old_schema.returns):
            return False
        if not all(_is_part(a.type, b.type) for a, b in zip(self.returns, old_schema.returns, strict=True)):
            return False
        before, now = ([a for a in s.arguments if not a.is_out] for s in (old_schema, self))
        outs = [[a for a in s.arguments if a.is_out] for s in (old_schema, self)]
        if len(now) < len(before) or len(outs[0]) != len(outs[1]):
            return False
        pairs = [*zip(before, now, strict=False), *zip(*outs, strict=True)]
        return all(_may_follow(a, b) for a, b in pairs) and all(a.has_default_value() for a in now[len(before) :])


def _may_follow(old: Argument, new: Argument) -> bool:
    if (
        old.name != new.name
        or (new.kwarg_only and not old.kwarg_only)
        or not _is_part(old.type, new.type)
        or (old.N is not None and old.N != new.N)
    ):
        return False
    return old.default is None or old.default == new.default


@cache
def parse_schema(text: str, space: str = "aten::") -> FunctionSchema:
    """A schema of its text; RuntimeError if it is none. `space` goes in front of a name without a namespace."""
    schema = FunctionSchema(text.strip())
    if "::" not in schema.partition("(")[0]:
        schema.space = space
    assert schema.name and schema.arguments is not None and schema.returns is not None
    return schema
