"""Gradients of each sample: weights that stand for one copy of a parameter for each sample of a batch."""

from __future__ import annotations

from tensorpy.nn.utils._expanded_weights import rules as rules
from tensorpy.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight as ExpandedWeight
