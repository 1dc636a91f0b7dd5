"""Runs a program written for PyTorch: `import torch` in it means tensorpy.

    python -m tensorpy.run [--device opencl] script.py argument ...
    python -m tensorpy.run [--device opencl] -m module argument ...
    python -m tensorpy.run [--device opencl] torchrun --nproc-per-node 2 script.py argument ...
    python -m tensorpy.run -c "import torch; print(torch.ones(2))"
    python -m tensorpy.run < script.py

With --device opencl, what the program calls "cuda" is the OpenCL device. Otherwise as python itself runs it: sys.argv,
sys.path, tracebacks and the exit status are the program's own.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

import tensorpy
from tensorpy import _as_torch

USAGE = "usage: python -m tensorpy.run [--device opencl] [-m module | -c command | script | -] [argument ...]"


def _fail(why: str) -> Any:
    print(f"{USAGE}\ntensorpy.run: {why}", file=sys.stderr)
    raise SystemExit(2)


def _own_lines(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first line on."""
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


def _run_text(text: str, name: str) -> None:
    """Runs a program's text as __main__."""
    main = type(sys)("__main__")
    main.__dict__.update(__builtins__=__builtins__, __spec__=None)
    sys.modules["__main__"] = main
    sys.path.insert(0, "")
    exec(compile(text, name, "exec"), main.__dict__)


def _interact() -> None:
    import code

    code.interact(banner="torch means tensorpy here", local={"torch": tensorpy, "__name__": "__main__"}, exitmsg="")


def _torchrun(arguments: list[str]) -> None:
    from tensorpy.distributed import run

    run.main(arguments)


def _program(rest: list[str]) -> Callable[[], Any]:
    """What to run, with sys.argv and sys.path set as python sets them for it."""
    first = rest[0] if rest else "-"
    if first in ("-m", "-c"):
        if len(rest) < 2:
            _fail(f"argument expected for the {first} option")
        sys.argv = [first, *rest[2:]]
        if first == "-c":
            return lambda: _run_text(rest[1], "<string>")
        sys.path.insert(0, os.getcwd())
        return lambda: runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
    sys.argv = rest or [""]
    if first == "-":
        return _interact if sys.stdin.isatty() else lambda: _run_text(sys.stdin.read(), "<stdin>")
    if first == "torchrun" and not os.path.exists(first):
        return lambda: _torchrun(rest[1:])
    if first.startswith("-"):
        _fail(f"unknown option {first}")
    if not os.path.exists(first):
        _fail(f"can't open file '{os.path.abspath(first)}': there is none")
    if not os.path.isdir(first):
        sys.path.insert(0, os.path.dirname(os.path.realpath(first)))
    return lambda: runpy.run_path(first, run_name="__main__")


def main(arguments: list[str]) -> None:
    """Runs the program that the command line names."""
    device = None
    while arguments and arguments[0].startswith("--device"):
        option, equals, device = arguments.pop(0).partition("=")
        if option != "--device" or (not equals and not arguments):
            _fail("--device takes a device: opencl")
        device = device if equals else arguments.pop(0)
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return
    program = _program(arguments)
    try:
        _as_torch.as_torch(device)
    except RuntimeError as error:
        _fail(str(error))
    _as_torch.share()
    try:
        program()
    except Exception as error:
        sys.excepthook(type(error), error.with_traceback(_own_lines(error.__traceback__)), error.__traceback__)
        raise SystemExit(1) from None


if __name__ == "__main__":
    if sys.path and sys.path[0] == os.getcwd():  # python's, for -m tensorpy.run
        del sys.path[0]
    main(sys.argv[1:])
