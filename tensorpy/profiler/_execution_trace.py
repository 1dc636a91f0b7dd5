"""ExecutionTraceObserver: the calls of a program as a file of nodes in JSON, as tools that replay programs read them.

A node has its parent (`ctrl_deps`), its operator's schema and the shapes and dtypes of its arguments. A profile records
neither values nor results, so these are left empty.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import time
from typing import Any

from tensorpy import _C
from tensorpy.profiler._event import OPERATOR, FunctionEvent
from tensorpy.profiler._profile import Recording

_SCHEMA = "1.1.1-chakra.0.0.4"  # the form of the file
_PROCESS, _FIRST = 1, 2  # the numbers of nodes


def _schema_of(event: FunctionEvent) -> str:
    name = event.name.removeprefix("aten::") + (f".{event.overload_name}" if event.overload_name else "")
    try:
        return str(_C._op_overload(name)._schema) if event.kind == OPERATOR else ""
    except AttributeError:  # it is there no more
        return ""


def _node(number: int, parent: int, name: str, thread: int, event: FunctionEvent | None = None) -> dict[str, Any]:
    shapes, dtypes = (event.input_shapes, event.input_dtypes) if event else ([], [])
    facts: list[tuple[str, str, Any]] = [
        ("rf_id", "uint64", number),
        ("fw_parent", "uint64", 0),
        ("seq_id", "int64", event.sequence_nr if event else -1),
        ("scope", "uint64", event.scope if event else 7),
        ("tid", "uint64", thread),
        ("fw_tid", "uint64", 0),
        ("op_schema", "string", _schema_of(event) if event else ""),
    ]
    return {
        "id": number,
        "name": name,
        "ctrl_deps": parent,
        "inputs": {
            "values": [],
            "shapes": shapes,
            "types": [f"Tensor({d})" if d else "" for d in dtypes],
            "strides": [],
        },
        "outputs": {"values": [], "shapes": [], "types": [], "strides": []},
        "attrs": [{"name": name, "type": kind, "value": value} for name, kind, value in facts],
    }


def _nodes(events: list[FunctionEvent]) -> list[dict[str, Any]]:
    nodes = [_node(_PROCESS, _PROCESS, "[pytorch|profiler|execution_trace|process]", 0)]
    numbers: dict[int, int] = {}  # of an event's node, by id()
    threads: dict[int, int] = {}
    for number, event in enumerate(events, _FIRST + len({e.thread for e in events})):
        if event.thread not in threads:
            threads[event.thread] = _FIRST + len(threads)
            nodes.append(
                _node(threads[event.thread], _PROCESS, "[pytorch|profiler|execution_trace|thread]", event.thread)
            )
        numbers[id(event)] = number
        parent = threads[event.thread] if event.cpu_parent is None else numbers[id(event.cpu_parent)]
        nodes.append(_node(number, parent, event.name, event.thread, event))
    return nodes


class ExecutionTraceObserver:
    """Writes the calls between `start` and `stop` to a file; several such times make one file.

    `profile(execution_trace_observer=...)` gives it what the profile records.

    Example:
        >>> import json, tempfile
        >>> path = tempfile.mktemp(".json")
        >>> observer = tp.profiler.ExecutionTraceObserver().register_callback(path)
        >>> observer.start()
        >>> y = tp.ones(2) + 1
        >>> observer.unregister_callback()
        >>> "aten::add" in [node["name"] for node in json.load(open(path))["nodes"]]
        True
    """

    def __init__(self) -> None:
        self._path = ""
        self._recording: Recording | None = None
        self._events: list[FunctionEvent] = []
        self._begin = 0
        self.extra_resources_collection = False

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer with a file of its own where the environment has ENABLE_PYTORCH_EXECUTION_TRACE=1.

        Returns: an ExecutionTraceObserver, or None.
        """
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        handle, path = tempfile.mkstemp(".et.json")
        os.close(handle)
        return ExecutionTraceObserver().register_callback(path)

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Names the file; one that ends in .gz is compressed. The first name stays until unregister_callback.

        Returns: itself.
        """
        if not self._path:
            self._path, self._events, self._begin = os.fspath(output_file_path), [], time.monotonic_ns()
        return self

    def set_extra_resource_collection(self, val: bool) -> None:
        """Kernels of compilers that PyTorch has would be kept; there are none here."""
        self.extra_resources_collection = val

    @property
    def is_registered(self) -> bool:
        """Whether a file is named.

        Returns: bool.
        """
        return bool(self._path)

    def is_running(self) -> bool:
        """Whether calls are recorded now.

        Returns: bool.
        """
        return self._recording is not None

    def get_output_file_path(self) -> str | None:
        """The file's path; None where it has none.

        Returns: str, or None.
        """
        return self._path or None

    def start(self) -> None:
        """Records from now on, if a file is named."""
        if self._path and self._recording is None:
            self._recording = Recording(True, False, False, False, False)

    def stop(self) -> None:
        """Ends what `start` began."""
        recording, self._recording = self._recording, None
        if recording is not None:
            self.take(recording.stop())

    def take(self, events: list[FunctionEvent]) -> None:
        """Adds events that a profile recorded, if a file is named."""
        if self._path:
            self._events += events

    def unregister_callback(self) -> None:
        """Stops, and writes the file."""
        self.stop()
        path, self._path = self._path, ""
        if not path:
            return
        text = json.dumps(
            {
                "schema": _SCHEMA,
                "pid": os.getpid(),
                "time": time.strftime("%Y-%m-%d %H:%M:%S"),
                "start_ts": self._begin // 1000,
                "nodes": _nodes(self._events),
                "finish_ts": time.monotonic_ns() // 1000,
            }
        )
        opened = gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w", encoding="utf-8")
        with opened as file:
            file.write(text)

    def cleanup(self) -> None:
        """The same as unregister_callback."""
        self.unregister_callback()

    def __del__(self) -> None:
        if getattr(self, "_path", ""):
            self.unregister_callback()
