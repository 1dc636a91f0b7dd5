"""torch.hub's names: nothing is fetched from the net, a call is an error."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tensorpy._absent import absent

HASH_REGEX = re.compile(r"-([0-9a-f]{8,})\.")
_folder: Path | None = None

load = absent(__name__, "load")
list = absent(__name__, "list")
help = absent(__name__, "help")
load_state_dict_from_url = absent(__name__, "load_state_dict_from_url")
download_url_to_file = absent(__name__, "download_url_to_file")


def get_dir() -> str:
    """The folder where programs keep what they fetched: set_dir's, or "hub" in the cache of the user."""
    if _folder is not None:
        return str(_folder)
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return str(Path(cache).expanduser() / "tensorpy" / "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets that folder."""
    global _folder
    _folder = Path(d).expanduser()
