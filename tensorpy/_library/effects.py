"""Effects of operators that their schemas do not say, such as what they print: which operators have one."""

from __future__ import annotations

from enum import Enum

registered: dict[str, EffectType] = {}  # by "mine::op"


class EffectType(Enum):
    """How calls of an operator depend on others of their kind.

    Example:
        >>> tp.library.EffectType.ORDERED.value
        'Ordered'
    """

    ORDERED = "Ordered"


def effect_of(name: str) -> EffectType | None:
    """That of an operator's overload, "mine::op" or "mine::op.overload"; None: it has none."""
    return registered.get(name)


def register_effect(name: str, effect: EffectType | None) -> None:
    """Says that an operator has an effect, or, with None, that it has none."""
    if effect is None:
        registered.pop(name, None)
    else:
        registered[name] = effect
