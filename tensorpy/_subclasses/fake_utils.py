"""Questions about tensors that a call was given and gave."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.utils._pytree import tree_leaves


def outputs_alias_inputs(outputs: Any, inputs: Any) -> bool:
    """Whether a tensor among the outputs has the memory of one among the inputs."""
    given, made = (
        {t.untyped_storage()._cdata for t in tree_leaves(tensors) if isinstance(t, Tensor)}
        for tensors in (inputs, outputs)
    )
    return bool(given & made)


def outputs_are_inputs(outputs: Any, inputs: Any) -> bool:
    """Whether one of the outputs is one of the inputs."""
    given = {id(t) for t in tree_leaves(inputs) if isinstance(t, Tensor)}
    return any(id(t) in given for t in tree_leaves(outputs) if isinstance(t, Tensor))


def output_alias_each_other(outputs: Any) -> bool:
    """Whether two of the outputs have one memory."""
    made = [t.untyped_storage()._cdata for t in tree_leaves(outputs) if isinstance(t, Tensor)]
    return len(set(made)) < len(made)
