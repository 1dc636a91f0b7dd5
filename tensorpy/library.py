"""Operators from outside: declared, given kernels, gradients and checks, from Python.

    @tensorpy.library.custom_op("myops::scale", mutates_args=())
    def scale(x: Tensor, by: float = 2.0) -> Tensor:
        return x * by

    tensorpy.ops.myops.scale(tensorpy.ones(3), 3.0)

An operator of a library is one like any other: it dispatches by device and layer, is traced, explained and pickled by
its name. Without a registered derivative it runs, and what it gives to backward is an error that says so.
"""

from __future__ import annotations

from tensorpy._library.custom_ops import CustomOpDef, custom_op, opencl_op, triton_op
from tensorpy._library.effects import EffectType
from tensorpy._library.fake_impl import get_ctx
from tensorpy._library.infer_schema import infer_schema
from tensorpy._library.kernels import get_kernel
from tensorpy._library.libraries import Library, _scoped_library, define, fallthrough_kernel, impl  # noqa: F401
from tensorpy._library.opencl import OpenCLKernel, opencl_kernel
from tensorpy._library.registering import (  # noqa: F401
    _register_effectful_op,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)
from tensorpy._library.registration import declared  # noqa: F401
from tensorpy._library.triton import wrap_triton
from tensorpy._package import proposing as _proposing
from tensorpy.testing.opcheck import OpCheckError, opcheck

__all__ = [
    "CustomOpDef",
    "EffectType",
    "Library",
    "OpCheckError",
    "OpenCLKernel",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "opencl_kernel",
    "opencl_op",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("library", globals())
