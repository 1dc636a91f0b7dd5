"""Tools for parameters and modules: clipping, parametrisations, pruning, packed sequences."""

from __future__ import annotations

from tensorpy._package import parts as _parts
from tensorpy.nn.utils import parametrizations as parametrizations
from tensorpy.nn.utils import parametrize as parametrize
from tensorpy.nn.utils import rnn as rnn
from tensorpy.nn.utils import stateless as stateless
from tensorpy.nn.utils._convert import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
    parameters_to_vector,
    skip_init,
    vector_to_parameters,
)
from tensorpy.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from tensorpy.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from tensorpy.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from tensorpy.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]


TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.nn.utils import prune as prune
else:
    __getattr__ = _parts(__name__, ("prune",))
