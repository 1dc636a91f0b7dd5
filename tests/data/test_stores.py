"""Stores of torch.distributed: in one process, and between several."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import struct
import threading
import time
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tensorpy import distributed
from tensorpy.distributed import stores as _stores

SHORT = timedelta(seconds=0.05)


def stores(folder: Path) -> list[Any]:
    tcp = distributed.TCPStore("127.0.0.1", 0, 1, True)
    file = distributed.FileStore(str(folder / "store"), 1)
    return [distributed.HashStore(), tcp, distributed.PrefixStore("p", distributed.HashStore()), file]


@pytest.mark.parametrize("which", range(4))
def test_a_store(which: int, tmp_path: Path) -> None:
    store = stores(tmp_path)[which]
    store.set("a", "x")
    assert store.get("a") == b"x" and store.check(["a"]) and not store.check(["a", "b"])
    assert (store.add("n", 2), store.add("n", 3), store.get("n")) == (2, 5, b"5")
    assert store.num_keys() == 2 + (which in (1, 3))  # one says who has come
    assert store.delete_key("a") and not store.delete_key("a")
    told = [store.compare_set("k", "", "v"), store.compare_set("k", "u", "w"), store.compare_set("k", "v", "w")]
    assert told == [b"v", b"v", b"w"]
    store.append("k", "q")
    store.multi_set(["x", "y"], [b"1", "2"])
    assert store.multi_get(["k", "x", "y"]) == [b"wq", b"1", b"2"]
    store.wait(["x", "y"])
    with pytest.raises(distributed.DistStoreError, match="timeout"):
        store.wait(["none"], SHORT)
    store.set_timeout(SHORT)
    with pytest.raises(distributed.DistStoreError, match="timeout"):
        store.get("none")


def _answer(port: int, rank: int) -> None:
    store = distributed.TCPStore("127.0.0.1", port, 3, False)
    store.set(f"from {rank}", store.get("question") + b"!" * rank)


def test_processes_share_a_store() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    others = [get_context("spawn").Process(target=_answer, args=(port, rank)) for rank in (1, 2)]
    for other in others:
        other.start()
    store = distributed.TCPStore("127.0.0.1", port, 3, True, timeout=timedelta(seconds=60))
    store.set("question", "well")
    assert store.multi_get(["from 1", "from 2"]) == [b"well!", b"well!!"]
    for other in others:
        other.join(60)


def _answer_by_file(path: str, rank: int) -> None:
    store = distributed.FileStore(path, 3)
    for _ in range(50):
        store.add("counted", 1)
    store.set(f"from {rank}", store.get("question") + b"!" * rank)
    store.wait(["over"])


def test_processes_share_a_file(tmp_path: Path) -> None:
    """A counter loses nothing, each hears of the others, and the last one takes the file away."""
    path = tmp_path / "store"
    others = [get_context("spawn").Process(target=_answer_by_file, args=(str(path), rank)) for rank in (1, 2)]
    for other in others:
        other.start()
    store = distributed.FileStore(str(path), 3)
    store.set_timeout(timedelta(seconds=60))
    for _ in range(50):
        store.add("counted", 1)
    store.set("question", "well")
    assert store.multi_get(["from 1", "from 2"]) == [b"well!", b"well!!"] and store.get("counted") == b"150"
    assert store.delete_key("from 1") and not distributed.FileStore(str(path), 3).check(["from 1"])
    store.set("over", "")
    for other in others:
        other.join(60)
    assert path.exists()
    del store
    assert not path.exists()


def test_a_file_is_shared_with_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.distributed.FileStore(str(tmp_path / "store"), 2)
    ours = distributed.FileStore(str(tmp_path / "store"), 2)
    theirs.set("a", "1")
    ours.set("b", "2")
    assert ours.get("a") == b"1" and theirs.get("b") == b"2" and ours.num_keys() == theirs.num_keys() == 3
    assert ours.delete_key("a") and theirs.add("b", 3) == 5 and ours.add("b", 1) == 6
    assert not theirs.check(["a"]) and theirs.get("b") == b"6"


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"no record of anything")
    with pytest.raises(distributed.DistStoreError, match="is no file of a store"):
        distributed.FileStore(str(tmp_path / "text"))


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<IQ", 1, 1 << 60),
        struct.pack("<I", 0),
        struct.pack("<IQ", 1, 3) + b"set",
        struct.pack("<I", 1 << 31),
    ],
)
def test_who_is_no_store_is_sent_away(said: bytes) -> None:
    store = distributed.TCPStore("127.0.0.1", 0, 1, True)
    with socket.create_connection(("127.0.0.1", store.port)) as stranger:
        stranger.sendall(said)
        assert stranger.recv(10) == b""
    store.set("a", "b")
    assert store.get("a") == b"b"


def message(*parts: bytes) -> bytes:
    return struct.pack(f"<I{len(parts)}Q", len(parts), *map(len, parts)) + b"".join(parts)


def refusal(stranger: socket.socket) -> bytes:
    count, length = struct.unpack("<IQ", stranger.recv(12, socket.MSG_WAITALL))
    assert count == 1
    return stranger.recv(length, socket.MSG_WAITALL)


@pytest.mark.parametrize(
    "parts",
    [
        (b"_init__", b"1"),
        (b"late", b"1", b"x"),
        (b"ask", b"1", b"set", b"1", b""),
        (b"set", b"1", b"only a key"),
        (b"add", b"1", b"n", b"no number"),
        (b"get", b"nan", b"x"),
        (b"get", b"-1", b"x"),
        (b"wait", b"1e400", b"x"),
        (b"\xff\xfe", b"1"),
        (b"count", b"1", b"too", b"many"),
    ],
)
def test_a_command_is_one_of_a_table(parts: tuple[bytes, ...]) -> None:
    store = distributed.TCPStore("127.0.0.1", 0, 1, True)
    with socket.create_connection(("127.0.0.1", store.port), 60) as stranger:
        stranger.sendall(message(*parts))
        assert b"refuses" in refusal(stranger)
        stranger.sendall(message(b"count", b"1"))  # and the connection goes on
        assert stranger.recv(4) == struct.pack("<I", 2)
    assert store.num_keys() == 1


@pytest.mark.parametrize("end", range(1, 45, 3))
def test_a_message_that_ends_early_does_nothing(end: int) -> None:
    store = distributed.TCPStore("127.0.0.1", 0, 1, True)
    whole = message(b"set", b"1", b"/key", b"value")
    assert end < len(whole)
    with socket.create_connection(("127.0.0.1", store.port), 60) as stranger:
        stranger.sendall(whole[:end])
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(10) == b""
    assert not store.check(["key"])


def test_garbage_from_many() -> None:
    numbers, store = random.Random(0), distributed.TCPStore("127.0.0.1", 0, 1, True)
    words = [b"set", b"get", b"_set", b"wait", b"1", b"0.01", b"", b"/a", b"\x00" * 40, b"ask", b"values"]
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", store.port), 60) as stranger:
            said = bytearray(message(*(numbers.choice(words) for _ in range(numbers.randrange(6)))))
            for _ in range(numbers.randrange(3)):
                said[numbers.randrange(len(said))] = numbers.randrange(256)
            with contextlib.suppress(OSError):
                stranger.sendall(said[: numbers.randrange(len(said) + 1)])
    store.set("a", "b")
    assert store.get("a") == b"b"


def _pretend(listener: socket.socket, answers: list[bytes | None]) -> None:
    """A store that gives these answers, then is silent."""
    connection, _ = listener.accept()
    for answer in answers:
        connection.recv(1 << 16)
        if answer is not None:
            connection.sendall(answer)
    with contextlib.suppress(OSError):
        connection.recv(1 << 16)


def pretended(answers: list[bytes | None], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(_stores, "_GRACE", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_pretend, args=(listener, [message(b"", b"1"), *answers]), daemon=True).start()
    store = distributed.TCPStore("127.0.0.1", listener.getsockname()[1], wait_for_workers=False)
    store.set_timeout(SHORT)
    return store


@pytest.mark.parametrize("answer", [None, b"\x01", message(b"", b"value")[:-1], b"\xff" * 100, message()])
def test_every_wait_ends_and_a_broken_connection_says_so(answer: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    store = pretended([answer], monkeypatch)
    with pytest.raises(distributed.DistNetworkError, match="has gone"):
        store.get("key")
    with pytest.raises(distributed.DistNetworkError, match="is broken"):
        store.get("key")


def test_an_interrupted_question_leaves_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    store = distributed.TCPStore("127.0.0.1", 0, 1, True)
    store.set("first", "1")
    store.set("second", "2")

    def interrupted(seconds: float | None) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(store._connection, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.get("first")
    assert store.get("second") == b"2"  # over another connection
    assert store.add("n", 1) == 1


def test_a_lock_that_another_keeps(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    store = distributed.FileStore(str(tmp_path / "store"), 1)
    store.set_timeout(SHORT)
    with open(tmp_path / "store", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(distributed.DistStoreError, match="timeout"):
            store.set("a", "b")
    store.set("a", "b")
    assert store.get("a") == b"b"


# ---- the same, from several processes ----


def _count_on(port: int, times: int) -> None:
    store = distributed.TCPStore("127.0.0.1", port, wait_for_workers=False)
    for i in range(times):
        store.add("counted", 1)
        store.set(f"{os.getpid()}", str(i))
        assert store.get(f"{os.getpid()}") == b"%d" % i  # its own answer, not another's


def _interrupt_a_question(port: int) -> None:
    store = distributed.TCPStore("127.0.0.1", port, wait_for_workers=False)
    store.set("late", "")
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(KeyboardInterrupt):
        store.get("never")
    assert store.get("late") == b""


def _die_within_a_message(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 60) as stranger:
        stranger.sendall(message(b"set", b"1", b"/key", b"v" * 1000)[:500])
        os.kill(os.getpid(), signal.SIGKILL)


def _say_garbage(port: int) -> None:
    numbers = random.Random(os.getpid())
    for _ in range(40):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 60) as stranger:
            lengths = struct.pack(
                "<I3Q", 3, numbers.randrange(9), 1 << numbers.randrange(64), numbers.randrange(1 << 40)
            )
            stranger.sendall(numbers.choice([lengths, numbers.randbytes(200), b"\xff" * 64]))


def test_processes_that_fail_do_not_disturb_others() -> None:
    """Interrupted questions, messages cut off by a kill, garbage: whoever asks beside them gets his own answers."""
    store = distributed.TCPStore("127.0.0.1", 0, 1, True)
    context = get_context("spawn")
    good = [context.Process(target=_count_on, args=(store.port, 150)) for _ in range(2)]
    bad = [context.Process(target=f, args=(store.port,)) for f in (_interrupt_a_question, _say_garbage)]
    killed = context.Process(target=_die_within_a_message, args=(store.port,))
    for process in (*good, *bad, killed):
        process.start()
    for process in (*good, *bad, killed):
        process.join(60)
    assert [p.exitcode for p in (*good, *bad)] == [0] * 4 and killed.exitcode == -signal.SIGKILL
    assert store.get("counted") == b"300" and not store.check(["key"])


class Mine(distributed.Store):
    """A store that a program wrote, with the methods that a world needs."""

    def __init__(self) -> None:
        self.below = distributed.HashStore()

    def set(self, key: str, value: str | bytes) -> None:
        assert isinstance(key, str) and isinstance(value, bytes)
        self.below.set(key, value)

    def get(self, key: str) -> bytes:
        return self.below.get(key)

    def add(self, key: str, amount: int) -> int:
        return self.below.add(key, amount)

    def check(self, keys: Any) -> bool:
        return self.below.check(keys)

    def wait(self, keys: Any, timeout: Any = None) -> None:
        self.below.wait(keys, timeout)

    def delete_key(self, key: str) -> bool:
        return self.below.delete_key(key)

    def num_keys(self) -> int:
        return self.below.num_keys()

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        return self.below.compare_set(key, expected_value, desired_value)


def test_stores_of_programs() -> None:
    mine = Mine()
    store = distributed.PrefixStore("a", distributed.PrefixStore("b", mine))
    store.set("key", "value")
    assert mine.below.get("b/a/key") == b"value" == store.get("key")
    assert store.add("count", 2) == 2 and store.check(["key", "count"]) and not store.check(["none"])
    assert store.compare_set("key", "value", "other") == b"other" and store.num_keys() == 2
    store.wait(["key"])
    with pytest.raises(distributed.DistStoreError, match="wait timeout"):
        store.wait(["none"], timedelta(seconds=0.05))
    assert store.delete_key("key") and not store.delete_key("key")
    for one in (mine, store):
        assert not one.has_extended_api()
        for asks in (lambda s: s.append("k", "v"), lambda s: s.multi_get(["k", "l"])):
            with pytest.raises(RuntimeError, match="Not implemented"):
                asks(one)
        with pytest.raises(RuntimeError, match="Not implemented"):
            one.multi_set(["k", "l"], ["v", "w"])
    assert distributed.HashStore().has_extended_api()
    distributed.init_process_group(store=mine, rank=0, world_size=1)
    distributed.destroy_process_group()


def test_clones(tmp_path: Path) -> None:
    for store in (
        distributed.HashStore(),
        distributed.FileStore(str(tmp_path / "store"), 1),
        distributed.TCPStore("127.0.0.1", 0, 1, True),
    ):
        for each in (store, distributed.PrefixStore("p", store)):
            again = each.clone()
            found: list[bytes] = []
            waits = threading.Thread(target=lambda a=again, f=found: f.append(a.get("key")))
            waits.start()
            time.sleep(0.05)
            each.set("key", "value")  # while the clone waits
            waits.join(30)
            assert found == [b"value"]


def test_ports_in_use() -> None:
    first = distributed.TCPStore("127.0.0.1", 0, 1, True, multi_tenant=True)
    with pytest.raises(distributed.DistNetworkError, match=r"^The server socket has failed to listen on any local"):
        distributed.TCPStore("127.0.0.1", first.port, 1, True)
    second = distributed.TCPStore("127.0.0.1", first.port, 1, True, multi_tenant=True)
    first.set("key", "value")
    port = first.port
    del first
    assert second.get("key") == b"value"  # the port stays as long as one has it
    del second
    assert distributed.TCPStore("127.0.0.1", port, 1, True).port == port


def test_rendezvous(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tensorpy.distributed import register_rendezvous_handler, rendezvous

    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    first, rank, size = next(rendezvous(f"file://{tmp_path}/here?world_size=2&rank=0"))
    second = next(rendezvous(f"file://{tmp_path}/here", 1, 2))
    first.set("key", "value")
    assert (rank, size) == (0, 2) and second[1:] == (1, 2) and second[0].get("key") == b"value"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    store, *_ = next(rendezvous(f"tcp://127.0.0.1:{port}?rank=0&world_size=1", timeout=timedelta(seconds=0.2)))
    with pytest.raises(distributed.DistStoreError, match="timeout after 200ms"):
        store.get("none")
    for url, said in (
        ("tcp://127.0.0.1?rank=0&world_size=1", "tcp:// rendezvous: port number missing"),
        ("tcp://127.0.0.1:1?world_size=1", "rank parameter missing"),
        ("tcp://127.0.0.1:1?rank=0", "world size parameter missing"),
        ("file://?rank=0&world_size=1", "path missing"),
        ("file:///x?world_size=1", "rank parameter missing"),
        ("env://", "environment variable RANK expected, but not set"),
        ("env://?rank=0", "environment variable WORLD_SIZE expected"),
        ("env://?rank=0&world_size=1", "environment variable MASTER_ADDR expected"),
    ):
        with pytest.raises(ValueError, match=said):
            next(rendezvous(url))
    with pytest.raises(RuntimeError, match=r"^No rendezvous handler for what://"):
        rendezvous("what://x")
    with pytest.raises(AssertionError, match="node-specific"):
        rendezvous("file:///x?rank=1&world_size=2", 1, 2)
    asked = []

    def handler(url: str, **options: Any) -> Any:
        asked.append((url, options["timeout"]))
        yield distributed.HashStore(), 0, 1

    register_rendezvous_handler("ours", handler)
    with pytest.raises(RuntimeError, match="already registered"):
        register_rendezvous_handler("ours", handler)
    with pytest.raises(RuntimeError, match="already registered"):
        register_rendezvous_handler("tcp", handler)
    distributed.init_process_group(init_method="ours://place", rank=0, world_size=1, timeout=timedelta(seconds=7))
    distributed.destroy_process_group()
    assert asked == [("ours://place?rank=0&world_size=1", timedelta(seconds=7))]


def test_queues_and_keys() -> None:
    mine = distributed.HashStore()
    for store in (mine, distributed.TCPStore("127.0.0.1", 0, 1, True), distributed.PrefixStore("p", mine)):
        store.set("a", "1")
        assert "a" in [key.rpartition("/")[2] for key in store.list_keys()]
        store.queue_push("q", "1")
        store.queue_push("q", b"2")
        assert store.queue_len("q") == 2 and store.check(["q"])
        assert [store.queue_pop("q"), store.queue_pop("q", block=False)] == [b"1", b"2"] and store.queue_len("q") == 0
        with pytest.raises(distributed.QueueEmptyError, match="is empty"):
            store.queue_pop("q", block=False)
        store.set_timeout(timedelta(seconds=0.1))
        with pytest.raises(distributed.DistStoreError, match="timeout"):
            store.queue_pop("q")
        store.set_timeout(timedelta(seconds=30))
        came: list[bytes] = []
        other = store.clone()
        waiting = threading.Thread(target=lambda came=came, other=other: came.append(other.queue_pop("q")))
        waiting.start()
        store.queue_push("q", "late")
        waiting.join(30)
        assert came == [b"late"]


def test_only_the_keeper_waits_for_the_others() -> None:
    keeper = distributed.TCPStore("127.0.0.1", 0, 3, True, wait_for_workers=False)
    client = distributed.TCPStore("127.0.0.1", keeper.port, 3, timeout=timedelta(seconds=5))
    client.set("here", "1")
    assert keeper.get("here") == b"1"
    with pytest.raises(distributed.DistStoreError, match="Timed out: 1 of 2"):
        distributed.TCPStore("127.0.0.1", 0, 2, True, timeout=timedelta(seconds=0.2))
