"""Lists and dictionaries in a node's arguments, which nobody changes in place: a node would not know of it."""

from __future__ import annotations

from typing import Any, NoReturn

from tensorpy.utils import _pytree


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. The args and kwargs of a node are replaced as a "
        "whole: make a changed copy, new_args, and assign it to node.args or node.kwargs"
    )


class immutable_list(list[Any]):
    """A list of a node's arguments."""

    append: Any
    clear: Any
    extend: Any
    insert: Any
    pop: Any
    remove: Any
    reverse: Any
    sort: Any
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__: Any
    __iadd__: Any
    __imul__: Any
    __setitem__: Any
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (list(self),)


class immutable_dict(dict[Any, Any]):
    """A dictionary of a node's arguments."""

    clear: Any
    pop: Any
    popitem: Any
    setdefault: Any
    update: Any
    clear = pop = popitem = setdefault = update = _refuse
    __delitem__: Any
    __ior__: Any
    __setitem__: Any
    __delitem__ = __ior__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self),)


_pytree.register_pytree_node(immutable_list, lambda x: (list(x), None), lambda items, _: immutable_list(items))
_pytree.register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda items, keys: immutable_dict(zip(keys, items, strict=True)),
)
