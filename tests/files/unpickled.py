"""Runs pickles from nobody knows whom through `load` and tells of every effect outside of the values that it gives.

A process of its own: an audit hook sees imports, files, compiled code, sockets and processes, and cannot be removed.
The attributes of all classes and modules are compared before and after. Usage: unpickled.py KIND SEED with the kinds
names, programs, mutations, and allowed, which lets the files call `open`: that has to be told of.
"""

from __future__ import annotations

import gc
import io
import itertools
import os
import pickle
import pickletools
import random
import struct
import sys
from collections.abc import Iterator
from typing import Any

import tensorpy as tp
from tensorpy import nn
from tensorpy.serialization import add_safe_globals, get_unsafe_globals_in_checkpoint, names
from tensorpy.serialization.archive import Reader, Writer
from tensorpy.serialization.unpickler import UnsafeGlobal

ERRORS = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, OverflowError, NotImplementedError, MemoryError)
FORBIDDEN = [
    ("os", "system"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "getattr"), ("builtins", "__import__"),
    ("tensorpy.fx.graph_module", "rebuild"), ("tensorpy", "load"), ("torch", "load"), ("torch.hub", "load"),
    ("torch", "Tensor.__class__"), ("torch", "_C"), ("builtins", "type"), ("builtins", "object"), ("codecs", "open"),
    ("collections", "namedtuple"), ("torch.fx", "GraphModule"), ("operator", "attrgetter"),
    ("copyreg", "_reconstructor"),
    ("torch.nn", "Linear"), ("torch.storage", "_load_from_bytes"), ("torch.storage", "UntypedStorage.from_file"),
]  # fmt: skip
WORDS = [
    "__class__", "__dict__", "__setstate__", "__reduce__", "__init__", "os", "system", "latin1", "torch.strided", "cpu",
    "torch.sparse_coo", "rot13", "storage", "0", "meta", "cuda:7", "/etc/passwd", "data", "grad", "items", "append", "",
    "a" * 300, "__class__.__base__.pwned", "idna", "conj", "_metadata", "requires_grad", "_backward_hooks", "é", "1",
]  # fmt: skip
NUMBERS = [0, 1, 2, -1, 3, 7, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, 2**200, 1000]


def archive(program: bytes, records: dict[str, bytes]) -> io.BytesIO:
    made = io.BytesIO()
    with Writer(made, "archive") as writer:
        writer.record("data.pkl", program)
        for name, data in records.items():
            writer.record(name, data)
    made.seek(0)
    return made


def good_files() -> list[tuple[bytes, dict[str, bytes]]]:
    base = tp.arange(12.0).reshape(3, 4)
    named = tp.ones(2)
    named.label = "x"
    parameter = nn.Parameter(tp.ones(2))
    parameter.label = ["y"]
    words = [
        tp.float32,
        tp.device("cpu"),
        tp.Size([2, 3]),
        tp.strided,
        1j,
        bytearray(b"ab"),
        {1, (2, 3)},
        b"\xff",
        None,
    ]
    values: list[Any] = [
        [base, base[:, 1], named, parameter, tp.tensor([1, 2], dtype=tp.uint16), tp.empty(2, device="meta")],
        nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).state_dict(),
        {"words": words, ("a", 1): (2, 3), "big": 2**70},
        [tp.eye(3).to_sparse(), tp.eye(3).to_sparse_csr()],
    ]
    files = []
    for value in values:
        for protocol in (2, 4):
            file = io.BytesIO()
            tp.save(value, file, pickle_protocol=protocol)
            file.seek(0)
            reader = Reader(file)
            records = {name: reader.read(name) for name in reader.places if name != "data.pkl"}
            files.append((reader.read("data.pkl"), records))
    return files


# ---- programs ----


def text(word: str) -> bytes:
    data = word.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return pickle.LONG1 + bytes([len(data)]) + data


def named(name: tuple[str, str]) -> bytes:
    return pickle.GLOBAL + f"{name[0]}\n{name[1]}\n".encode()


def storage(numbers: random.Random) -> bytes:
    kind = numbers.choice(["FloatStorage", "LongStorage", "ComplexFloatStorage"])
    count = {"FloatStorage": 12, "LongStorage": 6, "ComplexFloatStorage": 6}[kind]
    parts = text("storage") + named(("torch", kind)) + text("0") + text("cpu")
    return b"(" + parts + number(numbers.choice([count, count, count, 7])) + b"tQ"


class Programs:
    """Programs of the right grammar with wild values."""

    def __init__(self, seed: int) -> None:
        self.numbers = random.Random(seed)
        self.table = list(names.TABLE)

    def pick(self, values: list[Any]) -> Any:
        return self.numbers.choice(values)

    def value(self, depth: int = 3) -> bytes:
        kind = self.numbers.randrange(16 if depth else 8)
        if kind < 2:
            return text(self.pick(WORDS))
        if kind < 4:
            return number(self.pick(NUMBERS))
        if kind == 4:
            return self.pick([b"N", b"\x88", b"\x89", b")", b"]", b"}", b"\x8f", b"G" + struct.pack(">d", 1e308)])
        if kind == 5:
            return named(self.pick(self.table))
        if kind == 6:
            return storage(self.numbers)
        if kind == 7:
            return pickle.BINGET + bytes([self.numbers.randrange(3)])
        if kind < 11:
            return self.several(depth, self.pick([b"t", b"t", b"\x91"]))
        if kind == 11:
            return b"]" + self.several(depth, b"e")
        if kind == 12:
            return b"}(" + (text(self.pick(WORDS)) + self.value(depth - 1)) * self.numbers.randrange(3) + b"u"
        if kind == 13:
            return self.tensor(depth)
        return self.call(depth)

    def several(self, depth: int, end: bytes) -> bytes:
        return b"(" + b"".join(self.value(depth - 1) for _ in range(self.numbers.randrange(5))) + end

    def ints(self) -> bytes:
        return (
            b"(" + b"".join(number(self.pick(NUMBERS[:6] * 3 + NUMBERS)) for _ in range(self.pick([0, 1, 1, 2]))) + b"t"
        )

    def tensor(self, depth: int) -> bytes:
        more = self.value(depth - 1) if self.numbers.random() < 0.3 else b"}"
        parts = storage(self.numbers) + number(self.pick(NUMBERS[:5])) + self.ints() + self.ints() + b"\x89" + more
        return named(("torch._utils", "_rebuild_tensor_v2")) + b"(" + parts + b"tR"

    def call(self, depth: int) -> bytes:
        end = self.pick([b"R", b"R", b"R", b"\x81"])
        name = self.pick(self.table if self.numbers.random() < 0.9 else FORBIDDEN)
        made = named(name) + self.several(depth, b"t") + end
        for _ in range(self.numbers.randrange(3)):
            made += b"q" + bytes([self.numbers.randrange(3)])
            made += self.pick(
                [self.value(depth - 1) + b"b", b"}" + text(self.pick(WORDS)) + self.value(depth - 1) + b"sb",
                 text(self.pick(WORDS)) + self.value(depth - 1) + b"s", self.value(depth - 1) + b"a",
                 b"(" + self.value(depth - 1) + b"\x90"]
            )  # fmt: skip
        return made

    def attacks(self, name: tuple[str, str]) -> Iterator[bytes]:
        """One name, called with wild arguments, changed with wild states."""
        for end in (b"R", b"\x81"):
            for _ in range(60):
                call = named(name) + self.several(2, b"t") + end
                yield from (
                    call,
                    call + self.value(2) + b"b",
                    call + b"}" + text(self.pick(WORDS)) + self.value(1) + b"sb",
                )
        for state in (b"}", b"N}\x86", b"}" + text("__dict__") + b"}s", b"}" + text("pwned") + b"K\x01s", self.value()):
            yield named(name) + state + b"b"
        yield named(name) + text("pwned") + b"K\x01s"
        yield named(name) + b"K\x01a"

    def __iter__(self) -> Iterator[bytes]:
        while True:
            first = b"".join(self.value(1) + b"q" + bytes([i]) + b"0" for i in range(3))
            yield first + (self.call(3) if self.numbers.random() < 0.8 else self.value())


def mutations(program: bytes, numbers: random.Random) -> Iterator[bytes]:
    """The program's opcodes left out, doubled, swapped, and replaced by those of other calls."""
    places = [place for *_, place in pickletools.genops(program)] + [len(program)]
    parts = [program[a:b] for a, b in itertools.pairwise(places)]
    wild = Programs(numbers.randrange(1 << 30))
    while True:
        changed = list(parts)
        for _ in range(numbers.choice((1, 1, 2, 4))):
            i = numbers.randrange(1, len(changed) - 1)
            change = numbers.randrange(6)
            if change == 0:
                del changed[i]
            elif change == 1:
                changed.insert(i, changed[numbers.randrange(1, len(changed) - 1)])
            elif change == 2:
                j = numbers.randrange(1, len(changed) - 1)
                changed[i], changed[j] = changed[j], changed[i]
            elif change == 3:
                changed[i] = wild.value(1)
            elif change == 4:
                changed[i] = named(numbers.choice(wild.table + FORBIDDEN))
            else:
                changed.insert(
                    i, numbers.choice([b"R", b"\x81", b"b", b"0", b"2", b"s", b"u", b"a", b"Q", b"\x93", b"t"])
                )
            if len(changed) < 4:
                break
        yield b"".join(changed)


# ---- effects ----

seen: list[str] = []
watching = False
HARMLESS = {"builtins.id", "object.__getattr__"}  # they tell nothing to others


def hook(event: str, arguments: tuple[Any, ...]) -> None:
    if watching and event not in HARMLESS:
        seen.append(f"{event} {arguments!r:.200}")


def classes() -> list[type]:
    found, waiting = set[type](), [object]
    while waiting:
        for each in type.__subclasses__(waiting.pop()):
            if each not in found:
                found.add(each)
                waiting.append(each)
    return list(found)


def world() -> dict[str, Any]:
    """What a program could have changed: attributes of classes and modules, the environment, the folder."""
    state: dict[str, Any] = {f"environment {k}": v for k, v in os.environ.items()}
    state["folder"] = os.getcwd(), sorted(os.listdir("."))
    for cls in classes():
        for name, value in vars(cls).items():
            if name not in ("_abc_impl", "__abstractmethods__"):
                state[f"class {cls.__module__}.{cls.__qualname__} {id(cls)}.{name}"] = id(value)
    for name, module in list(sys.modules.items()):
        if name == "__main__" or not hasattr(module, "__dict__"):
            continue
        for attribute, value in vars(module).items():
            state[f"module {name}.{attribute}"] = id(value)
    state["names"] = {k: id(v) for k, v in names.TABLE.items()}, sorted(sys.modules)
    return state


DATA = {
    "Tensor", "Parameter", "Size", "device", "dtype", "layout", "NoneType", "bool", "int", "float", "complex", "str",
    "bytes", "bytearray", "tuple", "list", "dict", "set", "frozenset", "OrderedDict", "Counter", "StorageType",
    "TypedStorage",     "UntypedStorage", "SparseTensor", "Account", "Coo", "Csr", "_ParameterMeta",
    "type", "function", "builtin_function_or_method", "ellipsis", "qscheme", "DimRange", "ScriptObject",
}  # fmt: skip


def check_data(value: Any) -> None:
    """Nothing but data, and names of the table that the file speaks of."""
    waiting, looked = [value], 0
    known = {id(v) for v in names.TABLE.values()}
    while waiting and looked < 3000:
        part, looked = waiting.pop(), looked + 1
        kind = type(part).__name__
        if kind not in DATA or (callable(part) and not isinstance(part, tp.Tensor) and id(part) not in known):
            seen.append(f"a value of the type {kind}: {part!r:.100}")
        if isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, (tuple, list, set, frozenset)):
            waiting += part
        if isinstance(getattr(part, "__dict__", None), dict) and not isinstance(part, type) and not callable(part):
            waiting += [part.__dict__]


def run(program: bytes, records: dict[str, bytes]) -> str:
    """What came of it; the check has to say of each name what the loader does."""
    global watching
    file = archive(program, records)
    refused, outcome = None, "loaded"
    watching = True
    try:
        value = tp.load(file)
        check_data(value)
        del value
    except UnsafeGlobal as error:
        refused, outcome = error.name, "refused"
    except ERRORS as error:
        outcome = type(error).__name__
    try:
        file.seek(0)
        found = get_unsafe_globals_in_checkpoint(file)
    except pickle.UnpicklingError:
        found = None
    watching = False
    if found is None and (refused or outcome == "loaded"):
        seen.append(f"only the check says that the file is damaged: {program!r}")
    if found is not None and ((refused is not None and refused not in found) or (outcome == "loaded" and found)):
        seen.append(f"the check says {found}, the loader {refused}: {program!r}")
    return outcome


def programs_of(kind: str, seed: int) -> Iterator[tuple[bytes, dict[str, bytes]]]:
    records = {"data/0": bytes(range(48)), "byteorder": b"little"}
    wild = Programs(seed)
    if kind == "names":
        for name in names.TABLE:
            for attack in wild.attacks(name):
                yield b"\x80\x02" + attack + b".", records
    elif kind == "allowed":
        add_safe_globals([(open, "_io.open")])
        yield b"\x80\x02c_io\nopen\n" + text(os.devnull) + b"\x85R.", records
    elif kind == "programs":
        for _, program in zip(range(20_000), wild, strict=False):
            yield b"\x80\x02" + program + b".", records
    else:
        for program, others in good_files():
            for _, changed in zip(range(1500), mutations(program, wild.numbers), strict=False):
                yield changed, others


def main(kind: str, seed: int) -> None:
    sys.addaudithook(hook)
    for program, records in good_files():  # what is imported late is imported once
        repr(tp.load(archive(program, records)))
    for _, (program, records) in zip(range(300), programs_of("programs", seed + 1), strict=False):
        run(program, records)
    gc.collect()
    seen.clear()
    before = world()
    outcomes: dict[str, int] = {}
    for program, records in programs_of(kind, seed):
        count = len(seen)
        outcome = run(program, records)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if len(seen) > count:
            print(f"EFFECT {seen[count:]} of {program!r}")
    after = world()
    for name in before.keys() | after.keys():
        if before.get(name) != after.get(name):
            print(f"CHANGED {name}: {before.get(name)!r:.100} {after.get(name)!r:.100}")
    print(outcomes)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
