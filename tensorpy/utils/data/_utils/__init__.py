"""The parts of utils.data that run in workers: how samples become batches, and a worker's life."""

from __future__ import annotations

from tensorpy.utils.data._utils import collate as collate
from tensorpy.utils.data._utils import worker as worker
from tensorpy.utils.data._utils.worker import PARENT_CHECK

MP_STATUS_CHECK_INTERVAL = PARENT_CHECK  # seconds between a worker's looks whether its parent is alive
