"""tensorpy.nn: modules, their parameters, layers and losses; the functions of neural networks."""

from __future__ import annotations

from typing import Any

from tensorpy._package import proposing as _proposing
from tensorpy.nn import functional as functional
from tensorpy.nn import init as init
from tensorpy.nn import modules as modules
from tensorpy.nn import parameter as parameter
from tensorpy.nn import utils as utils
from tensorpy.nn.modules.activation import *  # noqa: F403
from tensorpy.nn.modules.adaptive import *  # noqa: F403
from tensorpy.nn.modules.batchnorm import *  # noqa: F403
from tensorpy.nn.modules.container import *  # noqa: F403
from tensorpy.nn.modules.conv import *  # noqa: F403
from tensorpy.nn.modules.distance import *  # noqa: F403
from tensorpy.nn.modules.dropout import *  # noqa: F403
from tensorpy.nn.modules.flatten import *  # noqa: F403
from tensorpy.nn.modules.fold import *  # noqa: F403
from tensorpy.nn.modules.instancenorm import *  # noqa: F403
from tensorpy.nn.modules.linear import *  # noqa: F403
from tensorpy.nn.modules.loss import *  # noqa: F403
from tensorpy.nn.modules.module import Module as Module
from tensorpy.nn.modules.normalization import *  # noqa: F403
from tensorpy.nn.modules.padding import *  # noqa: F403
from tensorpy.nn.modules.pixelshuffle import *  # noqa: F403
from tensorpy.nn.modules.pooling import *  # noqa: F403
from tensorpy.nn.modules.rnn import *  # noqa: F403
from tensorpy.nn.modules.sparse import *  # noqa: F403
from tensorpy.nn.modules.transformer import *  # noqa: F403
from tensorpy.nn.modules.upsampling import *  # noqa: F403
from tensorpy.nn.parameter import Buffer as Buffer
from tensorpy.nn.parameter import Parameter as Parameter
from tensorpy.nn.parameter import UninitializedBuffer as UninitializedBuffer
from tensorpy.nn.parameter import UninitializedParameter as UninitializedParameter

TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ imports at first use
    from tensorpy.nn import _reduction as _reduction
    from tensorpy.nn import attention as attention
    from tensorpy.nn import grad as grad
    from tensorpy.nn import intrinsic as intrinsic
    from tensorpy.nn import parallel as parallel
    from tensorpy.nn import qat as qat
    from tensorpy.nn import quantizable as quantizable
    from tensorpy.nn import quantized as quantized
    from tensorpy.nn.parallel import DataParallel as DataParallel


if not TYPE_CHECKING:
    _propose = _proposing("nn", globals())

    def __getattr__(name: str) -> object:
        """The wrappers for several devices and the modules of quantization are imported at first use."""
        import importlib

        if name in ("_reduction", "attention", "grad", "intrinsic", "qat", "quantizable", "quantized"):
            return importlib.import_module(f"tensorpy.nn.{name}")
        if name in ("parallel", "DataParallel"):
            parallel = importlib.import_module("tensorpy.nn.parallel")
            return parallel if name == "parallel" else parallel.DataParallel
        return _propose(name)


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments of a factory among those of a layer: device, dtype, memory_format, and `factory_kwargs` itself.

    Arguments:
        kwargs: the keyword arguments

    Returns: a dict.

    Raises: TypeError for arguments that no factory has, or that are given twice.

    Example:
        >>> nn.factory_kwargs({"device": "cpu"})
        {'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    if unexpected := kwargs.keys() - {*known, "factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unexpected}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in known & kwargs.keys():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found
