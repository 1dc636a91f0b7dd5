"""Checkpoints as files of `tensorpy.save`, and back."""

from __future__ import annotations

import os
from typing import Any

import tensorpy as tp
from tensorpy.distributed.checkpoint.agreement import Ranks
from tensorpy.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from tensorpy.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from tensorpy.distributed.checkpoint.state_dict_loader import _load
from tensorpy.distributed.checkpoint.state_dict_saver import _save


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Writes all that a checkpoint has into one file.

    Arguments:
        dcp_checkpoint_dir: the checkpoint's folder
        torch_save_path: the file
    """
    state_dict: dict[str, Any] = {}
    _load(state_dict, FileSystemReader(dcp_checkpoint_dir), _EmptyStateDictLoadPlanner(), Ranks(None, False))
    tp.save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Writes a checkpoint of what one file has: tensors and plain data, as `load` reads with weights_only=True.

    Arguments:
        torch_save_path: the file
        dcp_checkpoint_dir: the checkpoint's folder
    """
    _save(tp.load(torch_save_path, weights_only=True), FileSystemWriter(dcp_checkpoint_dir), None, Ranks(None, False))
