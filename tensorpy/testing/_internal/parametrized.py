"""Tests that are written once and run for several arguments, devices and dtypes.

A decorator notes on the function what it adds, a `Variants` in the attribute `_variants`. The methods of a class are
made from the notes: the product of all, each with its name's ending, its arguments and the decorators that only it has.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tensorpy._C import device, dtype

__all__ = ["decorateIf", "instantiate_parametrized_tests", "parametrize", "reparametrize", "subtest"]

Function = Callable[..., Any]


class Variant(NamedTuple):
    """One of the forms that a test takes."""

    name: str
    arguments: dict[str, Any]
    decorators: tuple[Function, ...] = ()
    test: Function | None = None  # what is called, where it is not the test itself


class Place(NamedTuple):
    """Where a test's methods go: the class that it was written in, and the device's (None without devices)."""

    generic: type
    device: Any = None


Variants = Callable[[Any, Any], Iterable[Variant]]  # of a test and its Place


def note(function: Function, variants: Variants) -> None:
    """Notes on a test that it has these variants beside those that it has already."""
    vars(function)["_variants"] = [*getattr(function, "_variants", ()), variants]


def variants_of(function: Function, place: Place) -> Iterator[Variant]:
    """The product of what was noted on a test. RuntimeError for an argument that two decorators give."""

    def product(notes: Sequence[Variants]) -> Iterator[Variant]:
        if not notes:
            yield Variant("", {})
            return
        for rest in product(notes[1:]):
            for one in notes[0](rest.test or function, place):
                if twice := one.arguments.keys() & rest.arguments.keys():
                    raise RuntimeError(f"{function.__name__}: two decorators give {', '.join(sorted(twice))}")
                name = "_".join(part for part in (rest.name, one.name) if part)
                arguments = {**one.arguments, **rest.arguments}
                yield Variant(name, arguments, (*rest.decorators, *one.decorators), one.test or rest.test)

    yield from product(getattr(function, "_variants", ()))


def bound(function: Function, variant: Variant, more: dict[str, Any] | None = None) -> Function:
    """A method that calls a test with a variant's arguments, and with those of `more` that it takes."""
    arguments = {**variant.arguments, **(more or {})}

    called = variant.test or function

    @functools.wraps(function)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return called(self, *args, **{**arguments, **options})

    # pytest would take the arguments of what is wrapped for fixtures.
    del method.__wrapped__
    for decorator in variant.decorators:
        method = decorator(method)
    return method


class _TestParametrizer:
    """What a decorator of one's own derives from that makes several tests of one."""

    def _parametrize_test(self, test: Any, generic_cls: type, device_cls: Any) -> Iterable[Any]:
        """Rows of what is called, the name's ending, arguments, and a function of these that gives decorators."""
        raise NotImplementedError

    def _variants(self, test: Any, place: Place) -> Iterator[Variant]:
        for called, name, arguments, decorators in self._parametrize_test(test, place.generic, place.device):
            yield Variant(name, dict(arguments), tuple(decorators(arguments)), called)

    def __call__(self, fn: Any) -> Any:
        """Notes it on a test, or on each test of a class."""
        tests = [v for k, v in vars(fn).items() if k.startswith("test")] if inspect.isclass(fn) else [fn]
        for test in tests:
            note(test, self._variants)
        return fn


class subtest:
    """One value of `parametrize` (a tuple for several arguments) with a name and decorators of its own."""

    __slots__ = "arg_values", "decorators", "name"

    def __init__(self, arg_values: Any, name: str | None = None, decorators: Iterable[Function] | None = None) -> None:
        self.arg_values, self.name, self.decorators = arg_values, name, tuple(decorators or ())


def _text(value: Any, argument: str, place: int) -> str:
    """What a value is called at the end of a test's name."""
    if isinstance(value, (dtype, device)):
        return str(value).rpartition(".")[2]
    if isinstance(value, (int, float, str)):
        return f"{argument}_{str(value).replace('.', '_')}"
    return f"{argument}{place}"


class parametrize:
    """Runs a test once for each value of an argument, or for each tuple of values of several.

    arg_str: the arguments' names, separated by commas.
    arg_values: the values; those with a name or decorators of their own in `subtest`.
    name_fn: gives the ending of the test's name for the values.
    """

    def __init__(self, arg_str: str, arg_values: Iterable[Any], name_fn: Function | None = None) -> None:
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values, self.name_fn = arg_values, name_fn

    def _variants(self, test: Any, place: Any) -> Iterator[Variant]:
        self.values = list(self.values)  # several tests may share the decorator
        for number, given in enumerate(self.values):
            one = given if isinstance(given, subtest) else subtest(given)
            values = [one.arg_values] if len(self.names) == 1 else list(one.arg_values)
            if len(values) != len(self.names):
                raise RuntimeError(f"parametrize: {len(self.names)} arguments, but {len(values)} values: {values}")
            name = one.name
            if name is None and self.name_fn is not None:
                name = self.name_fn(*values)
            if name is None:
                name = "_".join(_text(v, n, number) for n, v in zip(self.names, values, strict=True))
            yield Variant(name, dict(zip(self.names, values, strict=True)), one.decorators)

    def __call__(self, test: Any) -> Any:
        if inspect.isclass(test):
            for key, value in list(vars(test).items()):
                if key.startswith("test") and callable(value):
                    note(value, self._variants)
        else:
            note(test, self._variants)
        return test


class decorateIf:
    """Decorates those variants of a test for whose arguments (a dict) a predicate is true."""

    def __init__(self, decorator: Function, predicate_fn: Callable[[dict[str, Any]], bool]) -> None:
        self.decorator, self.predicate = decorator, predicate_fn

    def __call__(self, test: Function) -> Function:
        vars(test)["_decorated_if"] = [*getattr(test, "_decorated_if", ()), (self.decorator, self.predicate)]
        return test


def reparametrize(parametrizer: parametrize, adapter_fn: Function) -> parametrize:
    """A parametrize whose values are what `adapter_fn` makes of those of another."""

    class Adapted(parametrize):
        def _variants(self, test: Any, place: Any) -> Iterator[Variant]:
            for variant in parametrizer._variants(test, place):
                made = adapter_fn(variant.name, dict(variant.arguments))
                if made is not None:
                    yield from (Variant(n, p, variant.decorators) for n, p in ([made] if type(made) is tuple else made))

    return Adapted("", ())


def decorated(function: Function, variant: Variant, arguments: dict[str, Any]) -> Variant:
    """A variant with what decorateIf adds for its arguments."""
    more = [d for d, predicate in getattr(function, "_decorated_if", ()) if predicate(arguments)]
    return variant._replace(decorators=(*variant.decorators, *more))


def instantiate_parametrized_tests(generic_cls: type) -> type:
    """Replaces the tests of a class that were noted by `parametrize` with a method for each variant."""
    for key, value in list(vars(generic_cls).items()):
        if not key.startswith("test") or not getattr(value, "_variants", ()):
            continue
        delattr(generic_cls, key)
        for variant in variants_of(value, Place(generic_cls)):
            name = f"{key}_{variant.name}"
            if hasattr(generic_cls, name):
                raise RuntimeError(f"two tests of {generic_cls.__name__} are called {name}")
            method = bound(value, decorated(value, variant, variant.arguments))
            method.__name__ = name
            setattr(generic_cls, name, method)
    return generic_cls
