"""Tracing of code that asserts: each `assert` becomes a call, so that the graph has it."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from types import CellType, FunctionType
from typing import Any

import tensorpy
from tensorpy.fx._symbolic_trace import Tracer
from tensorpy.fx.annotate import annotate
from tensorpy.fx.graph import Graph
from tensorpy.nn import Module

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """Writes a function anew."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function with `assert` and annotations of local names as calls; itself where it has no source."""
        try:
            source = textwrap.dedent(inspect.getsource(fn))
            # A string over lines may stand further left than the function, which is then in a block of its own.
            tree: Any = ast.parse(source if source[:1].strip() else "if True:\n" + source)
        except (OSError, TypeError, SyntaxError):
            return fn
        function: Any = tree.body[0] if source[:1].strip() else tree.body[0].body[0]
        if not isinstance(function, ast.FunctionDef):
            return fn
        function.decorator_list = []
        function.returns = None
        for argument in (*function.args.args, *function.args.posonlyargs, *function.args.kwonlyargs):
            argument.annotation = None
        free = fn.__code__.co_freevars
        cells = {"_tensorpy_assert": CellType(tensorpy._assert), "_tensorpy_annotate": CellType(annotate)}
        cells.update(zip(free, fn.__closure__ or (), strict=True))
        outer: Any = ast.parse(f"def outer({', '.join(cells)}):\n    pass").body[0]
        outer.body = [self.visit(function), ast.parse(f"return {function.name}").body[0]]
        module = ast.fix_missing_locations(ast.Module([outer], []))
        space: dict[str, Any] = dict(fn.__globals__)  # the source's defaults are computed, and not used
        exec(compile(module, fn.__code__.co_filename, "exec"), space)
        code = space["outer"](*cells).__code__
        closure = tuple(cells[name] for name in code.co_freevars)
        made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        made.__kwdefaults__, made.__annotations__ = fn.__kwdefaults__, fn.__annotations__
        return made

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """assert test, msg: a call of tensorpy._assert."""
        message = node.msg or ast.Constant("")
        return ast.Expr(ast.Call(ast.Name("_tensorpy_assert", ast.Load()), [node.test, message], []))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """name: kind = value: the value's node has the kind."""
        if node.value is None:
            return node
        call = ast.Call(ast.Name("_tensorpy_annotate", ast.Load()), [node.value, node.annotation], [])
        return ast.Assign([node.target], call)


class RewritingTracer(Tracer):
    """A tracer of what AST_Rewriter makes of the root and the modules inside."""

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)
    made = copy.copy(fn)
    made._modules = {name: child and _rewrite(child) for name, child in fn._modules.items()}
    forward = type(fn).forward
    if isinstance(forward, FunctionType) and forward.__module__ and not forward.__module__.startswith("tensorpy."):
        kind = type(type(fn).__name__, (type(fn),), {"forward": AST_Rewriter().rewrite(forward)})
        functools.update_wrapper(kind, type(fn), updated=())
        made.__class__ = kind
    return made
