"""Stores of torch.distributed: keys and bytes that processes share, and wait for.

A table with one lock serves each store. HashStore is a table of this process; of a TCPStore one process keeps the table
and answers the others, a thread for each connection; of a FileStore each keeps one, by a file that all append to.
A message is a list of byte strings: their number and lengths, then they. Nothing that is read is unpickled or run, a
command is one of a table, and no length is believed before its bytes are there. Every wait has an end; a connection
that an error or Ctrl-C left in the middle of an answer is closed, and says so to who asks again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from tensorpy.distributed.errors import DistNetworkError, DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_PATIENCE = timedelta(seconds=300)
_MOST_PARTS, _MOST_BYTES = 1 << 16, 1 << 32  # of a message
_PIECE = 1 << 20  # bytes that are read at once
_GRACE = 10.0  # seconds that an answer may be late, and that the rest of a message may take to come


class _Table:
    """Keys and values; `ask` does one thing, whole, for one caller."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, list[bytes]] = {}
        self.changed = threading.Condition()

    def ask(self, command: bytes, seconds: float, parts: Sequence[bytes]) -> list[bytes]:
        if command not in self.commands:
            raise ValueError(f"a store has no command {command[:40]!r}")
        with self.changed:
            answer = self.commands[command](self, seconds, *parts)
            if command in (b"set", b"add", b"compare_set", b"append", b"push"):
                self.changed.notify_all()
            return answer

    def _set(self, _: float, *pairs: bytes) -> list[bytes]:
        self.values.update(zip(pairs[::2], pairs[1::2], strict=True))
        return []

    def _wait(self, seconds: float, *keys: bytes) -> list[bytes]:
        if not self.changed.wait_for(lambda: all(map(self._has, keys)), seconds):
            raise self._late(seconds, keys)
        return []

    def _has(self, key: bytes) -> bool:
        return key in self.values or bool(self.queues.get(key))

    def _late(self, seconds: float, keys: Sequence[bytes]) -> DistStoreError:
        missing = ", ".join(k.decode(errors="replace") for k in keys if not self._has(k))
        return DistStoreError(f"wait timeout after {int(seconds * 1000)}ms, keys: {missing}")

    def _get(self, seconds: float, *keys: bytes) -> list[bytes]:
        self._wait(seconds, *keys)
        return [self.values[k] for k in keys]

    def _add(self, _: float, key: bytes, amount: bytes) -> list[bytes]:
        self.values[key] = b"%d" % (int(self.values.get(key, b"0")) + int(amount))
        return [self.values[key]]

    def _check(self, _: float, *keys: bytes) -> list[bytes]:
        return [b"1"] if all(map(self._has, keys)) else []

    def _delete(self, _: float, key: bytes) -> list[bytes]:
        return [b"1"] if self.values.pop(key, None) is not None else []

    def _count(self, _: float) -> list[bytes]:
        return [b"%d" % len(self.values)]

    def _compare_set(self, _: float, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        if self.values.get(key, b"") == expected:
            self.values[key] = desired
        return [self.values.get(key, expected)]

    def _append(self, _: float, key: bytes, value: bytes) -> list[bytes]:
        self.values[key] = self.values.get(key, b"") + value
        return []

    def _keys(self, _: float) -> list[bytes]:
        return list(self.values)

    def _push(self, _: float, key: bytes, value: bytes) -> list[bytes]:
        self.queues.setdefault(key, []).append(value)
        return []

    def _pop(self, seconds: float, key: bytes, waits: bytes) -> list[bytes]:
        if waits == b"1" and not self.changed.wait_for(lambda: bool(self.queues.get(key)), seconds):
            raise self._late(seconds, [key])
        return [self.queues[key].pop(0)] if self.queues.get(key) else []

    def _length(self, _: float, key: bytes) -> list[bytes]:
        return [b"%d" % len(self.queues.get(key, ()))]

    commands: ClassVar[dict[bytes, Callable[..., list[bytes]]]] = {
        b"set": _set,
        b"wait": lambda table, *given: table._wait(*given),
        b"get": _get,
        b"add": _add,
        b"check": _check,
        b"delete": _delete,
        b"count": _count,
        b"compare_set": _compare_set,
        b"append": _append,
        b"keys": _keys,
        b"push": _push,
        b"pop": _pop,
        b"length": _length,
    }


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """What all stores can do; keys are strings, values bytes (a string is encoded)."""

    timeout: Any = _PATIENCE

    def _ask(self, command: str, *parts: bytes, timeout: timedelta | None = None) -> list[bytes]:
        raise NotImplementedError(f"Not implemented. {type(self).__name__} has no {command} of its own")

    def _key(self, key: str | bytes) -> bytes:
        return b"/" + _bytes(key)

    def set_timeout(self, timeout: timedelta) -> None:
        self.timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", self._key(key), _bytes(value))

    def get(self, key: str) -> bytes:
        """The value, as soon as there is one."""
        return self._ask("get", self._key(key))[0]

    def add(self, key: str, amount: int) -> int:
        """Adds to a counter, which begins with 0."""
        return int(self._ask("add", self._key(key), b"%d" % amount)[0])

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._ask("check", *map(self._key, keys)))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Returns as soon as all keys are there; DistStoreError after the timeout."""
        self._ask("wait", *map(self._key, keys), timeout=timeout)

    def delete_key(self, key: str) -> bool:
        return bool(self._ask("delete", self._key(key)))

    def num_keys(self) -> int:
        return int(self._ask("count")[0])

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Sets a key whose value is the expected one, or that is not there and "" is expected; its value then."""
        return self._ask("compare_set", self._key(key), _bytes(expected_value), _bytes(desired_value))[0]

    def append(self, key: str, value: str | bytes) -> None:
        self._ask("append", self._key(key), _bytes(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._ask("get", *map(self._key, keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        pairs = zip(map(self._key, keys), map(_bytes, values), strict=True)
        self._ask("set", *(part for pair in pairs for part in pair))

    def list_keys(self) -> list[str]:
        """All keys."""
        return [key.decode(errors="replace").removeprefix("/") for key in self._ask("keys")]

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Puts a value at a queue's end; queues are made at first use, and wait() and check() know them."""
        self._ask("push", self._key(key), _bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the value at a queue's front, as soon as there is one; QueueEmptyError without one and block=False."""
        found = self._ask("pop", self._key(key), b"1" if block else b"0")
        if not found:
            raise QueueEmptyError(f"queue_pop: the queue {key} is empty")
        return found[0]

    def queue_len(self, key: str) -> int:
        """How many values a queue has."""
        return int(self._ask("length", self._key(key))[0])

    def has_extended_api(self) -> bool:
        """Whether there are append, multi_get and multi_set."""
        return type(self)._ask is not Store._ask

    def clone(self) -> Store:
        """Another way to the same keys, for another thread."""
        return self


def _by_methods(store: Store, command: str, parts: Sequence[bytes], timeout: timedelta | None) -> list[bytes]:
    """The same of a store that somebody else has written, by its methods."""
    names = [part.decode()[1:] for part in parts]  # without what _key puts before them
    if command == "set":
        if len(parts) == 2:
            store.set(names[0], parts[1])
        else:
            store.multi_set(names[::2], list(parts[1::2]))
    elif command == "get":
        return [store.get(names[0])] if len(parts) == 1 else store.multi_get(names)
    elif command == "add":
        return [b"%d" % store.add(names[0], int(parts[1]))]
    elif command == "check":
        return [b"1"] if store.check(names) else []
    elif command == "wait":
        store.wait(names, *([] if timeout is None else [timeout]))
    elif command == "delete":
        return [b"1"] if store.delete_key(names[0]) else []
    elif command == "count":
        return [b"%d" % store.num_keys()]
    elif command == "compare_set":
        return [store.compare_set(names[0], parts[1].decode(), parts[2].decode())]
    elif command == "append":
        store.append(names[0], parts[1])
    elif command == "keys":
        return [b"/" + key.encode() for key in store.list_keys()]
    elif command == "push":
        store.queue_push(names[0], parts[1])
    elif command == "pop":
        return [store.queue_pop(names[0], parts[1] == b"1")]
    else:
        return [b"%d" % store.queue_len(names[0])]
    return []


class HashStore(Store):
    """A store of this process, for its threads."""

    def __init__(self) -> None:
        self._table = _Table()

    def _ask(self, command: str, *parts: bytes, timeout: timedelta | None = None) -> list[bytes]:
        return self._table.ask(command.encode(), (timeout or self.timeout).total_seconds(), parts)


class _Noted(dict[bytes, bytes]):
    """A table that notes what happens to it, in the form of a file's records."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes]] = []

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self.records.append((key, value))
        super().__setitem__(key, value)

    def update(self, pairs: Any) -> None:
        for key, value in pairs:
            self[key] = value

    def pop(self, key: bytes, default: Any = None) -> Any:
        if key in self:
            self.records.append((b"-" + key, b""))
        return super().pop(key, default)


class _FileTable(_Table):
    """A table that is what a file's records make it: key and value, each after its length; a key after a "-" is
    taken away. PyTorch's stores write the same. Who reads or writes holds the file's lock.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path, self.read = path, 0
        self.values = self.noted = _Noted()

    def ask(self, command: bytes, seconds: float, parts: Sequence[bytes]) -> list[bytes]:
        if command in (b"push", b"pop", b"length"):
            raise NotImplementedError("a FileStore has no queues: a HashStore or a TCPStore has")
        with self.changed, open(self.path, "a+b") as file:
            self._take(file, time.monotonic() + seconds)
            answer = super().ask(command, seconds, parts)
            for record in self.noted.records:
                for part in record:
                    file.write(struct.pack("<I", len(part)) + part)
            file.flush()
            self.noted.records.clear()
            self.read = file.tell()
            return answer

    def _take(self, file: Any, end: float) -> None:
        """Locks the file, until it is closed, and reads what others have written."""
        import fcntl

        self.file = file
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise DistStoreError(f"wait timeout: another process keeps the lock of {self.path}") from None
                time.sleep(0.002)
        file.seek(self.read)
        data = memoryview(file.read())
        begin = 0
        while begin < len(data):
            key, begin = self._part(data, begin)
            value, begin = self._part(data, begin)
            if key[:1] == b"-":
                self.values.pop(key[1:])
            else:
                self.values[key] = value
        self.noted.records.clear()
        self.read += len(data)

    def _part(self, data: memoryview, begin: int) -> tuple[bytes, int]:
        length = struct.unpack_from("<I", data, begin)[0] if begin + 4 <= len(data) else len(data)
        if begin + 4 + length > len(data):
            raise DistStoreError(f"{self.path} is no file of a store")
        return bytes(data[begin + 4 : begin + 4 + length]), begin + 4 + length

    def _wait(self, seconds: float, *keys: bytes) -> list[bytes]:
        import fcntl

        end, file = time.monotonic() + seconds, self.file
        while not all(k in self.values for k in keys):
            if time.monotonic() > end:
                raise self._late(seconds, keys)
            fcntl.flock(file, fcntl.LOCK_UN)
            self.changed.wait(0.01)
            self._take(file, end + _GRACE)
        return []


class FileStore(Store):
    """A store of the processes that name one file; who is the last to leave takes the file away."""

    path: str
    _table: _FileTable | None = None

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path, self._world_size = file_name, world_size
        self._table = _FileTable(file_name)
        self._ask("add", b"refcount/", b"1")

    def has_extended_api(self) -> bool:
        """No: PyTorch's processes at the same file know no append."""
        return False

    def _ask(self, command: str, *parts: bytes, timeout: timedelta | None = None) -> list[bytes]:
        assert self._table is not None
        return self._table.ask(command.encode(), (timeout or self.timeout).total_seconds(), parts)

    def __del__(self) -> None:
        if self._table is None:
            return
        with contextlib.suppress(OSError, DistStoreError, ImportError):
            gone, here = int(self._ask("add", b"cleanup/", b"1")[0]), int(self._ask("add", b"refcount/", b"-1")[0])
            if here <= 0 and gone >= self._world_size:
                os.unlink(self.path)


class PrefixStore(Store):
    """Another store, whose keys get a prefix."""

    prefix: str
    underlying_store: Store

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store = prefix, store

    def _key(self, key: str | bytes) -> bytes:
        return self.underlying_store._key(_bytes(self.prefix) + b"/" + _bytes(key))

    def _ask(self, command: str, *parts: bytes, timeout: timedelta | None = None) -> list[bytes]:
        below = self.underlying_store
        if isinstance(below, PrefixStore) or type(below)._ask is not Store._ask:
            return below._ask(command, *parts, timeout=timeout)
        return _by_methods(below, command, parts, timeout)

    def has_extended_api(self) -> bool:
        """Whether the other store has append, multi_get and multi_set."""
        return self.underlying_store.has_extended_api()

    def clone(self) -> Store:
        """Another way to the same keys, for another thread."""
        return PrefixStore(self.prefix, self.underlying_store.clone())

    @property
    def timeout(self) -> timedelta:
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self.underlying_store.set_timeout(timeout)


class _Connection:
    """Messages over a socket."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected

    def send(self, parts: Sequence[bytes]) -> None:
        """OSError where the other side does not read."""
        self.socket.settimeout(_PATIENCE.total_seconds())
        self.socket.sendall(struct.pack(f"<I{len(parts)}Q", len(parts), *map(len, parts)) + b"".join(parts))

    def receive(self, seconds: float | None) -> list[bytes] | None:
        """A message that begins within so many seconds; None: the other side has gone."""
        self.socket.settimeout(seconds)
        first = self.socket.recv(1)
        if not first:
            return None
        end = time.monotonic() + _GRACE
        count = struct.unpack("<I", first + self._exactly(3, end))[0]
        if count > _MOST_PARTS:
            raise DistNetworkError(f"a message of {count} parts: not from a store")
        lengths = struct.unpack(f"<{count}Q", self._exactly(8 * count, end))
        if sum(lengths) > _MOST_BYTES:
            raise DistNetworkError(f"a message of {sum(lengths)} bytes: not from a store")
        return [self._exactly(n, None) for n in lengths]

    def _exactly(self, count: int, end: float | None) -> bytes:
        """So many bytes; DistNetworkError where fewer come. Without an end, each piece has its own."""
        pieces, left = [], count
        while left:
            self.socket.settimeout(_GRACE if end is None else max(end - time.monotonic(), 0.001))
            piece = self.socket.recv(min(left, _PIECE))
            if not piece:
                raise DistNetworkError(f"a message ends {left} bytes early")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        self.socket.close()


def _seconds(text: bytes) -> float:
    seconds = float(text)
    if not 0 <= seconds <= threading.TIMEOUT_MAX:  # NaN too
        raise ValueError(f"{text[:40]!r} is no time to wait")
    return seconds


def _serve(connected: socket.socket, table: _Table) -> None:
    """Answers one process until it goes."""
    with connected:
        connection = _Connection(connected)
        try:
            while (parts := connection.receive(None)) is not None:
                command, seconds, *rest = parts
                try:
                    answer = [b"", *table.ask(command, _seconds(seconds), rest)]
                except DistStoreError as error:
                    answer = [str(error).encode()]
                except (ValueError, TypeError) as error:  # not a number, or not so many parts
                    answer = [f"the store refuses this: {error}".encode()]
                connection.send(answer)
        except (OSError, ValueError, struct.error, DistNetworkError):
            with contextlib.suppress(OSError):  # it has gone, or is no store: the others go on
                connected.settimeout(0)
                connected.recv(_PIECE)  # with bytes left unread it would hear of a reset, and of no end


def _listen(listener: socket.socket, table: _Table) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # closed: the store has gone
        threading.Thread(target=_serve, args=(connection, table), daemon=True).start()


class _Server:
    """What answers at a port of this process, as long as a store has it."""

    def __init__(self, host: str, port: int, fd: int | None) -> None:
        try:
            self.listener = socket.create_server((host, port)) if fd is None else socket.socket(fileno=fd)
        except OSError as error:
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address: {host}:{port}: {error}"
            ) from None
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=_listen, args=(self.listener, _Table()), daemon=True).start()

    def __del__(self) -> None:
        if (listener := getattr(self, "listener", None)) is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # which wakes the thread that accepts
            listener.close()


_shared: weakref.WeakValueDictionary[int, _Server] = weakref.WeakValueDictionary()  # by port, those with multi_tenant


class TCPStore(Store):
    """A store that the process with is_master=True keeps, and others reach at its host and port (0: any free one)."""

    host: str
    timeout: timedelta

    def __init__(
        self,
        host_name: str,
        port: int = 0,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _PATIENCE,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        self.host, self.timeout, self._server = host_name, timeout, None
        if is_master:
            self._server = _shared.get(port) if multi_tenant else None
            self._server = self._server or _Server(host_name, port, master_listen_fd)
            port = self._server.port
            if multi_tenant:
                _shared[port] = self._server
        self.port = port
        self._lock = threading.Lock()
        self._broken: str | None = None
        self._connection: _Connection | None = None
        here = int(self._ask("add", b"init/", b"1")[0])
        if is_master and wait_for_workers and world_size is not None:
            self._wait_for(world_size, here)

    def clone(self) -> Store:
        """Another connection to the same store, for another thread."""
        return TCPStore(self.host, self.port, None, False, self.timeout, wait_for_workers=False)

    def _connect(self) -> socket.socket:
        end = time.monotonic() + self.timeout.total_seconds()
        while True:
            try:
                return socket.create_connection((self.host, self.port), max(end - time.monotonic(), 0.01))
            except OSError as error:
                if time.monotonic() > end:
                    raise DistNetworkError(f"no store answers at {self.host}:{self.port}: {error}") from None
                time.sleep(0.02)

    def _wait_for(self, world_size: int, here: int) -> None:
        end = time.monotonic() + self.timeout.total_seconds()
        while here < world_size:
            if time.monotonic() > end:
                raise DistStoreError(f"Timed out: {here} of {world_size} processes came in {self.timeout}")
            time.sleep(0.01)
            here = int(self._ask("get", b"init/")[0])

    def _ask(self, command: str, *parts: bytes, timeout: timedelta | None = None) -> list[bytes]:
        seconds = min((timeout or self.timeout).total_seconds(), threading.TIMEOUT_MAX - 2 * _GRACE)
        with self._lock:
            if self._broken:
                raise DistNetworkError(
                    f"the connection to the store at {self.host}:{self.port} is broken: {self._broken}"
                )
            connection = self._connection = self._connection or _Connection(self._connect())
            try:
                connection.send([command.encode(), repr(seconds).encode(), *parts])
                answer = connection.receive(seconds + _GRACE)
                if not answer:
                    raise DistNetworkError("the other side has gone")
            except BaseException as error:
                connection.close()
                if not isinstance(error, (OSError, struct.error, DistNetworkError)):  # Ctrl-C
                    self._connection = None  # what is still to come would be taken for the next answer
                    raise
                self._broken = str(error) or type(error).__name__
                raise DistNetworkError(f"the store at {self.host}:{self.port} has gone: {error}") from None
        if answer[0]:
            raise DistStoreError(answer[0].decode(errors="replace"))
        return answer[1:]

    def __del__(self) -> None:
        if (connection := getattr(self, "_connection", None)) is not None:
            connection.close()
