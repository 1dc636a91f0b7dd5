"""ZeroRedundancyOptimizer: each process keeps the states of a part of the parameters, and moves that part.

What is in which part follows from the parameters' sizes alone, so all processes know it. After a step each process
gives its part to all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorpy.distributed.coalesced import MESSAGE_BYTES, broadcast_coalesced
from tensorpy.distributed.collectives import broadcast
from tensorpy.distributed.objects import gather_object
from tensorpy.distributed.optim.utils import given_gradients
from tensorpy.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

Group = dict[str, Any]


class _ShadowSteps(JoinHook):
    """What a process without batches does: it moves its part with the gradients that the others sum."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        self.zero.step()


def _settings_of(group: Group) -> Group:
    """A group without its parameters."""
    return {key: value for key, value in group.items() if key not in ("params", "param_names")}


def _chosen(params: Any) -> list[Any]:
    """The parameters or groups as a list; an error where they are none."""
    if isinstance(params, Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {tp.typename(params)}")
    try:
        listed = list(params)
    except TypeError:
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {type(params)}") from None
    if not listed:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    kinds = {dict if isinstance(each, dict) else Tensor for each in listed if isinstance(each, (dict, Tensor))}
    if len(kinds) != 1 or not all(isinstance(each, (dict, Tensor)) for each in listed):
        raise TypeError("`params` argument should be an iterable of Tensors, or of dicts of parameter groups")
    return listed


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose states are spread over the processes of a group: each has those of its part.

    Arguments:
        params: the parameters, or dicts of groups with settings of their own; alike in all processes
        optimizer_class: the optimizer that moves a part
        process_group: the processes; None takes all
        parameters_as_bucket_view: a part's parameters lie after each other in memory, and go in one message
        overlap_with_ddp: steps are a communication hook's (ddp_zero_hook), bucket after bucket; step() does nothing
        defaults: the optimizer's settings

    Example:
        >>> from tensorpy.distributed.optim import ZeroRedundancyOptimizer
        >>> net = nn.Linear(1, 1)
        >>> optimizer = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=tp.optim.Adam, lr=0.01)
        >>> net(tp.ones(1)).sum().backward()
        >>> optimizer.step()
    """

    process_group: Any
    world_size: int
    rank: int

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        self.process_group = groups.of(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.parameters_as_bucket_view, self._overlap_with_ddp = parameters_as_bucket_view, overlap_with_ddp
        self._class, self._settings = optimizer_class, defaults
        self._owners: dict[int, int] = {}  # a parameter's id, and whose it is
        self._sizes = [0] * self.world_size
        self._flats: list[dict[Any, Tensor]] = [{} for _ in range(self.world_size)]
        self._whole: dict[str, Any] | None = None
        self.optim: Optimizer | None = None
        Optimizer.__init__(self, _chosen(params), defaults)
        Joinable.__init__(self)
        self.optim = optimizer_class([self._mine(group) for group in self.param_groups], **defaults)
        self._take_settings()
        self._lay_out()

    # ---- parts ----

    def add_param_group(self, param_group: Group) -> None:
        """Adds parameters, {"params": ...}, with settings of their own.

        Arguments:
            param_group: the group
        """
        super().add_param_group(param_group)
        added = self.param_groups[-1]
        for p in sorted(added["params"], key=lambda p: p.numel(), reverse=True):
            rank = min(range(self.world_size), key=self._sizes.__getitem__)
            self._owners[id(p)] = rank
            self._sizes[rank] += p.numel()
        if self.optim is not None:
            self.optim.add_param_group(self._mine(added))
            self._take_settings()
            self._lay_out()

    def _part(self, params: list[Tensor], rank: int) -> list[Tensor]:
        return [p for p in params if self._owners[id(p)] == rank]

    def _mine(self, group: Group) -> Group:
        """A group as this process's optimizer has it."""
        return {**_settings_of(group), "params": self._part(group["params"], self.rank)}

    def _parameters(self, rank: int) -> list[Tensor]:
        return [p for group in self.param_groups for p in self._part(group["params"], rank)]

    def _lay_out(self) -> None:
        """Has the parameters of each part lie after each other."""
        if not self.parameters_as_bucket_view:
            return
        for rank in range(self.world_size):
            alike: dict[Any, list[Tensor]] = {}
            for p in self._parameters(rank):
                alike.setdefault((p.dtype, p.device), []).append(p)
            self._flats[rank] = {}
            for kind, several in alike.items():
                flat = tp.cat([p.detach().reshape(-1) for p in several])
                for p, place in zip(several, flat.split([p.numel() for p in several]), strict=True):
                    p.data = place.reshape(p.shape)
                self._flats[rank][kind] = flat

    # ---- settings ----

    def _take_settings(self) -> None:
        """Settings that the optimizer's class has of its own stand in the groups of all parameters, too."""
        assert self.optim is not None
        for whole, part in zip(self.param_groups, self.optim.param_groups, strict=True):
            whole.update({key: value for key, value in part.items() if key != "params"})

    @contextmanager
    def _same_settings(self) -> Iterator[Optimizer]:
        """The part's optimizer; who changes a setting does so in the groups of all parameters."""
        assert self.optim is not None
        for whole, part in zip(self.param_groups, self.optim.param_groups, strict=True):
            part.update(_settings_of(whole))
        yield self.optim
        self._take_settings()

    # ---- steps ----

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Moves this process's part once, and gives it to all; nothing where a hook does that (overlap_with_ddp).

        Arguments:
            closure: computes the loss anew
            kwargs: go to the optimizer's step

        Returns: what closure gives; None without one.
        """
        if self._overlap_with_ddp:
            return None
        Join.notify_join_context(self)
        with self._same_settings() as optim:
            loss = optim.step(**kwargs) if closure is None else optim.step(closure, **kwargs)
        self._give_parts()
        return loss

    def _give_parts(self) -> None:
        with tp.no_grad():
            for rank in range(self.world_size):
                if self.parameters_as_bucket_view:
                    for flat in self._flats[rank].values():
                        broadcast(flat, group=self.process_group, group_src=rank)
                else:
                    wanted = [p for p in self._parameters(rank) if p.requires_grad]
                    broadcast_coalesced(self.process_group, wanted, MESSAGE_BYTES, rank)

    def _step_some(self, params: list[Tensor], gradients: list[Tensor]) -> None:
        """Moves those of some parameters that are this process's, by these gradients, and gives all of them to all."""
        given = {id(p): g for p, g in zip(params, gradients, strict=True)}
        own = [(p, given[id(p)]) for p in params if self._owners.get(id(p)) == self.rank]
        with self._same_settings() as optim, tp.no_grad():
            whole = [group["params"] for group in optim.param_groups]
            for group in optim.param_groups:
                group["params"] = [p for p in group["params"] if id(p) in given]
            try:
                with given_gradients(own):
                    optim.step()
            finally:
                for group, params_ in zip(optim.param_groups, whole, strict=True):
                    group["params"] = params_
            for rank in range(self.world_size):
                theirs = [p for p in params if self._owners.get(id(p)) == rank]
                broadcast_coalesced(self.process_group, theirs, MESSAGE_BYTES, rank)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What it does in a process that has no more batches.

        Arguments:
            kwargs: none of its own
        """
        return _ShadowSteps(self)

    @property
    def join_device(self) -> Any:
        """The device of the first parameter."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    # ---- states ----

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings the states of all parts to one process, where state_dict() then is that of a whole optimizer.

        Arguments:
            to: the process, by its rank in the group
        """
        self._whole = None
        with self._same_settings() as optim:
            mine = optim.state_dict()["state"]
        parts: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(mine, parts, group=self.process_group, group_dst=to)
        if parts is None:
            return
        places = {id(p): i for i, p in enumerate(self._all())}
        state = {}
        for rank, part in enumerate(parts):
            theirs = self._parameters(rank)
            for key, value in part.items():
                state[places[id(theirs[key])] if isinstance(key, int) else key] = value
        self._whole = {"state": dict(sorted(state.items())), "param_groups": self._packed_groups(places)}

    def _all(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _packed_groups(self, places: dict[int, int]) -> list[Group]:
        groups_ = []
        for group in self.param_groups:
            settings = {key: value for key, value in group.items() if key != "params"}
            groups_.append({**settings, "params": [places[id(p)] for p in group["params"]]})
        return groups_

    def state_dict(self) -> dict[str, Any]:
        """The states of all parts, in the process that consolidate_state_dict brought them to."""
        if self._whole is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        return self._whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the settings, and of the states those of this process's part.

        Arguments:
            state_dict: that of a whole optimizer
        """
        assert self.optim is not None
        saved = state_dict["param_groups"]
        if [len(g["params"]) for g in saved] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError("loaded state dict has other groups of parameters than the optimizer")
        numbers = [n for group in saved for n in group["params"]]
        place = {n: i for i, n in enumerate(numbers)}
        everyone, mine = self._all(), self._parameters(self.rank)
        local = {id(p): i for i, p in enumerate(mine)}
        state: dict[Any, Any] = {}
        for key, value in state_dict["state"].items():
            if key not in place:
                state[key] = value
            elif id(everyone[place[key]]) in local:
                state[local[id(everyone[place[key]])]] = value
        begin, parts = 0, []
        for whole, part in zip(saved, self.optim.param_groups, strict=True):
            count = len(part["params"])
            parts.append({**_settings_of(whole), "params": list(range(begin, begin + count))})
            begin += count
        self.optim.load_state_dict({"state": state, "param_groups": parts})
        self._whole = None
        self._take_settings()
