"""`%load_ext tensorpy` in a notebook: the magic `%tensorpy as_torch`."""

from __future__ import annotations

from typing import Any

from tensorpy._as_torch import as_torch


def _magic(line: str) -> None:
    """%tensorpy as_torch [--device opencl]: `import torch` in the following cells means tensorpy."""
    words = line.replace("=", " ").split()
    if words == ["as_torch"]:
        as_torch()
    elif words[:2] == ["as_torch", "--device"] and len(words) == 3:
        as_torch(words[2])
    else:
        raise ValueError("usage: %tensorpy as_torch [--device opencl]")


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext tensorpy`.

    Arguments:
        shell: IPython's shell

    Example:
        >>> get_ipython().run_line_magic("load_ext", "tensorpy")  # doctest: +SKIP
    """
    shell.register_magic_function(_magic, "line", "tensorpy")
