"""The one table of samples: what each operator is called with, and what NumPy says it gives.

`TABLE` maps an operator's name (of its functional variant: "add.Tensor") to its OpInfo. Everything that the YAML
says is
taken from it: variants, dtypes, promotion, which arguments there are. A pointwise or reduction operator needs no entry
of its own beyond its NumPy reference (references.py), and not even that where NumPy has it under the same name; other
operators list their samples in the module of their family:

    @samples("flip")
    def flip(make):
        yield make((2, 3)), (0, 1)

A sample is a tuple of arguments (a dict at its end holds keyword arguments). `make(*shape)` draws plain NumPy data of
the dtype that is asked for, so that the table knows no device and needs no tensorpy to be read.
"""

from __future__ import annotations

import importlib
import pkgutil

from .filling import build
from .table import TABLE, Array, OpInfo, OpSample, samples

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
build()

__all__ = ["TABLE", "Array", "OpInfo", "OpSample", "samples"]
