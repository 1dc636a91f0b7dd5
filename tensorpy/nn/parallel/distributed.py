"""DistributedDataParallel: a module of which every process has a copy, and whose gradients are those of all batches.

What is done with gradients is the Reducer's (tensorpy/distributed/reducer.py). This says when: it begins a round at the
end of forward, gives all processes one process's buffers at its beginning, and takes part in the others' rounds where
this process has no more batches (join).
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from time import time_ns
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy import distributed as _processes  # this module is called distributed, too
from tensorpy._C import Tensor
from tensorpy.autograd import Function
from tensorpy.distributed import buckets, groups
from tensorpy.distributed import reducer as _reducer
from tensorpy.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from tensorpy.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorpy.distributed.coalesced import MESSAGE_BYTES, broadcast_coalesced
from tensorpy.nn.modules.module import Module
from tensorpy.nn.parallel import logged, mixed
from tensorpy.nn.parallel.logged import _dump_DDP_relevant_env_vars as _dump_DDP_relevant_env_vars
from tensorpy.nn.parallel.mixed import _MixedPrecision as _MixedPrecision
from tensorpy.nn.parameter import is_lazy
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["DistributedDataParallel"]

_MIB = 1 << 20
_BUCKET_MIB = 25


class _BufferCommHookLocation(Enum):
    PRE_FORWARD = 0
    POST_FORWARD = 1


class _Sink(Function):
    """Stands behind the outputs: backward passes all of them, those that the loss does not use without a value."""

    @staticmethod
    def forward(ctx: Any, ddp: weakref.ref[DistributedDataParallel], *outputs: Any) -> tuple[Any, ...]:
        ctx.set_materialize_grads(False)
        ctx.ddp = ddp
        return tuple(o.clone() if isinstance(o, Tensor) else o for o in outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        ddp = ctx.ddp()
        if ddp is not None and ddp.reducer.watches:
            _C._queue_callback(ddp.reducer.end_watch)
        return (None, *grads)


class _ShadowRounds(JoinHook):
    """What a process without batches does."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self.ddp = ddp

    def main_hook(self) -> None:
        ddp = self.ddp
        if ddp._gives_buffers_before():
            ddp._give_buffers(ddp._last_of(False))
        ddp.require_forward_param_sync = ddp._someone_sums(False)
        if ddp.require_forward_param_sync:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        ddp = self.ddp
        ddp._give_all(ddp._last_of(is_last_joiner), ddp.forward_sync_buffers)


def _find_tensors(obj: Any) -> Iterator[Tensor]:
    """The tensors of an output, in containers and dataclasses."""
    for leaf in tree_flatten(obj)[0]:
        if isinstance(leaf, Tensor):
            yield leaf
        elif dataclasses.is_dataclass(leaf):
            for field in dataclasses.fields(leaf):
                yield from _find_tensors(getattr(leaf, field.name))


class DistributedDataParallel(Module, Joinable):
    """A module of which every process has a copy: gradients are averaged over all processes while backward goes on.

    At first all processes get the parameters and buffers of the group's first process. Each gives its own batches to
    forward. When backward is over, `.grad` is the mean of all processes' gradients, the same to the bit in each, so
    that optimisers keep the copies alike.

    Arguments:
        module: the module; a parameter that it gets later takes no part
        device_ids: at most one device, where the module is; for modules on the host nothing
        output_device: is taken, with device_ids
        dim: is taken
        broadcast_buffers: whether buffers are given to all, at the beginning and before each forward
        init_sync: whether the first process's parameters are given to all, and compared with theirs
        process_group: the processes; None takes all
        bucket_cap_mb: how many MiB of gradients go in one message; 25, the first 1, if nothing is said
        find_unused_parameters: a pass may leave parameters without a gradient: each pass looks for them
        check_reduction: is taken
        gradient_as_bucket_view: gradients lie in the messages' memory, and are not copied back from it
        static_graph: each pass uses the same parameters, as often: the first one counts
        delay_all_reduce_named_params: names and parameters whose gradients are averaged when that of
            param_to_hook_all_reduce comes
        param_to_hook_all_reduce: the parameter
        mixed_precision: a _MixedPrecision: the dtypes that forward computes and gradients travel in
        device_mesh: the processes, as a mesh of one dimension
        skip_all_reduce_unused_params: is taken
        bucket_cap_mb_list: MiB of the first messages, and of all others
        batched_grad_copy: is taken
        forward_sync_buffers: whether buffers are given to all before each forward; at the beginning they are anyway

    Example:
        >>> nn.parallel.DistributedDataParallel.__name__
        'DistributedDataParallel'
    """

    device: Any
    device_ids: list[Any] | None
    device_mesh: Any
    device_type: str
    dim: int
    find_unused_parameters: bool
    forward_sync_buffers: bool
    gradient_as_bucket_view: bool
    module: Module
    output_device: Any
    process_group: groups.ProcessGroup
    reducer: _reducer.Reducer
    require_backward_grad_sync: bool
    require_forward_param_sync: bool
    static_graph: bool

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        Module.__init__(self)
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        self.process_group, self.device_mesh = _group_of(process_group, device_mesh), device_mesh
        self._delayed: list[tuple[str, Tensor]] = list(delay_all_reduce_named_params or ())
        self.parameters_to_ignore: set[str] = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore.update(name for name, _ in self._delayed)
        self._module_parameters = [p for n, p in module.named_parameters() if n not in self.parameters_to_ignore]
        self._check_devices(device_ids, output_device)
        self.module, self.dim = module, dim
        broadcast = True if broadcast_buffers is None else broadcast_buffers
        self.forward_sync_buffers = broadcast if forward_sync_buffers is None else forward_sync_buffers
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.static_graph = static_graph
        self._divide_by_initial_world_size = True
        self._buffer_hook: tuple[Any, Callable[..., Any], _BufferCommHookLocation] | None = None
        self.broadcast_bucket_size = MESSAGE_BYTES
        self.mixed_precision: _MixedPrecision | None = mixed_precision
        self._caps = _caps(bucket_cap_mb, bucket_cap_mb_list)
        self.bucket_bytes_cap = self._caps[-1]
        self.bucket_bytes_cap_list = self._caps if bucket_cap_mb_list else []
        self._build_reducer(check=init_sync)
        if init_sync:
            self._give_all(0, broadcast or forward_sync_buffers is not None)
        if self._delayed:
            self._average_delayed(param_to_hook_all_reduce)
        if mixed_precision is not None:
            mixed.cast_buffers(mixed_precision, self._named_buffers())

    # ---- how it is made ----

    def _check_devices(self, device_ids: Any, output_device: Any) -> None:
        if not any(p.requires_grad for p in self._module_parameters) and not self._delayed:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        devices = {p.device for p in self._module_parameters} or {p.device for _, p in self._delayed}
        types = {d.type for d in devices}
        if len(types) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but input module "
                f"parameters locate in {types}."
            )
        if (device_ids or output_device) and (types == {"cpu"} or len(devices) > 1):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with a module on one device "
                f"that is not the host, but got device_ids {device_ids}, output_device {output_device}, and module "
                f"parameters on {devices}."
            )
        self.device_ids = list(device_ids) if device_ids else None
        self.output_device = output_device
        self.device = next(iter(devices))
        self.device_type = self.device.type

    def _build_reducer(self, check: bool) -> None:
        named: dict[int, tuple[str, Tensor, bool]] = {}
        for prefix, module in self.module.named_modules():
            sparse = bool(getattr(module, "sparse", False))
            for name, p in module.named_parameters(recurse=False):
                full = f"{prefix}.{name}" if prefix else name
                if is_lazy(p):
                    raise RuntimeError(
                        "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
                        "Run a dummy forward pass to correctly initialize the modules"
                    )
                if p.requires_grad and full not in self.parameters_to_ignore:
                    named.setdefault(id(p), (full, p, sparse))
        chosen = list(named.values())
        self.reducer = _reducer.Reducer(
            [p for _, p, _ in chosen],
            [name for name, _, _ in chosen],
            self.process_group,
            [sparse for _, _, sparse in chosen],
            self._caps,
            gradient_as_bucket_view=self.gradient_as_bucket_view,
            find_unused_parameters=self.find_unused_parameters,
        )
        if check:
            _reducer.verify(self.process_group, self.reducer.description() + self._buffer_lines())
        weakref.finalize(self, self.reducer.remove_hooks).atexit = False
        if self.static_graph:
            self.reducer.set_static()
        if self.mixed_precision is not None:
            self.register_comm_hook(self.process_group, mixed.hook(self.mixed_precision))

    def _buffer_lines(self) -> list[str]:
        """Parameters that want no gradient and buffers have to be alike, too."""
        fixed = {n: p for n, p in self.module.named_parameters() if not p.requires_grad}
        states = {**fixed, **self._named_buffers()}
        return [f"{n}: {t.dtype}{list(t.shape)}" for n, t in states.items() if n not in self.parameters_to_ignore]

    def _average_delayed(self, trigger: Tensor) -> None:
        """Gradients that no bucket has: averaged together at the end of a pass in which the trigger's comes."""
        parameters = [p for _, p in self._delayed]

        def average() -> None:
            there = [p.grad for p in parameters if p.grad is not None]
            if there:
                flat = tp.cat([g.reshape(-1) for g in there])
                _processes.all_reduce(flat, group=self.process_group)
                flat /= self.process_group.size()
                for grad, part in zip(there, flat.split([g.numel() for g in there]), strict=True):
                    grad.copy_(part.reshape(grad.shape))

        def ask(_: Tensor) -> None:
            if self.require_backward_grad_sync and not self.process_group._is_one():
                _C._queue_callback(average)

        trigger.register_post_accumulate_grad_hook(ask)

    def _give_all(self, source: int, buffers: bool) -> None:
        """All processes get one's parameters and, if they are to, buffers."""
        states: list[Tensor] = [p for n, p in self.module.named_parameters() if n not in self.parameters_to_ignore]
        if buffers:
            states += self._named_buffers().values()
        with tp.no_grad():
            broadcast_coalesced(self.process_group, states, self.broadcast_bucket_size, source)

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not groups.group.WORLD:
            raise RuntimeError("a DistributedDataParallel is pickled with the group of all processes, and no other")
        state = dict(self.__dict__)
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = groups.of(None)
        self._build_reducer(check=False)

    # ---- forward ----

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        inputs, kwargs = self._before(inputs, kwargs)
        with self._inside_ddp_forward():
            if self.mixed_precision is None:
                output = self.module(*inputs, **kwargs)
            else:
                output = mixed.call(self.mixed_precision, self.module, self.parameters_to_ignore, inputs, kwargs)
        return self._after(output)

    @contextmanager
    def _inside_ddp_forward(self) -> Iterator[None]:
        yield

    def _sums(self) -> bool:
        return tp.is_grad_enabled() and self.require_backward_grad_sync

    def _before(self, inputs: Any, kwargs: Any) -> Any:
        self.reducer.times.forward = time_ns() if self._sums() else 0
        work = Join.notify_join_context(self)
        count = self.process_group.size()
        if work is not None and not self._divide_by_initial_world_size:
            work.wait()
            count = int(work.result()[0].item())
        self.reducer.divide_by(count)
        if self._gives_buffers_before():
            self._give_buffers()
        if self._join_config.enable:
            self._someone_sums(self.require_backward_grad_sync)
        if self.device_ids:
            device = self.device
            leaves, spec = tree_flatten((inputs, kwargs))
            inputs, kwargs = tree_unflatten([x.to(device) if isinstance(x, Tensor) else x for x in leaves], spec)
        if self.mixed_precision is not None:
            inputs, kwargs = mixed.cast_inputs(self.mixed_precision, inputs, kwargs)
        return inputs, kwargs

    def _after(self, output: Any) -> Any:
        if self._gives_buffers() and self._location() is _BufferCommHookLocation.POST_FORWARD:
            self._give_buffers()
        self.require_forward_param_sync = self._sums()
        looks = self.find_unused_parameters and not self.static_graph
        if self._sums():
            self.reducer.prepare(tuple(_find_tensors(output)) if looks else None)
        return self._sink(output) if looks or self.reducer.watches else output

    def _sink(self, output: Any) -> Any:
        leaves, spec = tree_flatten(output)
        passed = _Sink.apply(weakref.ref(self), *leaves)
        kept = [
            leaf if isinstance(leaf, Tensor) and leaf.grad_fn is None else new
            for leaf, new in zip(leaves, passed, strict=True)
        ]
        return tree_unflatten(kept, spec)

    # ---- buffers ----

    def _named_buffers(self) -> dict[str, Tensor]:
        return {n: b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore}

    def _location(self) -> _BufferCommHookLocation:
        return self._buffer_hook[2] if self._buffer_hook else _BufferCommHookLocation.PRE_FORWARD

    def _gives_buffers(self) -> bool:
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self._named_buffers())

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward gives all processes one's buffers."""
        return self._gives_buffers()

    def _gives_buffers_before(self) -> bool:
        return self._gives_buffers() and self._location() is _BufferCommHookLocation.PRE_FORWARD

    def _give_buffers(self, source: int | None = None) -> None:
        """All processes get one's buffers: the first's, or with join that of one that has batches."""
        named = self._named_buffers()
        if self._buffer_hook is not None:
            state, hook, _ = self._buffer_hook
            hook(state, named)
            return
        if source is None:
            source = self._last_of(True) if self._join_config.enable else 0
        with tp.no_grad():
            broadcast_coalesced(self.process_group, list(named.values()), self.broadcast_bucket_size, source)

    def _register_buffer_comm_hook(
        self,
        state: Any,
        hook: Callable[..., Any],
        comm_hook_location: _BufferCommHookLocation = _BufferCommHookLocation.POST_FORWARD,
    ) -> None:
        """Has a function give buffers to all: it gets the state and the named buffers."""
        self._buffer_hook = (state, hook, comm_hook_location)

    @property
    def broadcast_buffers(self) -> bool:
        """Whether buffers are given to all before forward."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    # ---- what users ask for ----

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which gradients are added up here, and averaged by the first pass whose forward is outside."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, buckets.GradBucket], Any]) -> None:
        """Has a function make buckets of gradients the same in all processes; it divides, too.

        Arguments:
            state: the function's first argument
            hook: takes the state and a GradBucket, and returns a Future of one tensor, as large as the bucket's buffer
        """
        if not callable(hook):
            self.reducer.refuse("Communication hook must be callable.", TypeError)
        if self.reducer.has_hook:
            self.reducer.refuse("register_comm_hook or register_builtin_comm_hook can only be called once.")
        if self.reducer.rounds:
            self.reducer.refuse("register_comm_hook: it is for before the first backward pass")
        self.reducer.set_hook(state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: buckets.BuiltinCommHookType) -> None:
        """Has a hook carry buckets that PyTorch has in C++: here they are those of `default_hooks`."""
        halves = comm_hook_type is buckets.BuiltinCommHookType.FP16_COMPRESS
        self.register_comm_hook(self.process_group, hooks.fp16_compress_hook if halves else hooks.allreduce_hook)
        self.reducer.hook_name = str(comm_hook_type)

    def _remove_autograd_hooks(self) -> None:
        """Gradients of the module are its business alone again."""
        self.reducer.remove_hooks()

    def _default_broadcast_coalesced(
        self, bufs: list[Tensor] | None = None, bucket_size: int | None = None, authoritative_rank: int = 0
    ) -> None:
        """Gives buffers to all: for a hook of `_register_buffer_comm_hook`."""
        chosen = list(self._named_buffers().values()) if bufs is None else bufs
        with tp.no_grad():
            broadcast_coalesced(
                self.process_group, chosen, bucket_size or self.broadcast_bucket_size, authoritative_rank
            )

    def _set_static_graph(self) -> None:
        """The same as static_graph=True."""
        if not self.static_graph:
            if self.reducer.rounds or self.reducer.expects:
                self.reducer.refuse("_set_static_graph() should be called before training loop starts")
            self.static_graph = True
            self.reducer.set_static()

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What a program may print of it, by PyTorch's names; times are those of the last round that was noted."""
        return logged.data_of(self)

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        """Has the times of one round in so many be noted, beside those of the first ten."""
        if sample_rate < 1:
            self.reducer.refuse("DDP runtime logging sample rate should be equal or greater than 1")
        self.reducer.times.rate = sample_rate

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Names that a DistributedDataParallel of the module leaves alone."""
        setattr(module, "_ddp_params_and_buffers_to_ignore", list(params_and_buffers_to_ignore))  # noqa: B010

    # ---- join ----

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """A context around a loop over batches, of which processes may have unlike numbers.

        Arguments:
            divide_by_initial_world_size: whether sums are divided by the number of all processes; else by that of
                those that have a batch
            enable: False: the context does nothing
            throw_on_early_termination: all processes raise as soon as one has no more batches
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What it does in a process that has no more batches.

        Arguments:
            kwargs: divide_by_initial_world_size
        """
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return _ShadowRounds(self)

    @property
    def join_device(self) -> Any:
        """The device of the module."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    def _someone_sums(self, mine: bool) -> bool:
        """Whether the round that comes sums gradients, as those say who have a batch."""
        says = tp.tensor([float(mine)])
        _processes.all_reduce(says, group=self.process_group)
        return bool(says.item())

    def _last_of(self, stands: bool) -> int:
        """The last process of the group of those that stand for it."""
        rank = tp.tensor([self.process_group.rank() if stands else -1])
        _processes.all_reduce(rank, _processes.ReduceOp.MAX, self.process_group)
        return int(rank.item())


def _group_of(process_group: Any, device_mesh: Any) -> groups.ProcessGroup:
    if process_group is not None and device_mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if device_mesh is None:
        return groups.of(process_group)
    if device_mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
    return groups.of(device_mesh.get_group(mesh_dim=0))


def _caps(cap: float | None, several: list[float] | None) -> list[int]:
    """How many bytes the first buckets may have, and all others."""
    if several:
        if cap is not None:
            raise ValueError("DistributedDataParallel: bucket_cap_mb or bucket_cap_mb_list, not both")
        return [int(c * _MIB) for c in several]
    if cap is None:
        return [buckets.FIRST_BUCKET_BYTES, _BUCKET_MIB * _MIB]
    if cap <= 0:
        raise ValueError(f"DistributedDataParallel: bucket_cap_mb is {cap}, and has to be more than 0")
    return [int(cap * _MIB)]
