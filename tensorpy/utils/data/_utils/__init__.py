"""Where programs look for the parts of utils.data by PyTorch's private names."""

from __future__ import annotations

from tensorpy.utils.data import collate as collate
from tensorpy.utils.data import worker as worker
