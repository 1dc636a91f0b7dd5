"""Programs of many processes under torch.distributed's names: groups, what they send each other, stores of keys.

`distributed_c10d` has the groups and what is sent in them, `stores` the keys and bytes that processes share, `errors`
what all of them raise. A group has one process: it is rank 0, and what all send to all is what it has.
"""

from __future__ import annotations

from typing import Any

from tensorpy.distributed import _functional_operators as _functional_operators
from tensorpy.distributed.distributed_c10d import *  # noqa: F403
from tensorpy.distributed.distributed_c10d import BuiltinCommHookType as BuiltinCommHookType
from tensorpy.distributed.distributed_c10d import _coalescing_manager as _coalescing_manager
from tensorpy.distributed.distributed_c10d import _CoalescingManager as _CoalescingManager
from tensorpy.distributed.distributed_c10d import _rank_not_in_group as _rank_not_in_group
from tensorpy.distributed.distributed_c10d import _Work as _Work

TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.distributed.device_mesh import DeviceMesh as DeviceMesh
    from tensorpy.distributed.device_mesh import init_device_mesh as init_device_mesh
    from tensorpy.distributed.meeting import register_rendezvous_handler as register_rendezvous_handler
    from tensorpy.distributed.meeting import rendezvous as rendezvous
    from tensorpy.distributed.stores import FileStore as FileStore
    from tensorpy.distributed.stores import HashStore as HashStore
    from tensorpy.distributed.stores import PrefixStore as PrefixStore
    from tensorpy.distributed.stores import Store as Store
    from tensorpy.distributed.stores import TCPStore as TCPStore
else:

    def __getattr__(name: str) -> Any:
        """The stores and meshes are imported at first use: stores need sockets and threads."""
        if name in ("Store", "FileStore", "HashStore", "PrefixStore", "TCPStore"):
            from tensorpy.distributed import stores

            return getattr(stores, name)
        if name in ("rendezvous", "register_rendezvous_handler"):
            from tensorpy.distributed import meeting

            return getattr(meeting, name)
        if name in ("DeviceMesh", "init_device_mesh"):
            from tensorpy.distributed import device_mesh

            return getattr(device_mesh, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
