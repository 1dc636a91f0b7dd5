"""rearrange under its first name, where torch means tensorpy."""

from tensorpy.func import rearrange  # noqa: F401
