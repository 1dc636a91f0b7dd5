"""Primitives: what a device implements, below the operators (yaml/primitives.yaml).

A primitive is an operator of the namespace `prim`: a schema, a table entry per key, traced and boxed as any other. It
differs in how it is entered: straight at the backend key of the tensor that it writes, so that no layer sees it and no
thread state is asked; so it has no autograd, no variants and no place in Python. Its kernel for a key is the C function
`<primitive>_<key>`, and on Meta it does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from .c_types import NoCType, c_result, c_type
from .errors import ErrorCollector, Location, suggest
from .loader import Document
from .model import FunctionSchema, is_tensor_like
from .schema import parse_schema

NAMESPACE = "prim"
BACKENDS = ("CPU", "OpenCL")
KEYS = ("func", "backends", "shortcuts", "declines", "optional", "refuses_values", "stored", "doc")
STORED = ("all", "complex32")  # which dtypes that are formats of memory only a kernel takes


@dataclass(frozen=True, slots=True)
class Primitive:
    schema: FunctionSchema
    backends: tuple[str, ...]
    shortcuts: tuple[str, ...]  # of the backends, those that give one beside the kernel
    declines: tuple[str, ...]  # those whose kernel may decline: who calls it asks (tp_take_decline)
    optional: bool  # a backend may lack it: who calls it asks (tp_has_primitive), and takes parts
    refuses_values: bool  # a kernel fails because of some: a compiled function's call does not wait
    stored: str | None  # of STORED; None: neither complex32 nor the 8-bit floats
    doc: str
    location: Location = field(compare=False)

    @property
    def name(self) -> str:
        return str(self.schema.name)

    @property
    def c(self) -> str:
        return str(self.schema.name).replace(".", "_")

    def kernel(self, key: str) -> str:
        return f"{self.c}_{key.lower()}"

    def shortcut(self, key: str) -> str:
        return f"{self.c}_shortcut_{key.lower()}"

    @property
    def guide(self) -> str:
        """The argument whose backend runs the primitive: the first tensor that it always writes, else the first."""
        tensors = [a for a in self.schema.arguments if is_tensor_like(a.type)]
        written = [a for a in tensors if a.is_write and not a.is_optional]
        return (written or tensors)[0].name


class _Reader:
    def __init__(self, document: Document) -> None:
        self.document = document

    def read(self, node: yaml.Node) -> Primitive | None:
        d = self.document
        schema: FunctionSchema | None = None
        backends: Sequence[str] = BACKENDS
        shortcuts: Sequence[str] = ()
        declines: Sequence[str] = ()
        optional = refuses = False
        stored: str | None = None
        doc: str | None = None
        for key, key_node, value in d.mapping(node, "a primitive", "write '- func: name(...) -> ()'"):
            if key == "func":
                text = d.text(value, key)
                schema = None if text is None else d.parsed(value, key, text, parse_schema)
            elif key == "backends":
                backends = self._backends(value, key)
            elif key == "shortcuts":
                shortcuts = self._backends(value, key)
            elif key == "declines":
                declines = self._backends(value, key)
            elif key == "optional":
                optional = bool(d.boolean(value, key))
            elif key == "refuses_values":
                refuses = bool(d.boolean(value, key))
            elif key == "stored":
                stored = d.text(value, key)
                if stored not in STORED:
                    d.error(value, f"'stored' is '{stored}'", f"use one of {', '.join(STORED)}, or leave it out")
            elif key == "doc":
                doc = d.text(value, key)
            else:
                d.error(key_node, f"unknown key '{key}'", suggest(key, KEYS, f"use one of {', '.join(KEYS)}"))
        if schema is None or doc is None:
            d.error(node, "a primitive without 'func' or 'doc'", "give its schema, and say in 'doc' what it promises")
            return None
        for key, words in (("shortcuts", shortcuts), ("declines", declines)):
            for word in words:
                if word not in backends:
                    d.error(node, f"'{key}' has '{word}', which has no kernel", f"add {word} to 'backends'")
        refuses = refuses or any(a.name == "fault" for a in schema.arguments)
        return Primitive(
            schema, tuple(backends), tuple(shortcuts), tuple(declines), optional, refuses, stored, doc, d.at(node)
        )

    def _backends(self, value: yaml.Node, key: str) -> Sequence[str]:
        words = self.document.words(value, key)
        for word in words:
            if word not in BACKENDS:
                known = suggest(word, BACKENDS, f"use {', '.join(BACKENDS)}")
                self.document.error(value, f"'{key}' has '{word}'", known)
        return words


def _check(primitive: Primitive, errors: ErrorCollector) -> None:
    schema, where = primitive.schema, primitive.location
    if not any(is_tensor_like(a.type) for a in schema.arguments):
        errors.add(where, f"{primitive.name} takes no tensor", "give it one: its device runs the primitive")
    if schema.returns and any(a.is_write for a in schema.arguments):
        errors.add(where, f"{primitive.name} writes and returns", "end with '-> ()', or write nothing")
    try:
        c_result(schema)
        for argument in schema.arguments:
            c_type(argument.type)
    except NoCType as error:
        errors.add(where, f"{primitive.name}: {error} has no C type", "use a type that c_types.py knows")


def load_primitives(source: Path | str, errors: ErrorCollector | None = None) -> tuple[Primitive, ...]:
    collector = ErrorCollector() if errors is None else errors
    document = Document(source, collector)
    reader = _Reader(document)
    read = [reader.read(node) for node in document.entries("- func: name(...) -> ()")]
    found = [p for p in read if p is not None]
    seen: dict[str, Primitive] = {}
    for primitive in found:
        first = seen.setdefault(primitive.c, primitive)
        if first is not primitive:
            place = first.location.seen_from(primitive.location)
            what = f"the primitive {primitive.name} is declared twice; also in {place}"
            collector.add(primitive.location, what, "take one out, or give it an overload name")
        _check(primitive, collector)
    if errors is None:
        collector.raise_if_any()
    return tuple(found)


def check_needs(needs: Iterable[str], primitives: Iterable[str], where: Location, errors: ErrorCollector) -> None:
    """What an entry's `prims` names is there."""
    known = tuple(primitives)
    for name in needs:
        if name not in known:
            errors.add(where, f"'prims' names '{name}'", suggest(name, known, "declare it in primitives.yaml"))
