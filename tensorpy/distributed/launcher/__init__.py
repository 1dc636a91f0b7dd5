"""torchrun as functions of Python: see api.py."""

from tensorpy.distributed.launcher.api import LaunchConfig as LaunchConfig
from tensorpy.distributed.launcher.api import elastic_launch as elastic_launch
from tensorpy.distributed.launcher.api import launch_agent as launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
