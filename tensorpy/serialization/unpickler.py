"""Reading a pickle from anybody: a machine for the opcodes that plain values need, which calls only what it was told.

A pickle is a program. Python's own machine imports and calls whatever the file names; this one knows a table of names
(names.py), looks up no module, and calls a function only if it is in the table or the user has added it. What the table
calls makes data and nothing else. An account (account.py) keeps work and memory within a multiple of the file's size.
`unsafe_globals` runs the same machine without its calls: the check and the loader cannot differ in what a file names.
"""

from __future__ import annotations

import builtins
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from tensorpy.serialization import names
from tensorpy.serialization.account import Account

_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_BLOCKED = ("sys", "os", "posix", "nt")  # which no file needs, though a user should add a function of theirs
_MARK = object()
_MALFORMED = (
    IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, struct.error,
)  # fmt: skip

# What the user has added: {"module.name": (the class or function, what the user gave for it)}.
allowed: dict[str, tuple[Any, Any]] = {}


class UnsafeGlobal(pickle.UnpicklingError):
    """A file names what it may not."""

    def __init__(self, name: str, why: str | None = None) -> None:
        super().__init__(
            why
            or f"Weights only load failed. Unsupported global: GLOBAL {name} was not an allowed global by default. If "
            f"you trust it, allow it with `tensorpy.serialization.add_safe_globals([{name}])` or, for a while, with "
            f"the `tensorpy.serialization.safe_globals([{name}])` context manager. With weights_only=False anything "
            "that the file names is imported and called, so do that only with a file that you trust."
        )
        self.name = name


class Unpickler:
    """Runs one pickle. `persistent_load` gives the storage that an entry of the file speaks of."""

    account: Any
    calls: Any
    classes: Any
    data: bytes
    encoding = "utf-8"  # of strings that Python 2 wrote
    persistent_load: Callable[[Any], Any]
    position: Any

    def __init__(
        self, data: bytes, persistent_load: Callable[[Any], Any], start: int = 0, account: Account | None = None
    ) -> None:
        self.data, self.position, self.persistent_load = data, start, persistent_load
        self.account = account or Account(len(data))
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.of_the_user: Exception | None = None  # raised by map_location: nothing is wrong with the file
        own = [value for value, _ in allowed.values()]
        self.classes = {id(value) for value in own if isinstance(value, type)}
        self.calls = {id(f): f for f in (*names.FUNCTIONS.values(), *own)}  # what stands for a function that is called
        self.calls.update({id(value): partial(guard, self.account) for value, guard in names.GUARDED})

    def load(self) -> Any:
        try:
            while (code := self.take(1)) != pickle.STOP:
                step = _STEPS.get(code)
                if step is None:
                    raise pickle.UnpicklingError(f"Weights only load failed: unsupported pickle opcode {code!r}")
                step(self)
            return self.pop()
        except _MALFORMED as error:
            if error is self.of_the_user:
                raise
            raise pickle.UnpicklingError(f"Weights only load failed: the file is damaged ({error})") from error
        finally:
            self.account.hashes.clear()

    # ---- the program's text ----

    def take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise pickle.UnpicklingError("Weights only load failed: the pickle ends early")
        taken, self.position = self.data[self.position : end], end
        return taken

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        end = self.data.index(b"\n", self.position)
        return self.take(end + 1 - self.position)[:-1].decode()

    # ---- the stack ----

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a mark stands where a value should")
        return value

    def top(self, kind: type) -> Any:
        """The last value, which is a dict, list or set that is given more."""
        if not isinstance(self.stack[-1], kind):
            raise TypeError(f"expected {kind.__name__} below, got {type(self.stack[-1]).__name__}")
        return self.stack[-1]

    def above_mark(self) -> list[Any]:
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise ValueError("there is no mark")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def last(self, count: int) -> tuple[Any, ...]:
        return tuple(reversed([self.pop() for _ in range(count)]))

    # ---- what opcodes do ----

    def find(self, module: str, name: str) -> None:
        module = _OLD_MODULES.get(module, module)
        full = name if module == "builtins" else f"{module}.{name}"
        if (module, name) in names.TABLE:
            self.push(names.TABLE[module, name])
        elif module.partition(".")[0] in _BLOCKED:
            raise UnsafeGlobal(
                full,
                f"Weights only load failed. The file names unsupported GLOBAL {full} whose module {module} is blocked.",
            )
        elif full in allowed:
            self.push(allowed[full][0])
        else:
            raise UnsafeGlobal(full)

    def find_on_stack(self) -> None:
        module, name = self.last(2)
        self.find(names._of(module, str), names._of(name, str))

    def reduce(self) -> None:
        function, arguments = self.last(2)
        self.push(self._may_call(function)(*self.account.copied(names._of(arguments, tuple))))

    def new(self) -> None:
        cls, arguments = self.last(2)
        self.account.copied(names._of(arguments, tuple))
        self.push(cls.__new__(cls, *arguments) if id(cls) in self.classes else self._may_call(cls)(*arguments))

    def _may_call(self, function: Any) -> Any:
        if id(function) not in self.calls:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the file calls {getattr(function, '__qualname__', type(function).__name__)}"
                ", which it may only speak of"
            )
        return self.calls[id(function)]

    def build(self) -> None:
        (state,) = self.account.copied((self.pop(),))
        target = self.stack[-1]
        if type(target) is OrderedDict:
            names.set_attributes(target, OrderedDict, state)
        elif type(target) is names.DimRange:
            return
        elif type(target) is names.ScriptObject:
            target.__setstate__(state)
        elif id(type(target)) not in self.classes:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the file changes a {type(target).__name__}; a class that may be given its "
                "state is one that was added with `tensorpy.serialization.add_safe_globals`"
            )
        elif hasattr(target, "__setstate__"):
            target.__setstate__(state)
        else:
            attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
            if attributes is not None:
                target.__dict__.update(names._of(attributes, dict))
            names.set_slots(target, slots)

    def set_items(self, pairs: list[Any]) -> None:
        target = self.top(dict)
        for i in range(0, len(pairs), 2):
            target[self.account.key(target, pairs[i])] = pairs[i + 1]

    def add_items(self) -> None:
        values, target = self.above_mark(), self.top(set)
        target.update(self.account.key(target, v) for v in values)

    def frozen(self) -> None:
        values = self.above_mark()
        self.push(frozenset(self.account.key(values, v) for v in values))

    def extend(self, values: list[Any]) -> None:
        self.top(list).extend(values)

    def remember(self, place: int) -> None:
        if self.stack[-1] is _MARK:
            raise ValueError("a mark cannot be remembered")
        self.memo[place] = self.stack[-1]

    def text(self, form: str) -> None:
        self.push(self.take(self.number(form)).decode("utf-8", "surrogatepass"))

    def string(self, form: str) -> None:
        """A string of Python 2, which is bytes: as text, or with the encoding "bytes" as it is."""
        data = self.take(self.number(form))
        self.push(data if self.encoding == "bytes" else data.decode(self.encoding))

    def load_persistent(self) -> None:
        entry = self.pop()
        try:
            self.push(self.persistent_load(entry))
        except Exception as error:
            self.of_the_user = error
            raise

    def check_protocol(self) -> None:
        if (protocol := self.number("<B")) not in range(2, 6):
            raise pickle.UnpicklingError(f"Weights only load failed: pickle protocol {protocol} is not one of 2 to 5")


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


_STEPS: dict[bytes, Callable[[Unpickler], object]] = {
    pickle.PROTO: Unpickler.check_protocol,
    pickle.FRAME: lambda u: u.number("<Q"),
    pickle.MARK: lambda u: u.push(_MARK),
    pickle.POP: lambda u: u.stack.pop(),
    pickle.POP_MARK: lambda u: u.above_mark(),
    pickle.NONE: lambda u: u.push(None),
    pickle.NEWTRUE: lambda u: u.push(True),
    pickle.NEWFALSE: lambda u: u.push(False),
    pickle.BININT: lambda u: u.push(u.number("<i")),
    pickle.BININT1: lambda u: u.push(u.number("<B")),
    pickle.BININT2: lambda u: u.push(u.number("<H")),
    pickle.LONG1: lambda u: u.push(_integer(u.take(u.number("<B")))),
    pickle.LONG4: lambda u: u.push(_integer(u.take(u.number("<i")))),
    pickle.BINFLOAT: lambda u: u.push(u.number(">d")),
    pickle.SHORT_BINUNICODE: lambda u: u.text("<B"),
    pickle.SHORT_BINSTRING: lambda u: u.string("<B"),
    pickle.BINSTRING: lambda u: u.string("<i"),
    pickle.BINUNICODE: lambda u: u.text("<I"),
    pickle.BINUNICODE8: lambda u: u.text("<Q"),
    pickle.SHORT_BINBYTES: lambda u: u.push(u.take(u.number("<B"))),
    pickle.BINBYTES: lambda u: u.push(u.take(u.number("<I"))),
    pickle.BINBYTES8: lambda u: u.push(u.take(u.number("<Q"))),
    pickle.BYTEARRAY8: lambda u: u.push(bytearray(u.take(u.number("<Q")))),
    pickle.EMPTY_TUPLE: lambda u: u.push(()),
    pickle.TUPLE1: lambda u: u.push(u.last(1)),
    pickle.TUPLE2: lambda u: u.push(u.last(2)),
    pickle.TUPLE3: lambda u: u.push(u.last(3)),
    pickle.TUPLE: lambda u: u.push(tuple(u.above_mark())),
    pickle.EMPTY_LIST: lambda u: u.push([]),
    pickle.APPEND: lambda u: u.extend([u.pop()]),
    pickle.APPENDS: lambda u: u.extend(u.above_mark()),
    pickle.EMPTY_DICT: lambda u: u.push({}),
    pickle.SETITEM: lambda u: u.set_items([*u.last(2)]),
    pickle.SETITEMS: lambda u: u.set_items(u.above_mark()),
    pickle.EMPTY_SET: lambda u: u.push(builtins.set()),
    pickle.ADDITEMS: Unpickler.add_items,
    pickle.FROZENSET: Unpickler.frozen,
    pickle.BINPUT: lambda u: u.remember(u.number("<B")),
    pickle.LONG_BINPUT: lambda u: u.remember(u.number("<I")),
    pickle.MEMOIZE: lambda u: u.remember(len(u.memo)),
    pickle.BINGET: lambda u: u.push(u.memo[u.number("<B")]),
    pickle.LONG_BINGET: lambda u: u.push(u.memo[u.number("<I")]),
    pickle.GLOBAL: lambda u: u.find(u.line(), u.line()),
    pickle.STACK_GLOBAL: Unpickler.find_on_stack,
    pickle.BINPERSID: Unpickler.load_persistent,
    pickle.REDUCE: lambda u: u.reduce(),
    pickle.NEWOBJ: lambda u: u.new(),
    pickle.BUILD: lambda u: u.build(),
}


# ---- the check ----


class _Stand:
    """Stands for what the loader would have made."""


class _Names(Unpickler):
    """The machine without its calls: it notes each name that the loader refuses, and goes on."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, lambda entry: _Stand())
        self.found: dict[str, None] = {}

    def find(self, module: str, name: str) -> None:
        try:
            super().find(module, name)
        except UnsafeGlobal as error:
            self.found[error.name] = None
            self.push(_Stand())

    def top(self, kind: type) -> Any:
        return kind() if isinstance(self.stack[-1], _Stand) else super().top(kind)

    def reduce(self) -> None:
        self.last(2)
        self.push(_Stand())

    new = reduce

    def build(self) -> None:
        self.pop()
        self.push(self.pop())


def unsafe_globals(data: bytes) -> list[str]:
    """The names in a pickle that the loader refuses, up to where it is damaged; UnpicklingError if there are none."""
    machine = _Names(data)
    try:
        machine.load()
    except pickle.UnpicklingError:
        if not machine.found:  # else the loader ends at the first of the names, and sees no damage
            raise
    return list(machine.found)


def persistent_entries(data: bytes) -> list[Any]:
    """What a pickle asks of `persistent_load`, as far as it can be read without a call."""
    found: list[Any] = []

    def note(entry: Any) -> _Stand:
        found.append(entry)
        return _Stand()

    machine = _Names(data)
    machine.persistent_load = note
    with suppress(pickle.UnpicklingError):
        machine.load()
    return found
