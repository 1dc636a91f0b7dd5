"""Logs for TensorBoard, through the tensorboard package: scalars, histograms, pictures, sounds, texts, graphs, points.

with SummaryWriter("runs/first") as log:
    log.add_scalar("loss", loss, step)
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("tensorboard") is None:
    raise ImportError("tensorpy.utils.tensorboard writes through the tensorboard package: pip install tensorboard")

from tensorpy.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
