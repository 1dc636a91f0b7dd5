"""A module that runs a graph, written as Python; saved and loaded by the names of its operators."""

from __future__ import annotations

import functools
import itertools
import linecache
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.fx._state import decode, encode
from tensorpy.fx.code import PythonCode
from tensorpy.fx.graph import Graph, attribute_of
from tensorpy.fx.node import called
from tensorpy.nn import Module, Parameter
from tensorpy.serialization import save
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["GraphModule", "rebuild", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # of a graph's module: attributes that copies keep
_OWN = ("_graph", "_code", "_create_node_hooks", "_erase_node_hooks", "_replace_hooks")
_numbers = itertools.count()
_FREED = (0, 0.0, [""], "<freed>")  # an entry of linecache of a file that is not there: its checkcache drops it


def _compile(code: PythonCode, traced: dict[str, Any]) -> Any:
    """The function `forward` of a code, whose lines tracebacks show for as long as it lives, and where the function is
    that was traced."""
    file = f"<eval_with_key>.{next(_numbers)}"
    if traced:
        file += " from {co_filename}:{co_firstlineno} in {co_name}".format_map(traced)
    names = dict(code.globals)
    exec(compile(code.src, file, "exec"), names)
    function = names["forward"]
    linecache.cache[file] = (len(code.src), None, code.src.splitlines(True), file)
    weakref.finalize(function, _forget_lines, file)
    return function


def _forget_lines(file: str) -> None:
    """Frees the text of a function that is gone. Its key stays until linecache drops it: a collection may run in the
    middle of linecache's own walk over its keys, in this thread or another, which finds each key that it has seen."""
    if file in linecache.cache:
        linecache.cache[file] = _FREED


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Puts what a graph names where it names it. Tensors that are no parameters are buffers."""
    *folders, name = target.split(".")
    for folder in folders:
        if getattr(to_module, folder, None) is None:
            setattr(to_module, folder, Module())
        to_module = getattr(to_module, folder)
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, Parameter):
        to_module.register_buffer(name, from_obj)
    else:
        setattr(to_module, name, from_obj)


def _found(module: Any, path: str) -> Any:
    """What is at a path; None: nothing."""
    for part in path.split("."):
        module = getattr(module, part, None)
    return module


def _copy_attr(from_module: Any, to_module: Module, target: str) -> None:
    """The same of what another module has there; where that has nothing, nothing."""
    folder, _, name = target.rpartition(".")
    owner = _found(from_module, folder) if folder else from_module
    if hasattr(owner, name):
        _assign_attr(getattr(owner, name), to_module, target)


class _CodeOnlyModule(Module):
    """A module with the attributes of another: the root of a graph that is traced anew."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """Runs a graph. `root` is a module, or a dictionary of paths, that has what the graph's get_attr and call_module
    nodes name. After a change of the graph `recompile()` writes the code anew.

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> module(tp.tensor([-1.0, 2.0]))
        tensor([1., 3.])
    """

    training: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes an object of a class of its own, which has the graph's function as its `forward`."""
        shared = next(base for base in cls.__mro__ if "GraphModule.__new__" not in base.__qualname__)
        own: Any = type("GraphModuleImpl", (shared,), {"__qualname__": "GraphModule.__new__.<locals>.GraphModuleImpl"})
        return super().__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        self.meta: dict[str, Any] = {}
        self._create_node_hooks: list[Any] = []
        self._erase_node_hooks: list[Any] = []
        self._replace_hooks: list[Any] = []
        if isinstance(root, Module):
            self.training = root.training
            meta = getattr(root, "meta", {})
            kept = meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}) if isinstance(meta, dict) else {}
            self.meta = dict(meta) if isinstance(root, GraphModule) else self.meta
            for name, value in kept.items():
                setattr(self, name, value)
        named = [n for n in graph.nodes if n.op in ("get_attr", "call_module")]
        for node in sorted(named, key=lambda n: n.target.count(".")) if isinstance(root, dict) else named:
            if not isinstance(root, dict):
                _copy_attr(root, self, node.target)
            elif node.target not in root:
                raise RuntimeError(f"node {node} names the target {node.target}, which `root` does not have")
            else:
                _assign_attr(root[node.target], self, node.target)
        self.graph = graph

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"a graph module's graph is a Graph, not {type(graph).__name__}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    # ---- running ----

    def recompile(self) -> PythonCode:
        """Writes the code of the graph as it is now, and gives it."""
        code = self._graph.python_code("self")
        self._code = code.src
        function = _compile(code, self._graph._co_fields)
        type(self).forward = _restoring_grad_mode(function) if self._graph.switches_grad_mode() else function
        return code

    @property
    def code(self) -> str:
        """The Python that runs."""
        return self._code

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The placeholders' values; TypeError or ValueError if the arguments are not what was recorded."""
        leaves, spec = tree_flatten((args, kwargs))
        graph = self._graph
        if spec != graph.in_spec:
            raise TypeError(f"the graph was recorded for arguments like {graph.in_spec}, not {spec}")
        for place, expected in graph.static_inputs.items():
            given = leaves[place]
            if given is not expected and (type(given) is not type(expected) or given != expected):
                raise ValueError(f"the graph was recorded with {expected!r}, which is a part of it, not with {given!r}")
        return [leaf for place, leaf in enumerate(leaves) if place not in graph.static_inputs]

    def _give(self, leaves: list[Any]) -> Any:
        assert self._graph.out_spec is not None
        return tree_unflatten(leaves, self._graph.out_spec)

    @property
    def _in_spec(self) -> Any:
        return self._graph.in_spec

    @property
    def _out_spec(self) -> Any:
        return self._graph.out_spec

    # ---- hooks ----

    def _register_create_node_hook(self, f: Any) -> None:
        """From here on calls f with each node that is made in the graph."""
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Any) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Any) -> None:
        """From here on calls f with each node that is taken out of the graph."""
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Any) -> None:
        self._erase_node_hooks.remove(f)

    def _register_replace_node_hook(self, f: Any) -> None:
        """From here on calls f(old=, new=, user=) where a user of a node gets another; `new` is a name."""
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Any) -> None:
        self._replace_hooks.remove(f)

    @contextmanager
    def _set_replace_hook(self, f: Any) -> Iterator[None]:
        """The same, as long as it lasts."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    # ---- submodules ----

    def add_submodule(self, target: str, m: Module) -> bool:
        """Puts a module at a path, and empty ones on the way; False where something else is in the way."""
        *folders, name = target.split(".")
        module: Module = self
        for folder in folders:
            found = getattr(module, folder, None)
            if found is None:
                found = Module()
                setattr(module, folder, found)
            if not isinstance(found, Module):
                return False
            module = found
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes the module at a path away; False if there is none."""
        *folders, name = target.split(".")
        module: Any = self
        for folder in folders:
            module = getattr(module, folder, None)
            if not isinstance(module, Module):
                return False
        if not isinstance(getattr(module, name, None), Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes away the modules that no node of the graph calls or reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
            if node.op == "call_module" and isinstance(called := _found(self, node.target), Module):
                used.update(f"{node.target}.{name}" for name, _ in called.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- looking ----

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, **unused: Any,
    ) -> str:  # fmt: skip
        """The code as a class, graphs of the modules inside as classes in it."""
        text = _readable(self, type(self).__name__)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        more = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__repr__()}\n{self._code}\n{more}"

    def _get_name(self) -> str:
        return type(self).__name__

    def _repr_svg_(self) -> str:
        return self._graph._repr_svg_()

    # ---- copies and files ----

    def __deepcopy__(self, memo: Any) -> GraphModule:
        root = Module()
        root.__dict__ = deepcopy({k: v for k, v in self.__dict__.items() if k not in _OWN}, memo)
        made = GraphModule(root, deepcopy(self._graph, memo), type(self).__name__)
        self._add_rest(made, root.__dict__)
        memo[id(self)] = made
        return made

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = copy(self)
        made._is_replica = True
        return made

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Writes a package: the class as Python, and beside it what it holds."""
        path = Path(folder)
        path.mkdir(exist_ok=True)
        save(self.state_dict(), path / "state_dict.pt")
        parts = []
        for name, child in self.named_children():
            save(child, path / f"{name}.pt")
            parts.append(f'self.{name} = tensorpy.load(HERE / "{name}.pt", weights_only=False)')
        for name, value in {**self._buffers, **self._parameters}.items():
            made = f"tensorpy.empty({list(value.shape)}, dtype={value.dtype})" if value is not None else "None"
            kind = "register_buffer" if name in self._buffers else "register_parameter"
            made = f"tensorpy.nn.Parameter({made})" if kind == "register_parameter" and value is not None else made
            parts.append(f'self.{kind}("{name}", {made})')
        lines = "".join(f"        {part}\n" for part in parts)
        body = "".join(f"    {line}\n" if line else "\n" for line in self._code.strip("\n").split("\n"))
        names = "".join(_import_of(name, value) for name, value in self._graph.python_code("self").globals.items())
        text = (
            "from pathlib import Path\n\nimport tensorpy\n"
            f"{names}\nHERE = Path(__file__).parent\n\n\n"
            f"class {module_name}(tensorpy.nn.Module):\n    def __init__(self):\n        super().__init__()\n{lines}"
            f'        self.load_state_dict(tensorpy.load(HERE / "state_dict.pt"))\n\n{body}'
        )
        (path / "module.py").write_text(text)
        (path / "__init__.py").write_text("from .module import *\n")

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, copy(self.graph), type(self).__name__)
        made.meta = dict(self.meta)
        return made

    @staticmethod
    def _add_rest(made: GraphModule, state: dict[str, Any]) -> None:
        """What a copy was not given because its graph does not name it: hooks, attributes, other modules."""
        for name, value in state.items():
            own = made.__dict__.get(name)
            if name in ("_parameters", "_buffers", "_modules") and own is not None:
                for key, item in value.items():
                    own.setdefault(key, item)
            else:
                made.__dict__[name] = value

    def _named(self) -> list[str]:
        return sorted({n.target for n in self._graph.nodes if n.op in ("get_attr", "call_module")})

    def _constants(self) -> dict[str, Any]:
        """What the graph names, by its path, and what else the module has, by its name."""
        named = self._named()
        known = {path.partition(".")[0] for path in named}
        own = {**self._parameters, **self._buffers, **self._modules}
        return {name: attribute_of(self, name) for name in named} | {k: v for k, v in own.items() if k not in known}

    def __reduce_ex__(self, protocol: Any) -> Any:
        more = (self.training, _own_attributes(self))
        given = (encode(self._graph), self._constants(), type(self).__name__)
        return rebuild, given if more == (True, {}) else (*given, *more)


def _restoring_grad_mode(function: Any) -> Any:
    """A function of a graph that switches grad modes: afterwards the mode is what it was."""

    @functools.wraps(function)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = _C.is_grad_enabled()
        try:
            return function(self, *args, **kwargs)
        finally:
            _C._set_grad_enabled(before)

    return forward


def _readable(module: GraphModule, name: str) -> str:
    text = f"class {name}({called()}.nn.Module):\n"
    code = module._graph.python_code("self", verbose=True).src
    text += "".join(f"    {line}".rstrip() + "\n" for line in code.strip("\n").rstrip().split("\n"))
    inner = [(n, m) for n, m in module.named_children() if isinstance(m, GraphModule)]
    for child_name, child in inner:
        text += "\n" + "".join(f"    {line}".rstrip() + "\n" for line in _readable(child, child_name).split("\n"))
    return text


def _import_of(name: str, value: Any) -> str:
    """The line of a module that gives a global of a graph's code its value."""
    if isinstance(value, (str, float)):
        return f"{name} = {value!r}\n" if isinstance(value, str) else f'{name} = float("{value}")\n'
    if isinstance(value, type(itertools)) or value is type(None):
        return f"import {value.__name__} as {name}\n" if value is not type(None) else f"{name} = type(None)\n"
    home, called = (
        getattr(value, "__module__", None),
        getattr(value, "__qualname__", None) or getattr(value, "_name", ""),
    )
    if not home or not called or not called.isidentifier():
        raise RuntimeError(f"to_folder: the code names {value!r}, which is not of a module")
    return f"from {home} import {called} as {name}\n"


def _own_attributes(module: GraphModule) -> dict[str, Any]:
    """What a program put on a module."""
    skipped = {*Module().__dict__, *_OWN}
    return {name: value for name, value in module.__dict__.items() if name not in skipped and value != {}}


def _is_part(name: str) -> bool:
    """Whether a part of a constant's path is a name; those with two underscores are Python's."""
    return (name.isidentifier() or name.isalnum()) and not name.startswith("__")


def rebuild(
    state: Any,
    constants: dict[str, Any],
    class_name: str,
    training: bool = True,
    attributes: dict[str, Any] | None = None,
) -> GraphModule:
    """From a pickle, which is trusted: the graph becomes code. Names are checked, so that it is the graph's code."""
    if not isinstance(class_name, str) or not isinstance(constants, dict):
        raise TypeError("a saved graph is broken")
    if not all(isinstance(n, str) and all(map(_is_part, n.split("."))) for n in constants):
        raise TypeError("a saved graph names a constant that is no name")
    graph = decode(state)
    named = {n.target for n in graph.nodes if n.op in ("get_attr", "call_module")}
    made = GraphModule({k: v for k, v in constants.items() if k in named}, graph, class_name)
    for name in constants.keys() - named:
        _assign_attr(constants[name], made, name)
    made.training = training is True
    for name, value in (attributes or {}).items():
        made.__dict__[name] = value
    return made


reduce_graph_module = rebuild
