"""What programs do with modules before they send what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.coalesced import broadcast_coalesced
from tensorpy.distributed.groups import ProcessGroup, of
from tensorpy.distributed.reducer import verify


def _verify_param_shape_across_processes(
    process_group: ProcessGroup | None, tensors: Sequence[Tensor], logger: Any = None
) -> None:
    """RuntimeError in all processes where one of them has other tensors than the others, by dtype and shape."""
    verify(of(process_group), [f"tensor {i}: {t.dtype}{list(t.shape)}" for i, t in enumerate(tensors)])


def _sync_module_states(
    module: Any,
    process_group: ProcessGroup | None,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Iterable[str] = (),
    broadcast_buffers: bool = True,
) -> None:
    """All processes get one's parameters and buffers, in messages of so many bytes."""
    states = dict(module.named_parameters())
    if broadcast_buffers:
        states.update(module.named_buffers())
    ignored = set(params_and_buffers_to_ignore)
    _sync_params_and_buffers(
        process_group, [t.detach() for name, t in states.items() if name not in ignored], broadcast_bucket_size, src
    )


def _sync_params_and_buffers(
    process_group: ProcessGroup | None, module_states: list[Tensor], broadcast_bucket_size: int, src: int
) -> None:
    """All processes get one's tensors."""
    with tp.no_grad():
        broadcast_coalesced(of(process_group), module_states, broadcast_bucket_size, src)
