"""Where processes meet that are to be a world: from an address to a store, a rank and a size.

`env://` reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; `tcp://host:port` and `file:///path` name a store, and may
say `?rank=0&world_size=2`.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from tensorpy.distributed.stores import FileStore, PrefixStore, TCPStore


def _number(name: str, given: int, query: dict[str, list[str]], variable: str, where: str) -> int:
    """What is given, else what the address says, else what the environment says."""
    if given >= 0:
        return given
    if name in query:
        return int(query[name][0])
    if variable not in os.environ:
        raise ValueError(f"init_process_group: {variable} is neither given nor a variable of the environment ({where})")
    return int(os.environ[variable])


def rank_and_size(method: str, rank: int, size: int) -> tuple[int, int]:
    """Which of how many processes this is to be."""
    query = parse_qs(urlparse(method).query)
    rank = _number("rank", rank, query, "RANK", method)
    size = _number("world_size", size, query, "WORLD_SIZE", method)
    if size < 1 or not 0 <= rank < size:
        raise ValueError(f"init_process_group: there is no rank {rank} in a world of {size} processes")
    return rank, size


def store_of(method: str, rank: int, size: int, seconds: float) -> Any:
    """The store that an address names."""
    parts, patience = urlparse(method), timedelta(seconds=seconds)
    if parts.scheme == "file":
        if parts.netloc:
            raise ValueError(f"init_process_group: {method} is no path: file:///path begins with three strokes")
        store: Any = FileStore(parts.path, size)
        store.set_timeout(patience)
        return store
    if parts.scheme == "tcp":
        if not parts.hostname or parts.port is None:
            raise ValueError(f"init_process_group: {method} names no host and port: tcp://host:port")
        return TCPStore(parts.hostname, parts.port, size, rank == 0, patience, wait_for_workers=False)
    if parts.scheme == "env":
        missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
        if missing:
            raise ValueError(f"init_process_group: {' and '.join(missing)} are no variables of the environment")
        of_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = TCPStore(host, port, size, rank == 0 and not of_torchrun, patience, wait_for_workers=False)
        if of_torchrun:  # an attempt finds nothing of the one before
            return PrefixStore(f"attempt/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        return store
    raise RuntimeError(
        f"init_process_group: no rendezvous is known for {method}: env://, tcp://host:port, file:///path"
    )
