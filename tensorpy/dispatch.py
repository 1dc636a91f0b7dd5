"""Looking into the dispatcher: trace, explain, table, and guards for the thread's key sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor


@dataclass(frozen=True)
class Event:
    """One layer that a call entered.

    `arguments` has (dtype, shape, device) per tensor argument, a list of these, or None for anything else. `depth`
    counts the layers above; the time includes the layers below. `passed_by` names the layers between the one above and
    this one that the arguments' key sets hold and the call did not enter: switched off (autocast), or without anything
    to do for this operator.
    """

    op: str
    key: str
    arguments: tuple[Any, ...]
    seconds: float
    depth: int
    passed_by: tuple[str, ...] = ()


class trace:
    """Collects every layer of every call of this thread: `with trace() as t: ...`, then `t.events`.

    With `primitives` also what the kernels call below the operators ("prim::scan.sum"), and on which device.
    """

    def __init__(self, *, primitives: bool = False) -> None:
        self._raw: list[list[Any]] = []
        self._primitives = primitives

    def __enter__(self) -> trace:
        self._previous = _C._set_trace(self._raw, self._primitives)
        return self

    def __exit__(self, *unused: Any) -> None:
        _C._set_trace(self._previous)

    @property
    def events(self) -> list[Event]:
        """Every layer, in the order in which they were entered."""
        found: list[Event] = []
        above: list[tuple[str, int]] = []  # (operator, bit) of the layers that enclose the next one
        for op, key, arguments, seconds, depth, word in self._raw:
            del above[depth:]
            bit = _C._KEYS[key]
            ceiling = above[-1][1] if above and above[-1][0] == op else 1 << 64
            passed = tuple(
                n for n, b in sorted(_C._KEYS.items(), key=lambda i: -i[1]) if word & b and bit < b < ceiling
            )
            found.append(Event(op, key, arguments, seconds, depth, passed))
            above.append((op, bit))
        return found

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __str__(self) -> str:
        lines = []
        for e in self.events:
            lines += [f"{'  ' * e.depth}{e.op} [{key}] passed by" for key in e.passed_by]
            lines.append(f"{'  ' * e.depth}{e.op} [{e.key}] {e.seconds * 1e6:.1f} us")
        return "\n".join(lines)


@dataclass(frozen=True)
class Entry:
    """One line of an operator's table: which kernel a key leads to and where it was registered."""

    key: str
    registered_as: str
    source: str
    kind: str


class Table(list[Entry]):
    """An operator's computed dispatch table; prints as one."""

    def __str__(self) -> str:
        return "\n".join(f"{e.key:24} {e.kind:12} {e.registered_as:36} {e.source}" for e in self)


def table(operator: str) -> Table:
    """The computed table of an operator ("add.Tensor"): per key the kernel and where it came from."""
    return Table(Entry(*row) for row in _C._dispatch_table(operator))


def operators() -> list[str]:
    """The names of all operators, "add.Tensor" and so on."""
    return list(_C._operators())


def primitives() -> list[str]:
    """The names of what devices implement below the operators, "prim::scan.sum" and so on."""
    return list(_C._primitives())


def needs(operator: str) -> list[str]:
    """The primitives that an operator's kernel for dense backends calls: a device that has them all runs it itself."""
    return list(_C._operator_info(operator)[3])


def schema(operator: str) -> str:
    """The schema of an operator."""
    return str(_C._operator_info(operator)[0])


def tags(operator: str) -> list[str]:
    """The tags of an operator."""
    return list(_C._operator_info(operator)[1])


def keys(tensor: Tensor) -> list[str]:
    """The dispatch keys that a tensor carries, highest first."""
    word = _C._tensor_keys(tensor)
    return [name for name, bit in sorted(_C._KEYS.items(), key=lambda item: -item[1]) if word & bit]


def _layers(operator: str, tensors: list[Tensor]) -> Iterator[tuple[str, str]]:
    """Each key of the call, highest first, with what happens there."""
    include, exclude = _C._get_dispatch_sets()
    word = include
    for t in tensors:
        word |= _C._tensor_keys(t)
    if not tensors:
        word |= _C._KEYS["BackendSelect"]
    entries = {e.key: e for e in table(operator)}
    backend_found = False
    for name, bit in sorted(_C._KEYS.items(), key=lambda item: -item[1]):
        if not word & bit:
            continue
        is_backend = bit <= _C._KEYS["ZeroTensor"]
        if exclude & bit:
            yield (
                name,
                "excluded: " + ("autocast is off" if name.startswith("Autocast") else "by a guard of this thread"),
            )
        elif name not in entries:
            yield name, "no kernel" if is_backend else "passed by: nothing is registered for this layer"
        elif is_backend and backend_found:
            yield name, "not reached: a higher backend was chosen"
        else:
            e = entries[name]
            backend_found |= is_backend
            what = f"{e.kind} {e.source}" + (f" (registered for {e.registered_as})" if e.registered_as != name else "")
            if e.source.startswith("opencl/fallback.c"):
                what += f" ({_C._opencl.fallback_count(operator)} calls so far)"
            yield name, what


def explain(operator: str, *args: Any) -> str:
    """Which kernel would run on each layer for these arguments, and why. `operator` may leave out the overload."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    names = [n for n in operators() if n == operator or n.split(".")[0] == operator]
    if not names:
        raise ValueError(f"there is no operator '{operator}'; tensorpy.dispatch.operators() lists all")
    tensor_only = all(isinstance(a, Tensor) for a in args)
    preferred = [n for n in names if n.endswith(".Tensor") == tensor_only] if len(names) > 1 else names
    chosen = operator if operator in names else (preferred or names)[0]
    lines = [f"{schema(chosen)}"]
    lines += [f"  {name:22} {what}" for name, what in _layers(chosen, tensors)]
    return "\n".join(lines)


@contextmanager
def _sets(include: int, exclude: int) -> Iterator[None]:
    previous = _C._get_dispatch_sets()
    _C._set_dispatch_sets(previous[0] | include, previous[1] | exclude)
    try:
        yield
    finally:
        _C._set_dispatch_sets(*previous)


def _bits(names: tuple[str, ...]) -> int:
    word = 0
    for name in names:
        if name not in _C._KEYS:
            raise ValueError(f"unknown dispatch key '{name}'")
        word |= _C._KEYS[name]
    return word


def exclude(*keys: str) -> Any:
    """A context in which calls of this thread pass the named layers by."""
    return _sets(0, _bits(keys))


def include(*keys: str) -> Any:
    """A context in which calls of this thread enter the named layers, whatever their arguments."""
    return _sets(_bits(keys), 0)
