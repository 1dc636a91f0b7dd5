"""torch.fx's names: there are no graphs of functions, so no object is one, and to make one is an error."""

from __future__ import annotations

from typing import Any

from tensorpy._absent import absent

Graph = absent(__name__, "Graph")
GraphModule = absent(__name__, "GraphModule")
Interpreter = absent(__name__, "Interpreter")
Node = absent(__name__, "Node")
Proxy = absent(__name__, "Proxy")
Tracer = absent(__name__, "Tracer")
Transformer = absent(__name__, "Transformer")
replace_pattern = absent(__name__, "replace_pattern")
symbolic_trace = absent(__name__, "symbolic_trace")


def wrap(fn_or_name: Any) -> Any:
    """The function, or its name, as it came: there is no tracer to keep out of it."""
    return fn_or_name
