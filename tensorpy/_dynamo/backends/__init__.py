"""Backends of compile(), and what programs make their own of."""

from tensorpy._dynamo.backends import registry

__all__ = ["registry"]
