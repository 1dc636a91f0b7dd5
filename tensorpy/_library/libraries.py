"""Library: declarations and kernels that come and go together; define and impl, which need none."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, ClassVar

from tensorpy import _C
from tensorpy._library.effects import EffectType, register_effect
from tensorpy._library.registration import (
    Registration,
    add_kernel,
    declare,
    keys_of,
    known_key,
    names_of_tags,
    places,
    register_again,
    registered,
    wait_for,
    wait_no_more,
    where_called,
    withdraw,
)
from tensorpy._library.utils import parse_namespace


def _name_of_kernel(op: Any) -> str:
    """The full name of an overload, "aten::add.Tensor", or what a function or a name of several overloads is called."""
    own: str = getattr(op, "_name", "") or getattr(op, "_qualified_op_name", "") or op.__name__
    return own


class Library:
    """Declarations and kernels that come and go together.

    `Library("myops", "DEF")` opens a namespace, "FRAGMENT" adds to one, "IMPL" registers kernels for what is there
    (also for "aten", tensorpy's own). What a library declared and registered is taken out when it is destroyed, or when
    nothing holds it any more. While a namespace has its DEF, a second one is refused: open a FRAGMENT.

    Arguments:
        ns: the namespace
        kind: 'DEF', 'IMPL' or 'FRAGMENT'
        dispatch_key: the key; '' for all

    Raises: ValueError for an unknown kind, or a namespace that is no name, or tensorpy's own; RuntimeError for a second
        DEF of a namespace.

    Example:
        >>> lib = tp.library.Library("help_Library", "DEF")
        >>> name = lib.define("triple(Tensor x) -> Tensor")
        >>> lib.impl("triple", lambda x: x * 3, "CompositeImplicitAutograd")
        >>> tp.ops.help_Library.triple(tp.ones(2))
        tensor([3., 3.])
    """

    dispatch_key: str
    ns: str
    _where: str  # file:line of who opened it
    _owners: ClassVar[MutableMapping[str, Library]] = weakref.WeakValueDictionary()

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Library: Unsupported kind {kind!r}: it is 'DEF', 'IMPL' or 'FRAGMENT'")
        if not ns.isidentifier():
            raise ValueError(f"Library: {ns!r} is no name of a namespace")
        if ns == "_" and kind != "IMPL":
            raise RuntimeError(f"Library: the namespace '_' stands for all: open it with 'IMPL', not {kind!r}")
        if ns == "prim" or (ns == "aten" and kind != "IMPL"):
            raise ValueError(f"Library: '{ns}' is a reserved namespace: declare operators in one of your own")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._operators: list[str] = []
        self._registrations: list[Registration] = []
        self._fallbacks: list[int] = []
        self._rules: list[tuple[Any, Any]] = []
        self._effects: list[str] = []
        if kind == "DEF":
            there = Library._owners.get(ns)
            if there is not None:
                raise RuntimeError(
                    f"Library: the namespace '{ns}' has its DEF already, opened at {there._where}; this one comes from "
                    f"{where_called()}: declare in that library, or open a 'FRAGMENT'"
                )
            Library._owners[ns] = self
        self._where = where_called()

    def __del__(self) -> None:
        if hasattr(self, "_rules") and not sys.is_finalizing():
            self._destroy()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    @property
    def m(self) -> Library:
        """What PyTorch's libraries hold in C: this library, which `del library.m` destroys."""
        return self

    @m.deleter
    def m(self) -> None:
        self._destroy()

    def define(self, schema: str, alias_analysis: str = "", *, tags: str | Iterable[str] = ()) -> str:
        """Declares an operator, "scale(Tensor x, float by=2.0) -> Tensor"; gives its name.

        `tags` are tensorpy.Tag's, or their names.
        """
        if self.kind == "IMPL":
            raise RuntimeError(f"{self!r} registers kernels and declares nothing: open one with 'DEF' or 'FRAGMENT'")
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        full = f"{self.ns}::{schema.partition('(')[0].strip()}"
        if full in _C._operators():
            place = places.get(full, "a library in C")
            raise RuntimeError(
                f"{full} is declared already, at {place}, and cannot be multiple times: {self!r} declares it again, at "
                f"{where_called()}"
            )
        name = declare(f"{self.ns}::{schema.strip()}", where_called(), False, names_of_tags(tags))
        self._operators.append(name)
        return name.rpartition("::")[2]

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Registers a kernel for a dispatch key ("CPU", "Autograd", "CompositeImplicitAutograd", ...).

        A name without its overload means the one that has none. `with_keyset`: the kernel gets the call's key set
        first. `fallthrough_kernel` as the kernel passes the key by. A kernel that Python registered before stands
        behind this one until this goes; without `allow_override` it is an error. Kernels for devices that are not
        here ("CUDA") are not kept. An operator that nobody has declared yet gets the kernel when somebody does.
        """
        if not callable(fn):
            raise TypeError(f"Library.impl: a kernel is a function, not {type(fn).__name__}")
        if dispatch_key and self.dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(f"Library.impl: the dispatch key {dispatch_key} is not the one of {self!r}")
        given = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        key = known_key(given)
        if not isinstance(op_name, str) and not callable(op_name):
            raise RuntimeError(f"Library.impl: an operator is given by its name or as an overload, not as {op_name!r}")
        full = self._full(op_name)
        if full.partition("::")[0] != self.ns:
            raise RuntimeError(f"Library: {full} is not of the namespace '{self.ns}' of {self!r}")
        full = full.removeprefix("aten::")
        if key is None:
            return
        if key not in (*_C._ALIAS_KEYS, *_C._KEYS):
            raise RuntimeError(f"Library.impl: there is no dispatch key '{given}'")
        there = registered.get((full, key))
        if there is not None and there._handle and not allow_override:
            raise RuntimeError(
                f"{full} already has a kernel for {key}, registered from {there.where}; this one comes from "
                f"{where_called()}"
            )
        if key == "Meta" and (full, "CompositeImplicitAutograd") in registered:
            raise RuntimeError(
                f"Library.impl: {full} has a kernel for CompositeImplicitAutograd, which makes it of other operators: "
                "what it does on Meta follows from theirs"
            )
        kernel, where = None if fn is fallthrough_kernel else fn, where_called()
        if full in _C._operators():
            Registration(full, key, kernel, with_keyset, where, lib=self)
        else:
            wait_for(full, self, lambda lib: register_again(full, key, kernel, with_keyset, where, False, lib))

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Registers what runs at a key for every operator that has no kernel of its own there: fn(op, *args, **kwargs).

        `fallthrough_kernel` passes the key by.
        """
        if self.ns != "_":
            raise RuntimeError(f"Library.fallback: it is for all namespaces: Library('_', 'IMPL'), not {self!r}")
        if not dispatch_key and not self.dispatch_key:
            raise AssertionError("Library.fallback: it takes a dispatch key")
        key = known_key(dispatch_key or self.dispatch_key)
        if key is None:
            return
        kernel = None if fn is fallthrough_kernel else fn
        self._fallbacks.append(_C._register("", key, kernel, with_keyset, where_called(), False))

    def _full(self, op_name: Any) -> str:
        name: str = op_name if isinstance(op_name, str) else _name_of_kernel(op_name)
        return name if "::" in name else f"{self.ns}::{name}"

    def _register_effectful_op(self, op_name: str, effect: EffectType | None) -> None:
        """Says that an operator, "mine::op", has an effect that its schema does not say."""
        parse_namespace(op_name)
        register_effect(op_name, effect)
        self._effects.append(op_name)

    def register_symm_mem_args(self, op_name: Any, arg_names: Iterable[str]) -> None:
        """Says which arguments have to lie in memory that several devices share. No compiler here asks for it: nothing
        comes of it.

        Raises: RuntimeError for an operator that is neither a name nor an overload.
        """
        if not isinstance(op_name, (str, _C.OpOverload)):
            raise RuntimeError(f"register_symm_mem_args: {op_name!r} is neither an operator's name nor an overload")

    def _destroy(self) -> None:
        """Takes out all that the library registered."""
        for registration in reversed(self._registrations):
            registration.remove()
        wait_no_more(self)
        for handle in self._fallbacks:
            _C._deregister(handle)
        for name in self._operators:
            withdraw(name)
        for name in self._effects:
            register_effect(name, None)
        for key, rule in self._rules:
            if _C._dispatch_rules.get(key) is rule:
                del _C._dispatch_rules[key]
        self._operators, self._registrations, self._fallbacks, self._rules = [], [], [], []
        self._effects = []
        if Library._owners.get(self.ns) is self:
            del Library._owners[self.ns]


def fallthrough_kernel() -> Any:
    """In place of a kernel: the key is passed by.

    Returns: nothing: it is not called.

    Raises: NotImplementedError where it is called.

    Example:
        >>> lib = tp.library.Library("help_fallthrough", "DEF")
        >>> name = lib.define("triple(Tensor x) -> Tensor")
        >>> lib.impl("triple", tp.library.fallthrough_kernel, "AutogradCPU")
    """
    raise NotImplementedError("fallthrough_kernel stands for a kernel; it is not called")


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library for as long as it lasts."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def define(
    qualname: Any,
    schema: str,
    alias_analysis: str = "",
    *,
    lib: Library | None = None,
    tags: str | Iterable[str] = (),
) -> Any:
    """Declares "myops::scale" with a schema without a name: "(Tensor x, float by) -> Tensor". `tags`: as for
    Library.define. In the older form a Library comes first, the schema has the name, and the function that is decorated
    becomes the kernel for all devices.

    Arguments:
        qualname: the operator's name with its namespace: 'mine::op'
        schema: the schema; None makes one of the annotations
        alias_analysis: taken and not used
        lib: a Library that the registration lives with; None keeps it
        tags: tags of the operator

    Returns: None, or in the older form a decorator.

    Raises: ValueError for a name without a namespace, or another than the library's.

    Example:
        >>> lib = tp.library.Library("help_define", "DEF")
        >>> name = lib.define("triple(Tensor x) -> Tensor")
        >>> lib.impl("triple", lambda x: x * 3, "CompositeImplicitAutograd")
        >>> tp.ops.help_define.triple(tp.ones(2))
        tensor([3., 3.])
    """
    if not isinstance(qualname, (str, Library)):
        raise ValueError(f"define: the name is a str, not {type(qualname).__name__}")
    if isinstance(qualname, Library):
        return _decorated(qualname, qualname.define(schema, alias_analysis, tags=tags))
    if "::" not in qualname:
        raise ValueError(f"define: the name is 'namespace::name', not {qualname!r}")
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define: expected schema to look like "(Tensor x) -> Tensor", as the name is given before it; {qualname} '
            f"got {schema!r}"
        )
    if lib is not None and lib.ns != qualname.partition("::")[0]:
        raise ValueError(f"define: {qualname} is not of the namespace of {lib!r}")
    if lib is not None:
        lib.define(qualname.partition("::")[2] + schema.strip(), tags=tags)
    else:
        declare(qualname + schema.strip(), where_called(), True, names_of_tags(tags))


def _decorated(library: Library, name: Any, dispatch_key: str = "") -> Callable[[Any], Any]:
    """A decorator that gives an operator of a library its kernel."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        library.impl(name, fn, dispatch_key)
        return fn

    return register


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Registers a kernel for device types ("cpu", ["cpu", "opencl"], "default" for all); also a decorator.

    In the older form, `impl(library, name, dispatch_key)`, a Library comes first: see Library.impl.

    Arguments:
        qualname: the operator's name with its namespace: 'mine::op'
        types: the device type or types
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: None, or without a function a decorator.

    Example:
        >>> lib = tp.library.Library("help_impl", "DEF")
        >>> name = lib.define("triple(Tensor x) -> Tensor")
        >>> lib.impl("triple", lambda x: x * 3, "CompositeImplicitAutograd")
        >>> tp.ops.help_impl.triple(tp.ones(2))
        tensor([3., 3.])
    """

    if isinstance(qualname, Library):
        return _decorated(qualname, types, func or "")
    keys = keys_of(types)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            add_kernel(qualname, key, fn, lib)
        return fn

    return register if func is None else register(func)
