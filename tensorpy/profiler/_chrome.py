"""Events as a Chrome trace: JSON that chrome://tracing, Perfetto and TensorBoard show."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tensorpy.profiler._event import BACKWARD, OPERATOR, RANGE, FunctionEvent

_CATEGORY = {OPERATOR: "cpu_op", BACKWARD: "backward", RANGE: "user_annotation"}


def _arguments(event: FunctionEvent) -> dict[str, Any]:
    found: dict[str, Any] = {"External id": event.id}
    if event.sequence_nr >= 0:
        found["Sequence number"] = event.sequence_nr
    if event.input_shapes:
        found["Input Dims"], found["Input type"] = event.input_shapes, event.input_dtypes
    if event.cpu_memory_usage:
        found["Bytes"] = event.cpu_memory_usage
    if event.backend:
        found["Backend"] = event.backend
    if event.failed:
        found["Failed"] = True
    if event.stack:
        found["Call stack"] = ";".join(reversed(event.stack))
    return found


def _arrow(kind: str, number: int, start: dict[str, Any], end: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """From the beginning of one slice to that of another."""
    for phase, at in (("s", start), ("f", end)):
        ends = {"bp": "e"} if phase == "f" else {}
        place = {name: at[name] for name in ("pid", "tid", "ts")}
        yield {"ph": phase, "id": number, "cat": kind, "name": kind, **place, **ends}


def _under_way(event: FunctionEvent, pid: int) -> Iterator[dict[str, Any]]:
    """A message: others may be under way at the same time."""
    for phase, at in (("b", event.time_range.start), ("e", event.time_range.end)):
        yield {"ph": phase, "cat": "message", "id": event.id, "name": event.name, "pid": pid, "tid": 0, "ts": at,
               "args": _arguments(event)}  # fmt: skip


def _name(pid: Any, tid: Any, what: str, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def trace(events: Iterable[FunctionEvent]) -> list[dict[str, Any]]:
    """Slices of threads and devices, arrows from a call to its backward and from a launch to its kernel."""
    pid = os.getpid()
    made: list[dict[str, Any]] = [_name(pid, 0, "process_name", "tensorpy")]
    forward: dict[int, dict[str, Any]] = {}
    threads, devices = set(), set()
    for event in events:
        if event.is_async:
            made += _under_way(event, pid)
            continue
        threads.add(event.thread)
        whole = {"ph": "X", "cat": _CATEGORY[event.kind], "name": event.name, "pid": pid, "tid": event.thread}
        at = {**whole, "ts": event.time_range.start, "dur": event.cpu_time_total, "args": _arguments(event)}
        if event.name != "(outside)":
            made.append(at)
        if event.sequence_nr >= 0 and event.kind == OPERATOR:
            forward[event.sequence_nr] = at
        elif event.sequence_nr in forward:
            made += _arrow("fwdbwd", event.sequence_nr, forward[event.sequence_nr], at)
        for kernel in event.kernels:
            devices.add((kernel.device, kernel.stream))
            slice = {"ph": "X", "cat": "kernel", "name": kernel.name, "pid": kernel.device, "tid": kernel.stream}
            run = {**slice, "ts": kernel.time_range.start, "dur": kernel.duration, "args": {"External id": event.id}}
            made += [run, *_arrow("ac2g", len(made), at, run)]
    made += [_name(pid, t, "thread_name", f"thread {t}") for t in sorted(threads)]
    made += [_name(device, stream, "thread_name", f"stream {stream}") for device, stream in sorted(devices)]
    return made


def write(path: str | os.PathLike[str], events: Iterable[FunctionEvent], metadata: dict[str, Any]) -> None:
    """The trace of events as a file; a `.gz` name is compressed."""
    write_slices(path, trace(events), metadata)


def write_slices(path: str | os.PathLike[str], slices: list[dict[str, Any]], metadata: dict[str, Any]) -> None:
    """What `trace` made, as a file."""
    text = json.dumps({**metadata, "displayTimeUnit": "ns", "traceEvents": slices})
    if str(path).endswith(".gz"):
        import gzip

        Path(path).write_bytes(gzip.compress(text.encode()))
    else:
        Path(path).write_text(text)
