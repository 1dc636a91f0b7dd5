"""Files from the net: parameters that a URL names, kept in a folder. Programs from the net are not run."""

from __future__ import annotations

import hashlib
import os
import re
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlparse as urlparse

from tensorpy._package.absent import absent

HASH_REGEX = re.compile(r"-([0-9a-f]{8,})\.")
_folder: Path | None = None

load: Any = absent(__name__, "load")
list: Any = absent(__name__, "list")
help: Any = absent(__name__, "help")


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetches a file; it appears under its name when it is whole. RuntimeError if its SHA-256 begins otherwise.

    Arguments:
        url: the address
        dst: the path to write to
        hash_prefix: how the file's SHA-256 begins
        progress: whether progress is shown

    Example:
        >>> import pathlib
        >>> size = pathlib.Path("a.txt").write_text("text")
        >>> tp.hub.download_url_to_file(pathlib.Path("a.txt").absolute().as_uri(), "b.txt", progress=False)
        >>> pathlib.Path("b.txt").read_text()
        'text'
    """
    target = Path(dst).expanduser()
    digest = hashlib.sha256()
    part = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with urllib.request.urlopen(url) as source, part.open("wb") as file:
            while block := source.read(1 << 20):
                digest.update(block)
                file.write(block)
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> dict[str, Any]:
    """tensorpy.load of a file that a URL names, fetched once into model_dir (get_dir()'s "checkpoints").

    Arguments:
        url: the address
        map_location: where tensors go: a device, a dict or a function
        progress: whether progress is shown
        check_hash: whether the name's hash is compared
        file_name: the file's name in the cache
        weights_only: whether only tensors and plain data are read

    Returns: a dict of tensors.

    Raises: RuntimeError with check_hash for a file that is another.

    Example:
        >>> import pathlib
        >>> tp.save({"a": tp.ones(1)}, "weights.pt")
        >>> url = pathlib.Path("weights.pt").absolute().as_uri()
        >>> tp.hub.load_state_dict_from_url(url, "cache", progress=False)
        {'a': tensor([1.])}
    """
    from tensorpy.serialization import load

    folder = Path(model_dir or Path(get_dir()) / "checkpoints")
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    if not (folder / name).exists():
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(folder / name), found.group(1) if found else None, progress)
    state: dict[str, Any] = load(folder / name, map_location=map_location, weights_only=weights_only)
    return state


def _get_torch_home() -> str:
    """The folder that get_dir's stands in."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return str(Path(cache).expanduser() / "tensorpy")


def get_dir() -> str:
    """The folder where programs keep what they fetched: set_dir's, or "hub" in the cache of the user.

    Returns: str.

    Example:
        >>> tp.hub.set_dir("models")
        >>> tp.hub.get_dir()
        'models'
    """
    if _folder is not None:
        return str(_folder)
    return str(Path(_get_torch_home()) / "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets that folder.

    Arguments:
        d: the folder

    Example:
        >>> tp.hub.set_dir("models")
        >>> tp.hub.get_dir()
        'models'
    """
    global _folder
    _folder = Path(d).expanduser()
