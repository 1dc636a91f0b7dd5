"""Layers, containers and losses by family."""

from __future__ import annotations

from tensorpy.nn.modules import compiled as _compiled  # noqa: F401
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

__all__ = sorted(
    name for name, value in list(globals().items()) if isinstance(value, type) and issubclass(value, Module)
)
