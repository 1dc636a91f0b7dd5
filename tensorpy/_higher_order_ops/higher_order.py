"""Operators that take functions: a class to derive them from, with rules by dispatch key, class, mode and transform."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._functorch.interpreter import TransformType, peek_interpreter_stack
from tensorpy.overrides import handle_torch_function, has_torch_function
from tensorpy.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from tensorpy.utils._pytree import tree_leaves

__all__ = ["HigherOrderOperator", "operators"]

T = TypeVar("T", bound=Callable[..., Any])

operators: dict[str, HigherOrderOperator] = {}  # by name, all that were made

# Layers that know nothing of functions.
_PASSED_BY = ("Trace", "Tracer", "Profiler", "ADInplaceOrView", "BackendSelect", "Negative", "Conjugate", "Python")


def _alias(key: str) -> tuple[str, ...]:
    """The keys whose rules serve a key: its own first."""
    if key.startswith("Autograd"):
        return key, "CompositeImplicitAutograd", "Autograd"
    return key, "CompositeExplicitAutograd", "CompositeImplicitAutograd"


class HigherOrderOperator(abc.ABC):
    """An operator that takes functions: a class of it says its name and, by `py_impl`, what it does where.

    Arguments:
        name: the name
        cacheable: whether graphs with it may be kept
        supports_training_input_mutation: whether it may write to what it is given while gradients are recorded

    Raises: RuntimeError for this class itself.

    Example:
        >>> class Twice(tp._ops.HigherOrderOperator):
        ...     def __call__(self, f, x):
        ...         return super().__call__(f, x)
        >>> twice = Twice("twice")
        >>> rule = twice.py_impl("CompositeImplicitAutograd")(lambda f, x: f(f(x)))
        >>> twice(tp.neg, tp.ones(2))
        tensor([1., 1.])
    """

    namespace = "higher_order"

    def __init__(self, name: str, *, cacheable: bool = False, supports_training_input_mutation: bool = False) -> None:
        if type(self) is HigherOrderOperator:
            raise RuntimeError("Direct instantiation of HigherOrderOperator is not allowed. Please subclass it.")
        self.__name__ = self._name = name
        self.__module__ = "tensorpy.ops.higher_order"  # where code finds it
        self._cacheable = cacheable
        self._supports_training_input_mutation = supports_training_input_mutation
        self.py_kernels: dict[str, Callable[..., Any]] = {}
        self.python_key_table: dict[type, Callable[..., Any]] = {}
        self.functorch_table: dict[TransformType, Callable[..., Any]] = {}
        operators[name] = self

    def name(self) -> str:
        """The operator's name.

        Returns: the name.
        """
        return self._name

    def cacheable(self) -> bool:
        """Whether graphs with it may be kept.

        Returns: what it was made with.
        """
        return self._cacheable

    def py_impl(self, k: Any) -> Callable[[T], T]:
        """Registers what the operator does at a dispatch key, for a class of tensors, in a mode, or in a transform.

        Arguments:
            k: the key, the class of tensors or of the mode, whose rule takes the mode first, or the TransformType,
                whose rule takes the transform first

        Returns: a decorator.

        Raises: RuntimeError where there is one.
        """
        kind = isinstance(k, type) and issubclass(k, (TorchDispatchMode, Tensor))
        table: dict[Any, Any] = self.python_key_table if kind else self.py_kernels
        if isinstance(k, TransformType):
            table = self.functorch_table

        def register(rule: T) -> T:
            if k in table:
                raise RuntimeError(f"Trying to override a python impl for {k} on operator {self._name}")
            table[k] = rule
            return rule

        return register

    @abc.abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        leaves = tree_leaves((args, kwargs))
        if has_torch_function(leaves):
            return handle_torch_function(self, leaves, *args, **kwargs)
        transform = peek_interpreter_stack()
        if transform is not None:
            rule = self.functorch_table.get(transform.key())
            if rule is None:
                self._no_rule(f"transform {transform.key().name}")
            return rule(transform, *args, **kwargs)
        return self._dispatch([leaf for leaf in leaves if isinstance(leaf, Tensor)], args, kwargs)

    def _dispatch(self, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        include, exclude = _C._get_dispatch_sets()
        word = include
        for tensor in tensors:
            word |= _C._tensor_keys(tensor)
        word &= ~exclude
        for key, bit in sorted(_C._KEYS.items(), key=lambda item: -item[1]):
            if word & bit and key not in _PASSED_BY and not key.startswith("Autocast"):
                return self._at(key, tensors, args, kwargs)
        return self._at("Undefined", tensors, args, kwargs)

    def _at(self, key: str, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        """The rule of a key; at the backends', the mode and the classes of tensors are asked first."""
        if not key.startswith("Autograd"):
            mode = _get_current_dispatch_mode()
            if mode is not None:
                made = self._in_mode(mode, args, kwargs)
                if made is not NotImplemented:
                    return made
            for tensor in tensors:
                rule = self.python_key_table.get(type(tensor))
                made = NotImplemented if rule is None else rule(*args, **kwargs)
                if made is not NotImplemented:
                    return made
        for name in _alias(key):
            if name in self.py_kernels:
                return self.py_kernels[name](*args, **kwargs)
        self._no_rule(f"dispatch key {key}")

    def _in_mode(self, mode: TorchDispatchMode, args: Any, kwargs: Any) -> Any:
        rule = self.python_key_table.get(type(mode))
        if rule is None and not mode.supports_higher_order_operators:
            self._no_rule(f"mode {mode}")
        _C._pop_dispatch_mode(0)
        try:
            return mode.__torch_dispatch__(self, [], args, kwargs) if rule is None else rule(mode, *args, **kwargs)
        finally:
            _C._push_dispatch_mode(mode, 0)

    def _no_rule(self, what: str) -> NoReturn:
        raise NotImplementedError(f"There was no rule registered for HigherOrderOperator {self._name} and {what}.")

    def __repr__(self) -> str:
        return f"<HigherOrderOperator '{self._name}'>"

    def __str__(self) -> str:
        return self._name

    def __copy__(self) -> HigherOrderOperator:
        return self

    def __deepcopy__(self, memo: Any) -> HigherOrderOperator:
        return self

    def __reduce__(self) -> Any:
        return _find, (self._name,)


def _find(name: str) -> HigherOrderOperator:
    return operators[name]
