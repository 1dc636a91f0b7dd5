"""The last messages of this process, finished or not, in PyTorch's form, which its tools for traces read.

The engine keeps them (csrc/distributed/recorder.h): 2,000, or as many as TORCH_FR_BUFFER_SIZE says before the first.
They stay when the world is over, also where a message was late: a program that catches the error may write them down.
"""

from __future__ import annotations

import os
import time
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy.distributed import groups
from tensorpy.distributed.messages import KINDS

__all__ = ["dump", "trace"]

_VERSION = "2.10"  # of the form
_KIND_OF = {number: kind for kind, number in KINDS.items()}
_IN_ELEMENTS = ("all_reduce", "reduce", "reduce_scatter")
_DTYPES = {
    "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "uint16": "UInt16",
    "uint32": "UInt32", "uint64": "UInt64", "float16": "Half", "float32": "Float", "float64": "Double",
    "bfloat16": "BFloat16", "bool": "Bool", "complex32": "ComplexHalf", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip


def _sizes(kind: str, count: int, came: int, dtype: str, size: int) -> tuple[list[list[int]], list[list[int]]]:
    """How many elements went in and came out, as shapes."""
    item = 1 if kind in _IN_ELEMENTS else getattr(tp, dtype).itemsize
    one, other = count // item, came // item
    if kind == "barrier":
        return [], []
    went = one * size if kind in ("reduce_scatter", "scatter") else one
    return [[went]], [[other * size if kind in ("all_gather", "gather") else other]]


def _title(found: groups.ProcessGroup | None, kind: str, peer: int) -> str:
    backend = found.name() if found else "gloo"
    me = found.rank() if found else 0
    if kind == "send":
        return f"{backend}:send {me}->{peer}"
    return f"{backend}:recv {me}<-{peer}" if kind == "recv" else f"{backend}:{kind}"


def _entry(record: Any, by_number: dict[int, groups.ProcessGroup], ahead: int) -> dict[str, Any]:
    record_id, name, number_of_kind, group, number, peer, count, came, dtype, begun, done = record
    kind, found = _KIND_OF[number_of_kind], by_number.get(group)
    of_two = kind in ("send", "recv")
    given, got = _sizes(kind, count, came, dtype, found.size() if found else 1)
    entry = {
        "record_id": record_id,
        "pg_id": group,
        "process_group": (found.group_name, found.group_desc) if found else (f"ended-{group}", "undefined"),
        "collective_seq_id": 0 if of_two else number,
        "p2p_seq_id": number if of_two else 0,
        "op_id": record_id,
        "is_p2p": of_two,
        "profiling_name": _title(found, kind, peer),
        "called": name,
        "input_sizes": given,
        "input_dtypes": [_DTYPES.get(dtype, dtype)] * len(given),
        "output_sizes": got,
        "output_dtypes": [_DTYPES.get(dtype, dtype)] * len(got),
        "time_created_ns": 1000 * begun + ahead,
        "time_discovered_started_ns": 1000 * begun + ahead,
        "time_discovered_completed_ns": 1000 * done + ahead if done else None,
        "state": "completed" if done else "started",
        "retired": bool(done),
        "timeout_ms": int(1000 * found._seconds) if found else 0,
        "frames": [],
    }
    return {**entry, "duration_ms": (done - begun) / 1000} if done else entry


def trace(only_active: bool = False) -> dict[str, Any]:
    """The last messages of this process, the oldest first, and its groups.

    Each entry has the message's kind (`profiling_name`), the name by which errors call it (`called`), its group, its
    number there, sizes and dtypes, when it began and was found done, and its state: "started" or "completed".

    Arguments:
        only_active: whether those that are done are left out

    Returns: a dict of numbers, texts, lists and dicts, with PyTorch's keys.

    Example:
        >>> from tensorpy.distributed import flight_recorder
        >>> sorted(flight_recorder.trace())
        ['comm_lib_version', 'entries', 'pg_config', 'pg_status', 'version']
    """
    by_number = {g._number: g for g in groups.made.values() if g._number >= 0}
    ahead = time.time_ns() - time.monotonic_ns()
    every = [_entry(record, by_number, ahead) for record in _C._distributed.records()]
    status: dict[str, dict[str, int]] = {}
    for entry in every:
        if not entry["is_p2p"]:
            last = status.setdefault(str(entry["pg_id"]), {"last_completed_collective": -1})
            last["last_enqueued_collective"] = last["last_started_collective"] = entry["collective_seq_id"]
            if entry["retired"]:
                last["last_completed_collective"] = entry["collective_seq_id"]
    config = {
        str(number): {"name": g.group_name, "desc": g.group_desc, "ranks": str(list(g._ranks))}
        for number, g in by_number.items()
    }
    return {
        "version": _VERSION,
        "comm_lib_version": _C._distributed.library(),
        "pg_config": config,
        "pg_status": status,
        "entries": [e for e in every if not (only_active and e["retired"])],
    }


def dump(path: str | os.PathLike[str] | None = None) -> str:
    """Writes trace() into a file that `torch.distributed.flight_recorder.fr_trace` reads, a pickle of plain values.

    Arguments:
        path: the file; if nothing is said, what TORCH_FR_DUMP_TEMP_FILE or TORCH_NCCL_DEBUG_INFO_TEMP_FILE begins,
            with this process's rank behind it

    Returns: the file's name.

    Raises: ValueError where there is neither a path nor a variable.

    Example:
        >>> from tensorpy.distributed import flight_recorder
        >>> flight_recorder.dump("trace_0")
        'trace_0'
    """
    import pickle

    if path is None:
        names = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
        begins = next((os.environ[name] for name in names if name in os.environ), None)
        if begins is None:
            raise ValueError(f"dump: a path, or a variable that says how it begins ({' or '.join(names)})")
        path = f"{begins}{groups.get_rank()}"
    with open(path, "wb") as file:
        pickle.dump(trace(), file)
    return os.fspath(path)


def _dump_fr_trace(
    includeCollectives: bool | None = None, includeStackTraces: bool | None = None, onlyActive: bool | None = None
) -> bytes:
    import pickle

    return pickle.dumps(_chosen(includeCollectives, onlyActive))


def _dump_fr_trace_json(includeCollectives: bool | None = None, onlyActive: bool | None = None) -> bytes:
    import json

    return json.dumps(_chosen(includeCollectives, onlyActive)).encode()


def _chosen(collectives: bool | None, active: bool | None) -> dict[str, Any]:
    found = trace(bool(active))
    return {**found, "entries": []} if collectives is False else found
