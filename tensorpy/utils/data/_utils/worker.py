"""utils.data.worker, under the name that programs import."""

from __future__ import annotations

from tensorpy.utils.data.worker import WorkerInfo, _generate_state, get_worker_info

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]
