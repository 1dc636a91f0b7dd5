"""What a report of a mistake should say of the machine: `python -m tensorpy.utils.collect_env`."""

from __future__ import annotations

import locale
import os
import platform
import subprocess
import sys
from typing import NamedTuple

import tensorpy


class SystemEnv(NamedTuple):
    """Facts about the machine, texts all of them."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cpu_info: str


def run(command: str | list[str]) -> tuple[int, str, str]:
    """A program's exit status, and what it wrote to both streams."""
    done = subprocess.run(command, capture_output=True, shell=isinstance(command, str), check=False)
    out, errors = (text.decode(locale.getpreferredencoding(), "replace") for text in (done.stdout, done.stderr))
    return done.returncode, out.strip(), errors.strip()


def get_env_info() -> SystemEnv:
    """The facts.

    Example:
        >>> from tensorpy.utils.collect_env import get_env_info
        >>> get_env_info().is_debug_build
        'False'
    """
    return SystemEnv(
        torch_version=str(tensorpy.__version__),
        is_debug_build=str(tensorpy.version.debug),
        cuda_compiled_version=str(tensorpy.version.cuda),
        os=f"{platform.system()} {platform.release()} ({platform.machine()})",
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{sys.version.splitlines()[0]} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(tensorpy.cuda.is_available()),
        cpu_info=f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
    )


_SHOWN = {
    "torch_version": "PyTorch version",
    "cuda_compiled_version": "CUDA used to build PyTorch",
    "is_cuda_available": "Is CUDA available",
    "os": "OS",
    "cpu_info": "CPU",
}


def pretty_str(envinfo: SystemEnv) -> str:
    """The facts, a line each."""
    facts = envinfo._asdict().items()
    return "\n".join(f"{_SHOWN.get(name, name.replace('_', ' ').capitalize())}: {value}" for name, value in facts)


def get_pretty_env_info() -> str:
    """The facts of this machine, a line each.

    Example:
        >>> from tensorpy.utils.collect_env import get_pretty_env_info
        >>> "Python version" in get_pretty_env_info()
        True
    """
    return pretty_str(get_env_info())


def main() -> None:
    """Prints them."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str", "run"]
