"""Operators from outside: declared, given kernels, gradients and checks, from Python.

    @tensorpy.library.custom_op("myops::scale", mutates_args=())
    def scale(x: Tensor, by: float = 2.0) -> Tensor:
        return x * by

    tensorpy.ops.myops.scale(tensorpy.ones(3), 3.0)

An operator of a library is one like any other: it dispatches by device and layer, is traced, explained and pickled by
its name. Without a registered derivative it runs, and what it gives to backward is an error that says so.
"""

from __future__ import annotations

import re
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, overload

from tensorpy import _C, dispatch, ops
from tensorpy._C import Tensor
from tensorpy._library.fake_impl import get_ctx, told
from tensorpy._library.function_schema import FunctionSchema, parse_schema
from tensorpy._library.rules import ByDevice, autograd_kernel, giving_new, giving_written, keyword_tensors
from tensorpy._library.schema import infer_schema
from tensorpy._library.tags import Tag, check_tags
from tensorpy._library.triton import wrap_triton
from tensorpy._package import proposing as _proposing
from tensorpy.testing.opcheck import OpCheckError, opcheck

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "OpenCLKernel",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "opencl_kernel",
    "opencl_op",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_COMPOSITE = "CompositeExplicitAutograd"
_registered: dict[tuple[str, str], Registration] = {}  # the one at hand per operator and key
_waiting: dict[str, list[Callable[[], None]]] = {}  # kernels of operators that are not declared yet


def _where(depth: int = 2) -> str:
    """file:line of who called the function that asks."""
    frame = sys._getframe(depth)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _name_of_kernel(op: Any) -> str:
    """Of an overload "aten::add.Tensor"; of all of a name, or of a function, what it is called."""
    own: str = getattr(op, "_name", "") or getattr(op, "_qualified_op_name", "") or op.__name__
    return own


class Registration:
    """A kernel that stands in the dispatcher until it is taken out."""

    key: str
    name: str
    where: str
    fn: Callable[..., Any] | None

    def __init__(
        self, name: str, key: str, fn: Callable[..., Any] | None, with_keyset: bool, where: str, records: bool = False
    ) -> None:
        self.name, self.key, self.where, self.fn = name, key, where, fn
        self._handle = _C._register(name, key, fn, with_keyset, where, True, records)
        self._before = _registered.get((name, key))
        _registered[name, key] = self

    def remove(self) -> None:
        """Takes the kernel out; what stood there before stands there again."""
        if self._handle:
            _C._deregister(self._handle)
        self._handle = 0
        if _registered.get((self.name, self.key)) is self:
            del _registered[self.name, self.key]
            if self._before is not None and self._before._handle:
                _registered[self.name, self.key] = self._before


def _backend_key(device_type: str) -> str | None:
    """ "CPU" of "cpu"; of a device from outside what its tensors carry. None for a type of PyTorch's that no device of
    this machine has: what is registered for it is never called. RuntimeError where there is no such type."""
    kind = _C.device(device_type.lower()).type
    try:
        return dispatch.backend_key(kind)
    except (RuntimeError, AssertionError):
        return None


_FOREIGN = re.compile(r"(Autograd|Autocast|Sparse|SparseCsr|Quantized|NestedTensor|AutogradNestedTensor)?([A-Z]\w*)")
_ALIASES = (*_C._ALIAS_KEYS, *_C._KEYS)


def _known_key(name: str) -> str | None:
    """A dispatch key as tensorpy has it: PyTorch's "CUDA" is that of the device that programs call so. None for a key
    of a device that is not here."""
    found = None if name in _ALIASES else _FOREIGN.fullmatch(name)
    if found is None:
        return name
    try:
        key = _backend_key(found[2])
    except RuntimeError:
        return name  # no type of device: what registers says so
    return None if key is None else (found[1] or "") + key


class Library:
    """Declarations and kernels that come and go together.

    `Library("myops", "DEF")` opens a namespace, "FRAGMENT" adds to one, "IMPL" registers kernels for what is there
    (also for "aten", tensorpy's own). What a library declared and registered is taken out when it is destroyed. A
    second DEF of a namespace takes the place of the first, so that a cell of a notebook can run again. A library that
    nothing holds any more is destroyed.

    Arguments:
        ns: the namespace
        kind: 'DEF', 'IMPL' or 'FRAGMENT'
        dispatch_key: the key; '' for all

    Raises: ValueError for an unknown kind, or a namespace that is no name, or tensorpy's own.

    Example:
        >>> lib = tp.library.Library("help_Library", "DEF")
        >>> name = lib.define("triple(Tensor x) -> Tensor")
        >>> lib.impl("triple", lambda x: x * 3, "CompositeImplicitAutograd")
        >>> tp.ops.help_Library.triple(tp.ones(2))
        tensor([3., 3.])
    """

    dispatch_key: str
    ns: str
    _owners: ClassVar[MutableMapping[str, Library]] = weakref.WeakValueDictionary()

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Library: the kind is 'DEF', 'IMPL' or 'FRAGMENT', not {kind!r}")
        if not ns.isidentifier():
            raise ValueError(f"Library: {ns!r} is no name of a namespace")
        if ns == "prim" or (ns == "aten" and kind != "IMPL"):
            raise ValueError(f"Library: the namespace '{ns}' is tensorpy's own: declare operators in one of yours")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._operators: list[str] = []
        self._registrations: list[Registration] = []
        self._fallbacks: list[int] = []
        self._rules: list[tuple[Any, Any]] = []
        if kind == "DEF":
            if ns in Library._owners:
                Library._owners[ns]._destroy()
            Library._owners[ns] = self

    def __del__(self) -> None:
        if hasattr(self, "_rules") and not sys.is_finalizing():
            self._destroy()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

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
            place = _places.get(full, "a library in C")
            raise RuntimeError(f"{full} is declared already, at {place}; {self!r} declares it again, at {_where()}")
        name = _declare(f"{self.ns}::{schema.strip()}", _where(), False, _names_of_tags(tags))
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
        here ("CUDA") are not kept.
        """
        if not callable(fn):
            raise TypeError(f"Library.impl: a kernel is a function, not {type(fn).__name__}")
        if dispatch_key and self.dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(f"Library.impl: the dispatch key {dispatch_key} is not the one of {self!r}")
        given = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        key = _known_key(given)
        if not isinstance(op_name, str) and not callable(op_name):
            raise RuntimeError(f"Library.impl: an operator is given by its name or as an overload, not as {op_name!r}")
        name: str = op_name if isinstance(op_name, str) else _name_of_kernel(op_name)
        full = name if "::" in name else f"{self.ns}::{name}"
        if full.partition("::")[0] != self.ns:
            raise RuntimeError(f"Library: {full} is not of the namespace '{self.ns}' of {self!r}")
        full = full.removeprefix("aten::")
        if key is None:
            return
        there = _registered.get((full, key))
        if there is not None and there._handle and not allow_override:
            raise RuntimeError(
                f"{full} already has a kernel for {key}, registered from {there.where}; this one comes from {_where()}"
            )
        kernel = None if fn is fallthrough_kernel else fn
        self._registrations.append(Registration(full, key, kernel, with_keyset, _where()))

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Registers what runs at a key for every operator that has no kernel of its own there: fn(op, *args, **kwargs).

        `fallthrough_kernel` passes the key by.
        """
        key = dispatch_key or self.dispatch_key
        if not key:
            raise ValueError("Library.fallback: it takes a dispatch key")
        if self.ns != "_":
            raise RuntimeError(f"Library.fallback: it is for all namespaces: Library('_', 'IMPL'), not {self!r}")
        kernel = None if fn is fallthrough_kernel else fn
        self._fallbacks.append(_C._register("", key, kernel, with_keyset, _where(), False))

    def _destroy(self) -> None:
        """Takes out all that the library registered."""
        for registration in reversed(self._registrations):
            registration.remove()
        for handle in self._fallbacks:
            _C._deregister(handle)
        for name in self._operators:
            _withdraw(name)
        for key, rule in self._rules:
            if _C._dispatch_rules.get(key) is rule:
                del _C._dispatch_rules[key]
        self._operators, self._registrations, self._fallbacks, self._rules = [], [], [], []
        if Library._owners.get(self.ns) is self:
            del Library._owners[self.ns]


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """In place of a kernel: the key is passed by."""
    raise NotImplementedError("fallthrough_kernel stands for a kernel; it is not called")


_declared: dict[str, str] = {}  # the schemas of what Python declared
_places: dict[str, str] = {}  # and where it did so


def _withdraw(name: str) -> None:
    """Frees the name of an operator that Python declared; its kernels go with it."""
    for key in [key for registered, key in _registered if registered == name]:
        _registered[name, key].remove()
    if _declared.pop(name, None) is not None:
        _C._withdraw(name)
        ops._forget(name)


def _names_of_tags(tags: str | Iterable[str]) -> tuple[str, ...]:
    """Each once, as PyTorch's YAML writes them; a ValueError for a word that is none."""
    given = [tags] if isinstance(tags, str) else list(tags)
    return tuple(dict.fromkeys(Tag(tag).value for tag in given))


def _declare(schema: str, where: str, replaces: bool, tags: tuple[str, ...] = ()) -> str:
    """Declares an operator with what it has until it gets its own: no derivative, versions of what it writes.

    `replaces`: one that Python declared with another schema goes, as when an edited cell of a notebook runs again.
    """
    before = schema.partition("(")[0].strip()
    if replaces and _declared.get(before, schema) != schema:
        _withdraw(before)
    if tags:
        check_tags(parse_schema(schema), tags)
    name: str = _C._define(schema, where)
    if (name in _declared or tags) and tuple(_C._op_overload(name).tags) != tags:
        _C._tag(name, tags)
    if name not in _declared:
        _C._register_defaults(name)
        _declared[name], _places[name] = schema, where
        ops._forget(name)
    declared(name)
    return name


def declared(name: str) -> None:
    """Gives an operator that is declared now the kernels that have waited for it."""
    for register in _waiting.pop(name, ()):
        register()


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
        _declare(qualname + schema.strip(), _where(), True, _names_of_tags(tags))


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
    keys = _keys_of(types)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            _add(qualname, key, fn, lib)
        return fn

    return register if func is None else register(func)


def _keys_of(types: str | Sequence[str] | None) -> list[str]:
    """Of those types of devices that are here."""
    names = [types] if isinstance(types, str) else ["default"] if types is None else list(types)
    keys = [_COMPOSITE if name == "default" else name if name in _ALIASES else _backend_key(name) for name in names]
    return [key for key in keys if key is not None]


def _name_of(op: Any) -> str:
    """The full name of an operator that is given by its name, as a CustomOpDef or as an overload."""
    name = op if isinstance(op, str) else getattr(op, "_qualname", None) or getattr(op, "_own_name", None)
    if not isinstance(name, str):
        raise ValueError(
            f"an operator is given by its name, as an overload or as a custom_op, not as {type(op).__name__}"
        )
    if "::" not in name and isinstance(op, str):
        raise ValueError(f"the name of an operator has its namespace, 'mine::op' or 'aten::sin', unlike {name!r}")
    return name


def _add(
    name: Any,
    key: str,
    fn: Callable[..., Any],
    lib: Library | None,
    with_keyset: bool = False,
    records: bool = False,
) -> None:
    """A kernel in place of the one that Python registered before, as when a cell of a notebook runs again.

    An operator that nobody has declared yet gets it when somebody does.
    """
    name = _name_of(name)
    there = _registered.get((name, key))
    if there is not None:
        there.remove()
    try:
        registration = Registration(name, key, fn, with_keyset, _where(), records)
    except RuntimeError as error:
        if "::" not in name or not str(error).startswith("there is no operator"):
            raise
        _waiting.setdefault(name, []).append(lambda: _add(name, key, fn, lib, with_keyset, records))
        return
    if lib is not None:
        lib._registrations.append(registration)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Gives an operator a kernel for device types; None: for all that have none of their own. Also a decorator.

    Arguments:
        op: the operator, or its name
        device_types: one or several types of device; None for all
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: the function, or without one a decorator.

    Example:
        >>> @tp.library.custom_op("help_kernel::triple", mutates_args=(), device_types="meta")
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return tp.empty_like(x)
        >>> @tp.library.register_kernel("help_kernel::triple", "cpu")
        ... def _(x):
        ...     return x * 3
        >>> triple(tp.ones(2))
        tensor([3., 3.])
    """

    made = _definitions.get(_name_of(op)) if lib is None else None
    if made is not None:
        return made.register_kernel(device_types, func)
    keys = _keys_of(device_types)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            _add(op, key, fn, lib)
        return fn

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    allow_override: bool = True,
) -> Any:
    """Gives an operator what it does on Meta: tensors of the right shape, without values. Also a decorator.

    Arguments:
        op: the operator, or its name
        func: the kernel
        lib: a Library that the registration lives with; None keeps it
        allow_override: whether one that is there is replaced; else it is a RuntimeError

    Returns: the function, or without one a decorator.

    Example:
        >>> @tp.library.custom_op("help_fake::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> @tp.library.register_fake("help_fake::triple")
        ... def _(x):
        ...     return tp.empty_like(x)
        >>> triple(tp.ones(2, device="meta")).shape
        tensorpy.Size([2])
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        name = _name_of(op)
        if (name, "CompositeImplicitAutograd") in _registered:
            raise RuntimeError(
                f"register_fake: {name} has a kernel for CompositeImplicitAutograd, which makes it of other operators: "
                "what it does on Meta follows from theirs"
            )
        there = _registered.get((name, "Meta"))
        if there is not None and not allow_override:
            raise RuntimeError(
                f"register_fake: {name} already has a fake kernel or a Meta implementation, registered from "
                f"{there.where}"
            )
        _add(op, "Meta", told(name, fn), lib)
        return fn

    return register if func is None else register(func)


def impl_abstract(qualname: Any, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """The older name of register_fake.

    Arguments:
        qualname: the operator's name with its namespace: 'mine::op'
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: the function, or without one a decorator.

    Example:
        >>> lib = tp.library.Library("help_abstract", "DEF")
        >>> name = lib.define("triple(Tensor x) -> Tensor")
        >>> kernel = tp.library.impl_abstract("help_abstract::triple", tp.empty_like, lib=lib)
        >>> tp.ops.help_abstract.triple(tp.ones(2, device="meta")).shape
        tensorpy.Size([2])
    """
    warnings.warn("impl_abstract is called register_fake now", FutureWarning, stacklevel=2)
    return register_fake(qualname, func, lib=lib)


# ---- autograd ----


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Gives an operator a gradient: `backward(ctx, *grads)` gives one per argument, None where there is none.

    `setup_context(ctx, inputs, output)` keeps what backward needs (ctx.save_for_backward, attributes); an operator with
    keyword-only arguments gets them as `keyword_only_inputs`.

    Arguments:
        op: the operator, or its name
        lib: a Library that the registration lives with; None keeps it

    Example:
        >>> @tp.library.custom_op("help_grad::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> tp.library.register_autograd("help_grad::triple", lambda ctx, grad: grad * 3)
        >>> x = tp.ones(2, requires_grad=True)
        >>> triple(x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
    """
    overload = _overload(op)
    if "!" in overload._schema:
        raise RuntimeError(
            f"register_autograd: {overload._own_name} writes its arguments, and a gradient is for operators that give "
            "new results: wrap it in one"
        )
    if keyword_tensors(overload._schema):
        raise NotImplementedError(
            f"register_autograd: {overload._own_name} has tensors that are given by keyword alone: gradients are for "
            "positional ones"
        )
    _add(op, "Autograd", autograd_kernel(overload, backward, setup_context), lib, with_keyset=True, records=True)


def _overload(op: Any) -> Any:
    name = _name_of(op)
    if isinstance(op, CustomOpDef):
        return op._op
    return _C._op_overload(name) if isinstance(op, str) else op


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Under autocast on that device type, floating tensors are cast to `cast_inputs` before the operator runs.

    Arguments:
        op: the operator, or its name
        device_type: the type of device: 'cpu', 'opencl', ...
        lib: a Library that the registration lives with; None keeps it

    Example:
        >>> @tp.library.custom_op("help_cast::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> tp.library.register_autocast("help_cast::triple", "cpu", tp.bfloat16)
        >>> with tp.autocast("cpu"):
        ...     print(triple(tp.ones(2)).dtype)
        tensorpy.bfloat16
    """
    overload = _overload(op)
    below = dispatch.below("AutocastCPU")

    def cast(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point() and value.dtype != _C.float64:
            return value.to(dtype=cast_inputs)
        return [cast(v) for v in value] if isinstance(value, list) else value

    def kernel(keyset: int, *args: Any, **kwargs: Any) -> Any:
        kwargs = {name: cast(value) for name, value in kwargs.items()}
        return overload.redispatch(keyset & below, *map(cast, args), **kwargs)

    if not isinstance(device_type, str):
        raise ValueError(f"register_autocast: a type of device is a str, not {type(device_type).__name__}")
    backend = _backend_key(device_type)
    if backend is not None:
        _add(op, f"Autocast{backend}", kernel, lib, with_keyset=True)


def _discarding(register: Callable[..., Any], fn: Callable[..., Any]) -> None:
    """What an operator has waited for, when it is declared."""
    register(fn)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: type, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """What an operator does for a class that has a `__torch_dispatch__`, or in the scope of a mode's class.

    `func(cls, operator, types, args, kwargs)` for a class of tensors, `func(mode, ...)` for a mode, goes before the
    class's own `__torch_dispatch__`. Also a decorator.

    Arguments:
        op: the operator, or its name
        torch_dispatch_class: the class of tensors, or mode
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: the function, or without one a decorator.

    Raises: TypeError for a class without `__torch_dispatch__`.

    Example:
        >>> tp.library.register_torch_dispatch("mine::op", Mode, rule)  # doctest: +SKIP
    """
    if not hasattr(torch_dispatch_class, "__torch_dispatch__"):
        raise TypeError(f"register_torch_dispatch: {torch_dispatch_class!r} has no __torch_dispatch__")

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(op, str) and _name_of(op).removeprefix("aten::") not in _C._operators():
            _waiting.setdefault(op, []).append(partial(_discarding, register, fn))
            return fn
        key = (_overload(op), torch_dispatch_class)
        _C._dispatch_rules[key] = fn
        if lib is not None:
            lib._rules.append((key, fn))
        return fn

    return register if func is None else register(func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Says how an operator is computed for a batch: `func(info, in_dims, *args)` gets the arguments with the dimensions
    that count the samples (None: shared), and returns the outputs and their out_dims. Without one vmap calls the
    operator for each sample.

    Arguments:
        op: the operator, or its name
        func: the kernel
        lib: a Library that the registration lives with; None keeps it

    Returns: the function, or without one a decorator.

    Raises: NotImplementedError for tensors that are given by keyword alone.

    Example:
        >>> @tp.library.custom_op("help_vmap::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> @tp.library.register_vmap("help_vmap::triple")
        ... def _(info, in_dims, x):
        ...     return triple(x), in_dims[0]
        >>> tp.vmap(triple)(tp.ones(2))
        tensor([3., 3.])
    """
    from tensorpy.func.custom import batch_number, call_rule

    if func is None:
        return lambda given: register_vmap(op, given, lib=lib)
    overload = _overload(op)
    if keyword_tensors(overload._schema):
        raise NotImplementedError(
            f"register_vmap: {overload._own_name} has tensors that are given by keyword alone: a rule is told of "
            "positional ones"
        )
    below = dispatch.below("Batched")

    def kernel(keyset: int, *args: Any, **kwargs: Any) -> Any:
        if not batch_number(args):
            return overload.redispatch(keyset & below, *args, **kwargs)

        def rule(info: Any, in_dims: Any, *physical: Any) -> Any:
            return func(info, in_dims, *physical, **kwargs)

        return call_rule(overload._own_name, rule, args)

    _add(op, "Batched", kernel, lib, with_keyset=True)
    return func


# ---- custom_op ----

_definitions: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An operator that a decorated function became: call it, and register more for it.

    Arguments:
        name: the operator's name with its namespace: 'mine::op'
        schema: the schema; None makes one of the annotations
        fn: the function
        device_types: one or several types of device; None for all
        where: the names of arguments, and what is done with them
        tags: tags of the operator

    Example:
        >>> @tp.library.custom_op("help_CustomOpDef::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> triple(tp.ones(2))
        tensor([3., 3.])
    """

    __name__: Any
    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        name: str,
        schema: str,
        fn: Callable[..., Any],
        device_types: Any,
        where: str,
        tags: tuple[str, ...] = (Tag.pt2_compliant_tag.value,),
    ) -> None:
        self._qualname = _declare(f"{name}{schema}", where, True, tags)
        self._namespace, _, self._name = self._qualname.partition("::")
        self._op = self._opoverload = _C._op_overload(self._qualname)
        self._schema: FunctionSchema = self._op._schema
        self._init_fn = fn
        self.__name__, self.__doc__, self.__wrapped__ = fn.__name__, fn.__doc__, fn
        self._by_device: ByDevice | None = None
        _definitions[self._qualname] = self
        self._register(device_types, fn)

    def _register(self, device_types: Any, fn: Callable[..., Any]) -> None:
        """For tensors on devices of these types, or, where the operator takes no tensors, for its argument `device`."""
        checked = giving_written if {"inplace", "out"} & set(self._op.tags) else giving_new
        fn = checked(self._qualname, self._schema, fn)
        to_all = device_types in (None, "default")
        if any("Tensor" in a.type for a in self._schema.arguments) or (to_all and self._by_device is None):
            for key in _keys_of(device_types):
                _add(self, key, fn, None)
            return
        if self._by_device is None:
            self._by_device = ByDevice(self._qualname, self._schema)
            there = _registered.get((self._qualname, _COMPOSITE))
            self._by_device.default = None if there is None else there.fn
            _add(self, _COMPOSITE, self._by_device, None)
        if to_all:
            self._by_device.default = fn
            return
        for kind in [device_types] if isinstance(device_types, str) else device_types:
            self._by_device.kernels[_C.device(kind).type] = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """A kernel for device types: see library.register_kernel.

        Returns: the function, or without one a decorator.
        """

        def register(given: Callable[..., Any]) -> Callable[..., Any]:
            self._register(device_types, given)
            return given

        return register if fn is None else register(fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A scope in which the kernel for a device type is there or not: without it the one for all devices runs."""
        key = _backend_key(device_type)
        there = _registered.get((self._qualname, key or ""))
        if there is None or enabled:
            yield
            return
        there.remove()
        try:
            yield
        finally:
            Registration(self._qualname, there.key, there.fn, False, there.where)

    def register_fake(self, fn: Callable[..., Any], /) -> Any:
        """What the operator does on Meta: see library.register_fake.

        Returns: the function.
        """
        return register_fake(self, fn)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The operator's gradient: see library.register_autograd."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /) -> Any:
        """What the operator does for a class of tensors or a mode: see library.register_torch_dispatch.

        Returns: the function, or without one a decorator.
        """
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """How the operator is computed for a batch: see library.register_vmap.

        Returns: the function, or without one a decorator.
        """
        return register_vmap(self, func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """What autocast does to its arguments: see library.register_autocast."""
        register_autocast(self, device_type, cast_inputs)


@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
) -> CustomOpDef: ...
@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...
def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
) -> Any:
    """Makes an operator of a function: its schema follows from the annotations, or is given: "(Tensor x) -> Tensor".

    `mutates_args` names the arguments that it writes; `device_types` what the function is for (None: all); `tags` are
    tensorpy.Tag's, or their names, beside pt2_compliant_tag, which such an operator has. Its results are new tensors.

    Arguments:
        name: the operator's name with its namespace: 'mine::op'
        fn: the function
        mutates_args: the arguments that are written: () for none
        device_types: one or several types of device; None for all
        schema: the schema; None makes one of the annotations
        tags: tags of the operator

    Returns: an operator, or without a function a decorator.

    Raises: ValueError for a name without a namespace, or annotations that are no schema.

    Example:
        >>> @tp.library.custom_op("help_custom_op::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> triple(tp.ones(2))
        tensor([3., 3.])
    """
    if "::" not in name:
        raise ValueError(f"custom_op: the name is 'namespace::name', not {name!r}")
    where = _where()
    marks = _names_of_tags([Tag.pt2_compliant_tag, *_names_of_tags(tags or ())])

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args, tags=marks)
        if schema is not None and mutates_args != "unknown":
            written = {a.name for a in parse_schema(f"{name}{schema.strip()}").arguments if a.is_write}
            said = set(mutates_args)
            if written != said:
                raise ValueError(
                    f"custom_op: mutates_args of {name} names {sorted(said)}, and its schema says that it writes "
                    f"{sorted(written)}"
                )
        return CustomOpDef(name, text.strip(), function, device_types, where, marks)

    return make if fn is None else make(fn)


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """custom_op by the name that programs with kernels of triton call it; also a decorator.

    Arguments:
        name: the operator's name with its namespace: 'mine::op'
        fn: the function
        mutates_args: the arguments that are written: () for none
        schema: the schema; None makes one of the annotations

    Returns: an operator, or without a function a decorator.

    Example:
        >>> @tp.library.triton_op("help_triton::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> triple(tp.ones(2))
        tensor([3., 3.])
    """
    made: Any = custom_op  # either of its forms
    return made(name, fn, mutates_args=mutates_args, schema=schema)


# ---- OpenCL ----


class OpenCLKernel:
    """A kernel in OpenCL C: `kernel[items](tensor, number, ...)` runs it over so many work-items.

    A tensor is two parameters of the kernel: its buffer, and the offset of its first element, a long. An int is a long,
    a float a float, a bool an int. `items` is a number or up to three of them; `kernel[items, group]` gives the size of
    the work-groups too, as tuples. One dimension is rounded up to whole groups, so a kernel looks at its index.

    Arguments:
        name: the operator's name with its namespace: 'mine::op'
        source: the OpenCL C

    Example:
        >>> kernel = tp.library.opencl_kernel("f", "__kernel void f(__global float *x) { x[0] = 1; }")
        >>> type(kernel).__name__
        'OpenCLKernel'
    """

    name: str
    source: str

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        nested = isinstance(grid, tuple) and len(grid) == 2 and all(isinstance(part, tuple) for part in grid)
        items, group = grid if nested else (grid, ())
        sizes = items if isinstance(items, tuple) else (items,)
        return lambda *args: _C._opencl.run_source(self.name, self.source, sizes, group, args)

    def __repr__(self) -> str:
        return f"<OpenCLKernel {self.name}>"


def opencl_kernel(name: str, source: str) -> OpenCLKernel:
    """The kernel `name` of a source in OpenCL C, built at its first run and kept, in memory and on disk.

    Returns: an OpenCLKernel.

    Example:
        >>> kernel = tp.library.opencl_kernel("f", "__kernel void f(__global float *x) { x[get_global_id(0)] *= 2; }")
    """
    return OpenCLKernel(name, source)


@overload
def opencl_op(
    name: str, fn: Callable[..., Any], /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> CustomOpDef: ...
@overload
def opencl_op(
    name: str, fn: None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...
def opencl_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> Any:
    """Makes an operator for OpenCL of a function that runs OpenCLKernels: custom_op with device_types="opencl".

    Other devices get theirs by register_kernel.

    Arguments:
        name: the operator's name with its namespace: 'mine::op'
        fn: the function
        mutates_args: the arguments that are written: () for none
        schema: the schema; None makes one of the annotations

    Returns: an operator, or without a function a decorator.

    Example:
        >>> @tp.library.opencl_op("help_opencl::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> if tp.opencl.is_available():
        ...     y = triple(tp.ones(2, device="opencl"))
    """
    made: Any = custom_op  # either of its forms
    return made(name, fn, mutates_args=mutates_args, device_types="opencl", schema=schema)


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("library", globals())
