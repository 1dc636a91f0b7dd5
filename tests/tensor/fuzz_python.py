"""Calls what csrc/python binds by hand with wrong arguments; a program, so that a crash kills only itself.

`python fuzz_python.py [--calls=N] [--seed=N]` prints the call at hand when it dies. Generated functions have
their own (fuzz_operators.py). Every call must return or raise an exception that says something.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorpy as tp
from tensorpy import _C

# What switches the process over, ends it, or is there to make it fail.
LEFT_OUT = {
    "_fail_allocation_after", "_set_type_attribute", "_set_trace", "_set_print_dispatcher", "set_default_dtype",
    "set_num_threads", "_set_determinism", "_load_library", "_unload_library", "_withdraw",
    "__class__", "__dict__", "__init_subclass__",
}  # fmt: skip


class Index:
    def __index__(self) -> int:
        raise ValueError("hostile")


def values() -> list[Any]:
    x = tp.ones(3, requires_grad=True)
    return [
        None, 0, 1, -1, 2**31, 2**63 - 1, -(2**63), 2**64, 2**70, 1.5, float("nan"), 1j, True, "", "a", "cpu",
        "meta", "opencl", "cuda:9", "add.Tensor", b"", b"1234", bytearray(8), memoryview(b"123"), (), [], (1, 2),
        [1, -1], [None], ["a"], {}, {1: 2}, object(), Index(), int, tp.Tensor, slice(None), ..., lambda *_: None,
        lambda *_: 3, lambda *_: tp.ones(1), tp.float32, tp.int8, tp.device("cpu"), tp.device("meta"),
        tp.device("opencl"), tp.strided, tp.channels_last, tp.Size([2, 3]), tp.default_generator,
        tp.Generator("meta"), np.arange(3), np.array("a"), np.float32(2), tp.ones(3), tp.ones(()), tp.empty(0),
        tp.ones(2, 3), tp.ones(16, dtype=tp.uint8), tp.tensor(2**40), tp.tensor(-1), tp.ones(3, device="meta"),
        tp.empty(16, dtype=tp.uint8, device="meta"), tp.ones(3, dtype=tp.bool), tp.ones(3, dtype=tp.complex64),
        tp.ones(3).expand(2, 3), tp.ones(6)[::2], x, x * 2, x.exp().grad_fn, tp.from_numpy(np.arange(3.0)[::-1]),
        tp.ones(3).untyped_storage(), tp.ones(2).__dlpack__(), _C.FunctionCtx(),
    ]  # fmt: skip


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for space in (_C, _C._opencl):
        for name in dir(space):
            f = getattr(space, name)
            if callable(f) and not _C._signatures(name, False) and name not in LEFT_OUT:
                yield name, f


def member(owner: Any) -> tuple[str, Callable[..., Any]] | None:
    """A method, or an attribute to read or to set."""
    name = random.choice(dir(owner))
    generated = isinstance(owner, tp.Tensor) and _C._signatures(name, True)
    if generated or name in LEFT_OUT:
        return None

    def use(*args: Any) -> Any:
        if args and random.random() < 0.2:
            return setattr(owner, name, args[0])
        found = getattr(owner, name)
        return found(*args) if callable(found) else found

    return f"{type(owner).__name__}.{name}", use


def reset(sets: tuple[int, int]) -> None:
    tp.set_default_device("cpu")
    with contextlib.suppress(RuntimeError):  # of a thread that is inside no `with device(...)`
        while True:
            tp.device("cpu").__exit__()
    _C._set_dispatch_sets(*sets)
    _C._set_inference_mode(False)
    _C._set_grad_enabled(True)
    _C._set_saved_hooks(None)
    _C._set_anomaly(False, False)
    while _C._function_modes():
        _C._pop_function_mode()
    for above in (False, True):
        while _C._dispatch_modes(above):
            _C._pop_dispatch_mode(above)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    if hasattr(signal, "SIGALRM"):
        faulthandler.dump_traceback_later(400, exit=True)
    sets, all_functions, silent = _C._get_dispatch_sets(), list(functions()), 0
    for i in range(options.calls):
        if i % 100 == 0:
            given = values()
            owners = [v for v in given if type(v).__module__.startswith("tensorpy")]
        args = [random.choice(given) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 8)))]
        chosen = random.choice(all_functions) if random.random() < 0.6 else member(random.choice(owners))
        if chosen is None:
            continue
        sys.stdout.write(f"\r{chosen[0]}({', '.join(type(a).__name__ for a in args)})\x1b[K")
        sys.stdout.flush()
        try:
            chosen[1](*args)
        except (Exception, SystemError) as error:
            if isinstance(error, SystemError) or "without an error" in str(error):
                silent += 1
                print(f"\n{type(error).__name__}: {error}")
        reset(sets)
    print(f"\n{options.calls} calls, {silent} of them raised what says nothing")
    return min(silent, 1)


if __name__ == "__main__":
    sys.exit(main())
