"""The names of torch's compiler below torch.compiler: settings that nobody reads, and what changes nothing."""

from __future__ import annotations

from types import SimpleNamespace

from tensorpy._package.absent import absent
from tensorpy.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from tensorpy.nn.modules.compiled import OptimizedModule

config = SimpleNamespace(suppress_errors=False)  # takes any setting
optimize = absent(__name__, "optimize")
export = absent(__name__, "export")
explain = absent(__name__, "explain")
eval_frame = SimpleNamespace(OptimizedModule=OptimizedModule)  # programs ask whether a module is one


def graph_break(msg: str = "") -> None:
    """Nothing: what is noted may run at any time."""


def mark_dynamic(t: object, index: object, **options: object) -> None:
    """Nothing: every size may vary."""


def mark_static(t: object, index: object = None) -> None:
    """Nothing: every size may vary."""


def mark_static_address(t: object, guard: bool = False) -> None:
    """Nothing: an address may change."""


def maybe_mark_dynamic(t: object, index: object) -> None:
    """Nothing: every size may vary."""


__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "is_compiling", "list_backends"]
__all__ += ["reset"]
