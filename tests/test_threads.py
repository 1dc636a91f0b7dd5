"""Threads, locks, forks, signals and lifetimes: what must not hang, crash or leak when several threads share tensors.

What could hang or crash the interpreter runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

HANGS_AFTER = 120  # seconds; what is tested takes one or two


def run(code: str, **options: str) -> str:
    """Runs a program in a fresh interpreter; what it printed. A crash, a hang or an exception fails the test."""
    program = "import os, signal, threading, time, gc\nimport tensorpy as tp\n" + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout


def test_first_product_of_two_threads():
    """The library is looked for by Python code, which gives the interpreter lock up in the middle."""
    run("""
        import sys
        looking = threading.Event()
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "tensorpy._blas":
                    looking.set()
                    time.sleep(0.3)
                return None
        sys.meta_path.insert(0, Finder())
        a = tp.ones(2, 2)
        def second():
            looking.wait()
            assert (a @ a).sum().item() == 8
        threads = [threading.Thread(target=lambda: a @ a), threading.Thread(target=second)]
        for t in threads: t.start()
        for t in threads: t.join()
    """)


# ---- forks ----

BUSY = {
    "backward": """
        w = tp.ones(1 << 20, requires_grad=True)
        def work():
            while True: (w * 2).sum().backward()
    """,
    "dispatch": """
        a = tp.ones(1 << 18)
        def work():
            while True: tp.add(a, a)
    """,
    "allocate": """
        def work():
            while True: tp.empty(1 << 17), tp.empty(1 << 18), tp.empty(3)
    """,
    "draw": """
        def work():
            while True: tp.rand(1 << 16)
    """,
    "register": """
        def work():
            while True:
                with tp.autocast("cpu"): tp.ones(2, 2) @ tp.ones(2, 2)
                threading.Thread(target=lambda: tp.ones(3)).start()
    """,
}


@pytest.mark.parametrize("what", BUSY)
def test_fork_while_a_thread_works(what):
    """A child starts with free locks and turns, and the parent goes on."""
    run(
        BUSY[what].replace("\n        ", "\n")
        + textwrap.dedent("""
        w = tp.ones(1 << 20, requires_grad=True) if "w" not in globals() else w
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
        for i in range(30):
            pid = os.fork()
            if pid == 0:
                signal.alarm(20)
                (w * 2).sum().backward()
                assert w.grad is not None and tp.rand(3).shape == (3,)
                assert (tp.ones(2, 2) @ tp.ones(2, 2)).sum().item() == 8
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0, f"child {i}"
            time.sleep(0.001 * (i % 3))
        os._exit(0)
    """)
    )


# ---- shared tensors ----


def test_grad_is_dropped_while_another_thread_adds_to_it():
    run("""
        w = tp.ones(1 << 20, requires_grad=True)
        stop = False
        def clear():
            while not stop: w.grad = None
        t = threading.Thread(target=clear); t.start()
        for _ in range(200): (w * 2).sum().backward()
        stop = True; t.join()
    """)


def test_data_is_replaced_while_another_thread_reads_it():
    """What a kernel reads lives until the kernel is back, whoever swaps it."""
    run("""
        n = 1 << 21
        w = tp.ones(n)
        stop = False
        def swap():
            while not stop:
                w.data = tp.ones(n)
                tp.full((n,), 7.0)
        t = threading.Thread(target=swap); t.start()
        for _ in range(300): assert tp.add(w, 1).eq(2).all()
        stop = True; t.join()
    """)


def test_storage_grows_while_another_thread_reads_it():
    run("""
        n = 1 << 21
        def grow(w):
            reading.wait()
            time.sleep(0.003)
            w.resize_(n + 5)
            for _ in range(5): tp.full((n,), 7.0)
        for _ in range(10):
            w, reading = tp.ones(n), threading.Event()
            view = w[:]
            t = threading.Thread(target=grow, args=(w,)); t.start()
            reading.set()
            while t.is_alive(): assert view.lgamma().eq(0).all()
            t.join()
    """)


def test_gradients_of_threads_add_up():
    run("""
        w = tp.ones(100_000, requires_grad=True)
        def work():
            for _ in range(50): (w * 2).sum().backward()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert w.grad.eq(400).all()
    """)
