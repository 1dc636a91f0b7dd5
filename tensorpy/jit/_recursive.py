"""The types that modules were compiled to: nothing is compiled, so the store stays empty."""

from __future__ import annotations

from typing import Any


class ConcreteTypeStore:
    """Which types each class of modules was compiled to."""

    def __init__(self) -> None:
        self.type_store: dict[type, list[Any]] = {}


concrete_type_store = ConcreteTypeStore()
