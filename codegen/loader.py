"""YAML -> model. The YAML is composed to nodes, not constructed to objects, so that every key knows its line.

Two consequences: a scalar is the text that was written (`on`, `1e5` and `no` are plain strings), and a key that
occurs twice in a mapping is seen. Loading checks one entry at a time; check.py checks entries against each other.

Every loader takes an optional collector. Without one it raises all mistakes of its file at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from .each import instances
from .errors import ErrorCollector, Location, nearest, suggest
from .keys import DEVICES
from .model import (
    AutocastEntry,
    DerivativeEntry,
    Formula,
    FunctionSchema,
    Kernel,
    KeyedFormulas,
    NativeFunction,
    RawList,
    RawMapping,
    RawValue,
    Tag,
)
from .pointwise import CLASS_KEYS, PROMOTIONS
from .schema import SchemaError, parse_operator_name, parse_schema

# libyaml where PyYAML has it. The base loader resolves no types, which is what we want and is fast.
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

PYTHON_MODULES = ("nn", "linalg", "special", "fft", "sparse", "nested", "masked")
DEVICE_CHECKS = ("NoCheck", "ExactSame")
OUT_DTYPES = ("same", "castable")
ROUNDINGS = ("once", "each")
ROUNDED_IF = "once if "
OUT_OVERLAPS = ("refused",)
OUT_SIZES = ("counted",)
EMPTY_LISTS = ("RuntimeError", "ValueError")
AUTOCAST_POLICIES = (
    "lower_precision_fp",
    "fp32",
    "fp32_set_opt_dtype",
    "fp32_append_dtype",
    "promote",
    "fallthrough",
    "banned",
)
AUTOCAST_DEVICES = (*DEVICES, "CUDA", "XPU", "MPS")

_BOOLS = {"True": True, "true": True, "False": False, "false": False}

T = TypeVar("T")

# What a loader reads: a file, a text of more than one line, or the files of all families.
Source = Path | str | tuple[Path, ...]


class Document:
    """One YAML file, its nodes, and what to do with a mistake in them."""

    def __init__(self, source: Path | str, errors: ErrorCollector) -> None:
        self.errors = errors
        if isinstance(source, str) and "\n" in source:
            self.file, text = "<text>", source
        else:
            self.file = str(source)
            try:
                text = Path(source).read_text(encoding="utf-8")
            except OSError as error:
                errors.add(
                    Location(self.file, 0), f"cannot read the file: {error.strerror}", "name a file that is there"
                )
                text = ""
            except UnicodeDecodeError as error:
                errors.add(Location(self.file, 0), f"not UTF-8: {error.reason}", "save the file as UTF-8")
                text = ""
        self.root: yaml.Node | None = None
        try:
            self.root = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            context = f" ({error.context})" if error.context else ""
            self.errors.add(
                Location(self.file, mark.line + 1 if mark else 0),
                f"not YAML: {error.problem}{context}",
                "mend the indentation or the punctuation; quote text that has ': ' or ' #', or starts with [{*&!|>%@`",
            )
        except yaml.YAMLError as error:
            line = text.count("\n", 0, getattr(error, "position", 0)) + 1
            what = f"not YAML: {str(error).splitlines()[0]}"
            self.errors.add(Location(self.file, line), what, "take out the character it names")

    def at(self, node: yaml.Node) -> Location:
        return Location(self.file, node.start_mark.line + 1)

    def error(self, node: yaml.Node, what: str, fix: str) -> None:
        self.errors.add(self.at(node), what, fix)

    def entries(self, shape: str) -> list[yaml.Node]:
        """The items of a file that is a list."""
        if self.root is None:
            return []
        if not isinstance(self.root, yaml.SequenceNode):
            self.error(self.root, f"the file is {_kind(self.root)}, not a list", f"start each entry with '{shape}'")
            return []
        return list(self.root.value)

    def mapping(self, node: yaml.Node, what: str, fix: str) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """(key, key's node, value's node); a key that is there twice is reported and given once."""
        if not isinstance(node, yaml.MappingNode):
            self.error(node, f"{what} is {_kind(node)}, not a mapping", fix)
            return
        lines: dict[str, int] = {}
        for key_node, value in node.value:
            key = key_node.value
            if not isinstance(key, str):
                self.error(key_node, f"a key of {what} is {_kind(key_node)}", "write a plain word as the key")
            elif key in lines:
                self.error(
                    key_node,
                    f"the key '{key}' stands twice; first in line {lines[key]}",
                    "join the two, or take out one",
                )
            else:
                lines[key] = key_node.start_mark.line + 1
                yield key, key_node, value

    def text(self, node: yaml.Node, key: str) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self.error(node, f"'{key}' is {_kind(node)}, not text", f"write '{key}: text'")
            return None
        text: str = node.value.strip()
        if not text and not node.style:  # quoted, an empty text is meant
            self.error(node, f"'{key}' is empty", f"give it a value, or take '{key}' out")
            return None
        return text

    def boolean(self, node: yaml.Node, key: str) -> bool | None:
        text = self.text(node, key)
        if text is None:
            return None
        if text not in _BOOLS:
            self.error(node, f"'{key}' is '{text}'", f"write '{key}: True' or '{key}: False'")
            return None
        return _BOOLS[text]

    def choice(self, node: yaml.Node, key: str, valid: Collection[str]) -> str | None:
        text = self.text(node, key)
        if text is not None and text not in valid:
            self.error(node, f"'{key}' is '{text}'", suggest(text, valid, f"write one of {', '.join(valid)}"))
            return None
        return text

    def rounding(self, node: yaml.Node, key: str) -> str | None:
        """One of ROUNDINGS, or `once if FLAG`."""
        text = self.text(node, key)
        if text is not None and text.startswith(ROUNDED_IF) and text[len(ROUNDED_IF) :].isidentifier():
            return text
        return self.choice(node, key, ROUNDINGS)

    def located_words(self, node: yaml.Node, key: str) -> list[tuple[str, yaml.Node]]:
        """Words joined by commas, or a YAML list of them. Commas inside parentheses do not count."""
        if isinstance(node, yaml.SequenceNode):
            return [word for item in node.value for word in self.located_words(item, key)]
        text = self.text(node, key)
        if text is None:
            return []
        words = split_commas(text)
        if not all(words):
            self.error(node, f"'{key}' has an empty name between commas", "take out the comma that is too many")
        return [(word, node) for word in words if word]

    def words(self, node: yaml.Node, key: str) -> tuple[str, ...]:
        return tuple(word for word, _ in self.located_words(node, key))

    def raw(self, node: yaml.Node, what: str) -> RawValue:
        if isinstance(node, yaml.MappingNode):
            entries: list[tuple[str, RawValue]] = []
            locations: dict[str, Location] = {}
            for key, key_node, value in self.mapping(node, what, ""):
                entries.append((key, self.raw(value, f"'{key}'")))
                locations[key] = self.at(key_node)
            return RawMapping(tuple(entries), self.at(node), locations)
        if isinstance(node, yaml.SequenceNode):
            return RawList(tuple(self.raw(item, what) for item in node.value), tuple(map(self.at, node.value)))
        return str(node.value)

    def raw_mapping(self, node: yaml.Node, key: str) -> RawMapping | None:
        if not isinstance(node, yaml.MappingNode):
            self.error(node, f"'{key}' is {_kind(node)}, not a mapping", f"write keys and values below '{key}:'")
            return None
        raw = self.raw(node, f"'{key}'")
        assert isinstance(raw, RawMapping)
        return raw

    def parsed(self, node: yaml.Node, key: str, text: str, parse: Callable[[str], T]) -> T | None:
        try:
            return parse(text)
        except SchemaError as error:
            self.error(node, f"'{key}': {error} in '{text}'", error.fix)
            return None


def split_commas(text: str) -> list[str]:
    """At the commas that stand outside parentheses and brackets."""
    if "(" not in text and "[" not in text:
        return [word.strip() for word in text.split(",")]
    words: list[str] = []
    depth = start = 0
    for i, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            words.append(text[start:i].strip())
            start = i + 1
    return [*words, text[start:].strip()]


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "text" if node.value else "empty"


def sources_of(folder: Path, stem: str) -> tuple[Path, ...]:
    """The files of one kind in a yaml/ folder: `<stem>.yaml`, one for all, and `<stem>/<family>.yaml`."""
    whole = folder / f"{stem}.yaml"
    return (*([whole] if whole.exists() else []), *sorted((folder / stem).glob("*.yaml")))


def _documents(source: Source, errors: ErrorCollector) -> list[Document]:
    return [Document(one, errors) for one in (source if isinstance(source, tuple) else (source,))]


def _finish(errors: ErrorCollector, own: bool) -> None:
    if own:
        errors.raise_if_any()


def load_tags(source: Path | str, errors: ErrorCollector | None = None) -> dict[str, Tag]:
    """tags.yaml: a list of `tag` and `desc`."""
    collector = ErrorCollector() if errors is None else errors
    document = Document(source, collector)
    tags: dict[str, Tag] = {}
    for node in document.entries("- tag: name"):
        name = desc = None
        for key, key_node, value in document.mapping(node, "a tag", "write '- tag: name' and 'desc: what it means'"):
            if key == "tag":
                name = document.text(value, key)
            elif key == "desc":
                desc = document.text(value, key)
            else:
                document.error(
                    key_node, f"unknown key '{key}'", suggest(key, ("tag", "desc"), "a tag has 'tag' and 'desc' only")
                )
        if not isinstance(node, yaml.MappingNode):
            continue
        if name is None or desc is None:
            document.error(node, "a tag without 'tag' or 'desc'", "write '- tag: name' and 'desc: what it means'")
        elif name in tags:
            document.error(
                node,
                f"the tag '{name}' stands twice; first in {tags[name].location.seen_from(document.at(node))}",
                "take out one of the two",
            )
        else:
            tags[name] = Tag(name, desc, document.at(node))
    _finish(collector, errors is None)
    return tags


class _FunctionReader:
    """One entry of native_functions/. A key's reader gives the field's value, or None after reporting."""

    def __init__(self, document: Document, tags: Collection[str] | None) -> None:
        self.document = document
        self.known_tags = tags
        d = document
        self.readers: dict[str, Callable[[yaml.Node, str], object]] = {
            "func": self.schema,
            "variants": self.variants,
            "dispatch": self.dispatch,
            "prims": d.words,
            "structured": d.boolean,
            "structured_delegate": self.operator_name,
            "structured_inherits": d.text,
            "precomputed": self.precomputed,
            "autogen": d.words,
            "ops_only": d.words,
            "tags": self.tags,
            "device_check": lambda node, key: d.choice(node, key, DEVICE_CHECKS),
            "device_guard": d.boolean,
            "python_module": lambda node, key: d.choice(node, key, PYTHON_MODULES),
            "manual_cpp_binding": d.boolean,
            "manual_kernel_registration": self.registered,
            "use_const_ref_for_mutable_tensors": d.boolean,
            "category_override": d.text,
            "cpp_no_default_args": d.words,
            "ufunc_inner_loop": self.ufunc,
            "pointwise": self.pointwise,
            "reduction": d.raw_mapping,
            "composite": d.text,
            "each": d.words,
            "doc": d.text,
            "arguments": d.raw_mapping,
            "returns": d.text,
            "raises": d.text,
            "example": d.text,
            "inplace_variants": self.variants,
            "no_gradient": d.text,
            "no_sample": d.text,
            "out_dtype": lambda node, key: d.choice(node, key, OUT_DTYPES),
            "batching": d.text,
            "layouts": d.text,
            "inplace_layouts": d.text,
            "quantized": d.text,
            "nested": d.text,
            "inverse": d.text,
            "rounding": d.rounding,
            "declines": d.words,
            "out_overlap": lambda node, key: d.choice(node, key, OUT_OVERLAPS),
            "out_size": lambda node, key: d.choice(node, key, OUT_SIZES),
            "warns": d.text,
            "empty_list": lambda node, key: d.choice(node, key, EMPTY_LISTS),
            "asked_as": d.text,
        }

    def read(self, node: yaml.Node) -> NativeFunction | None:
        fields: dict[str, Any] = {}
        locations: dict[str, Location] = {}
        sound = True
        for key, key_node, value in self.document.mapping(node, "an entry", "write '- func: name(...) -> ...'"):
            reader = self.readers.get(key)
            if reader is None:
                fix = suggest(key, self.readers, f"use one of {', '.join(self.readers)}")
                self.document.error(key_node, f"unknown key '{key}'", fix)
                continue
            locations[key] = self.document.at(key_node)
            field = reader(value, key)
            if field is not None:
                fields[key] = field
            elif key == "func":
                sound = False
        if "func" not in fields:
            if sound and isinstance(node, yaml.MappingNode):
                self.document.error(node, "an entry without 'func'", "start it with '- func: name(...) -> ...'")
            return None
        function = NativeFunction(location=self.document.at(node), locations=locations, **fields)
        if function.pointwise is not None:
            self.check_pointwise(function, function.pointwise)
        return function

    def schema(self, node: yaml.Node, key: str) -> FunctionSchema | None:
        text = self.document.text(node, key)
        return None if text is None else self.document.parsed(node, key, text, parse_schema)

    def operator_name(self, node: yaml.Node, key: str) -> object:
        text = self.document.text(node, key)
        return None if text is None else self.document.parsed(node, key, text, parse_operator_name)

    def variants(self, node: yaml.Node, key: str) -> tuple[str, ...] | None:
        words = self.document.words(node, key)
        for word in words:
            if word not in ("function", "method"):
                fix = suggest(word, ("function", "method"), f"write '{key}: function, method', or one of the two")
                self.document.error(node, f"'{key}' has '{word}'", fix)
                return None
        if len(set(words)) != len(words):
            self.document.error(node, f"'{key}' names the same variant twice", f"write '{key}: {words[0]}'")
        return words or None

    def dispatch(self, node: yaml.Node, key: str) -> tuple[Kernel, ...]:
        kernels: list[Kernel] = []
        seen: set[str] = set()
        fix = "write 'CPU, OpenCL: name_of_the_kernel' below 'dispatch:'"
        for joined, key_node, value in self.document.mapping(node, "'dispatch'", fix):
            name = self.document.text(value, joined)
            for dispatch_key in joined.split(","):
                dispatch_key = dispatch_key.strip()
                if not dispatch_key:
                    self.document.error(key_node, "an empty dispatch key", "take out the comma that is too many")
                elif dispatch_key in seen:
                    self.document.error(
                        key_node, f"the dispatch key {dispatch_key} stands twice", "give each key one kernel"
                    )
                elif name is not None:
                    seen.add(dispatch_key)
                    kernels.append(Kernel(dispatch_key, name, self.document.at(key_node)))
        return tuple(kernels)

    def precomputed(self, node: yaml.Node, key: str) -> tuple[str, ...] | None:
        if not isinstance(node, yaml.SequenceNode):
            self.document.error(node, f"'{key}' is {_kind(node)}, not a list", "write '- dim -> int dim' below it")
            return None
        texts = [self.document.text(item, key) for item in node.value]
        return tuple(text for text in texts if text is not None)

    def tags(self, node: yaml.Node, key: str) -> tuple[str, ...]:
        found: list[str] = []
        for word, at in self.document.located_words(node, key):
            if self.known_tags is not None and word not in self.known_tags:
                fix = suggest(word, self.known_tags, "declare it in tags.yaml, or use one that is there")
                self.document.error(at, f"unknown tag '{word}'", fix)
            elif word in found:
                self.document.error(at, f"the tag '{word}' stands twice", "take out one")
            else:
                found.append(word)
        return tuple(found)

    def registered(self, node: yaml.Node, key: str) -> bool | str | None:
        text = self.document.text(node, key)
        if text is not None and ("." in text and all(map(str.isidentifier, text.split(".")))):
            return text
        return self.document.boolean(node, key) if text is not None else None

    def ufunc(self, node: yaml.Node, key: str) -> RawMapping | str | None:
        if isinstance(node, yaml.MappingNode):
            return self.document.raw_mapping(node, key)
        return self.document.text(node, key)

    def pointwise(self, node: yaml.Node, key: str) -> RawMapping | None:
        raw = self.document.raw_mapping(node, key)
        if raw is None:
            return None
        errors = self.document.errors
        valid = ("promotion", "operands", "cost", "check", "expanded", "cases", "float8", *CLASS_KEYS)
        for name, value in raw.items():
            if name not in valid:
                fix = suggest(name, valid, f"use one of {', '.join(valid)}")
                errors.add(raw.at(name), f"unknown key '{name}' in 'pointwise'", fix)
            elif name == "operands":
                if not isinstance(value, RawMapping):
                    errors.add(raw.at(name), "'operands' is not a mapping", "write 'operands: {argument: bool}'")
            elif name == "cases":
                if not isinstance(value, RawMapping):
                    fix = "write 'cases: {exponent == 2: {number: ...}}'"
                    errors.add(raw.at(name), "'cases' is not a mapping", fix)
            elif not isinstance(value, str) or not value.strip():
                errors.add(raw.at(name), f"'{name}' in 'pointwise' is not text", f"write '{name}: \"expression\"'")
            elif name == "promotion" and value not in PROMOTIONS:
                fix = suggest(value, PROMOTIONS, f"use one of {', '.join(PROMOTIONS)}")
                errors.add(raw.at(name), f"unknown promotion '{value}'", fix)
        if not any(name in CLASS_KEYS or name not in valid for name in raw):  # a misspelt one is told already
            fix = f"give it for at least one of {', '.join(reversed(tuple(CLASS_KEYS)))}"
            errors.add(raw.location, "'pointwise' has no expression", fix)
        return raw

    def check_pointwise(self, function: NativeFunction, raw: RawMapping) -> None:
        operands = raw.get("operands")
        if not isinstance(operands, RawMapping):
            return
        names = [a.name for a in function.func.arguments]
        for name in operands:
            if name not in names:
                fix = suggest(name, names, f"name one of {', '.join(names)}")
                what = f"'operands' names '{name}', which is no argument of {function.name}"
                self.document.errors.add(operands.at(name), what, fix)


def load_native_functions(
    source: Source, tags: Collection[str] | None, errors: ErrorCollector | None = None
) -> list[NativeFunction]:
    """native_functions.yaml, or the files of native_functions/. `tags` None accepts any tag."""
    collector = ErrorCollector() if errors is None else errors
    read: list[NativeFunction | None] = []
    for document in _documents(source, collector):
        reader = _FunctionReader(document, tags)
        entries = document.entries("- func: name(...) -> ...")
        read += [reader.read(one) for node in entries for one in instances(node)]
    _finish(collector, errors is None)
    return [function for function in read if function is not None]


_RESULT = re.compile(r"result\d*")


def _by_name(functions: Iterable[NativeFunction]) -> dict[str, NativeFunction]:
    """The first of each name; check.py reports the second."""
    by_name: dict[str, NativeFunction] = {}
    for function in functions:
        by_name.setdefault(str(function.name), function)
    return by_name


class _DerivativeReader:
    def __init__(self, document: Document, functions: Mapping[str, NativeFunction]) -> None:
        self.document = document
        self.functions = functions

    def read(self, node: yaml.Node) -> DerivativeEntry | None:
        d = self.document
        schema: FunctionSchema | None = None
        name_node: yaml.Node = node
        formulas: list[tuple[str, yaml.Node, yaml.Node]] = []
        dispatch: yaml.Node | None = None
        rounding: str | None = None
        differentiability: tuple[bool | str, ...] | None = None
        named, shows = False, ""
        for key, key_node, value in d.mapping(node, "an entry", "write '- name: schema' and a formula per argument"):
            if key == "name":
                named = True
                name_node = value
                text = d.text(value, key)
                schema = None if text is None else d.parsed(value, key, text, parse_schema)
            elif key == "dispatch":
                dispatch = value
            elif key == "rounding":
                rounding = d.choice(value, key, ROUNDINGS)
            elif key == "output_differentiability":
                differentiability = self.differentiability(value, key)
            elif key == "shows":
                shows = d.text(value, key) or ""
            else:
                formulas.append((key, key_node, value))
        if not named and isinstance(node, yaml.MappingNode):
            d.error(node, "an entry without 'name'", "start it with '- name: schema'")
        if schema is None:
            return None
        function = self.functions.get(str(schema.name))
        if function is None:
            fix = suggest(str(schema.name), self.functions, "declare it in native_functions/ first")
            d.error(name_node, f"a derivative of the unknown operator {schema.name}", fix)
            return None
        backward, forward = self.formulas(function, formulas)
        per_key: list[KeyedFormulas] = []
        if dispatch is not None:
            if formulas:
                d.error(
                    formulas[0][1],
                    "a formula beside 'dispatch'",
                    "put it below 'Default:' inside 'dispatch', or drop that",
                )
            fix = "write 'Default:' and below it a formula per argument"
            for key, _, value in d.mapping(dispatch, "'dispatch'", fix):
                found = self.formulas(function, list(d.mapping(value, f"'{key}'", "write a formula per argument")))
                if key == "Default":
                    backward, forward = found
                else:
                    per_key.append(KeyedFormulas(key, *found))
        return DerivativeEntry(
            schema, function, backward, forward, differentiability, tuple(per_key), rounding, d.at(name_node), shows
        )

    def formulas(
        self, function: NativeFunction, items: list[tuple[str, yaml.Node, yaml.Node]]
    ) -> tuple[tuple[Formula, ...], tuple[Formula, ...]]:
        """Split into gradients, named by arguments, and tangents, named by results."""
        func = function.func
        results = {r.name for r in func.returns if r.name is not None} - {a.name for a in func.arguments}
        backward: list[Formula] = []
        forward: list[Formula] = []
        for key, key_node, value in items:
            # A formula that cannot be read stays, empty, so that the entry does not seem to lack it.
            text = self.document.text(value, key) or ""
            names = tuple(name.strip() for name in key.split(","))
            is_forward = all(n in results or (_RESULT.fullmatch(n) and not func.argument(n)) for n in names)
            (forward if is_forward else backward).append(Formula(names, text, self.document.at(key_node)))
        return tuple(backward), tuple(forward)

    def differentiability(self, node: yaml.Node, key: str) -> tuple[bool | str, ...] | None:
        if not isinstance(node, yaml.SequenceNode):
            self.document.error(node, f"'{key}' is {_kind(node)}, not a list", f"write '{key}: [True, False]'")
            return None
        texts = [self.document.text(item, key) for item in node.value]
        return tuple(_BOOLS.get(text, text) for text in texts if text is not None)


def load_derivatives(
    source: Source, functions: Iterable[NativeFunction], errors: ErrorCollector | None = None
) -> list[DerivativeEntry]:
    """derivatives.yaml, or the files of derivatives/. `functions` holds the derived variants too."""
    collector = ErrorCollector() if errors is None else errors
    by_name = _by_name(functions)
    read: list[DerivativeEntry | None] = []
    for document in _documents(source, collector):
        reader = _DerivativeReader(document, by_name)
        read += [reader.read(one) for node in document.entries("- name: schema") for one in instances(node)]
    _finish(collector, errors is None)
    return [entry for entry in read if entry is not None]


def load_autocast(
    source: Path | str, functions: Iterable[NativeFunction], errors: ErrorCollector | None = None
) -> list[AutocastEntry]:
    """autocast.yaml:

    fp32: [acos, add.Tensor]      # a policy and its operators, on every device
    devices:
      OpenCL, PrivateUse1:        # what differs on some devices; 'fallthrough' takes a policy away
        promote: [acos]
    """
    collector = ErrorCollector() if errors is None else errors
    document = Document(source, collector)
    by_name = _by_name(functions)
    entries: list[AutocastEntry] = []
    shape = "write 'policy: [operator, operator.overload]'"

    def policies(node: yaml.Node, what: str, device: str | None) -> None:
        for key, key_node, value in document.mapping(node, what, shape):
            if key == "devices" and device is None:
                for names, name_node, section in document.mapping(value, "'devices'", "write 'devices: {OpenCL: ...}'"):
                    for name in (word.strip() for word in names.split(",")):
                        if name in AUTOCAST_DEVICES:
                            policies(section, f"'{name}'", name)
                        else:
                            fix = suggest(name, AUTOCAST_DEVICES, f"use one of {', '.join(AUTOCAST_DEVICES)}")
                            document.error(name_node, f"unknown device '{name}'", fix)
            elif key not in AUTOCAST_POLICIES:
                if key in AUTOCAST_DEVICES:
                    fix = f"put '{key}:' below 'devices:'"
                else:
                    fix = suggest(key, AUTOCAST_POLICIES, f"use one of {', '.join(AUTOCAST_POLICIES)}")
                document.error(key_node, f"unknown autocast policy '{key}'", fix)
            else:
                for word, at in document.located_words(value, key):
                    found = by_name.get(word)
                    if found is None:
                        overloads = [name for name in by_name if name.startswith(f"{word}.")]
                        close = overloads[0] if overloads else nearest(word, by_name)
                        fix = f"did you mean '{close}'?" if close else "declare it in native_functions/ first"
                        document.error(at, f"autocast of the unknown operator {word}", fix)
                    else:
                        entries.append(AutocastEntry(key, found, device, document.at(at)))

    if document.root is not None:
        policies(document.root, "the file", None)
    _finish(collector, errors is None)
    return entries
