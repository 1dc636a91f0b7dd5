"""str -> FunctionSchema: a recursive-descent parser for PyTorch's schema grammar.

    schema     = [namespace "::"] name ["." overload] "(" [arguments] ")" "->" returns
    arguments  = argument {"," argument}, one of them possibly a lone "*"
    argument   = type name ["=" default]
    type       = base ["(" annotation ")"] {"?" | "[" [size] "]"} ["(" annotation ")"]
    annotation = sets ["!"] ["->" sets]          sets = set {"|" set}
    default    = number | string | name | "[" [default {"," default}] "]"
    returns    = "(" [return {"," return}] ")" | return
    return     = type [name]

Written arguments after the "*" are the out arguments and come last. A default is kept as written.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from .errors import nearest
from .model import (
    BASE_TYPES,
    Annotation,
    Argument,
    BaseType,
    FunctionSchema,
    ListType,
    OperatorName,
    OptionalType,
    Return,
    Type,
)

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<name>[A-Za-z_]\w*)
    | (?P<arrow>->)
    | (?P<number>[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf\b))
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<mark>::|[()\[\],.*=!?|])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


class SchemaError(Exception):
    """`column` counts from 1."""

    def __init__(self, column: int, what: str, fix: str) -> None:
        super().__init__(column, what, fix)
        self.column = column
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"column {self.column}: {self.what}"


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.kinds: list[str] = []
        self.words: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.i = 0
        position = 0
        while True:
            match = _TOKEN.match(text, position)
            if match is None:
                position += len(text[position:]) - len(text[position:].lstrip())
                if text[position] in "\"'":
                    raise SchemaError(position + 1, "a string that is not closed", "close it with the same quote")
                raise SchemaError(
                    position + 1, f"unexpected character '{text[position]}'", "take it out; no part of a schema has it"
                )
            kind = match.lastgroup or "end"
            self.kinds.append(kind)
            self.words.append(match[kind])
            self.starts.append(match.start(kind))
            self.ends.append(match.end(kind))
            if kind == "end":
                break
            position = match.end()

    @property
    def word(self) -> str:
        return self.words[self.i]

    def fail(self, expected: str, fix: str) -> SchemaError:
        found = f"'{self.word}'" if self.kinds[self.i] != "end" else "the end"
        return SchemaError(self.starts[self.i] + 1, f"expected {expected}, found {found}", fix)

    def at_mark(self, mark: str) -> bool:
        return self.words[self.i] == mark and self.kinds[self.i] != "string"

    def take(self, mark: str) -> bool:
        if self.words[self.i] == mark and self.kinds[self.i] != "string":
            self.i += 1
            return True
        return False

    def need(self, mark: str, where: str, fix: str) -> None:
        if not self.take(mark):
            raise self.fail(f"'{mark}' {where}", fix)

    def name(self, expected: str, fix: str) -> str:
        if self.kinds[self.i] != "name":
            raise self.fail(expected, fix)
        self.i += 1
        return self.words[self.i - 1]

    def end(self) -> None:
        if self.kinds[self.i] != "end":
            raise self.fail("nothing more", "take out what follows, or put several returns into parentheses")

    def operator_name(self) -> OperatorName:
        base = self.name("the operator's name", "start with the name, as in 'add.Tensor(...)'")
        namespace = overload = ""
        if self.take("::"):
            namespace, base = base, self.name("the operator's name after '::'", "write it, as in 'space::name(...)'")
        if self.take("."):
            overload = self.name("the overload name after '.'", "write it, as in 'add.Tensor', or drop the '.'")
        return OperatorName.of(base, overload, namespace)

    def annotation(self) -> Annotation:
        before = self.alias_sets()
        is_write = self.take("!")
        after = self.alias_sets() if self.take("->") else ()
        self.need(")", "after the alias annotation", "write it as (a), (a!), (a|b) or (a -> *)")
        return Annotation(before, is_write, after)

    def alias_sets(self) -> tuple[str, ...]:
        sets: list[str] = []
        while True:
            if self.take("*"):
                sets.append("*")
            else:
                sets.append(self.name("an alias set", "write the annotation as (a), (a!), (a|b) or (a -> *)"))
            if not self.take("|"):
                return tuple(sets)

    def type(self) -> tuple[Type, Annotation | None]:
        column = self.starts[self.i] + 1
        base = self.name("a type", "write each argument as 'type name', as in 'Tensor self'")
        if base not in BASE_TYPES:
            close = nearest(base, BASE_TYPES)
            raise SchemaError(
                column,
                f"unknown type '{base}'",
                f"did you mean '{close}'?" if close else f"use one of {', '.join(sorted(BASE_TYPES))}",
            )
        type_: Type = BaseType(base)
        annotation = None
        column = self.starts[self.i] + 1
        if self.take("("):
            annotation = self.annotation()
            if base != "Tensor":
                raise SchemaError(column, f"an alias annotation on {base}", "only Tensor takes one; take it out")
        while True:
            if self.at_mark("?"):
                if isinstance(type_, OptionalType):
                    raise self.fail("one '?' only", "take out the second '?'")
                self.i += 1
                type_ = OptionalType(type_)
            elif self.take("["):
                size = None
                if self.kinds[self.i] == "number":
                    if not self.word.isdigit() or int(self.word) == 0:
                        raise self.fail("a length above 0", "write a whole number, as in 'int[2]', or nothing")
                    size = int(self.word)
                    self.i += 1
                self.need("]", "after the list's length", "write a list type as 'int[]' or 'int[2]'")
                type_ = ListType(type_, size)
            elif annotation is None and base == "Tensor" and isinstance(type_, ListType) and self.take("("):
                annotation = replace(self.annotation(), of_list=True)
            else:
                return type_, annotation

    def default(self) -> str:
        start = self.starts[self.i]
        self.default_value()
        return self.text[start : self.ends[self.i - 1]]

    def default_value(self) -> None:
        fix = "write a number, a quoted string, True, False, None, a name or a list such as [0,1]"
        if self.take("["):
            if not self.take("]"):
                while True:
                    self.default_value()
                    if not self.take(","):
                        break
                self.need("]", "at the end of the list", "close the list")
        elif self.kinds[self.i] in ("number", "string", "name"):
            self.i += 1
        else:
            raise self.fail("a default value", fix)

    def argument(self) -> Argument:
        type_, annotation = self.type()
        name = self.name("an argument name", "write each argument as 'type name', as in 'Tensor self'")
        default = self.default() if self.take("=") else None
        return Argument(name, type_, default, annotation)

    def returned(self) -> Return:
        type_, annotation = self.type()
        name = None
        if self.kinds[self.i] == "name":
            name = self.word
            self.i += 1
        return Return(name, type_, annotation)

    def schema(self) -> FunctionSchema:
        name = self.operator_name()
        self.need("(", "after the operator's name", "put the arguments into parentheses")
        positional: list[Argument] = []
        kwarg_only: list[Argument] = []
        out: list[Argument] = []
        starred = False
        seen: set[str] = set()
        while not self.at_mark(")"):
            column = self.starts[self.i] + 1
            if self.take("*"):
                if starred:
                    raise SchemaError(column, "a second '*'", "keep the first; all after it is keyword-only")
                starred = True
                if self.at_mark(")"):
                    raise self.fail("an argument after '*'", "add keyword-only arguments, or take out the '*'")
            else:
                argument = self.argument()
                if argument.name in seen:
                    raise SchemaError(column, f"two arguments named '{argument.name}'", "give one another name")
                seen.add(argument.name)
                if starred and argument.is_write:
                    if argument.default is not None:
                        raise SchemaError(
                            column, f"a default for the out argument '{argument.name}'", "take out the default"
                        )
                    out.append(argument)
                elif out:
                    raise SchemaError(
                        column,
                        f"argument '{argument.name}' after the out argument '{out[-1].name}'",
                        "put the out arguments last",
                    )
                elif starred:
                    kwarg_only.append(argument)
                else:
                    positional.append(argument)
            if not self.take(","):
                break
            if self.at_mark(")"):
                raise self.fail("an argument after ','", "take out the ','")
        self.need(")", "or ',' after the arguments", "separate arguments by ',' and close the parenthesis")
        self.need("->", "and what is returned", "end with '-> Tensor', or with '-> ()' for nothing")
        returns: list[Return] = []
        if self.take("("):
            while not self.at_mark(")"):
                returns.append(self.returned())
                if not self.take(","):
                    break
                if self.at_mark(")"):
                    raise self.fail("a return after ','", "take out the ','")
            self.need(")", "or ',' after the returns", "separate returns by ',' and close the parenthesis")
        else:
            returns.append(self.returned())
        self.end()
        return FunctionSchema(name, tuple(positional), tuple(kwarg_only), tuple(out), tuple(returns))


@lru_cache(maxsize=8192)
def parse_schema(text: str) -> FunctionSchema:
    return _Parser(text).schema()


def parse_operator_name(text: str) -> OperatorName:
    parser = _Parser(text)
    name = parser.operator_name()
    parser.end()
    return name
