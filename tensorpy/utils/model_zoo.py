"""Parameters from the net, under the name that torch.hub's function had first."""

from __future__ import annotations

from tensorpy.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
