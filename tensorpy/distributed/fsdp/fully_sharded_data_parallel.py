"""FullyShardedDataParallel: a module around one that fully_shard cut, with the methods of PyTorch's first FSDP.

Parameters are DTensors between the passes, as fully_shard leaves them. Names in states are those of the plain model.
What the strategies mean is a mesh: NO_SHARD has a replica in each process, the hybrid ones take two dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.coalesced import MESSAGE_BYTES, broadcast_coalesced
from tensorpy.distributed.device_mesh import DeviceMesh, init_device_mesh
from tensorpy.distributed.fsdp._fully_shard import FSDPModule, fully_shard
from tensorpy.distributed.fsdp._policy import MixedPrecisionPolicy
from tensorpy.distributed.fsdp._states import INSIDE, Wrapper, are_parts, clean_name
from tensorpy.distributed.fsdp.api import BackwardPrefetch as BackwardPrefetch
from tensorpy.distributed.fsdp.api import CPUOffload as CPUOffload
from tensorpy.distributed.fsdp.api import FullOptimStateDictConfig as FullOptimStateDictConfig
from tensorpy.distributed.fsdp.api import FullStateDictConfig as FullStateDictConfig
from tensorpy.distributed.fsdp.api import LocalOptimStateDictConfig as LocalOptimStateDictConfig
from tensorpy.distributed.fsdp.api import LocalStateDictConfig as LocalStateDictConfig
from tensorpy.distributed.fsdp.api import MixedPrecision as MixedPrecision
from tensorpy.distributed.fsdp.api import OptimStateDictConfig as OptimStateDictConfig
from tensorpy.distributed.fsdp.api import OptimStateKeyType as OptimStateKeyType
from tensorpy.distributed.fsdp.api import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from tensorpy.distributed.fsdp.api import ShardedStateDictConfig as ShardedStateDictConfig
from tensorpy.distributed.fsdp.api import ShardingStrategy as ShardingStrategy
from tensorpy.distributed.fsdp.api import StateDictConfig as StateDictConfig
from tensorpy.distributed.fsdp.api import StateDictSettings as StateDictSettings
from tensorpy.distributed.fsdp.api import StateDictType as StateDictType
from tensorpy.distributed.fsdp.wrap import wrap_inside
from tensorpy.distributed.objects import all_gather_object
from tensorpy.distributed.tensor import DTensor, distribute_tensor
from tensorpy.nn import Module
from tensorpy.nn.utils import clip_grad_norm_

_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


def _mesh_of_groups(parts: groups.ProcessGroup, replicas: groups.ProcessGroup) -> DeviceMesh:
    """The groups of two dimensions: this process's replicas, and who has the parts of each."""
    rows: list[Any] = [None] * replicas.size()
    all_gather_object(rows, list(parts._ranks), group=replicas)
    names = ("replicate", "shard")
    return DeviceMesh.from_group([replicas, parts], "cpu", tp.tensor(rows), mesh_dim_names=names)


def _mesh_of(strategy: ShardingStrategy, group: Any, mesh: DeviceMesh | None) -> DeviceMesh | None:
    """The processes as fully_shard takes them; None: all."""
    hybrid = strategy in _HYBRID
    if mesh is not None and mesh.ndim != 1 + hybrid:
        raise ValueError(f"{strategy.name} takes a mesh of {1 + hybrid} dimensions, not {mesh}")
    if hybrid and mesh is None:
        if not isinstance(group, tuple) or len(group) != 2:
            raise ValueError(
                f"{strategy.name} takes a device_mesh of two dimensions, replicas and parts, or a tuple of two groups: "
                "who has the parts, and who has the same part"
            )
        return _mesh_of_groups(groups.of(group[0]), groups.of(group[1]))
    found = groups.of(mesh.get_group(0) if mesh is not None and not hybrid else None if hybrid else group)
    if strategy is ShardingStrategy.NO_SHARD:
        if found is not groups.group.WORLD and found.size() != groups.get_world_size():
            raise ValueError("NO_SHARD is of all processes; DistributedDataParallel takes a group")
        return init_device_mesh("cpu", (found.size(), 1), mesh_dim_names=("replicate", "shard"))
    return mesh or (None if found is groups.group.WORLD else DeviceMesh.from_group(found, "cpu"))


class FullyShardedDataParallel(Wrapper):
    """A module whose parameters lie in parts on all processes, whole only while it runs: fully_shard around a module.

    Arguments:
        module: the module; it is changed in place, and is `.module`
        process_group: the processes; None takes all; for hybrid strategies the group of those who have the parts of one
            copy, and that of those who have the same part
        sharding_strategy: FULL_SHARD if nothing is said
        cpu_offload: is taken
        auto_wrap_policy: which modules inside are units of their own: see tensorpy.distributed.fsdp.wrap
        backward_prefetch: is taken
        mixed_precision: a MixedPrecision
        ignored_modules: modules whose parameters stay whole
        param_init_fn: initialises a module whose parameters are on the Meta device
        device_id: is taken
        sync_module_states: whether the first process's parameters and buffers are given to all
        forward_prefetch: is taken
        limit_all_gathers: is taken
        use_orig_params: is taken: parameters are always those of the modules
        ignored_states: parameters that stay whole, or modules
        device_mesh: the processes; of two dimensions for hybrid strategies

    Example:
        >>> from tensorpy.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> tp.distributed.init_process_group(rank=0, world_size=1)
        >>> model = FSDP(nn.Linear(2, 2))
        >>> list(model.state_dict())
        ['weight', 'bias']
        >>> tp.distributed.destroy_process_group()
    """

    inside = INSIDE
    _settings: StateDictSettings

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Any = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        if isinstance(module, FullyShardedDataParallel):
            raise ValueError("FullyShardedDataParallel around a FullyShardedDataParallel: one is enough")
        strategy, precision = sharding_strategy or ShardingStrategy.FULL_SHARD, mixed_precision or MixedPrecision()
        ignored = _ignored(ignored_modules, ignored_states)
        mesh = _mesh_of(strategy, process_group, device_mesh)
        if param_init_fn is not None:
            _initialise(module, param_init_fn)
        if sync_module_states:
            states = [t for t in (*module.parameters(), *module.buffers()) if t not in ignored]
            plain = [t for t in states if not isinstance(t, DTensor)]
            along = [mesh.get_group(d) for d in reversed(range(mesh.ndim))] if mesh is not None else [groups.of(None)]
            with tp.no_grad():
                for each in along:
                    broadcast_coalesced(each, plain, MESSAGE_BYTES, 0)

        def unit(inside: Module, **said: Any) -> FullyShardedDataParallel:
            if said.keys() & {"sharding_strategy", "process_group", "device_mesh"}:
                raise ValueError(f"auto_wrap_policy: the strategy and the processes are the model's, not {said}")
            return _around(inside, mesh, strategy, said.get("mixed_precision") or precision, ignored)

        if auto_wrap_policy is not None:
            wrap_inside(module, auto_wrap_policy, unit, ignored)
        self._cut(module, mesh, strategy, precision, ignored)

    sharding_strategy: ShardingStrategy
    mixed_precision: MixedPrecision

    def _cut(
        self, module: Module, mesh: DeviceMesh | None, strategy: ShardingStrategy, said: MixedPrecision,
        ignored: set[Any],
    ) -> None:  # fmt: skip
        self.sharding_strategy, self.mixed_precision = strategy, said
        if said.buffer_dtype is not None:
            for buffer in module.buffers():
                if buffer.is_floating_point():
                    buffer.data = buffer.to(said.buffer_dtype)
        fully_shard(
            module,
            mesh=mesh,
            reshard_after_forward=strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD),
            mp_policy=MixedPrecisionPolicy(said.param_dtype, said.reduce_dtype, None, True),
            ignored_params=ignored,
        )
        self._modules[INSIDE] = module
        self._settings = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig())
        self._register_load_state_dict_pre_hook(_take, with_module=True)

    # ---- as the module ----

    @property
    def module(self) -> Any:
        """The module inside."""
        return self._modules[INSIDE]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward, with whole parameters.

        Returns: what the module gives.
        """
        return self.module(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The buffers, under the plain module's names."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield name.replace(f"{INSIDE}.", ""), buffer

    # ---- units ----

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """Those in a module.

        Arguments:
            module: the module
            root_only: whether those inside another are left out
        """
        found = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        inside = {id(e) for each in found for e in each.module.modules()} if root_only else set()
        return [each for each in found if id(each) not in inside]

    def check_is_root(self) -> bool:
        """Whether no other is around it; known once it ran."""
        unit = self.module._fsdp_unit
        return unit.root is unit

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which gradients add up in whole parameters, without messages."""
        inside: FSDPModule = self.module
        inside.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            inside.set_requires_gradient_sync(True)

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A context in which parameters are whole.

        Arguments:
            module: the module, with all inside it
            recurse: is taken: all inside it are whole
            writeback: whether what was written to them stays
            rank0_only: is taken: they are whole in each process
            offload_to_cpu: is taken
            with_grads: whether gradients are whole, too
        """
        units = [each._fsdp_unit for each in module.modules() if isinstance(each, FSDPModule)]
        for unit in units:
            unit.group.unshard()
        shown = [unit.group.show_gradients() if with_grads else [] for unit in units]
        try:
            yield
        finally:
            for unit, gradients in zip(units, shown, strict=True):
                unit.group.hide_gradients(gradients, writeback)
                if writeback:
                    unit.group.write_back()
                unit.group.reshard()

    def apply(self, fn: Callable[[Module], None]) -> FullyShardedDataParallel:
        """fn of each module inside, with whole parameters."""
        with self.summon_full_params(self):
            super().apply(fn)
        return self

    @tp.no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scales the gradients down to a norm of all processes' parts; the norm before.

        Arguments:
            max_norm: the largest norm
            norm_type: which norm

        Returns: a tensor without dimensions.
        """
        norm: Any = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    # ---- states ----

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: StateDictConfig | None = None,
    ) -> StateDictSettings:
        """Says how states of all inside a module are made; what was said before.

        Arguments:
            module: the module
            state_dict_type: whole tensors or parts
            state_dict_config: and how
            optim_state_dict_config: of its optimizer's
        """
        before = FullyShardedDataParallel.get_state_dict_type(module)
        settings = StateDictSettings(state_dict_type, state_dict_config, optim_state_dict_config)
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """How states of a module are made.

        Arguments:
            module: the module
        """
        found = FullyShardedDataParallel.fsdp_modules(module)
        return found[0]._settings if found else StateDictSettings(StateDictType.FULL_STATE_DICT)

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: StateDictConfig | None = None,
    ) -> Iterator[None]:
        """The same in a scope.

        Arguments:
            module: the module
            state_dict_type: whole tensors or parts
            state_dict_config: and how
            optim_state_dict_config: of its optimizer's
        """
        said = (state_dict_type, state_dict_config, optim_state_dict_config)
        before = FullyShardedDataParallel.set_state_dict_type(module, *said)
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(module, *vars(before).values())

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The parameters and buffers by the plain module's names: whole ones, or parts."""
        made = self.module.state_dict(*args, destination=destination, prefix=prefix, keep_vars=keep_vars)
        if are_parts():
            return made
        own = [name for name in made if name.startswith(prefix)]
        config, full = self._settings.state_dict_config, self._settings.state_dict_type is StateDictType.FULL_STATE_DICT
        for name in own:
            value = made[name]
            if full and isinstance(value, DTensor):
                with tp.no_grad():
                    value = value.full_tensor()
            if config is not None and config.offload_to_cpu and isinstance(value, Tensor):
                value = value.cpu()
            made[name] = value
        if full and isinstance(config, FullStateDictConfig) and config.rank0_only and groups.get_rank() != 0:
            for name in own:
                del made[name]
        return made

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """An optimizer's state by the parameters' names, as set_state_dict_type says.

        Arguments:
            model: the model
            optim: its optimizer
            optim_state_dict: is taken
            group: is taken
        """
        from tensorpy.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

        settings = FullyShardedDataParallel.get_state_dict_type(model)
        full, config = settings.state_dict_type is StateDictType.FULL_STATE_DICT, settings.optim_state_dict_config
        made = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=full))
        only = isinstance(config, FullStateDictConfig) and config.rank0_only
        return {} if full and only and groups.get_rank() != 0 else made

    full_optim_state_dict = sharded_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Any, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False,
        load_directly: bool = False, group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What the optimizer's load_state_dict takes of what optim_state_dict gave; the optimizer has it already.

        Arguments:
            model: the model
            optim: its optimizer
            optim_state_dict: the state
            is_named_optimizer: is taken
            load_directly: is taken
            group: is taken
        """
        from tensorpy.distributed.checkpoint.state_dict import StateDictOptions, set_optimizer_state_dict

        full = FullyShardedDataParallel.get_state_dict_type(model).state_dict_type is StateDictType.FULL_STATE_DICT
        set_optimizer_state_dict(model, optim, optim_state_dict, options=StateDictOptions(full_state_dict=full))
        made: dict[str, Any] = optim.state_dict()
        return made

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type: OptimStateKeyType,
        model: Module,
        optim_input: Any = None,
        optim: Any = None,
    ) -> dict[str, Any]:
        """An optimizer's state with parameters' names in the place of their numbers, or the other way round.

        Arguments:
            optim_state_dict: the state
            optim_state_key_type: PARAM_NAME or PARAM_ID
            model: whose parameters' names these are
            optim_input: what the optimizer was made of: parameters or groups; the model's if nothing is said
            optim: the optimizer, instead
        """
        given = (
            list(model.parameters() if optim_input is None else optim_input) if optim is None else optim.param_groups
        )
        order = [p for each in given for p in (each["params"] if isinstance(each, dict) else [each])]
        called = {id(p): clean_name(name) for name, p in model.named_parameters()}
        names = [called[id(p)] for p in order]
        wants_names = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        new: dict[Any, Any] = dict(enumerate(names)) if wants_names else {name: i for i, name in enumerate(names)}
        keys = [*optim_state_dict["state"], *(k for g in optim_state_dict["param_groups"] for k in g["params"])]
        kinds = {type(key) for key in keys}
        if len(kinds) > 1:
            raise ValueError(f"Invalid parameter keys: {keys}: names, or numbers, and not both")
        if kinds == {str if wants_names else int}:
            return optim_state_dict
        return {
            "state": {new[key]: value for key, value in optim_state_dict["state"].items()},
            "param_groups": [
                {**group, "params": [new[key] for key in group["params"]]} for group in optim_state_dict["param_groups"]
            ],
        }


def _around(module: Module, *said: Any) -> FullyShardedDataParallel:
    made = FullyShardedDataParallel.__new__(FullyShardedDataParallel)
    Module.__init__(made)
    made._cut(module, *said)
    return made


def _ignored(modules: Any, states: Any) -> set[Any]:
    """Parameters that stay as they are."""
    found: set[Any] = set()
    for each in (*(modules or ()), *(states or ())):
        found.update(each.parameters() if isinstance(each, Module) else [each])
    return found


def _initialise(module: Module, fn: Callable[[Module], None]) -> None:
    for each in module.modules():
        own = (*each.parameters(recurse=False), *each.buffers(recurse=False))
        if any(t.device.type == "meta" for t in own):
            fn(each)


def _take(module: FullyShardedDataParallel, state_dict: Any, prefix: str, *_: Any) -> None:
    """Names of a state get the wrapper's, and whole tensors are cut."""
    parts = {clean_name(name): p for name, p in module.module.named_parameters()}
    for name in [name for name in state_dict if name.startswith(prefix)]:
        rest = name[len(prefix) :]
        value, part = state_dict.pop(name), parts.get(rest)
        if isinstance(part, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
            value = distribute_tensor(value.detach(), part.device_mesh, part.placements, src_data_rank=None)
        state_dict[f"{prefix}{INSIDE}.{rest}"] = value
