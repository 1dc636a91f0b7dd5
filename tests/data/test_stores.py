"""Stores of torch.distributed: in one process, and between several."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import struct
import threading
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
    receive = store._connection.receive

    def interrupted(seconds: float | None) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(store._connection, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.get("first")
    monkeypatch.setattr(store._connection, "receive", receive)
    with pytest.raises(distributed.DistNetworkError, match="KeyboardInterrupt"):
        store.get("second")


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
    with pytest.raises(distributed.DistNetworkError, match="is broken"):
        store.get("late")
    again = distributed.TCPStore("127.0.0.1", port, wait_for_workers=False)
    assert again.get("late") == b""


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
