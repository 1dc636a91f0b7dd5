"""Where a storage of a file goes: to the device that it was saved from, or where `map_location` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._utils import bytes_tensor
from tensorpy.backends._entry_points import device_of_a_file
from tensorpy.serialization import names

# What a function of the user's, or the file's own word, makes of a storage on the CPU; None on the Meta device.
Restore = Callable[[Any, str], Any]


Tagger = Callable[[Any], "str | None"]  # the name of a storage's place; None: it does not know it
_package_registry: list[tuple[int, Tagger, Callable[[Any, str], Any]]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Callable[[Any, str], Any]) -> None:
    """Lets a package name where storages are (`tagger(storage)`), and bring them there (`deserializer(storage, name)`);
    None of either leaves it to the next, lower priorities first, tensorpy's devices last.

    Arguments:
        priority: a lower number goes first

    Example:
        >>> tp.serialization.register_package(20, tag, restore)  # doctest: +SKIP
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """What a file says of where a storage is.

    Returns: str.

    Example:
        >>> tp.serialization.location_tag(tp.ones(2).untyped_storage())
        'cpu'
    """
    for _, tagger, _ in _package_registry:
        if (found := tagger(storage)) is not None:
            return found
    return str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage on the CPU, brought to where a file says that it was.

    Arguments:
        location: the name of a device

    Returns: a storage.

    Raises: RuntimeError for a device that is not here.

    Example:
        >>> storage = tp.ones(2).untyped_storage()
        >>> tp.serialization.default_restore_location(storage, "cpu") is storage
        True
    """
    return _restored(storage, location, _C.device)


def _as_the_file_says(storage: Any, location: str) -> Any:
    """The same, but the package of a device that has not been imported stays so: a file's word imports nothing."""
    return _restored(storage, location, device_of_a_file)


def _restored(storage: Any, location: str, make: Callable[[str], _C.device]) -> Any:
    for _, _, deserializer in _package_registry:
        if (found := deserializer(storage, location)) is not None:
            return found
    return _to(storage, _device(location, make))


def _device(location: str, make: Callable[[str], _C.device] = _C.device) -> _C.device:
    try:
        return make(location)
    except (RuntimeError, ValueError, OverflowError):
        raise RuntimeError(f"don't know how to restore data location of a storage (tagged with {location})") from None


def _to(storage: Any, device: _C.device) -> Any:
    if device.type == "meta":
        return None
    if device.type == "cpu":
        return storage
    try:
        return bytes_tensor(storage).to(device=device).untyped_storage()
    except (RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"Attempting to deserialize object on a {device.type.upper()} device, {device}, which is not there "
            f"({error}). Use "
            "map_location=tensorpy.device('cpu') to map your storages to the CPU."
        ) from None


def _by_function(function: Any) -> Restore:
    def restore(storage: Any, location: str) -> Any:
        found = function(storage, location)
        if found is None:
            return _as_the_file_says(storage, location)
        if not isinstance(found, names.UNTYPED):
            raise TypeError(f"map_location has to give a storage or None, not {type(found).__name__}")
        return found

    return restore


def _by_dictionary(places: dict[Any, Any]) -> Restore:
    def restore(storage: Any, location: str) -> Any:
        if location in places:
            return default_restore_location(storage, str(places[location]))
        return _as_the_file_says(storage, location)

    return restore


def restorer(map_location: Any) -> Restore:
    """What `map_location` means."""
    if map_location is None:
        return _as_the_file_says
    if isinstance(map_location, (str, _C.device)):
        device = _device(map_location) if isinstance(map_location, str) else map_location
        return lambda storage, location: _to(storage, device)
    if isinstance(map_location, dict):
        return _by_dictionary(map_location)
    if not callable(map_location):
        raise TypeError(f"map_location is a device, its name, a dict or a function, not {type(map_location).__name__}")
    return _by_function(map_location)
