"""symbolic_trace: runs a module's or function's Python on proxies, and gives the graph of what it did.

While a tracer runs, calls of modules, their attributes, and the functions that were wrapped are replaced in their
places, for the whole process, and put back at the end.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from tensorpy._C import Tensor
from tensorpy._package import settings
from tensorpy.fx._lazy_graph_module import _make_graph_module
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import map_aggregate
from tensorpy.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from tensorpy.nn import Module, Parameter, Sequential
from tensorpy.utils import _pytree

_MISSING: Any = object()
_proxyable_classes: list[type] = []
_wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}  # id of the globals and name -> the globals
_wrapped_methods: list[tuple[type, str]] = []
_tracing: list[Any] = []


class PHBase:
    """Marks, in concrete_args, what is an input all the same."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """The same, with a type for the placeholder."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


PH = PHBase()


def is_fx_tracing() -> bool:
    """Whether a tracer runs."""
    return bool(_tracing)


def _assert_is_none(value: Any, msg: str) -> None:
    """What a graph that was traced for None asks at its beginning."""
    if value is not None:
        raise AssertionError(msg)


def is_layer(module: Module) -> bool:
    """Whether a module is tensorpy.nn's, but for Sequential."""
    return type(module).__module__.startswith(("tensorpy.nn", "torch.nn")) and not isinstance(module, Sequential)


class ProxyableClassMeta(type):
    """A class whose instances may be made of proxies inside a trace: making one becomes a call in the graph.

    Arguments:
        name: the name
        bases: the classes that it is made from
        attrs: its attributes

    Example:
        >>> class Pair(metaclass=tp.fx.ProxyableClassMeta):
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> Pair(1, 2).a
        1
    """

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.append(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        kind: Any = cls
        made = kind.__new__(kind)
        if not is_fx_tracing():
            cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
            return made
        found = _a_proxy((args, kwargs))
        if found is not None:
            return found.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
        return made


# ---- what is replaced while a tracer runs ----


class _Patcher:
    """Replaces entries of dictionaries and attributes of classes; at the end they are what they were."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []
        self._visited: set[int] = set()

    def patch(self, home: dict[str, Any], name: str, new: Any) -> None:
        """Another object in a dictionary."""
        self._undo.append((home, name, home.get(name, _MISSING)))
        home[name] = new

    def patch_method(self, cls: type, name: str, new: Any) -> None:
        """Another method of a class."""
        self._undo.append((cls, name, cls.__dict__.get(name, _MISSING)))
        setattr(cls, name, new)

    def visit_once(self, home: dict[str, Any]) -> bool:
        """Whether a dictionary is seen for the first time."""
        seen = id(home) in self._visited
        self._visited.add(id(home))
        return not seen

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *unused: object) -> None:
        for home, name, old in reversed(self._undo):
            if isinstance(home, type):
                delattr(home, name) if old is _MISSING else setattr(home, name, old)
            elif old is _MISSING:
                del home[name]
            else:
                home[name] = old


def _a_proxy(tree: Any) -> Proxy | None:
    """A proxy in arguments."""
    leaves: list[Any] = []

    def look(leaf: Any) -> Any:
        if isinstance(leaf, Proxy):
            leaves.append(leaf)
        return leaf

    map_aggregate(tree, look)
    return leaves[0] if leaves else None


def _recording(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that becomes one node where it is called with proxies."""

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = _a_proxy((args, kwargs))
        if found is None:
            return original(*args, **kwargs)
        made = found.tracer.create_proxy("call_function", original, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _recording_method(cls: type, name: str) -> Callable[..., Any]:
    original = getattr(cls, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = _a_proxy((args, kwargs))
        if found is None:
            return original(*args, **kwargs)
        return found.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def wrap(fn_or_name: Any) -> Any:
    """Makes calls of a function one node, in the module whose top level this stands at: by its name, or as a
    decorator.

    Arguments:
        fn_or_name: the function or its name

    Returns: the function or name.

    Raises: RuntimeError for what is neither, NotImplementedError inside of a function.

    Example:
        >>> tp.fx.wrap("len")
        'len'
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("wrap() takes a function or the name of one")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


# ---- the tracer ----


class Tracer(TracerBase):
    """Runs a root on proxies. Subclasses say which modules are one node (`is_leaf_module`), what becomes of a call of
    a module, of an argument, of an attribute.

    `autowrap_modules` and `autowrap_functions` are recorded as calls wherever they are called with a proxy; with
    `param_shapes_constant` the shape of a parameter is a constant of the graph.

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> [node.op for node in tp.fx.Tracer().trace(module).nodes]
        ['placeholder', 'call_method', 'call_function', 'output']
    """

    graph: Any
    node_name_to_scope: Any
    root: Any
    root_module_name: Any
    scope: Any

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in module.__dict__.items()
            if not name.startswith("_") and callable(value)
        } | {id(function) for function in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: dict[str, Any] = {}
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    # ---- what subclasses answer ----

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module's call is one node: those of tensorpy.nn are, but Sequential."""
        return is_layer(m)

    def path_of_module(self, mod: Module) -> str:
        """Where in the root a module is; NameError if it is not there."""
        if self.submodule_paths is not None and mod in self.submodule_paths:
            return self.submodule_paths[mod]
        for path, found in self.root.named_modules():
            if found is mod:
                return path
        raise NameError(f"the module {type(mod).__name__} is not installed as a submodule of what is traced")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a module: a node, or what its forward does.

        Returns: a proxy, or what forward gives.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{path}@{count}" if count else path
            before, self.module_stack = self.module_stack, {**self.module_stack, key: (path, type(m))}
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack = before

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """An attribute of a module: a parameter is a node; a buffer too with `proxy_buffer_attributes`.

        Returns: a proxy, or the attribute.
        """
        tables: list[Any] = [self.root.named_parameters()] if isinstance(attr_val, Parameter) else []
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            tables.append(self.root.named_buffers())
        for name, value in (item for table in tables for item in table):
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self._proxy_of_tensor(name, value)
                return parameter_proxy_cache[name]
        return attr_val

    def _proxy_of_tensor(self, name: str, value: Tensor) -> Any:
        if not (self.param_shapes_constant and isinstance(value, Parameter)):
            return self.create_proxy("get_attr", name, (), {})
        return self.create_proxy(
            "get_attr", name, (), {}, proxy_factory_fn=lambda node: ParameterProxy(self, node, name, value)
        )

    def create_arg(self, a: Any) -> Any:
        """An argument as a node holds it. Tensors and modules are attributes of the root.

        Returns: an argument of a node.
        """
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._path_of_tensor(a), (), {})
        if isinstance(a, Module):
            for name, module in self.root.named_modules():
                if module is a:
                    return self.create_node("get_attr", name, (), {})
        if type(type(a)) is ProxyableClassMeta:
            name = self._keep(a, f"_{type(a).__name__}_constant_")
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _path_of_tensor(self, tensor: Tensor) -> str:
        tables = [self.root.named_parameters()] if isinstance(tensor, Parameter) else [self.root.named_buffers()]
        for name, value in (item for table in tables for item in table):
            if value is tensor:
                return name
        if isinstance(tensor, Parameter):
            raise NameError("a parameter is used that is not a parameter of what is traced")
        if id(tensor) not in self.tensor_attrs:
            self.tensor_attrs[id(tensor)] = (tensor, self._keep(tensor, "_tensor_constant"))
        return self.tensor_attrs[id(tensor)][1]

    def get_fresh_qualname(self, prefix: str) -> str:
        """An attribute's name that the root does not have yet."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def _keep(self, value: Any, prefix: str) -> str:
        name = self.get_fresh_qualname(prefix)
        setattr(self.root, name, value)
        self._kept.append(name)
        return name

    # ---- the inputs ----

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: dict[str, Any] | tuple[Any, ...] | None = None
    ) -> tuple[Any, list[Any]]:
        """The function to call, and its arguments: placeholders, but for what `concrete_args` gives."""
        fn = inspect.unwrap(root_fn)
        if (code := getattr(fn, "__code__", None)) is not None:
            fields = ("co_name", "co_filename", "co_firstlineno")
            self.graph._co_fields = {field: getattr(code, field) for field in fields}
        names, starred, defaults, given = _parameters_of(fn)
        args: list[Any] = []
        if is_module:
            if not names:
                raise RuntimeError("`self` argument cannot be part of *args expansion!")
            args, names = [self.root], names[1:]
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(names):
                raise RuntimeError(
                    f"tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        concrete = concrete_args or {}
        nested = not all(_pytree.tree_structure(concrete[name]).is_leaf() for name in names if name in concrete)
        annotations = _annotations_of(root_fn)
        made: dict[str, Any] = {}
        for name in names:
            made[name] = self._input(name, annotations.get(name), defaults.get(name, _MISSING), concrete, nested)
        args += [made[name] for name in names[: given - is_module]]
        keywords = {name: made[name] for name in names[given - is_module :]}
        stars = [self._proxy_placeholder(star, None, _MISSING) for star in starred]
        if nested:
            _, self.graph.in_spec = _pytree.tree_flatten((tuple(concrete.get(name, PH) for name in names), {}))
            self.graph.in_names = list(names)
        if not keywords and not stars:
            return root_fn, args
        extra = [s for s, star in zip(stars, starred, strict=True) if not star.startswith("**")]
        named = [s for s, star in zip(stars, starred, strict=True) if star.startswith("**")]
        # For `*args` and `**kwargs` the function's own code is changed: what decorates it is left out.
        return _calling(fn if stars else root_fn, keywords, extra, named), args

    def _input(self, name: str, kind: Any, default: Any, concrete: dict[str, Any], nested: bool) -> Any:
        if name not in concrete:
            return self._proxy_placeholder(name, kind, default)
        value, count = concrete[name], 0

        def replace(leaf: Any) -> Any:
            nonlocal count
            count += 1
            if isinstance(leaf, PHBase):
                made = self._proxy_placeholder(f"{name}_{count}", None, _MISSING)
                for key, known in vars(leaf).items():
                    setattr(made.node, key, known)
                return made
            out = self._proxy_placeholder(f"{name}_{count}", None, _MISSING if nested else default)
            if isinstance(leaf, (bool, int, float, str)):
                message = f"{name} has been specialized to have value {leaf} but got another value"
                settings._assert(out == leaf, message)
            elif leaf is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (out, message), {})
            else:
                warnings.warn(
                    f"the graph is traced for one value of '{name}', and does not check that it is given that",
                    stacklevel=6,
                )
            return leaf

        return _pytree.tree_map(replace, value)

    def _proxy_placeholder(self, name: str, kind: Any, default: Any) -> Any:
        args = () if default is _MISSING else (default,)
        return self.create_proxy("placeholder", name, args, {}, type_expr=kind)

    # ---- tracing ----

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """The graph of what a module's forward, or a function, does."""
        _tracing.append(self)
        try:
            return self._trace(root, concrete_args)
        finally:
            _tracing.pop()

    def _trace(self, root: Any, concrete_args: Any) -> Graph:
        function: Any
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"{type(root).__name__} has no method {self.traced_func_name!r} to trace")
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        self._kept: list[str] = []
        self.tensor_attrs: dict[int, tuple[Tensor, str]] = {}
        self._collect_tensors(self.root, "")
        fn, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        plain: Any = inspect.unwrap(function)
        annotations = _annotations_of(function) if fn is plain else {}
        home = getattr(plain, "__globals__", {})
        with _Patcher() as patcher:
            self._patch(patcher, home)
            result = fn(*args)
        leaves = self.create_arg(result)
        if self.graph.in_spec is not None:
            flat, self.graph.out_spec = _pytree.tree_flatten(leaves)
            leaves = flat
        self.create_node("output", "output", (leaves,), {}, type_expr=annotations.get("return"))
        self.submodule_paths = None
        return self.graph

    def _collect_tensors(self, module: Module, prefix: str) -> None:
        """Tensors that are plain attributes."""
        for name, value in module.__dict__.items():
            if isinstance(value, Tensor):
                self.tensor_attrs[id(value)] = (value, prefix + name)
        for name, child in module.named_children():
            self._collect_tensors(child, f"{prefix}{name}.")

    def _patch(self, patcher: _Patcher, home: dict[str, Any]) -> None:
        cache: dict[str, Any] = {}
        call, get = Module.__call__, Module.__getattr__

        @functools.wraps(get)
        def getattr_of_module(mod: Any, name: str) -> Any:
            return self.getattr(name, get(mod, name), cache)

        @functools.wraps(call)
        def call_of_module(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(mod, *args, **kwargs)

            self._autowrap(patcher, getattr(getattr(mod, "forward", mod), "__globals__", {}))
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(Module, "__getattr__", getattr_of_module)
        patcher.patch_method(Module, "__call__", call_of_module)
        for (_, name), where in _wrapped_functions.items():
            original = where.get(name, getattr(builtins, name, None))
            if original is not None:
                patcher.patch(where, name, _recording(original))
        for cls, name in _wrapped_methods:
            patcher.patch_method(cls, name, _recording_method(cls, name))
        self._autowrap(patcher, home)
        for module in self._autowrap_search:
            self._autowrap(patcher, module.__dict__)

    def _autowrap(self, patcher: _Patcher, home: dict[str, Any]) -> None:
        """Wraps the functions that are recorded everywhere, as a module's code names them."""
        if not patcher.visit_once(home):
            return
        for name, value in list(home.items()):
            if not name.startswith("_") and callable(value) and id(value) in self._autowrap_function_ids:
                patcher.patch(home, name, _recording(value))

    def __deepcopy__(self, memo: Any) -> Tracer:
        made = Tracer.__new__(type(self))
        for name, value in self.__dict__.items():
            made.__dict__[name] = value
        return made


def _annotations_of(fn: Any) -> dict[str, Any]:
    """A function's annotations; without those that say of a module of this package that it takes anything."""
    given = getattr(fn, "__annotations__", {})
    return {k: v for k, v in given.items() if v != "Any" or not fn.__module__.startswith(("tensorpy.", "torch."))}


def _parameters_of(fn: Any) -> tuple[list[str], list[str], dict[str, Any], int]:
    """The names of a function's parameters, those with stars, the defaults, and how many can be given by position."""
    if not isinstance(fn, FunctionType) and not hasattr(fn, "__code__"):
        fn = getattr(fn, "__func__", None) or type(fn).__call__
    parameters = inspect.signature(fn).parameters.values()
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    plain = [p for p in parameters if p.kind not in stars]
    defaults = {p.name: p.default for p in plain if p.default is not inspect.Parameter.empty}
    by_position = sum(p.kind is not inspect.Parameter.KEYWORD_ONLY for p in plain)
    starred = [stars[p.kind] + p.name for p in parameters if p.kind in stars]
    return [p.name for p in plain], starred, defaults, by_position


def _calling(fn: Any, keywords: dict[str, Any], extra: list[Any], named: list[Any]) -> Any:
    """The function with the arguments that do not go by position. One proxy stands in place of the tuple of
    `*args`, one in place of the dictionary of `**kwargs`, which no call can give: its code is made to take them so."""
    if not extra and not named:
        return functools.partial(fn, **keywords)
    code = fn.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    count = code.co_argcount + code.co_kwonlyargcount + len(extra) + len(named)
    plain = code.replace(co_flags=flags, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0)
    changed = FunctionType(plain, fn.__globals__, fn.__name__, None, fn.__closure__)

    def call(*args: Any) -> Any:
        return changed(*args, *keywords.values(), *extra, *named)

    return call


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: Any = None) -> GraphModule:
    """A graph module that does what a module or function does.

    Its Python runs once, on proxies: branches that depend on a value are errors (`concrete_args` gives arguments their
    values for good), loops are unrolled, modules of tensorpy.nn are one node.

    Arguments:
        root: the module

    Returns: a GraphModule.

    Raises: TraceError where control flow depends on values.

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> module(tp.tensor([-1.0, 2.0]))
        tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", type(root).__name__)
    return _make_graph_module(tracer.root, graph, name)


__all__ = ["PH", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]
