"""rearrange in the module that PyTorch has it in."""

from tensorpy.func.rearrange import rearrange  # noqa: F401
