"""Checkpoints that all ranks write and read together, in PyTorch's format: files go both ways.

A checkpoint is a folder (filesystem.py) whose `.metadata` says what it has (metadata.py, metadata_file.py). Ranks agree
on who writes or reads what (planner.py, default_planner.py, agreement.py), so another number of ranks may read it. The
state dictionaries of models and optimizers that do not depend on how they are wrapped are in state_dict.py.
"""

from __future__ import annotations

from tensorpy.distributed.checkpoint.api import CheckpointException as CheckpointException
from tensorpy.distributed.checkpoint.default_planner import DefaultLoadPlanner as DefaultLoadPlanner
from tensorpy.distributed.checkpoint.default_planner import DefaultSavePlanner as DefaultSavePlanner
from tensorpy.distributed.checkpoint.filesystem import FileSystemReader as FileSystemReader
from tensorpy.distributed.checkpoint.filesystem import FileSystemWriter as FileSystemWriter
from tensorpy.distributed.checkpoint.hf_storage import HuggingFaceStorageReader as HuggingFaceStorageReader
from tensorpy.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter as HuggingFaceStorageWriter
from tensorpy.distributed.checkpoint.metadata import BytesStorageMetadata as BytesStorageMetadata
from tensorpy.distributed.checkpoint.metadata import ChunkStorageMetadata as ChunkStorageMetadata
from tensorpy.distributed.checkpoint.metadata import Metadata as Metadata
from tensorpy.distributed.checkpoint.metadata import TensorStorageMetadata as TensorStorageMetadata
from tensorpy.distributed.checkpoint.optimizer import (
    load_sharded_optimizer_state_dict as load_sharded_optimizer_state_dict,
)
from tensorpy.distributed.checkpoint.planner import LoadPlan as LoadPlan
from tensorpy.distributed.checkpoint.planner import LoadPlanner as LoadPlanner
from tensorpy.distributed.checkpoint.planner import ReadItem as ReadItem
from tensorpy.distributed.checkpoint.planner import SavePlan as SavePlan
from tensorpy.distributed.checkpoint.planner import SavePlanner as SavePlanner
from tensorpy.distributed.checkpoint.planner import WriteItem as WriteItem
from tensorpy.distributed.checkpoint.state_dict_loader import load as load
from tensorpy.distributed.checkpoint.state_dict_loader import load_state_dict as load_state_dict
from tensorpy.distributed.checkpoint.state_dict_saver import async_save as async_save
from tensorpy.distributed.checkpoint.state_dict_saver import save as save
from tensorpy.distributed.checkpoint.state_dict_saver import save_state_dict as save_state_dict
from tensorpy.distributed.checkpoint.storage import StorageReader as StorageReader
from tensorpy.distributed.checkpoint.storage import StorageWriter as StorageWriter
