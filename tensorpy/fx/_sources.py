"""What nodes come from in a program, noted while it is called: modules that are called, and the function."""

from __future__ import annotations

import operator
import threading
from typing import Any

from tensorpy.fx._namespace import Namespace, name_of_target
from tensorpy.fx._symbolic_trace import is_layer
from tensorpy.fx.traceback import get_current_meta
from tensorpy.nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from tensorpy.overrides import TorchFunctionMode


def _kind_of(func: Any) -> Any:
    """What a program writes: a function of operator, the name of another method, or the function."""
    if not hasattr(func, "__objclass__"):
        return func
    name = func.__name__
    return getattr(operator, name.strip("_") if name.startswith("__") else name, name)


class NotedSources(TorchFunctionMode):
    """Notes for nodes what they come from, while a program is called.

    `nn_module_stack` has the program's modules that are being called. `torch_fn` has the outermost function of
    tensorpy, under a name for each call, and its type. `source_fn_stack` has a name for each call too, and what the
    call is by the program: the class of a module of tensorpy.nn, a function, one of operator (for a method too that
    is the same), or a method's name.

    Arguments:
        program: a module, or a function, which has no modules
        strict: whether nodes have `source_fn_stack`

    Example:
        >>> from tensorpy.fx._sources import NotedSources
        >>> from tensorpy.fx.traceback import preserve_node_meta
        >>> with preserve_node_meta(), NotedSources(None, True) as sources:
        ...     y = tp.ones(2)
        >>> sources.calls
        {'ones': 1}
    """

    def __init__(self, program: Any, strict: bool) -> None:
        self.names = {id(m): name for name, m in program.named_modules()} if isinstance(program, Module) else {}
        self.strict = strict
        self.thread = threading.get_ident()
        self.counts: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.namespace = Namespace()
        self.outer: list[Any] = []
        self.modules: list[Any] = []

    def __enter__(self) -> NotedSources:
        self.handles = [
            register_module_forward_pre_hook(self.begin),
            register_module_forward_hook(self.end, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        for handle in self.handles:
            handle.remove()

    # ---- modules ----

    def _is_noted(self, module: Any) -> bool:
        return id(module) in self.names and threading.get_ident() == self.thread

    def begin(self, module: Any, args: Any) -> None:
        if not self._is_noted(module):
            return
        meta, name = get_current_meta(), self.names[id(module)]
        stack = meta.get("nn_module_stack", {})
        again = self.counts[name] = self.counts.get(name, -1) + 1
        self.outer.append(stack)
        self.modules.append(module)
        kind = f"{type(module).__module__}.{type(module).__qualname__}"
        key = f"L__self__{name}" if not again else f"L__self__{name}@{again}"
        meta["nn_module_stack"] = {**stack, key: (name, kind)}

    def end(self, module: Any, args: Any, result: Any) -> None:
        if self._is_noted(module):
            get_current_meta()["nn_module_stack"] = self.outer.pop()
            self.modules.pop()

    # ---- functions ----

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", None)
        if name is None or name == "__get__" or threading.get_ident() != self.thread:
            return func(*args, **(kwargs or {}))
        meta = get_current_meta()
        before = {key: meta.get(key) for key in ("torch_fn", "source_fn_stack")}
        self.calls[name] = number = self.calls.get(name, 0) + 1
        meta["torch_fn"] = (f"{name}_{number}", f"{type(getattr(func, '__wrapped__', func)).__name__}.{name}")
        if self.strict:
            called = self.modules[-1] if self.modules else None
            kind = type(called) if called is not None and is_layer(called) else _kind_of(func)
            meta["source_fn_stack"] = [(self.namespace.create_name(name_of_target(func)), kind)]
        try:
            return func(*args, **(kwargs or {}))
        finally:
            for key, value in before.items():
                if value is None:
                    meta.pop(key, None)
                else:
                    meta[key] = value
