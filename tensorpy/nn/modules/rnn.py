"""Recurrent networks and their cells: parameters and checks around the operators `lstm`, `gru`, `rnn_tanh`, ..."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn import init
from tensorpy.nn.modules.module import Module
from tensorpy.nn.parameter import Parameter
from tensorpy.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The batch of a state in another order."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """Layers of one kind over a sequence. The parameters are named weight_ih_l<k>, weight_hh_l<k>, bias_ih_l<k>,
    bias_hh_l<k>, with projections weight_hr_l<k>, and with a suffix _reverse for the second direction.

    Arguments:
        mode: 'RNN_TANH', 'RNN_RELU', 'LSTM' or 'GRU'
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        num_layers: how many layers stand on each other
        bias: whether there is a bias
        batch_first: whether the batch is the first dimension, and the sequence the second
        dropout: the probability of a zero between layers
        bidirectional: whether a second pass goes over the sequence from its end
        proj_size: how many features the state is projected to; 0 for none
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> output, h = nn.RNNBase("GRU", 3, 4)(tp.ones(5, 2, 3))
        >>> output.shape
        tensorpy.Size([5, 2, 4])
    """

    batch_first: bool
    bias: bool
    bidirectional: bool
    dropout: float
    hidden_size: int
    input_size: int
    mode: str
    num_layers: int
    proj_size: int
    _given_weights: Mapping[str, Tensor] = MappingProxyType({})  # in place of the attributes of these names

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._check_settings(dropout)
        real, directions = proj_size or hidden_size, 2 if bidirectional else 1
        gates = GATES[mode] * hidden_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(directions):
                features = input_size if layer == 0 else real * directions
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, features), "weight_hh": (gates, real)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = []
                for name, shape in shapes.items():
                    names.append(f"{name}_l{layer}" + ("_reverse" if direction else ""))
                    setattr(self, names[-1], Parameter(_C.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self.reset_parameters()

    def _check_settings(self, dropout: Any) -> None:
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name in ("bias", "batch_first"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} should be of type bool, got: {type(getattr(self, name)).__name__}")
        for name in ("input_size", "hidden_size"):
            if not isinstance(getattr(self, name), int):
                raise TypeError(f"{name} should be of type int, got: {type(getattr(self, name)).__name__}")
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in GATES:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}")

    @property
    def _flat_weights(self) -> list[Tensor]:
        """What the next call computes with: the weights that were given last, a list set here or attributes by name."""
        given = self._given_weights
        return [given[name] if name in given else getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: Sequence[Tensor]) -> None:
        """Programs that compute their weights give the list before each call; the parameters stay."""
        if len(weights) != len(self._flat_weights_names):
            raise ValueError(f"_flat_weights: {len(self._flat_weights_names)} weights are needed, got {len(weights)}")
        pairs = zip(self._flat_weights_names, weights, strict=True)
        self._given_weights = {name: weight for name, weight in pairs if getattr(self, name, None) is not weight}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self._given_weights:
            self._given_weights = {n: w for n, w in self._given_weights.items() if n != name}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        self.__dict__.pop("_given_weights", None)
        return super()._apply(fn, recurse)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """There is nothing to flatten: the parameters are used where they are."""

    def _sizes(self) -> tuple[int, ...]:
        """The features of each state: h, and with LSTM c."""
        return (self.proj_size or self.hidden_size,)

    def _check_input(self, input: Tensor, packed: bool) -> None:
        if input.dtype != self._flat_weights[0].dtype and not _C._autocast_get(input.device.type)[0]:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({self._flat_weights[0].dtype}). Convert "
                f"input: input.to({self._flat_weights[0].dtype}), or convert model: model.to({input.dtype})"
            )
        if packed and input.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _started(self, input: Tensor, batch: int, given: Any, batched: bool) -> tuple[Tensor, ...]:
        """The first states as (layers, batch, features): what was given, checked, or zeros."""
        layers = self.num_layers * (2 if self.bidirectional else 1)
        if given is None:
            return tuple(
                _C.zeros(layers, batch, size, dtype=input.dtype, device=input.device) for size in self._sizes()
            )
        states = given if isinstance(given, tuple) else (given,)
        dims = 3 if batched else 2
        if any(s.dim() != dims for s in states):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx {'and cx ' if len(states) > 1 else ''}should also be {dims}-D but got "
                f"({', '.join(f'{s.dim()}-D' for s in states)}) tensor{'s' if len(states) > 1 else ''}"
            )
        if not batched:
            states = tuple(s.unsqueeze(1) for s in states)
        for i, (state, size) in enumerate(zip(states, self._sizes(), strict=True)):
            want = (layers, batch, size)
            if tuple(state.shape) != want:
                name = f"hidden[{i}]" if len(states) > 1 else "hidden"
                raise RuntimeError(f"Expected {name} size {want}, got {list(state.shape)}")
        return states

    def forward(self, input: Any, hx: Any = None) -> Any:
        packed = isinstance(input, PackedSequence)
        if packed:
            data, batch_sizes, order, back = input
            batched, batch = True, int(batch_sizes[0])
        else:
            data, batch_sizes, order, back = input, None, None, None
            if data.dim() not in (2, 3):
                raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {data.dim()}D instead")
            batched = data.dim() == 3
            if not batched:
                data = data.unsqueeze(1)
            elif self.batch_first:
                data = data.transpose(0, 1)
            batch = data.shape[1]
        self._check_input(data, packed)
        state = self._started(data, batch, hx, batched)
        if hx is not None and order is not None:
            state = tuple(apply_permutation(s, order) for s in state)
        given: Any = state if self.mode == "LSTM" else next(iter(state))
        before = [data] if batch_sizes is None else [data, batch_sizes]
        after = [False] if batch_sizes is None else []  # whether the batch comes first
        output, *last = getattr(_C, self.mode.lower())(
            *before,
            given,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            *after,
        )
        state = tuple(last)
        if packed:
            if back is not None:
                state = tuple(apply_permutation(s, back) for s in state)
            return PackedSequence(output, batch_sizes, order, back), self._final(state)
        if not batched:
            return output.squeeze(1), self._final(tuple(s.squeeze(1) for s in state))
        return (output.transpose(0, 1) if self.batch_first else output), self._final(state)

    def _final(self, state: tuple[Tensor, ...]) -> Any:
        return state[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


def _refuse_options(name: str, options: dict[str, Any]) -> None:
    """What an LSTM alone takes is a ValueError, anything else a TypeError."""
    if "proj_size" in options:
        raise ValueError(f"{name}: proj_size is an argument of LSTM alone")
    for option in options:
        raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{option}'")


class RNN(RNNBase):
    """The simple recurrent network, with tanh or relu.

    Input (L, N, H_in), (N, L, H_in) with batch_first, (L, H_in) or a PackedSequence; output with directions * H for
    H_in, and the state h, (layers * directions, N, H).

    Arguments:
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        num_layers: how many layers stand on each other
        nonlinearity: the function, by name: 'relu', 'tanh', 'leaky_relu'
        bias: whether there is a bias
        batch_first: whether the batch is the first dimension, and the sequence the second
        dropout: the probability of a zero between layers
        bidirectional: whether a second pass goes over the sequence from its end
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for a hidden_size or num_layers below 1, a dropout outside [0, 1], a proj_size, or an unknown
        nonlinearity.

    Example:
        >>> output, h = nn.RNN(3, 4, batch_first=True)(tp.ones(2, 5, 3))
        >>> output.shape, h.shape
        (tensorpy.Size([2, 5, 4]), tensorpy.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        _refuse_options("RNN", options)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )


class LSTM(RNNBase):
    """Long short-term memory; its state is (h, c).

    Input (L, N, H_in), (N, L, H_in) with batch_first, (L, H_in) or a PackedSequence; output with directions * H for
    H_in, and the state (h, c), each (layers * directions, N, H).

    Arguments:
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        num_layers: how many layers stand on each other
        bias: whether there is a bias
        batch_first: whether the batch is the first dimension, and the sequence the second
        dropout: the probability of a zero between layers
        bidirectional: whether a second pass goes over the sequence from its end
        proj_size: how many features the state is projected to; 0 for none
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for a hidden_size or num_layers below 1, a dropout outside [0, 1], or a proj_size that is not
        below hidden_size.

    Example:
        >>> output, (h, c) = nn.LSTM(3, 4, num_layers=2, batch_first=True)(tp.ones(2, 5, 3))
        >>> output.shape, h.shape
        (tensorpy.Size([2, 5, 4]), tensorpy.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def _sizes(self) -> tuple[int, ...]:
        return self.proj_size or self.hidden_size, self.hidden_size

    def _final(self, state: tuple[Tensor, ...]) -> Any:
        return state


class GRU(RNNBase):
    """Gated recurrent units.

    Input (L, N, H_in), (N, L, H_in) with batch_first, (L, H_in) or a PackedSequence; output with directions * H for
    H_in, and the state h, (layers * directions, N, H).

    Arguments:
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        num_layers: how many layers stand on each other
        bias: whether there is a bias
        batch_first: whether the batch is the first dimension, and the sequence the second
        dropout: the probability of a zero between layers
        bidirectional: whether a second pass goes over the sequence from its end
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: ValueError for a hidden_size or num_layers below 1, a dropout outside [0, 1], or a proj_size.

    Example:
        >>> output, h = nn.GRU(3, 4, batch_first=True)(tp.ones(2, 5, 3))
        >>> output.shape, h.shape
        (tensorpy.Size([2, 5, 4]), tensorpy.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        _refuse_options("GRU", options)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


# ---- cells ----


class RNNCellBase(Module):
    """What the cells have in common: their weights and biases, and how they are drawn.

    Arguments:
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        bias: whether there is a bias
        num_chunks: how many gates there are
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> nn.RNNCellBase(3, 4, bias=True, num_chunks=1).weight_ih.shape
        tensorpy.Size([4, 3])
    """

    bias: bool
    hidden_size: int
    input_size: int
    weight_hh: Any
    weight_ih: Any
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(_C.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(_C.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(_C.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _stepped(self, mode: str, input: Tensor, states: Any, count: int) -> tuple[Tensor, ...]:
        if input.dim() not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        given: Any = (None,) * count if states is None else states
        for i, state in enumerate(given):
            if state is not None and state.dim() not in (1, 2):
                name = f"hx[{i}]" if count > 1 else "hidden"
                raise ValueError(f"{self._get_name()}: Expected {name} to be 1D or 2D, got {state.dim()}D instead")
        batched = input.dim() == 2
        rows = input if batched else input.unsqueeze(0)
        if states is None:
            zeros = _C.zeros(rows.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)
            given = (zeros,) * count
        elif not batched:
            given = tuple(s.unsqueeze(0) for s in states)
        start: Any = tuple(given) if count > 1 else given[0]
        made = getattr(_C, f"{mode.lower()}_cell")(
            rows, start, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        stepped = tuple(made) if count > 1 else (made,)
        return stepped if batched else tuple(s.squeeze(0) for s in stepped)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of RNN.

    Input (N, H_in) or (H_in,), output the state (N, H) or (H,).

    Arguments:
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        bias: whether there is a bias
        nonlinearity: the function, by name: 'relu', 'tanh', 'leaky_relu'
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> nn.RNNCell(3, 4)(tp.ones(2, 3)).shape
        tensorpy.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        mode = f"RNN_{self.nonlinearity.upper()}"
        return self._stepped(mode, input, None if hx is None else (hx,), 1)[0]


class LSTMCell(RNNCellBase):
    """One step of LSTM; its state is (h, c).

    Input (N, H_in) or (H_in,), output the state (h, c), each (N, H) or (H,).

    Arguments:
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> h, c = nn.LSTMCell(3, 4)(tp.ones(2, 3))
        >>> h.shape, c.shape
        (tensorpy.Size([2, 4]), tensorpy.Size([2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        return self._stepped("LSTM", input, hx, 2)


class GRUCell(RNNCellBase):
    """One step of GRU.

    Input (N, H_in) or (H_in,), output the state (N, H) or (H,).

    Arguments:
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> nn.GRUCell(3, 4)(tp.ones(2, 3)).shape
        tensorpy.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._stepped("GRU", input, None if hx is None else (hx,), 1)[0]
