"""fully_shard: a module whose parameters lie in parts on all processes, whole only while it runs.

A module that fully_shard was called on is one unit: its parameters, but for those of units inside it, are one Group
(_group.py). Forward gathers them before and lets them go behind it; backward gathers them at their first use, and each
unit's gradients are summed as soon as all are there. The unit whose forward is called from outside is the root: it
knows the order of the others, and ends each backward.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.graph import _innermost_hooks, saved_tensors_hooks
from tensorpy.distributed import groups
from tensorpy.distributed.device_mesh import DeviceMesh, init_device_mesh
from tensorpy.distributed.fsdp._group import Group, Owners, Sharded
from tensorpy.distributed.fsdp._policy import MixedPrecisionPolicy, OffloadPolicy
from tensorpy.distributed.tensor import DTensor, Shard
from tensorpy.nn import Module, ModuleDict, ModuleList, Parameter
from tensorpy.utils._pytree import tree_flatten, tree_map

_Module = TypeVar("_Module")

# ---- one unit ----


class _Saved:
    """Stands for elements of a parameter that backward will want."""

    def __init__(self, unit: _Unit, group: Group, each: Sharded, tensor: Tensor) -> None:
        self.unit, self.group, self.each = unit, group, each
        self.is_all = tensor is each.whole
        self.walk = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()

    def tensor(self) -> Tensor:
        """The elements, gathered again where they are not here."""
        self.unit.before_backward()
        whole = self.each.whole
        return whole if self.is_all else whole.detach().as_strided(*self.walk)


class _Hooks(saved_tensors_hooks):
    """Notes in the place of elements of parameters; all else goes to the hooks around the outermost of these."""

    outer: tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]] | None

    def __init__(self, root: _Unit) -> None:
        super().__init__(self._pack, self._unpack)
        self.root = root

    def __enter__(self) -> None:
        previous = _innermost_hooks()
        super().__enter__()
        around = getattr(previous[0], "__self__", None) if previous else None
        self.outer = around.outer if isinstance(around, _Hooks) else previous

    def __exit__(self, *unused: Any) -> None:
        super().__exit__()
        del self.hooks  # which know this: what was saved keeps it, and nothing else

    def _pack(self, tensor: Tensor) -> Any:
        note = self.root.note(tensor)
        return note if note is not None else tensor if self.outer is None else self.outer[0](tensor)

    def _unpack(self, saved: Any) -> Any:
        if isinstance(saved, _Saved):
            return saved.tensor()
        return saved if self.outer is None else self.outer[1](saved)


class _Unit:
    """What fully_shard keeps of its modules.

    Arguments:
        modules: those that it was called on
        group: their parameters
        policy: the dtypes
        reshards: whether parameters go behind forward; None: but for the root's
    """

    modules: list[weakref.ref[Module]]
    group: Group
    policy: MixedPrecisionPolicy
    reshards: bool | None
    root: _Unit | None
    before: list[_Unit] | None  # prefetched in forward, in backward; None: by the order of forward
    behind: list[_Unit] | None
    units: list[_Unit]  # of the root
    order: list[_Unit]
    _ran: int
    _is_in_backward: bool

    def __init__(
        self, modules: list[Module], group: Group, policy: MixedPrecisionPolicy, reshards: bool | None
    ) -> None:
        self.modules = [weakref.ref(module) for module in modules]
        self.group, self.policy, self.reshards = group, policy, reshards
        self.root = self.before = self.behind = None
        self.units, self.order = [self], []
        self._ran, self._is_in_backward = 0, False
        group.on_ready = self.in_backward

    def _leads(self, module: Any) -> None:
        """Whoever runs first is the root of the units inside it."""
        if self.root is not None and self.root is not self:
            return
        if self.root is None:
            found = [each._fsdp_unit for each in module.modules() if isinstance(each, FSDPModule)]
            self.units = list(dict.fromkeys([self, *found]))
            for unit in self.units:
                unit.root = self
        if self._ran == 0:
            self.order.clear()

    def _resharded(self) -> bool:
        return self.root is not self if self.reshards is None else self.reshards

    @contextmanager
    def running(self, module: Any) -> Iterator[None]:
        """The parameters are whole in its scope, and what autograd saves of them is noted."""
        self._leads(module)
        root = self.root or self
        self.group.unshard()
        for unit in self.before or ():
            unit.group.begin()
        again = root._is_in_backward  # for a checkpoint around: the parameters are wanted in a moment
        if not again:
            root.order.append(self)
        self._ran += 1
        try:
            with _Hooks(root):
                yield
        finally:
            if self._ran >= len(self.modules):
                self._ran = 0
                if self._resharded() and not again:
                    self.group.reshard()

    def note(self, tensor: Tensor) -> _Saved | None:
        """What is saved for a tensor that has elements of a parameter."""
        for unit in self.units:
            each = unit.group.saved(tensor)
            if each is not None:
                return _Saved(unit, unit.group, each, tensor)
        return None

    # ---- backward ----

    def in_backward(self) -> None:
        """Backward has begun: the root ends it."""
        root = self.root or self
        if not root._is_in_backward:
            root._is_in_backward = True
            _C._queue_callback(root.end_backward)

    def before_backward(self) -> None:
        """Parameters are wanted: those of the unit that is wanted next are sent for, too."""
        self.in_backward()
        if self.group.is_whole:
            return
        self.group.unshard()
        for unit in self._next():
            unit.group.begin()

    def precede_backward_of(self, outputs: Any) -> None:
        """Backward of outputs finds the parameters whole: a checkpoint inside runs forward again before it asks."""

        def begin(_: Tensor) -> None:
            self.before_backward()

        for leaf in tree_flatten(outputs)[0]:
            if isinstance(leaf, Tensor) and leaf.requires_grad:
                leaf.register_hook(begin)

    def _next(self) -> Sequence[_Unit]:
        if self.behind is not None:
            return self.behind
        order = (self.root or self).order
        place = order.index(self) if self in order else 0
        return [order[place - 1]] if place > 0 and order[place - 1]._resharded() else []

    def end_backward(self) -> None:
        """What was not complete is sent, all is waited for, and parameters go."""
        self._is_in_backward = False
        for unit in reversed(self.order or self.units):
            unit.group.reduce()
        for unit in self.units:
            unit.group.reduce()
            if unit.group.reshards_after_backward:
                unit.group.reshard()
        for unit in self.units:
            unit.group.finish()


def _cast(value: Any, dtype: Any) -> Any:
    def one(leaf: Any) -> Any:
        is_float = isinstance(leaf, Tensor) and leaf.is_floating_point()
        return leaf.to(dtype) if is_float else leaf

    return tree_map(one, value)


def _called(unit: _Unit, module: Any, method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    policy = unit.policy
    if policy.cast_forward_inputs and policy.param_dtype is not None:
        args, kwargs = _cast(args, policy.param_dtype), _cast(kwargs, policy.param_dtype)
    with unit.running(module):
        out = method(*args, **kwargs)
    if _C.is_grad_enabled():
        unit.precede_backward_of(out)
    return out if policy.output_dtype is None else _cast(out, policy.output_dtype)


# ---- modules ----


class UnshardHandle:
    """What `unshard(async_op=True)` returns.

    Arguments:
        group: the parameters that are under way

    Example:
        >>> net = tp.distributed.fsdp.fully_shard(nn.Linear(2, 2))
        >>> handle = net.unshard(async_op=True)
        >>> handle.wait()
        >>> net.weight.shape
        tensorpy.Size([2, 2])
    """

    _group: Group | None

    def __init__(self, group: Group | None = None) -> None:
        self._group = group

    def wait(self) -> None:
        """Waits until the module has its parameters."""
        if self._group is not None:
            self._group.unshard()
            self._group = None


def _no_copy(*_: Any) -> NoReturn:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


class FSDPModule:
    """What a module has after fully_shard.

    Example:
        >>> net = tp.distributed.fsdp.fully_shard(nn.Linear(2, 2))
        >>> net.set_requires_gradient_sync(False)  # gradients of several batches are summed once
        >>> type(net).__name__, isinstance(net, tp.distributed.fsdp.FSDPModule)
        ('FSDPLinear', True)
    """

    _fsdp_unit: _Unit

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward, with whole parameters.

        Returns: what the module gives.
        """
        return _called(self._fsdp_unit, self, super().forward, args, kwargs)  # type: ignore[misc]  # pyright: ignore

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.reshard()
        made: Any = super()._apply(*args, **kwargs)  # type: ignore[misc]  # pyright: ignore
        for parameter in self._fsdp_unit.group.parameters:
            parameter.look()
        return made

    def _save_to_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self.reshard()  # states are of parts
        return super()._save_to_state_dict(*args, **kwargs)  # type: ignore[misc]  # pyright: ignore

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self.reshard()
        return super()._load_from_state_dict(*args, **kwargs)  # type: ignore[misc]  # pyright: ignore

    def _all(self, recurse: bool) -> list[_Unit]:
        modules: Any = self.modules() if recurse else [self]  # type: ignore[attr-defined]  # pyright: ignore
        return [each._fsdp_unit for each in modules if isinstance(each, FSDPModule)]

    def reshard(self) -> None:
        """Gives the module its parts, and lets the whole parameters go; units inside it stay as they are."""
        self._fsdp_unit.group.reshard()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gathers the module's parameters; those of units inside it stay as they are.

        Arguments:
            async_op: returns a handle at once, whose wait() gives the module its parameters; forward waits, too
        """
        group = self._fsdp_unit.group
        group.begin()
        if async_op:
            return UnshardHandle(group)
        group.unshard()
        return None

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward sums gradients over processes; without it they add up in whole parameters.

        Arguments:
            requires_gradient_sync: whether
            recurse: whether units inside it do alike
        """
        for unit in self._all(recurse):
            unit.group.syncs = unit.group.sums_replicas = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward sums gradients over replicas, on a mesh of two dimensions.

        Arguments:
            requires_all_reduce: whether
            recurse: whether units inside it do alike
        """
        for unit in self._all(recurse):
            unit.group.sums_replicas = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters go behind forward.

        Arguments:
            reshard_after_forward: whether
            recurse: whether units inside it do alike
        """
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for unit in self._all(recurse):
            unit.reshards = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether parameters go behind backward.

        Arguments:
            reshard_after_backward: whether
            recurse: whether units inside it do alike
        """
        for unit in self._all(recurse):
            unit.group.reshards_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """The modules whose parameters are sent for as soon as this module has its own in forward.

        Arguments:
            modules: they
        """
        self._fsdp_unit.before = _units(modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """The modules whose parameters are sent for as soon as this module has its own in backward; without it, those
        of the one that ran before it in forward.

        Arguments:
            modules: they
        """
        self._fsdp_unit.behind = _units(modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What sums of gradients are divided by; without it the number of processes.

        Arguments:
            factor: the number
        """
        self._fsdp_unit.group.factor = factor

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Is taken: each backward waits for its gradients.

        Arguments:
            is_last_backward: whether it is the last of a step
        """

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Is taken: backward gathers what it needs.

        Arguments:
            unshard_in_backward: whether backward needs this module's parameters
        """

    def reset_iter_state(self) -> None:
        """After an exception in forward or backward: parts are the parameters again, gradients under way are lost."""
        unit = self._fsdp_unit
        for each in unit.units:
            for parameter in each.group.parameters:
                if parameter.whole is not None:
                    parameter.whole.grad = None
            each.group.finish()
            each.group.reshard()
            each._ran = 0
        unit._is_in_backward = False


def _units(modules: Sequence[Any]) -> list[_Unit]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}: {module}")
    return [module._fsdp_unit for module in modules]


# ---- making them ----


def _owned(modules: list[Module], ignored: set[Any]) -> dict[int, tuple[Parameter, Owners]]:
    """The parameters of modules that no unit has yet, and who has them."""
    found: dict[int, tuple[Parameter, Owners]] = {}
    seen: set[int] = set()

    def visit(module: Module, is_first: bool) -> None:
        if id(module) in seen or (isinstance(module, FSDPModule) and not is_first):
            return
        seen.add(id(module))
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter not in ignored:
                found.setdefault(id(parameter), (parameter, []))[1].append((module, name))
        for child in module._modules.values():
            if child is not None:
                visit(child, False)

    for module in modules:
        visit(module, True)
    return found


def _dim_of(parameter: Parameter, choose: Callable[[Any], Any] | None) -> int:
    chosen = None if choose is None else choose(parameter)
    if chosen is None:
        return 0
    if not isinstance(chosen, Shard):
        raise ValueError(f"fully_shard: shard_placement_fn returns Shard or None, not {chosen!r}")
    if not -parameter.ndim <= chosen.dim < parameter.ndim:
        raise ValueError(f"fully_shard: {chosen!r} names no dimension of {list(parameter.shape)}")
    return chosen.dim % parameter.ndim


def _mesh(mesh: DeviceMesh | None) -> DeviceMesh:
    found = init_device_mesh("cpu", (groups.get_world_size(),)) if mesh is None else mesh
    if found.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {found}")
    if found.ndim == 2 and found.mesh_dim_names is None:
        raise AssertionError(f"Please init the 2D mesh for HSDP with mesh_dim_names specified: {found}")
    return found


def _reshards(given: bool | int | None, size: int) -> bool | None:
    if given is None or isinstance(given, bool):
        return given
    if not isinstance(given, int) or given not in (1, size):
        raise ValueError(
            f"fully_shard: reshard_after_forward is True, False, or how many processes share parameters between "
            f"forward and backward, 1 or all {size}; not {given!r}"
        )
    return given == size


def fully_shard(
    module: _Module,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008
    ignored_params: set[Any] | None = None,
) -> _Module:
    """Cuts a module's parameters into parts, one for each process, in place; forward and backward gather them.

    Called on the modules inside first, then on the whole: each call makes a unit, whose parameters are gathered in one
    message. Parameters are DTensors between the passes: optimizers, clip_grad_norm_ and states work on parts. Processes
    begin with the same parameters, or from one checkpoint.

    Arguments:
        module: the module, or several that are one unit
        mesh: the processes; of two dimensions the first has replicas; None takes all
        reshard_after_forward: whether whole parameters go behind forward, and come again in backward; None: but for
            the outermost module's
        shard_placement_fn: gets a parameter, returns the Shard that says which dimension is cut; None: the first
        mp_policy: the dtypes to compute and send in
        offload_policy: is taken: meshes are of hosts, where CPUOffloadPolicy would put the parts
        ignored_params: parameters that stay as they are

    Returns: the module.

    Raises: ValueError for a module that is cut already, one without forward, or a parameter without dimensions.

    Example:
        >>> from tensorpy import distributed as dist
        >>> from tensorpy.distributed.fsdp import fully_shard
        >>> dist.init_process_group(rank=0, world_size=1)
        >>> model = fully_shard(nn.Linear(2, 2))
        >>> model
        FSDPLinear(in_features=2, out_features=2, bias=True)
        >>> model.weight.placements
        (Shard(dim=0),)
        >>> dist.destroy_process_group()
    """
    given: Any = module
    modules: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    for each in modules:
        if not isinstance(each, Module) or isinstance(each, FSDPModule):
            raise ValueError(f"fully_shard: takes a module that it was not called on before, not {type(each).__name__}")
        if isinstance(each, (ModuleList, ModuleDict)):
            raise ValueError(f"fully_shard: does not support containers without a forward, as {type(each).__name__} is")
    found = _mesh(mesh)
    reshards = _reshards(reshard_after_forward, found.shape[-1])
    parameters = []
    for parameter, owners in _owned(modules, ignored_params or set()).values():
        if isinstance(parameter, DTensor):
            raise ValueError(f"fully_shard: the parameter {owners[0][1]} is distributed already")
        if parameter.ndim == 0:
            raise ValueError(
                f"fully_shard doesn't support scalar parameters. Change {owners[0][1]} to a 1D tensor with numel equal "
                "to 1."
            )
        parameters.append(Sharded(parameter, owners, _dim_of(parameter, shard_placement_fn), found, mp_policy))
    unit = _Unit(modules, Group(parameters, found, mp_policy), mp_policy, reshards)
    for each in modules:
        kind = type(each)
        each._fsdp_unit = unit
        each.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__deepcopy__": _no_copy})
    return module


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Another method of a module runs with whole parameters, as forward does.

    Arguments:
        module: the module; nothing happens where fully_shard was not called on it
        method_name: the method's name

    Example:
        >>> class Net(nn.Linear):
        ...     def score(self, x):
        ...         return self(x).sum()
        >>> net = tp.distributed.fsdp.fully_shard(Net(2, 2))
        >>> tp.distributed.fsdp.register_fsdp_forward_method(net, "score")
        >>> net.score(tp.ones(1, 2)).shape
        tensorpy.Size([])
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name, None)
    if method is None:
        raise ValueError(f"{type(module)} does not have a method {method_name}")

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _called(module._fsdp_unit, module, method, args, kwargs)

    setattr(module, method_name, wrapped)
