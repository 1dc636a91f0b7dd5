"""Threads, locks, forks, signals and lifetimes: what must not hang, crash or leak when several threads share tensors.

What could hang or crash the interpreter runs in a process of its own.
"""

from __future__ import annotations

import textwrap

import pytest
from programs import SANITIZED, run


def test_first_product_of_two_threads():
    """The library is looked for by Python code, which gives the interpreter lock up in the middle."""
    run("""
        import sys
        looking = threading.Event()
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "tensorpy.backends._blas":
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


# AddressSanitizer's allocator is copied with the locks that other threads hold: a child waits for them for ever.
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator cannot be forked")
@pytest.mark.parametrize("what", BUSY)
def test_fork_while_a_thread_works(what):
    """A child starts with free locks and turns, and the parent goes on."""
    run(
        BUSY[what].replace("\n        ", "\n")
        + textwrap.dedent("""
        w = tp.ones(1 << 20, requires_grad=True) if "w" not in globals() else w
        tp.ones(2, 2) @ tp.ones(2, 2)  # Python's locks of modules are no child's: BLAS is looked for by now
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
            status = os.waitpid(pid, 0)[1]
            assert status == 0, f"child {i}: {status}"
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


# ---- lists that change under a call ----


def test_list_is_assigned_while_another_thread_joins_it():
    run("""
        n = 1 << 20
        lst = [tp.ones(n) for _ in range(8)]
        stop = False
        def swap():
            while not stop:
                lst[:] = [tp.ones(n) for _ in range(8)]
                [tp.full((n,), 7.0) for _ in range(8)]
        t = threading.Thread(target=swap); t.start()
        for _ in range(100): assert tp.cat(lst).eq(1).all()
        stop = True; t.join()
    """)


CLEARS = """
class E:
    def __index__(self):
        lst.clear()
        for _ in range(200): lst.append(tp.full((3,), 7.0))
        lst.clear()
        return 0
    __float__ = __index__
"""


def test_list_is_cleared_by_another_argument():
    run(
        CLEARS
        + textwrap.dedent("""
        lst = [tp.ones(3), tp.ones(3)]
        assert tp.stack(lst, E()).eq(1).all()
        lst = [tp.ones(3), tp.ones(3)]
        assert tp.cat(lst, E()).shape == (6,)
    """)
    )


def test_list_is_cleared_by_its_own_item():
    run("""
        class F(float):
            def __float__(self):
                lst.clear()
                return 1.0
        class I(int):
            def __float__(self):
                lst.clear()
                return 1.0
        for kind in (F, I):
            lst = [kind(2), kind(3)]
            try: tp.nn.functional.interpolate(tp.ones(1, 1, 4, 4), scale_factor=lst)
            except (TypeError, ValueError, RuntimeError): pass
            lst = [kind(2), kind(3)]
            try: tp.ops.aten.upsample_nearest2d.vec(tp.ones(1, 1, 4, 4), None, lst)
            except (TypeError, ValueError, RuntimeError, AttributeError): pass
            lst = [kind(2), kind(3)]
            try: tp.tensor(lst)
            except RuntimeError: pass
        class E:
            def __index__(self):
                lst.clear()
                return 1
        for call in (tp.zeros, tp.ones(6).reshape, tp.ones(2, 2).permute, tp.ones(6).expand):
            lst = [E(), 2]
            try: call(lst)
            except RuntimeError as e: assert "changed its size" in str(e), e
            else: raise SystemExit(call)
    """)


def test_saved_values_go_while_they_are_unpacked():
    """What is read of them afterwards is AddressSanitizer's to see."""
    run("""
        class F(tp.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x.clone(), x.clone())
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g
        def unpack(p):
            if not busy:
                busy.append(1)
                y.sum().backward()
                busy.extend(tp.full((n,), 1e30) for n in range(1, 100) for _ in range(20))
            return p[0]
        busy = []
        x = tp.ones(3, requires_grad=True)
        with tp.autograd.graph.saved_tensors_hooks(lambda t: [t], unpack):
            y = F.apply(x)
        try: y.grad_fn.saved_tensors
        except RuntimeError as e: assert "second time" in str(e) or "freed" in str(e), e
    """)


def test_events_of_a_trace_are_the_users():
    run("""
        events = []
        def pack(t):
            events[:] = [1, [], [1, 2, 3, 4, "x"]]
            return t
        w = tp.ones(3, requires_grad=True)
        old = tp._C._set_trace(events)
        with tp.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = w * w
        tp._C._set_trace(*old)
    """)


# ---- signals ----

# What goes before the alarm is set, and the call: it takes for ever, or leaves a part of `out` as it was.
LONG = {
    "sum": ("", "tp.ones(1).expand(1 << 36).sum()"),
    "sum over threads": ("tp.set_num_threads(4)", "tp.ones(1).expand(1 << 36).sum()"),
    "sum of rows": ("", "tp.ones(1).expand(1 << 20, 1 << 16).sum(1)"),
    "largest of columns": ("", "tp.ones(1).expand(1 << 26, 1 << 10).amax(0)"),
    "sort": (
        "x, out = tp.rand(1 << 24), tp.full((1 << 24,), -1.0)",
        "tp.sort(x, out=(out, tp.empty(1 << 24, dtype=tp.int64)))",
    ),
    "product": (
        "a, out = tp.ones(12_000, 3_000), tp.full((12_000, 12_000), -1.0)",
        "tp.mm(a, a.T, out=out)",
    ),
    "dot product of integers": ("a = tp.ones(1, dtype=tp.int64).expand(1 << 40)", "tp.dot(a, a)"),
    "product of integers": (
        "a, out = tp.ones(1, dtype=tp.int64).expand(9000, 9000), tp.full((9000, 9000), -1)",
        "tp.mm(a, a, out=out)",
    ),
}


@pytest.mark.parametrize("what", LONG)
def test_ctrl_c_ends_a_long_call(what):
    """The process's next operator works as ever."""
    before, call = LONG[what]
    run(f"""
        def interrupt(*_): raise KeyboardInterrupt
        out = tp.tensor([-1.0])
        {before}
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            {call}
            raise SystemExit("not interrupted")
        except KeyboardInterrupt:
            assert out.eq(-1).any()
        assert tp.ones(3).sum().item() == 3 and (tp.ones(3, requires_grad=True) * 2).requires_grad
    """)


# Calls of one long unit each, of which no thread could take a part: what comes before, the function, its arguments.
UNITS = {
    "running sum": ("x = tp.ones(1 << 27)", "tp.cumsum", "x, 0"),
    "running complex sum": ("x = tp.ones(1 << 26, dtype=tp.complex64)", "tp.cumsum", "x, 0"),
    "running maximum": ("x = tp.ones(1 << 27)", "tp.cummax", "x, 0"),
    "running logsumexp": ("x = tp.ones(1 << 26)", "tp.logcumsumexp", "x, 0"),
    "running product of columns": ("x = tp.ones(1 << 23, 20)", "tp.cumprod", "x, 0"),
    "largest in windows": (
        "x = tp.ones(1, 1 << 13, 1 << 13)",
        "tp._C._nn.max_pool2d_with_indices",
        "x, (9, 9), (1, 1)",
    ),
    "largest of two by two": ("x = tp.ones(1, 1 << 14, 1 << 15)", "tp._C._nn.max_pool2d_with_indices", "x, (2, 2)"),
    "average of windows": ("x = tp.ones(1, 1 << 14, 1 << 13)", "tp._C._nn.avg_pool2d", "x, (9, 9), (1, 1)"),
    "softmax of a row": ("x = tp.rand(1 << 27)", "tp.softmax", "x, 0"),
    "sort": ("x = tp.rand(1 << 25)", "tp.sort", "x"),
    "distinct neighbours": ("x = tp.ones(1 << 27)", "tp.unique_consecutive", "x"),
    "distinct rows": ("x = tp.rand(1 << 22, 2)", "tp.unique_dim", "x, 0"),
    "places of a mask": ("x = tp.ones(1 << 14, 1 << 14, dtype=tp.bool)", "tp.nonzero", "x"),
    "permutation": ("", "tp.randperm", "1 << 27"),
    "turned round": ("x = tp.rand(1 << 29, dtype=tp.float64)", "tp.flip", "x, (0,)"),
    "sums into few places": (
        "x, i = tp.zeros(9), (tp.zeros(1 << 27, dtype=tp.int64),)",
        "tp.Tensor.index_put_",
        "x, i, tp.ones(1 << 27), True",
    ),
    "a list of numbers": ("x = tp.ones(1 << 26)", "tp.Tensor.tolist", "x"),
    "lists of numbers": ("x = tp.ones(1 << 22, 16)", "tp.Tensor.tolist", "x"),
    "numbers of a list": ("x = [1, 0.5] * (1 << 24)", "tp.tensor", "x"),
    "rows": ("x = tp.ones(1 << 24)", "tp.unbind", "x"),
}


@pytest.mark.parametrize("what", UNITS)
def test_ctrl_c_ends_a_long_unit(what):
    """From the call to the list of what it gave no Python code runs, where a signal would be heard: so the list is
    empty only if the call itself has ended early.
    """
    before, function, arguments = UNITS[what]
    run(f"""
        from itertools import starmap
        def interrupt(*_): raise KeyboardInterrupt
        tp.set_num_threads(1)
        {before}
        done, calls = [], starmap({function}, [({arguments},)])
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:
            done.extend(calls)
            raise SystemExit("not interrupted")
        except KeyboardInterrupt:
            assert not done, "not interrupted before its end"
        assert tp.ones(3).sum().item() == 3
    """)


def test_ctrl_c_ends_a_long_backward():
    """Every node is short; the graph is long."""
    run("""
        def interrupt(*_): raise KeyboardInterrupt
        x = y = tp.ones(1 << 14, requires_grad=True)
        for _ in range(100_000): y = y.neg()
        y = y.sum()
        done = []
        y.register_hook(lambda g: (signal.setitimer(signal.ITIMER_REAL, 0.01), done.append(1))[2:] or None)
        signal.signal(signal.SIGALRM, interrupt)
        try:
            y.backward()
            raise SystemExit("not interrupted")
        except KeyboardInterrupt:
            assert done and x.grad is None
        z = (x * 2).sum(); z.backward()
        assert x.grad.eq(2).all()
    """)


def test_handler_of_a_signal_may_call_operators():
    """It comes in the middle of a kernel below autograd, and records a graph of its own; the kernel goes on."""
    run("""
        seen = []
        def handle(*_):
            w = tp.ones(3, requires_grad=True)
            (w * 2).sum().backward()
            seen.append(w.grad.tolist())
            try: tp.ones(2) + tp.ones(3)
            except RuntimeError: pass
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        n = 1 << 31
        assert tp.ones(1).expand(n).sum().item() == n
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert seen and all(g == [2.0, 2.0, 2.0] for g in seen)
    """)


def test_waiting_for_a_turn_hears_a_signal():
    run("""
        def interrupt(*_): raise KeyboardInterrupt
        import sys
        looking, go = threading.Event(), threading.Event()
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "tensorpy.backends._blas":
                    looking.set()
                    go.wait()
        sys.meta_path.insert(0, Finder())
        a = tp.ones(2, 2)
        t = threading.Thread(target=lambda: a @ a); t.start()
        looking.wait()
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            a @ a
            raise SystemExit("not interrupted")
        except KeyboardInterrupt: pass
        go.set(); t.join()
        assert (a @ a).sum().item() == 8
    """)


def test_a_signal_while_a_library_is_looked_for():
    """The call raises what the handler raised, and the next one looks again."""
    run("""
        import sys
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "scipy_openblas32" and not raised:
                    raised.append(name)
                    raise KeyboardInterrupt
        raised = []
        sys.meta_path.insert(0, Finder())
        a = tp.ones(2, 2)
        try:
            a @ a
            raise SystemExit("not interrupted")
        except KeyboardInterrupt: pass
        assert raised and (a @ a).sum().item() == 8
    """)


# ---- lifetimes ----

CYCLES = {
    "result in ctx": "y = F.apply(x); F.ctx.r = y; end = F.ctx",
    "what was computed from it": "y = F.apply(x); F.ctx.r = [y * 2 + 1]; end = F.ctx",
    "two Functions": "y = F.apply(x); first = F.ctx; first.r = G.apply(y); end = first",
    "both arguments": "y = F.apply(x); F.ctx.r = (y + y) - y.neg(); end = F.ctx",
    "saved with hooks": "with packing: y = F.apply(x)\nF.ctx.r = y; end = F.ctx",
    "changed in place": "y = x * 2; F.dirty = True; y = F.apply(y); F.ctx.r = y; end = F.ctx",
    "hook on a result": "y = x * 2; z = y * 3; end = K(); y.register_hook(lambda g, k=end, z=z: None)",
    "hook on a node": "y = x * 2; end = K(); y.grad_fn.register_hook(lambda a, b, k=end, y=y: None)",
    "leaf and its result": "end = x.k = K(); x.cached = x * 2",
    "leaf and its gradient": "w = x; w.sum().backward(); end = w.grad.k = K(); w.grad.leaf = w",
}


@pytest.mark.parametrize("what", CYCLES)
def test_cycles_through_the_graph_are_collected(what):
    run(f"""
        import weakref
        class K: pass
        class F(tp.autograd.Function):
            dirty = False
            @staticmethod
            def forward(ctx, x):
                F.ctx = ctx
                ctx.save_for_backward(x)
                if not F.dirty: return x * 2
                ctx.mark_dirty(x)
                return x.mul_(2)
            @staticmethod
            def backward(ctx, g): return g * 2
        class G(F): pass
        packing = tp.autograd.graph.saved_tensors_hooks(lambda t: t, lambda p: p)
        gc.disable()
        def make():
            x = tp.ones(3, requires_grad=True)
            {textwrap.indent(CYCLES[what], " " * 12).strip()}
            F.ctx = None
            return weakref.ref(end)
        end = make()
        assert end() is not None
        for _ in range(3): gc.collect()
        assert end() is None
    """)


def test_what_is_in_use_is_not_collected():
    run("""
        class F(tp.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                F.ctx = ctx
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            def backward(ctx, g):
                assert ctx.mark == "here"
                return g * ctx.saved_tensors[0]
        x = tp.ones(3, requires_grad=True)
        results = []
        for i in range(20):
            y = F.apply(x)
            F.ctx.mark, F.ctx.r = "here", y
            z = y * 3
            del y
            results.append(z if i % 2 else z.sum())
            gc.collect()
        F.ctx = None
        gc.collect()
        for z in results: z.sum().backward()
        assert x.grad.eq(60).all()
    """)


def test_state_of_a_thread_ends_with_it():
    run("""
        w = tp.ones(64, 64, requires_grad=True)
        def work():
            guard = tp.autocast("cpu")
            guard.__enter__()
            w @ w
        def spend(n):
            for _ in range(n):
                t = threading.Thread(target=work); t.start(); t.join()
            return tp._C._memory_stats()["live_blocks"]
        before = spend(5)
        assert spend(50) < before + 50  # join() does not wait for the last one's very end
    """)


# ---- where it does not run ----


def test_subinterpreters_are_refused():
    code = "try: import tensorpy\nexcept ImportError as e: assert 'subinterpreter' in str(e), e\nelse: assert False"
    run(f"""
        import sys
        try: import _xxsubinterpreters as interpreters
        except ImportError: import _interpreters as interpreters  # from 3.13 on
        i = interpreters.create(isolated=False) if sys.version_info < (3, 13) else interpreters.create("legacy")
        here = f"import sys; sys.path[:] = {{sys.path}}\\n"  # where this program has tensorpy from
        failed = interpreters.run_string(i, here + {code!r})
        assert failed is None, failed
        interpreters.destroy(i)
        del sys.modules["tensorpy._C"]
        import tensorpy._C
        assert tensorpy._C is tp._C
    """)
