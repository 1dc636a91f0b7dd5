"""Stores of torch.distributed: keys and values that the threads of one process share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any


class DistStoreError(RuntimeError):
    """A key was not there in time."""


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """What all stores have: who asks for a key waits until it is set, or the timeout is over."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self.timeout = timedelta(seconds=300)

    def set_timeout(self, timeout: timedelta) -> None:
        """How long get and wait wait."""
        self.timeout = timeout

    def set(self, key: str, value: Any) -> None:
        """Sets a key."""
        with self._changed:
            self._content[key] = _bytes(value)
            self._changed.notify_all()

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all of these are set."""
        limit = (timeout or self.timeout).total_seconds()
        with self._changed:
            if not self._changed.wait_for(lambda: all(key in self._content for key in keys), limit):
                missing = ", ".join(key for key in keys if key not in self._content)
                raise DistStoreError(f"wait timeout after {limit * 1000:.0f}ms, keys: {missing}")

    def get(self, key: str) -> bytes:
        """The value of a key."""
        self.wait([key])
        return self._content[key]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Sets several."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def add(self, key: str, amount: int) -> int:
        """Counts: the number that a key has then; 0 before it is set."""
        with self._changed:
            found = int(self._content.get(key, b"0")) + amount
            self.set(key, str(found))
            return found

    def append(self, key: str, value: Any) -> None:
        """Puts bytes behind those of a key."""
        with self._changed:
            self.set(key, self._content.get(key, b"") + _bytes(value))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Sets a key that has the expected value, or that is missing where none is expected; what it has then."""
        with self._changed:
            there = self._content.get(key)
            if there == _bytes(expected_value) or (there is None and not expected_value):
                self.set(key, desired_value)
            return self._content.get(key, _bytes(expected_value))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all of these are set."""
        return all(key in self._content for key in keys)

    def delete_key(self, key: str) -> bool:
        """Takes a key out; whether it was there."""
        return self._content.pop(key, None) is not None

    def num_keys(self) -> int:
        """How many there are."""
        return len(self._content)

    def has_extended_api(self) -> bool:
        """Whether append, multi_get and multi_set work."""
        return True


class HashStore(Store):
    """A store in memory."""


class _Shared(Store):
    """A store that other processes would use as well: there are none."""

    def __init__(self, world_size: int | None) -> None:
        super().__init__()
        if world_size is not None and world_size > 1:
            raise NotImplementedError(f"{type(self).__name__}: a group of more processes than one cannot be made")


class FileStore(_Shared):
    """A store of processes that share a file, of which there is one."""

    def __init__(self, file_name: str, world_size: int | None = None) -> None:
        super().__init__(world_size)
        self.path = file_name


class TCPStore(_Shared):
    """A store that processes reach by network, of which there is one."""

    def __init__(
        self,
        host_name: str,
        port: int = 0,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__(world_size)
        self.host, self.port, self.timeout = host_name, port, timeout


class PrefixStore(Store):
    """Another store, whose keys begin with a prefix."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store = prefix, store

    def __getattribute__(self, name: str) -> Any:
        if name in ("prefix", "underlying_store") or name.startswith("__"):
            return object.__getattribute__(self, name)
        method = getattr(self.underlying_store, name)
        if name in ("num_keys", "set_timeout", "timeout", "has_extended_api") or name.startswith("_"):
            return method

        def prefixed(keys: Any, *args: Any, **kwargs: Any) -> Any:
            front = f"{self.prefix}/"
            return method(front + keys if isinstance(keys, str) else [front + key for key in keys], *args, **kwargs)

        return prefixed
