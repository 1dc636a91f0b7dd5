"""Meshes of processes, where programs of distributed tensors look for them."""

from tensorpy.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
