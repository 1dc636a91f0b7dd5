"""`import torch` means tensorpy: for this process and those that it starts."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

import tensorpy
from tensorpy import _C, version
from tensorpy._as_torch import finder, names, owners, private, refs
from tensorpy.torch_version import TorchVersion

PATH = str(Path(__file__).with_name("path"))  # holds a package torch, for processes that are started from here
_DEVICE = "TENSORPY_TORCH_DEVICE"  # tells them the device, and that the parent reports


def as_torch(device: str | None = None) -> None:
    """Makes `torch`, and every module of it that tensorpy has, importable; what is imported is tensorpy.

    device: None, or "opencl": what the program calls "cuda" is the OpenCL device then. Processes that this one starts
    through multiprocessing do the same. When the process ends, names of torch that were asked for and are not there are
    listed once on stderr. RuntimeError if the real torch is imported already, or there is no such device.

    Example:
        >>> tp.as_torch()  # doctest: +SKIP
    """
    there = sys.modules.get("torch")
    if there is not None and there is not tensorpy and not str(getattr(there, "__file__", "")).startswith(PATH):
        raise RuntimeError(
            f"torch is imported already, from {getattr(there, '__file__', 'somewhere')}: tensorpy.as_torch() has to "
            "come before the first `import torch`"
        )
    device = os.environ.get(_DEVICE) or None if device is None else device
    if device is not None:
        _call_cuda(device)
    if there is tensorpy:
        return
    if PATH not in sys.path:
        sys.path.insert(1, PATH)  # after the program's own folder
    sys.meta_path.insert(0, finder.Finder())
    finder.watch(tensorpy, "torch")
    sys.modules["torch"] = tensorpy
    setattr(tensorpy, "torch", tensorpy)  # noqa: B010  (programs write torch.torch)
    _C._call_package("torch")
    _C._draw_serially(True)
    owners.install()
    private.install()
    refs.install()
    _set_version()
    if _DEVICE not in os.environ:
        atexit.register(report, os.getpid())
    os.environ[_DEVICE] = device or ""


def share() -> None:
    """Has every Python that this process starts do the same, as multiprocessing's do anyway."""
    before = os.environ.get("PYTHONPATH")
    if PATH not in (before or "").split(os.pathsep):
        os.environ["PYTHONPATH"] = PATH if not before else os.pathsep.join((PATH, before))


def _call_cuda(device: str) -> None:
    """Makes a device what programs call "cuda"."""
    from tensorpy import opencl

    if _C.device(device).type != _C.device("opencl").type:
        raise RuntimeError(f"as_torch: the device is 'opencl', not {device!r}")
    if not opencl.is_available():
        raise RuntimeError(f"as_torch: there is no OpenCL device: {opencl.why_not_available()}")
    if (index := _C.device(device).index) is not None:
        opencl.set_device(index)
    _C._opencl.call("cuda")
    if "tensorpy.cuda" in sys.modules:
        import importlib

        importlib.reload(sys.modules["tensorpy.cuda"])
        importlib.reload(sys.modules["tensorpy.cuda.amp"])


def _set_version() -> None:
    """Programs ask for torch's version: it is that which the names and signatures are of."""
    said = TorchVersion(f"{names.VERSION}+tensorpy{tensorpy.__version__}")
    tensorpy.__version__ = version.__version__ = said


def report(pid: int | None = None) -> None:
    """Says on stderr which names of torch were asked for and are not there; nothing in other processes than `pid`."""
    if not finder.asked or pid not in (None, os.getpid()):
        return
    found = sorted(finder.asked.items(), key=lambda item: (-item[1], item[0]))
    print("tensorpy: names of torch that were asked for and are not there:", file=sys.stderr)
    for name, times in found[:40]:
        print(f"  {name}" + (f" ({times} times)" if times > 1 else ""), file=sys.stderr)
    if len(found) > 40:
        print(f"  and {len(found) - 40} more", file=sys.stderr)
