"""Names of torch's symbolic tracer, which stands in for values in Python code: tensorpy records calls instead."""

from __future__ import annotations

from tensorpy._absent import absent, absent_class
from tensorpy.fx import Proxy, Tracer

GraphAppendingTracer = absent_class(__name__, "GraphAppendingTracer")
TracerBase = Tracer
ParameterProxy = absent_class(__name__, "ParameterProxy")
Attribute = absent_class(__name__, "Attribute")
TraceError = type("TraceError", (ValueError,), {"__module__": __name__, "__doc__": "An error of symbolic tracing."})
Scope = absent(__name__, "Scope")

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "TraceError", "TracerBase"]
