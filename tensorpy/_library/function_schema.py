"""An operator's schema: its text, and what it says of arguments and results."""

from __future__ import annotations

import ast
import re
from functools import cache, cached_property
from typing import Any, NamedTuple

from tensorpy import _C

_ARGUMENT = re.compile(r"(?P<type>.+?)\s+(?P<name>[A-Za-z_]\w*)(?:\s*=\s*(?P<default>.+))?", re.DOTALL)
_INTS = re.compile(r"\b(SymInt|ScalarType|Layout|MemoryFormat)\b")  # types that calls take for ints
_ALIAS = re.compile(r"\((?P<before>[^()]*?)(?P<write>!?)(?: -> (?P<after>[^()]*))?\)")


class AliasInfo(NamedTuple):
    """Which memory an argument or result shares with others, and whether it is written."""

    is_write: bool
    before_set: frozenset[str]
    after_set: frozenset[str]


class Kind(str):
    """A type as PyTorch names it, "Optional[int]"; str() is a method too, which gives what a schema writes, "int?"."""

    written: str = ""

    def __new__(cls, text: str, real: bool = False) -> Kind:
        """Reads a schema's text; real: whether the types that calls take for ints are told apart."""
        text = re.sub(r"\[\d+\]", "[]", text)
        if not real:
            text = _INTS.sub("int", text)
        made = super().__new__(cls, _named(text))
        made.written = text
        return made

    def str(self) -> str:
        return self.written


class Argument(NamedTuple):
    """One argument, or one result."""

    name: str
    type: Kind
    N: int | None
    default_value: Any
    default: str | None  # as the schema writes it
    kwarg_only: bool
    alias_info: AliasInfo | None
    real_type: Kind

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self.default is not None

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


def _named(text: str) -> str:
    """A type as PyTorch names it: "int[]?" is Optional[List[int]]."""
    if text.startswith("(") and text.endswith(")"):
        return f"Tuple[{', '.join(map(_named, _split(text[1:-1])))}]"
    if text.endswith("?"):
        return f"Optional[{_named(text[:-1])}]"
    return f"List[{_named(text[:-2])}]" if text.endswith("[]") else {"Scalar": "number"}.get(text, text)


def _length(text: str) -> int | None:
    """How long a list one value stands for: 2 of "int[2]?"."""
    found = re.search(r"\[(\d+)\]\??$", text)
    return int(found[1]) if found else None


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
        return Argument("", Kind(text), None, None, None, False, None, Kind(text, True))
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
        return Argument("", Kind(text), _length(text), None, None, False, info, Kind(text, True))
    kind, default = match["type"], match["default"]
    parts = (Kind(kind), _length(kind), _value(default, kind), default, only_keyword, info, Kind(kind, True))
    return Argument(match["name"], *parts)


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
            elif part != "...":
                found.append(_argument(part, only_keyword))
        return found

    @cached_property
    def returns(self) -> list[Argument]:
        text = self._sides[1]
        inside = text[1:-1] if text.startswith("(") and text.endswith(")") else None
        return [_argument(part, False, is_result=True) for part in (_split(inside) if inside is not None else [text])]

    @cached_property
    def _is_vararg(self) -> bool:
        """Whether a call may have any number of arguments behind those that are named."""
        return "..." in _split(self._sides[0])

    @property
    def is_mutable(self) -> bool:
        """Whether a call writes one of its arguments."""
        return any(argument.is_write for argument in self.arguments)

    def is_backward_compatible_with(self, old_schema: FunctionSchema) -> bool:
        """Whether each call of an older schema is one of this, and gives the same."""
        if not self._is_of(old_schema):
            return False
        pairs = zip(self.returns, old_schema.returns, strict=True)
        if not all(a.name == b.name and _is_part(a.type, b.type) for a, b in pairs):
            return False
        (before, old_outs), (now, outs) = old_schema._with_outs_apart(), self._with_outs_apart()
        if len(now) < len(before) or len(outs) < len(old_outs):
            return False
        followed = [*zip(before, now, strict=False), *zip(old_outs, outs, strict=False)]
        return all(_may_follow(a, b) for a, b in followed) and all(a.has_default_value() for a in now[len(before) :])

    def check_forward_compatible_with(self, old_schema: FunctionSchema) -> tuple[bool, str]:
        """Whether what is written of this schema, without defaults, is read by an older one, and why it is not."""
        if not self._is_of(old_schema):
            return False, ""
        (before, old_outs), (now, outs) = old_schema._with_outs_apart(), self._with_outs_apart()
        if len(outs) != len(old_outs):
            return False, "Function schema should have the same number of out arguments"
        for old, new in zip(before, now, strict=False):
            if new.default != old.default or not (_may_follow(old, new) and _may_follow(new, old)):
                return False, f"'{new.name}' is not forward compatible with the older version of the schema"
        for new in now[len(before) :]:
            what = f"the new argument '{new.name}' of type {new.type.str()}"
            said = f"Function schema is not forward compatible since {what}"
            if not new.has_default_value():
                return False, f"{said} did not provide a default value."
            if new.type.str().endswith("]"):
                return False, f"{said} has a container type as its default value."
        for old, new in zip(old_outs, outs, strict=True):
            if not _may_follow(old, new):
                return False, f"Out argument '{new.name}' is not FC with the older version of the schema"
        return True, ""

    def _is_of(self, other: FunctionSchema) -> bool:
        """Whether it is of the same operator and overload, with as many results."""
        mine, others = ((*s._head, s._is_vararg, len(s.returns)) for s in (self, other))
        return mine == others

    def _with_outs_apart(self) -> tuple[list[Argument], list[Argument]]:
        """The arguments, and those where results go."""
        return [a for a in self.arguments if not a.is_out], [a for a in self.arguments if a.is_out]


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
    if schema._is_vararg and any(a.has_default_value() for a in schema.arguments):
        raise RuntimeError(f"schemas with vararg (...) can't have default value args: {text}")
    assert schema.name and schema.arguments is not None and schema.returns is not None
    return schema
