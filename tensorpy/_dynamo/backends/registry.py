"""The names that compile(backend=) takes."""

from tensorpy._compile import InvalidBackend, list_backends, lookup_backend, register_backend

__all__ = ["InvalidBackend", "list_backends", "lookup_backend", "register_backend"]
