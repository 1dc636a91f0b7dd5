"""Operators that Python declared and kernels that it registered: which there are, and how they come and go."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from tensorpy import _C, dispatch, ops
from tensorpy._library.function_schema import parse_schema
from tensorpy._library.rules import RECORDED, recording_kernel, without_fake
from tensorpy._library.tags import Tag, check_tags

COMPOSITE = "CompositeExplicitAutograd"
registered: dict[tuple[str, str], Registration] = {}  # the one at hand per operator and key
# What operators get when they are declared, and the libraries that it lives with.
_waiting: dict[str, list[tuple[weakref.ref[Owner] | None, Callable[[Owner | None], None]]]] = {}
_ONE_RESULT = re.compile(r"->\s*\(\s*([^(),]+(?:\([^()]*\)[^(),]*)?)\s*\)\s*$")
_declared: dict[str, str] = {}  # the schemas of what Python declared
places: dict[str, str] = {}  # and where it did so
definitions: dict[str, Any] = {}  # the CustomOpDef of each operator that has one


# Where the library lies: files, as names of modules are others in programs that know them as torch's.
_OWN = tuple(str(Path(__file__).parents[1] / name) for name in ("library.py", "_library", "_custom_ops.py"))


def where_called() -> str:
    """file:line of who called the library."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Owner(Protocol):
    """A library: what it registers goes with it."""

    _registrations: list[Registration]
    _rules: list[tuple[Any, Any]]


class Registration:
    """A kernel that stands in the dispatcher until it is taken out."""

    key: str
    name: str
    where: str
    fn: Callable[..., Any] | None
    owner: weakref.ref[Owner] | None  # whose _destroy takes it out

    def __init__(
        self,
        name: str,
        key: str,
        fn: Callable[..., Any] | None,
        with_keyset: bool,
        where: str,
        records: bool = False,
        lib: Owner | None = None,
    ) -> None:
        self.name, self.key, self.where, self.fn = name, key, where, fn
        self._again = (fn, with_keyset, where, records)
        self.owner = None if lib is None else weakref.ref(lib)
        self._handle = _C._register(name, key, fn, with_keyset, where, True, records)
        self._before = registered.get((name, key))
        registered[name, key] = self
        if lib is not None:
            lib._registrations.append(self)

    def remove(self) -> None:
        """Takes the kernel out; what stood there before stands there again."""
        if self._handle:
            _C._deregister(self._handle)
        self._handle = 0
        if registered.get((self.name, self.key)) is self:
            del registered[self.name, self.key]
            if self._before is not None and self._before._handle:
                registered[self.name, self.key] = self._before

    def wait(self) -> None:
        """Takes the kernel out until the operator is declared again, if its library is there then."""
        stood = bool(self._handle)
        self.remove()
        lib = None if self.owner is None else self.owner()
        if stood and lib is not None:
            fn, with_keyset, where, records = self._again
            wait_for(
                self.name, lib, lambda lib: register_again(self.name, self.key, fn, with_keyset, where, records, lib)
            )


def register_again(*registration: Any) -> None:
    """What has waited for an operator registers its kernel."""
    Registration(*registration)


def wait_for(name: str, lib: Owner | None, register: Callable[[Owner | None], None]) -> None:
    """`register` is called when the operator is declared, unless the library is gone by then."""
    _waiting.setdefault(name, []).append((None if lib is None else weakref.ref(lib), register))


def wait_no_more(lib: Owner) -> None:
    """Forgets what a library has registered for operators that nobody declared."""
    for name, entries in list(_waiting.items()):
        _waiting[name] = [entry for entry in entries if entry[0] is None or entry[0]() not in (lib, None)]
        if not _waiting[name]:
            del _waiting[name]


def backend_key(device_type: str) -> str | None:
    """ "CPU" of "cpu"; of a device from outside what its tensors carry. None for a type of PyTorch's that no device of
    this machine has: what is registered for it is never called. RuntimeError where there is no such type."""
    kind = _C.device(device_type.lower()).type
    try:
        return dispatch.backend_key(kind)
    except (RuntimeError, AssertionError):
        return None


_FOREIGN = re.compile(r"(Autograd|Autocast|Sparse|SparseCsr|Quantized|NestedTensor|AutogradNestedTensor)?([A-Z]\w*)")

_ALIASES = (*_C._ALIAS_KEYS, *_C._KEYS)


def known_key(name: str) -> str | None:
    """A dispatch key as tensorpy has it: PyTorch's "CUDA" is that of the device that programs call so. None for a key
    of a device that is not here."""
    found = None if name in _ALIASES else _FOREIGN.fullmatch(name)
    if found is None:
        return name
    try:
        key = backend_key(found[2])
    except RuntimeError:
        return name  # no type of device: what registers says so
    return None if key is None else (found[1] or "") + key


def keys_of(types: str | Sequence[str] | None) -> list[str]:
    """The keys of those types of devices that are here."""
    names = [types] if isinstance(types, str) else ["default"] if types is None else list(types)
    keys = [COMPOSITE if name == "default" else name if name in _ALIASES else backend_key(name) for name in names]
    return [key for key in keys if key is not None]


def name_of(op: Any) -> str:
    """The full name of an operator that is given by its name, as a CustomOpDef or as an overload."""
    name = op if isinstance(op, str) else getattr(op, "_qualname", None) or getattr(op, "_own_name", None)
    if not isinstance(name, str):
        raise ValueError(
            f"an operator is given by its name, as an overload or as a custom_op, not as {type(op).__name__}"
        )
    if "::" not in name and isinstance(op, str):
        raise ValueError(f"the name of an operator has its namespace, 'mine::op' or 'aten::sin', unlike {name!r}")
    return name


def overload_of(op: Any) -> Any:
    """The overload of an operator that is given by its name, as a CustomOpDef or as an overload."""
    name = name_of(op)
    if isinstance(op, str):
        return _C._op_overload(name)
    return op._op if name in definitions and definitions[name] is op else op


def withdraw(name: str) -> None:
    """Frees the name of an operator that Python declared; its kernels go with it, but for those of libraries that are
    there: they wait for the next declaration."""
    for key in [key for named, key in registered if named == name]:
        stack: list[Registration] = []
        at: Registration | None = registered[name, key]
        while at is not None:
            stack.append(at)
            at = at._before
        for registration in stack[::-1]:
            registration.wait()
    if _declared.pop(name, None) is not None:
        _C._withdraw(name)
        ops._forget(name)


def names_of_tags(tags: str | Iterable[str]) -> tuple[str, ...]:
    """Each once, as PyTorch's YAML writes them; a ValueError for a word that is none."""
    given = [tags] if isinstance(tags, str) else list(tags)
    return tuple(dict.fromkeys(Tag(tag).value for tag in given))


def declare(schema: str, where: str, replaces: bool, tags: tuple[str, ...] = (), opaque: bool = False) -> str:
    """Declares an operator with what it has until it gets its own gradient: what its kernel calls is recorded. Of an
    `opaque` one nothing is recorded: it has no derivative, versions of what it writes are counted, and on Meta it waits
    for register_fake.

    `replaces`: one that Python declared with another schema goes, as when an edited cell of a notebook runs again.
    """
    before = schema.partition("(")[0].strip()
    schema = re.sub(r"\)\s*->\s*", ") -> ", schema)
    schema = _ONE_RESULT.sub(r"-> \1", schema)  # `-> (Tensor)` is `-> Tensor`
    if replaces and _declared.get(before, schema) != schema:
        withdraw(before)
    if tags:
        check_tags(parse_schema(schema), tags)
    name: str = _C._define(schema, where)
    if (name in _declared or tags) and tuple(_C._op_overload(name).tags) != tags:
        _C._tag(name, tags)
    if name not in _declared:
        if opaque:
            _C._register_defaults(name)
            _C._register(name, "Meta", without_fake(name, parse_schema(schema)), False, where, True)
        else:
            _C._register(name, "Autograd", recording_kernel(_C._op_overload(name)), True, RECORDED, True, True)
        _declared[name], places[name] = schema, where
        ops._forget(name)
    declared(name)
    return name


def declared(name: str) -> None:
    """Gives an operator that is declared now the kernels that have waited for it."""
    for owner, register in _waiting.pop(name, ()):
        lib = None if owner is None else owner()
        if owner is None or lib is not None:
            register(lib)


def add_kernel(
    name: Any,
    key: str,
    fn: Callable[..., Any],
    lib: Owner | None,
    with_keyset: bool = False,
    records: bool = False,
) -> None:
    """A kernel in place of the one that Python registered before, as when a cell of a notebook runs again.

    An operator that nobody has declared yet gets it when somebody does.
    """
    name, where = name_of(name), where_called()
    there = registered.get((name, key))
    if there is not None:
        there.remove()
    if "::" in name and name.removeprefix("aten::") not in _C._operators():
        wait_for(name, lib, lambda lib: register_again(name, key, fn, with_keyset, where, records, lib))
    else:
        Registration(name, key, fn, with_keyset, where, records, lib)
