"""Parameters as one vector, where PyTorch has them."""

from __future__ import annotations

from tensorpy.nn.utils._convert import parameters_to_vector, vector_to_parameters

__all__ = ["parameters_to_vector", "vector_to_parameters"]
