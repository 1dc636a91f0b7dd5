"""Where processes meet that are to be a world: from an address to a store, a rank and a size.

`env://` reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; `tcp://host:port` and `file:///path` name a store, and may
say `?rank=0&world_size=2`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
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
        f"No rendezvous handler for {parts.scheme}://: there are env://, tcp://host:port, file:///path, and what "
        "register_rendezvous_handler was given"
    )


_handlers: dict[str, Callable[..., Iterator[tuple[Any, int, int]]]] = {}  # of schemes that a program has


def is_registered(method: str) -> bool:
    """Whether an address is of a scheme that a program has registered."""
    return urlparse(method).scheme in _handlers


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[tuple[Any, int, int]]]) -> None:
    """Has a function give stores, ranks and sizes for addresses of a scheme.

    Arguments:
        scheme: what stands before "://"
        handler: takes the address, and timeout= among others; yields (store, rank, world_size)

    Example:
        >>> tp.distributed.register_rendezvous_handler("mine", lambda url, **options: iter([]))
    """
    if scheme in _handlers or scheme in ("env", "file", "tcp"):
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Any, int, int]]:
    """Where processes meet: an iterator that gives a store, this process's rank, and how many there are.

    Arguments:
        url: env://, tcp://host:port, file:///path, with ?rank=0&world_size=2, or one of a registered scheme
        rank: which process this is, where the address does not say it
        world_size: how many there are, where the address does not say it
        kwargs: timeout: a timedelta

    Example:
        >>> store, rank, size = next(tp.distributed.rendezvous("file:///tmp/meeting?rank=0&world_size=1"))
        >>> rank, size
        (0, 1)
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlparse(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if (rank >= 0 or world_size >= 0) and ("rank" in query or "world_size" in query):
        raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
    query.update({"rank": str(rank)} if rank >= 0 else {})
    query.update({"world_size": str(world_size)} if world_size >= 0 else {})
    whole = f"{url.partition('?')[0]}?{'&'.join(f'{name}={value}' for name, value in query.items())}"
    if parts.scheme in _handlers:
        return _handlers[parts.scheme](whole, **kwargs)
    if parts.scheme not in ("env", "file", "tcp"):
        store_of(url, 0, 1, 0)  # which says what there is
    return _meeting(whole, query, kwargs.get("timeout", timedelta(seconds=1800)))


def _meeting(url: str, query: dict[str, str], timeout: timedelta) -> Iterator[tuple[Any, int, int]]:
    parts = urlparse(url)
    start = f"Error initializing torch.distributed using {parts.scheme}:// rendezvous:"
    if parts.scheme == "tcp" and parts.port is None:
        raise ValueError(f"{start} port number missing")
    if parts.scheme == "file" and not parts.path:
        raise ValueError(f"{start} path missing")
    for name, words in (("rank", "rank"), ("world_size", "world size")):
        if parts.scheme == "env" and name not in query and name.upper() not in os.environ:
            raise ValueError(f"{start} environment variable {name.upper()} expected, but not set")
        if parts.scheme != "env" and name not in query:
            raise ValueError(f"{start} {words} parameter missing")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if parts.scheme == "env" and name not in os.environ:
            raise ValueError(f"{start} environment variable {name} expected, but not set")
    rank, size = rank_and_size(url, -1, -1)
    yield store_of(url, rank, size, timeout.total_seconds()), rank, size
