"""Calls every operator with wrong arguments in each place; a program, so that a crash or a hang kills only itself.

`python fuzz_operators.py JOURNAL [PART/PARTS] [NAME...]` keeps the operator at hand in JOURNAL: who starts it
(test_bad_input.py) reads there what was running when it died. Every call must return or raise one of EXPECTED.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import mmap
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from programs import SANITIZED

import tensorpy as tp
import tensorpy.distributed  # which has the kernels of collectives
from codegen.model import BaseType, ListType, OptionalType, Type
from tensorpy.testing.samples.table import CATALOG

EXPECTED = (
    TypeError,
    RuntimeError,  # and NotImplementedError
    ValueError,
    IndexError,
    OverflowError,
    MemoryError,
    ZeroDivisionError,
    BufferError,
)
SECONDS = 120 if SANITIZED else 20  # of one call, before it counts as hanging: the sanitizer is slow
ONE_CALL = 1.0 if SANITIZED else 0.1  # seconds, after which a signal ends a call: a degree of 2**62 takes years
ADDRESS_SPACE = 3 << 30
SHAPES = ((2, 3), (4,)) if SANITIZED else ((2, 3), (2, 3, 4, 4), (4,), (2, 2, 3))


class Ended(BaseException):
    """The signal that ends a call."""


IN_CALL = [False]


def end_call(*_: object) -> None:
    """Python hears a signal between two steps of its own: one that came at a call's end may be heard after it."""
    if IN_CALL[0]:
        raise Ended


@contextlib.contextmanager
def at_most() -> Iterator[None]:
    """Ended, inside of the scope, where it takes longer than one call may."""
    try:
        IN_CALL[0] = True
        signal.setitimer(signal.ITIMER_REAL, ONE_CALL)
        yield
    finally:
        IN_CALL[0] = False
        signal.setitimer(signal.ITIMER_REAL, 0)


class Watchdog:
    """Ends the program where a call takes SECONDS; to be told after each call."""

    def __enter__(self) -> Watchdog:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        self.armed = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()

    def tell(self) -> None:
        if time.monotonic() - self.armed > SECONDS / 10:  # arming starts a thread
            self.__enter__()


class Hostile:
    """An object whose every conversion raises."""

    def _raise(self, *_: object) -> Any:
        raise ValueError("hostile")

    __index__ = __int__ = __float__ = __len__ = __iter__ = __getitem__ = __bool__ = __complex__ = __array__ = _raise


def wrong_values() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return [
        "text", None, object(), Hostile(), 10**30, -(10**30), math.nan, math.inf, -1, -(2**63), 2**63 - 1, 2**62, 2**40,
        0, 1, 65, True, 1.5, 1j, b"bytes", [], (), [[1], [2, 3]], [1, 2, 3, 4], [-1], [2**62, 2**62], [0], [None],
        ["text"], [10**30], [math.nan], [1] * 65, endless, [2**40, 2**40], [-(2**63)], slice(1), range(3),
        tp.float32, tp.int64, tp.complex64, tp.device("meta"), "float32", "cpu", tp.Generator(),
        tp.ones(2, 3, dtype=tp.int64), tp.ones(2, 3, dtype=tp.bool), tp.ones(2, 3, dtype=tp.complex128),
        tp.ones(2, 3, dtype=tp.uint8), tp.full((2, 3), 2**62), tp.full((2, 3), -5), tp.ones(2, 3, device="meta"),
        tp.empty(0), tp.empty(0, 3), tp.empty(2, 0, dtype=tp.int64), tp.tensor(3), tp.tensor(math.nan), tp.ones(7),
        tp.ones(1, 2, 3, 4, 5, 6), tp.ones(3, 1).expand(3, 4), tp.ones(2, 3).t(), tp.ones(2, 3, requires_grad=True),
        tp.full((2, 3), math.nan), tp.ones(3, 3, dtype=tp.float16), [tp.ones(2), tp.ones(3)],
        [tp.ones(2), tp.ones(2, device="meta")], [tp.ones(2, 3), None, 1], [tp.tensor([0, 5])],
        [tp.tensor([True, False])],
    ]  # fmt: skip


def layouts() -> dict[str, tp.Tensor]:
    """Tensors without memory of their own: a kernel of one of them must not come back to itself with another."""
    numbers = tp.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    pieces = [tp.ones(2, 3), tp.ones(1, 3)]
    return {
        "quantized": tp.quantize_per_tensor(numbers, 0.1, 3, tp.quint8),
        "quantized image": tp.quantize_per_tensor(tp.ones(2, 3, 4, 4), 0.1, 0, tp.qint8),
        "channels": tp.quantize_per_channel(numbers, tp.tensor([0.1, 0.2]), tp.tensor([0, 1]), 0, tp.qint8),
        "coordinates": numbers.to_sparse(),
        "indices": numbers.long().to_sparse(),
        "rows": numbers.to_sparse_csr(),
        "columns": numbers.to_sparse_csc(),
        "blocks": tp.ones(4, 4).to_sparse_bsr((2, 2)),
        "hybrid": tp.ones(2, 3, 4, 4).to_sparse(2),
        "nested": tp.nested.nested_tensor(pieces),
        "jagged": tp.nested.nested_tensor(pieces, layout=tp.jagged),
        "zero": tp._efficientzerotensor((2, 3)),
    }


def plain(type_: Type, name: str, shape: tuple[int, ...]) -> Any:
    """A likely value of a schema's type."""
    match type_:
        case OptionalType():
            return None
        case ListType():
            if str(type_.elem).startswith("Tensor"):
                return [plain(BaseType("Tensor"), name, shape)] * 2
            return [plain(type_.elem, name, shape)] * (type_.size or 2)
    match str(type_):
        case "Tensor":
            integral = name in ("index", "indices", "target", "batch1_indices")
            return tp.ones(shape).long() if integral else tp.ones(shape)
        case "int" | "SymInt":
            return 1
        case "bool":
            return False
        case "float":
            return 0.5
        case "Scalar":
            return 1
        case "str":
            return "none"
        case "ScalarType":
            return tp.float32
        case "Device":
            return tp.device("cpu")
        case "Layout":
            return tp.strided
        case "MemoryFormat":
            return tp.contiguous_format
        case "Generator":
            return tp.Generator()
    return None


def calls(op: Any) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """(what is wrong, positional, keyword arguments)."""
    arguments = list(op.schema.arguments)
    keyword = {a.name for a in (*op.schema.kwarg_only, *op.schema.out)}
    for shape in SHAPES:

        def base() -> dict[str, Any]:
            given = {}
            for a in arguments:
                if a.default is None or a.name in {o.name for o in op.schema.out}:
                    given[a.name] = plain(a.type, a.name, shape)  # noqa: B023
            return given

        def split(given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
            names = [a.name for a in arguments if a.name not in keyword]
            positional = []
            for n in names:
                if n not in given:
                    break
                positional.append(given[n])
            rest = {n: v for n, v in given.items() if n not in names[: len(positional)]}
            return positional, rest

        yield f"plain {shape}", *split(base())
        for a in arguments:
            for i, value in enumerate(wrong_values()):
                given = base()
                given[a.name] = value
                yield f"{a.name} is wrong value {i} at {shape}", *split(given)
        of_tensors = {a.name: str(a.type) for a in arguments if str(a.type).startswith("Tensor")}
        required = [a for a in of_tensors if a in base()]
        for layout in layouts():
            for places in [[a] for a in of_tensors] + [required] * (len(required) > 1):
                given, value = base(), layouts()[layout]
                given |= {a: [value, value] if "[" in of_tensors[a] else value for a in places}
                yield f"{', '.join(places)} {layout} at {shape}", *split(given)
        tensors = [a.name for a in arguments if str(a.type) == "Tensor"]
        for a in tensors:  # each pair the same object, or overlapping
            for b in tensors:
                if a < b:
                    given = base()
                    given[a] = given[b]
                    yield f"{a} is {b}", *split(given)
                    given = base()
                    whole = tp.ones(64)
                    given[a], given[b] = whole[1:7].view(2, 3), whole[:6].view(2, 3)
                    yield f"{a} overlaps {b}", *split(given)
    if arguments:
        yield "nothing", [], {}
    yield "too many", [tp.ones(2)] * 20, {}
    yield "unknown keyword", [], {"nonsense": 1}


def run(journal: mmap.mmap, names: list[str], words: list[str]) -> list[str]:
    failures: list[str] = []
    verbose, wanted = len(names) == 1, set(names)
    for op in CATALOG:
        name = str(op.schema.name)
        if name not in wanted:
            continue
        function = tp._C._op_overload(name)
        ended = set()  # what goes on for ever, of whatever shape
        with Watchdog() as watchdog:
            for what, args, kwargs in calls(op):
                value = what.partition(" at ")[0]
                if value in ended:
                    continue
                journal[:] = f"{name}: {what}".encode()[:250].ljust(256, b"\0")
                if verbose:
                    print(what, args if "meta" not in str(args) else "", flush=True)
                try:
                    with at_most():
                        function(*args, **kwargs)
                except EXPECTED:
                    pass
                except Ended:
                    ended.add(value)
                except BaseException as error:
                    failures.append(f"{name}: {what}: {type(error).__name__}: {error}")
                watchdog.tell()
    return failures


def start(run: Callable[[mmap.mmap, list[str], list[str]], list[str]], names: Sequence[str]) -> int:
    """What a program of wild calls does: `JOURNAL [PART/PARTS] [--WORD=VALUE...] [NAME...]`.

    `run` gets the journal, the names of a part of the operators or those that were given, and the words; it gives what
    went wrong. On the CPU there is a limit to memory.
    """
    faulthandler.enable()
    signal.signal(signal.SIGALRM, end_call)
    words = [a for a in sys.argv[2:] if a.startswith("--")]
    part, _, parts = next((a for a in sys.argv[2:] if "/" in a), "0/1").partition("/")
    named = [a for a in sys.argv[2:] if "/" not in a and a not in words]
    with open(sys.argv[1], "r+b") as file:
        journal = mmap.mmap(file.fileno(), 256)
        if not SANITIZED and all(w == "--device=cpu" for w in words if w.startswith("--device")):  # others reserve more
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        failures = run(journal, named or list(names[int(part) :: int(parts)]), words)
    print("\n".join(failures))
    return 3 if failures else 0  # 1 is the watchdog's


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(start(run, [str(op.schema.name) for op in CATALOG]))
