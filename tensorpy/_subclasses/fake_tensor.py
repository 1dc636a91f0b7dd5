"""Tensors without elements that say they are on a device: what a program would compute, without its memory and work.

    with FakeTensorMode():
        model = tensorpy.nn.Linear(100_000, 100_000)
        print(model(tensorpy.randn(5, 100_000)).shape, model.weight.device)

A fake tensor is one of the Meta device that remembers another. Operators run on Meta; this module finds the device of
their results, and names what cannot be known without elements.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._library.fake_impl import DynamicSize
from tensorpy._prims_common import MetadataMismatchError as MetadataMismatchError
from tensorpy.nn.parameter import Parameter
from tensorpy.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, no_dispatch
from tensorpy.utils._pytree import tree_flatten, tree_map, tree_unflatten
from tensorpy.utils.weak import WeakIdKeyDictionary

_META = _C.device("meta")
_MOST_ELEMENTS = 2**58


class DataDependentOutputException(RuntimeError):
    """A result that depends on elements: `func` is the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class DynamicOutputShapeException(DataDependentOutputException):
    """A shape that depends on elements."""


class UnsupportedOperatorException(DataDependentOutputException):
    """An operator that cannot run on the Meta device."""


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that no fake one stands for."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Operands of several devices."""


class FakeTensor(Tensor):
    """A tensor of a FakeTensorMode: sizes, strides, a dtype, a device, gradients, views, versions, and no elements.

    `fake_device` is the device, `fake_mode` the mode; `constant` has the elements of what was made of a number.
    """

    fake_device: Any
    fake_mode: FakeTensorMode
    constant: Tensor | None
    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(
        cls, fake_mode: FakeTensorMode, elem: Tensor, device: Any, constant: Tensor | None = None, **unused: Any
    ) -> FakeTensor:
        if elem.device.type != "meta":
            raise AssertionError(f"FakeTensor(): elem is a tensor of the device 'meta', not {elem.device.type!r}")
        with no_dispatch():
            made: FakeTensor = Tensor._make_subclass(cls, elem, elem.requires_grad, device_for_backend_keys=device)
        made.fake_mode, made.fake_device, made.constant = fake_mode, _C.device(device), constant
        return made

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """The mode's tensor that stands for one with elements."""
        return fake_mode.from_tensor(t)

    @property
    def device(self) -> Any:
        """The device that it says it is on."""
        return vars(self).get("fake_device", _META)

    @property
    def is_cpu(self) -> bool:
        """Whether its device is the CPU."""
        return bool(self.device.type == "cpu")

    @property
    def is_meta(self) -> bool:
        """Whether its device is Meta."""
        return bool(self.device.type == "meta")

    @property
    def shape(self) -> Any:
        """Its sizes; where the mode has a shape environment, they may be symbols."""
        return self.size()

    def size(self, dim: Any = None) -> Any:
        """Its sizes, or that of a dimension; where the mode has a shape environment, they may be symbols."""
        env = _env_of(self)
        sizes = Tensor.size(self) if dim is None else Tensor.size(self, dim)
        if env is None:
            return sizes
        return env.size_of(sizes) if isinstance(sizes, int) else _C.Size(env.sizes_of(sizes))

    def stride(self, dim: Any = None) -> Any:
        """Its strides, or that of a dimension; where the mode has a shape environment, they may be symbols."""
        env = _env_of(self)
        steps = Tensor.stride(self) if dim is None else Tensor.stride(self, dim)
        if env is None:
            return steps
        return env.size_of(steps) if isinstance(steps, int) else env.sizes_of(steps)

    def numel(self) -> Any:
        """How many elements there would be."""
        env = _env_of(self)
        return Tensor.numel(self) if env is None else math.prod(env.sizes_of(Tensor.size(self)))

    nelement = numel

    def storage_offset(self) -> Any:
        """Where its first element would be in its memory."""
        env = _env_of(self)
        offset = Tensor.storage_offset(self)
        return offset if env is None else env.size_of(offset)

    def __len__(self) -> int:
        if _env_of(self) is None or Tensor.dim(self) == 0:
            return Tensor.__len__(self)
        return int(self.size(0))

    def __iter__(self) -> Any:
        if _env_of(self) is not None and Tensor.dim(self):
            int(self.size(0))
        return Tensor.__iter__(self)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mode = next(leaf.fake_mode for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, FakeTensor))
        with mode:
            return func(*args, **(kwargs or {}))

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """As of any tensor; the memory of those that stand for others is on Meta already."""
        if args and isinstance(args[0], Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        elif "other" in kwargs:
            other = kwargs.pop("other")
            args = (other.device, other.dtype, *args)
        device = kwargs.get("device", next((a for a in args if isinstance(a, (str, _C.device))), None))
        if device is None or _C.device(device).type != "meta" or self.is_meta:
            return super().to(*args, **kwargs)
        dtype = kwargs.get("dtype", next((a for a in args if isinstance(a, _C.dtype)), self.dtype))
        return _C._op_overload("_to_copy")(self, dtype=dtype, device=_META)

    def type_as(self, other: Tensor) -> Any:
        """As `to(other)`."""
        return self.to(other)

    def tolist(self) -> Any:
        """The elements of a constant; other tensors have none."""
        if self.constant is None:
            raise DataDependentOutputException(_C._op_overload("_local_scalar_dense"))
        with no_dispatch():
            return self.constant.tolist()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        words = ["..."] if self.device.type == "cpu" else ["...", f"device='{self.device}'"]
        words.append(f"size={tuple(self.shape)}")
        if self.dtype != _C.get_default_dtype():
            words.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            words.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            words.append("requires_grad=True")
        text = f"FakeTensor({', '.join(words)})"
        return f"Parameter({text})" if isinstance(self, Parameter) else text

    def __deepcopy__(self, memo: Any) -> Any:
        with no_dispatch():
            elem = _meta_of(self)
        made = memo[id(self)] = self.fake_mode._standing_for(elem, self, self.device, self.constant)
        return made


def _env_of(t: FakeTensor) -> Any:
    mode = vars(t).get("fake_mode")
    return None if mode is None else mode.shape_env


def _meta_of(t: Tensor) -> Tensor:
    """A new Meta tensor of the same sizes, strides and offset, which writes nothing of t's."""
    base, offset = t.untyped_storage().nbytes() // max(t.element_size(), 1), Tensor.storage_offset(t)
    flat = _C.empty(max(base, offset), dtype=t.dtype, device=_META)
    return flat.as_strided(Tensor.size(t), Tensor.stride(t), offset)


def _dense_meta(sizes: Sequence[int], like: Tensor) -> Tensor:
    """A Meta tensor of other sizes whose strides grow in the order of another's; steps of zero stay."""
    strides, step, span = [0] * len(sizes), 1, 1
    ours = Tensor.stride(like)
    for dim in sorted(range(len(sizes)), key=lambda d: (ours[d], -d)):
        if ours[dim] or Tensor.size(like, dim) <= 1:
            strides[dim] = step if ours[dim] <= span else ours[dim] * -(-step // span)
            step, span = strides[dim] * max(sizes[dim], 1), ours[dim] * max(Tensor.size(like, dim), 1)
    return _C.empty_strided(sizes, strides, dtype=like.dtype, device=_META)


class FakeTensorConverter:
    """Makes fake tensors: of tensors with elements, or of Meta tensors and a device."""

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Tensor, **unused: Any) -> FakeTensor:
        """What stands for a tensor with elements in a mode."""
        return fake_mode.from_tensor(t)

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Tensor, device: Any, **unused: Any) -> FakeTensor:
        """A fake tensor over the memory of a Meta tensor."""
        return FakeTensor(fake_mode, t, device)


def lifts(func: Any) -> bool:
    """Whether an operator makes a tensor of numbers."""
    return func._opname in ("lift_fresh", "lift_fresh_copy")


class FakeTensorMode(TorchDispatchMode):
    """In its scope operators give fake tensors, and take these alone.

    Results that depend on elements are a DataDependentOutputException, shapes that do a DynamicOutputShapeException.
    Sizes are numbers, or symbols of a `shape_env` (fx.experimental.symbolic_shapes), which are computed with.

    Arguments:
        allow_fallback_kernels: is taken: operators without a Meta kernel are an error
        allow_non_fake_inputs: whether operators take tensors with elements beside fake ones, and stand-ins of these
        shape_env: a ShapeEnv, where sizes are to be symbols
        static_shapes: whether sizes are numbers though there is a shape_env

    Example:
        >>> from tensorpy._subclasses import FakeTensorMode
        >>> with FakeTensorMode():
        ...     x = tp.ones(1_000_000, 1_000_000)
        >>> x.sum(0).shape
        tensorpy.Size([1000000])
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        self.fake_tensor_converter = FakeTensorConverter()
        self.allow_fallback_kernels, self.allow_non_fake_inputs = allow_fallback_kernels, allow_non_fake_inputs
        self.shape_env, self.static_shapes, self.export = shape_env, static_shapes, export
        self._is_inside = False  # of a composite kernel, which no program calls
        self._lately: Any = _C.device("cpu")  # where the tensors of the last call were
        self._known: Any = WeakIdKeyDictionary()  # what stands for tensors with elements
        self._constants: Any = WeakIdKeyDictionary()  # fake tensors that have a constant; no two share memory

    def __enter__(self) -> FakeTensorMode:
        super().__enter__()
        return self

    def is_our_fake(self, t: Any) -> bool:
        """Whether it is a fake tensor of this mode."""
        return isinstance(t, FakeTensor) and t.fake_mode is self

    def from_tensor(
        self,
        tensor: Tensor,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        **unused: Any,
    ) -> FakeTensor:
        """What stands for a tensor with elements: of its sizes, strides, dtype and device; the same each time.

        Arguments:
            tensor: the tensor
            static_shapes: whether its sizes are numbers; as the mode and its shape environment have it, if None
            source: what it is called where sizes are symbols
            symbolic_context: what is said of its sizes: by dimension what ShapeEnv.create_symbol takes, or None for a
                number

        Returns: FakeTensor.

        Raises: AssertionError for a fake tensor of another mode.
        """
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("from_tensor(): the fake tensor is of another FakeTensorMode")
            return tensor
        if tensor.layout is not _C.strided or tensor.is_quantized:
            raise UnsupportedFakeTensorException(f"no fake tensor stands for one of the layout {tensor.layout}")
        with _disable_current_modes():
            made = self._known.get(tensor)
            if made is None:
                with no_dispatch():
                    elem = self._sized(tensor.detach(), static_shapes, source, symbolic_context)
                made = self._known[tensor] = self._standing_for(elem, tensor, tensor.device)
                if tensor.is_leaf and tensor.grad is not None:
                    made.grad = self.from_tensor(tensor.grad)
        return made

    def _sized(self, tensor: Tensor, static: bool | None, source: Any, said: Any) -> Tensor:
        """A tensor of Meta like one with elements, with stand-ins as sizes where these are symbols."""
        env = self.shape_env
        if env is None:
            return _meta_of(tensor)
        static = self.static_shapes if static is None else static
        static = env.assume_static_by_default if static is None else static
        name, sizes = source if isinstance(source, str) else f"x{len(self._known)}", []
        for dim, size in enumerate(Tensor.size(tensor)):
            options = said.get(dim) if said is not None else None if static else {}
            if options is None or (size < 2 and not options.get("key")):
                sizes.append(env.keep_number(size))
            else:
                expr = env.create_symbol(size, f"{name}.size()[{dim}]", **options)
                sizes.append(env.pass_on(expr))
        if tuple(sizes) == tuple(Tensor.size(tensor)):
            return _meta_of(tensor)
        if env.restarts and env.scale > 1000 and math.prod(sizes) > _MOST_ELEMENTS:
            env.shrink()  # some have turned out to be products of others
        made = _dense_meta(sizes, tensor)
        for value, hint in zip(Tensor.stride(made), Tensor.stride(tensor), strict=True):
            env.agree(value, hint, f"{name}.stride()", frozenset())
        return made

    def _standing_for(self, elem: Tensor, t: Tensor, device: Any, constant: Tensor | None = None) -> FakeTensor:
        """A leaf, and a Parameter where t is one."""
        made: Any = FakeTensor(self, elem, device, constant)
        self._lately = device
        if isinstance(t, Parameter):
            made = Parameter(made, t.requires_grad)
        elif t.requires_grad:
            made.requires_grad_()
        return cast(FakeTensor, made)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if lifts(func):
            return self._constant(args[0], func._opname == "lift_fresh_copy")
        leaves, spec = tree_flatten((args, kwargs))
        if not any(isinstance(leaf, FakeTensor) for leaf in leaves) and _asks_a_plain_tensor(func, leaves):
            with no_dispatch():
                return func(*args, **kwargs)  # printing, reading: nothing that stands for anything is made
        if _is_a_table(func, args, kwargs):
            kwargs["device"] = self._lately
            args = (self.from_tensor(args[0], static_shapes=True),)
            leaves, spec = tree_flatten((args, kwargs))
        leaves = [self._taken(func, leaf) for leaf in leaves]
        if func._opname == "_local_scalar_dense" and leaves[0].constant is not None:
            with no_dispatch():
                return func(leaves[0].constant)
        fakes = [leaf for leaf in leaves if isinstance(leaf, FakeTensor)]
        device = self._where(func, fakes, kwargs)
        args, kwargs = tree_unflatten(leaves, spec)
        if _takes_device(func):
            kwargs["device"] = _META
            leaves, spec = tree_flatten((args, kwargs))
        known = self._computed(func, fakes, leaves, spec)
        if func._schema.is_mutable and known is None:
            self._forget_constants(fakes)
        symbols = self._symbols(leaves)
        results = self._run_twice(func, leaves, spec, symbols) if symbols else _run(func, args, kwargs)
        made = self._wrapped(results, device)
        if isinstance(known, Tensor) and made.constant is None and known.numel() <= 1:
            self._keep_constant(made, known)
        return made

    # ---- sizes that are symbols ----

    def _symbols(self, leaves: list[Any]) -> frozenset[str]:
        """The symbols in the arguments of a call."""
        env = self.shape_env
        if env is None or not env.symbols:
            return frozenset()
        numbers: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                numbers += Tensor.size(leaf)
            elif type(leaf) in (int, float):
                numbers.append(leaf)
        return cast(frozenset[str], env.symbols_of(numbers))

    def example_of(self, leaf: Any) -> Any:
        """An argument with the sizes of the example where it has stand-ins."""
        return self._with_sizes(leaf, self.shape_env.hint_of)

    def _with_sizes(self, leaf: Any, value_of: Any) -> Any:
        """An argument with other numbers for its symbols."""

        def evaluated(value: Any) -> Any:
            expr = self.shape_env.read(value)
            return value if expr is None else expr.evaluate(value_of)

        if isinstance(leaf, FakeTensor):
            sizes, steps = (list(map(evaluated, v)) for v in (Tensor.size(leaf), Tensor.stride(leaf)))
            with no_dispatch():
                return _C.empty_strided(sizes, steps, dtype=leaf.dtype, device=_META)
        return evaluated(leaf) if type(leaf) in (int, float) else leaf

    def _run_twice(self, func: Any, leaves: list[Any], spec: Any, symbols: frozenset[str]) -> Any:
        """A call on stand-ins, and on the example's sizes: both are to agree."""
        args, kwargs = tree_unflatten(leaves, spec)
        examples = tree_unflatten([self.example_of(leaf) for leaf in leaves], spec)
        try:
            example = _run(func, *examples)
        except (DataDependentOutputException, UnsupportedOperatorException):
            raise
        except Exception as error:
            self.shape_env.settle(symbols, f"{func} of the example: {error}")
            raise
        try:
            results = _run(func, args, kwargs)
        except Exception:
            self._unite(func, leaves, spec)
            self.shape_env.settle(symbols, f"{func} is for these sizes alone")
            raise
        if not self.agree(str(func), results, example, symbols):
            self.shape_env.settle(symbols, f"{func} is for these sizes alone")
        return results

    def agree(self, name: str, results: Any, example: Any, symbols: frozenset[str], strides: bool = True) -> bool:
        """Whether results have the sizes of the example's; sizes that are no expression get symbols.

        Arguments:
            name: the operator
            results: what it gives for stand-ins
            example: what it gives for the example's sizes
            symbols: the symbols of its arguments
            strides: whether their strides are the example's too

        Returns: bool.
        """
        found, wanted = tree_flatten(results)[0], tree_flatten(example)[0]
        return len(found) == len(wanted) and all(
            self._agree(name, one, two, symbols, strides) for one, two in zip(found, wanted, strict=True)
        )

    def _agree(self, name: str, one: Any, two: Any, symbols: frozenset[str], strides: bool) -> bool:
        if not isinstance(one, Tensor):
            return True
        if Tensor.dim(one) != Tensor.dim(two):
            return False
        ours, theirs = (*Tensor.size(one), *Tensor.stride(one)), (*Tensor.size(two), *Tensor.stride(two))
        same = [self.shape_env.agree(a, b, f"{name}", symbols) for a, b in zip(ours, theirs, strict=True)]
        return all(same if strides else same[: Tensor.dim(one)])

    def _unite(self, func: Any, leaves: list[Any], spec: Any) -> None:
        """Sizes of arguments that are alike in the example become the same expression: those with which a call runs
        that has failed, or all; or one size becomes the example's."""
        env = self.shape_env
        if env.restarts and env.scale > 1000 and self._would_run(func, leaves, spec, {}, env.other_of):
            env.shrink()  # the product of all was too large
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        values = {value for tensor in tensors for value in (*Tensor.size(tensor), Tensor.numel(tensor))}
        values |= {leaf for leaf in leaves if type(leaf) is int}
        read = {expr for value in values if (expr := env.read(value)) is not None}
        read |= {env.expression_of(name) for expr in read for name in expr.symbols()}
        exprs: list[Any] = sorted(read, key=str)
        found = {}
        alone = {name: env.constant_of(name) for expr in exprs for name in expr.symbols()}
        for i, a in enumerate(exprs):
            for b in exprs[:i]:
                if a.evaluate(env.hint_of) != b.evaluate(env.hint_of) or (solved := env.solved(a, b)) is None:
                    continue
                if self._would_run(func, leaves, spec, dict([solved])):
                    env.unite(**dict([solved]))
                    return
                found[solved[0]] = solved[1]
        for names in [found, *({name: expr} for name, expr in alone.items())]:
            if names and self._would_run(func, leaves, spec, names):
                env.unite(**names)
                return

    def _would_run(self, func: Any, leaves: list[Any], spec: Any, found: dict[str, Any], other: Any = None) -> bool:
        """Whether a call runs where symbols are these expressions."""

        def value_of(name: str) -> Any:
            return (other or self.shape_env.stand_in_of)(name) if name not in found else found[name].evaluate(value_of)

        env = self.shape_env
        try:
            args, kwargs = tree_unflatten([self._with_sizes(leaf, value_of) for leaf in leaves], spec)
        except RuntimeError:
            if found and env.restarts and env.scale > 1000:
                env.shrink()  # one has become the product of others, and all of them are too many elements
            return False
        try:
            _run(func, args, kwargs)
        except Exception:
            return False
        return True

    def _where(self, func: Any, fakes: list[FakeTensor], kwargs: dict[str, Any]) -> Any:
        """Where the results are. A composite in C sees its arguments on Meta, and makes tensors of its own there: these
        are where its arguments say that they are. A factory that a program calls says `pin_memory`."""
        device = _device_of(func, fakes, kwargs)
        if not fakes and (self._is_inside or "pin_memory" not in kwargs):
            return self.said(device)
        self._lately = device
        return device

    @contextlib.contextmanager
    def inside_of(self, device: Any, leaves: list[Any]) -> Iterator[None]:
        """A composite kernel is called in the scope: the device Meta that it says is that of its arguments.

        Arguments:
            device: the device that its call says, if any
            leaves: its arguments
        """
        before = self._is_inside, self._lately
        places = [leaf.device for leaf in leaves if isinstance(leaf, FakeTensor)]
        if device is not None or places:
            self._lately = _C.device(device) if device is not None else places[0]
        self._is_inside = True
        try:
            yield
        finally:
            self._is_inside, self._lately = before

    @property
    def is_inside(self) -> bool:
        """Whether a composite kernel is called."""
        return self._is_inside

    def said(self, device: Any) -> Any:
        """The device that a composite in C means with the one that it says for a tensor of its own."""
        return self._lately if device.type == "meta" else device

    def _computed(self, func: Any, fakes: list[FakeTensor], leaves: list[Any], spec: Any) -> Any:
        """What an operator gives for constants alone, as an optimizer's number of steps is; None where it cannot tell.

        A view is no constant: what is written through it would not be seen.
        """
        if not fakes or any(t.constant is None for t in fakes) or "nondeterministic_seeded" in func.tags:
            return None
        schema = func._schema
        if len(schema.returns) != 1 or (schema.returns[0].alias_info is not None and not schema.is_mutable):
            return None
        plain = [leaf.constant if isinstance(leaf, FakeTensor) else leaf for leaf in leaves]
        args, kwargs = tree_unflatten(plain, spec)
        with no_dispatch():
            return func(*args, **kwargs)

    def _keep_constant(self, t: FakeTensor, constant: Tensor) -> None:
        t.constant = constant
        self._constants[t] = None

    def _forget_constants(self, written: list[FakeTensor]) -> None:
        """Those of the memory that an operator may write."""
        memory = [t.untyped_storage() for t in written]
        for t in list(self._constants):
            if any(t.untyped_storage() is storage for storage in memory):
                t.constant = None
                del self._constants[t]

    def _constant(self, fresh: Any, copied: bool) -> Any:
        if isinstance(fresh, FakeTensor):
            return fresh
        with no_dispatch():
            elem = _meta_of(fresh)
            fresh = fresh.clone() if copied else fresh
        made = FakeTensor(self, elem, fresh.device)
        if fresh.numel() <= 1:
            self._keep_constant(made, fresh)
        return made

    def _taken(self, func: Any, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if isinstance(leaf, FakeTensor):
            if leaf.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI: the fake tensor is of another FakeTensorMode")
            return leaf
        if self.allow_non_fake_inputs or _C._is_wrapped_number(leaf):
            return self.from_tensor(leaf, static_shapes=True)
        raise AssertionError(
            "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
            f"'allow_non_fake_inputs'. Found a {type(leaf).__name__} of the sizes {tuple(leaf.shape)} in {func}"
        )

    def _wrapped(self, made: Any, device: Any) -> Any:
        def wrapped(t: Any) -> Any:
            return FakeTensor(self, t, device) if isinstance(t, Tensor) and not isinstance(t, FakeTensor) else t

        return tree_map(wrapped, made)


def _asks_a_plain_tensor(func: Any, leaves: Any) -> bool:
    """Whether a tensor with elements is read, which gives no tensor."""
    return "data_dependent_output" in func.tags and any(isinstance(leaf, Tensor) for leaf in leaves)


def _is_a_table(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a composite in C sends numbers of its own, a table of places, to where its arguments seem to be."""
    device = kwargs.get("device")
    if device is None or func._opname != "_to_copy" or isinstance(args[0], FakeTensor):
        return False
    return bool(_C.device(device).type == "meta")


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    try:
        with no_dispatch():
            return func(*args, **kwargs)
    except DynamicSize:
        raise DynamicOutputShapeException(func) from None
    except NotImplementedError as error:
        if "dynamic_output_shape" in func.tags:
            raise DynamicOutputShapeException(func) from None
        if "data_dependent_output" in func.tags:
            raise DataDependentOutputException(func) from None
        raise UnsupportedOperatorException(func) from error


def _takes_device(func: Any) -> bool:
    return any(argument.name == "device" for argument in func._schema.arguments)


def _device_of(func: Any, fakes: list[FakeTensor], kwargs: dict[str, Any]) -> Any:
    """Where the results are: what the call says, else where its tensors are; scalars on the CPU go with others."""
    if kwargs.get("device") is not None:
        return _C.device(kwargs["device"])
    if not fakes:
        return _C.get_default_device()
    written = any(a.is_write for a in func._schema.arguments)
    found = next((t.device for t in fakes if t.dim() or t.device.type != "cpu"), fakes[0].device)
    if written or "Tensor?[]" in func._schema:  # such a list has indices, which may lie on the CPU
        return fakes[0].device
    for t in fakes:
        if t.device != found and (t.dim() or t.device.type != "cpu"):
            raise FakeTensorDeviceMismatchError(
                f"{func}: Expected all tensors to be on the same device, but found at least two devices, {found} and "
                f"{t.device}!"
            )
    return found


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """All modes off for a scope; gives the fake one of them."""
    with _disable_current_modes() as modes:
        yield next((mode for mode in modes if isinstance(mode, FakeTensorMode)), None)


def is_fake(x: object) -> bool:
    """Whether it is a fake tensor."""
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t: object) -> FakeTensorMode | None:
    """The mode of a fake tensor; None for others."""
    return t.fake_mode if isinstance(t, FakeTensor) else None
