"""The deployed policy: takes raw env observations, returns env actions, and includes all processing."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.data.records import State
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_items
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.distributions import Distribution
from surefoot.policies.hybrid_head import Hybrid
from surefoot.policies.memory.recurrent import Recurrent
from surefoot.policies.policy import Policy, PolicyOutput

OBS, ACTION, EPISODE_START, ACTION_MASK = "obs", "action", "episode_start", "action_mask"
STATE, NEXT_STATE, DISTRIBUTION = "state_", "next_state_", "distribution/"


class OneStep(nn.Module):
    """Layers of PyTorch's cells with the weights of a recurrent memory."""

    def __init__(self, memory: Recurrent) -> None:
        super().__init__()
        self.cells = memory.cells

    def forward(self, features: Tensor, state: State, batch_sizes: None) -> tuple[Tensor, State]:
        """One step of the memory."""
        after = []
        for layer, weights in enumerate(self.cells.all_weights):
            tensors = _cell(self.cells, features, [tensor[:, layer] for tensor in state], weights)
            features = tensors[0]
            after.append(tensors)
        return features, tuple(torch.stack(tensors, dim=1) for tensors in zip(*after, strict=True))


def replace_memories(module: nn.Module) -> None:
    """Replace recurrent memories with `OneStep`."""
    for name, child in module.named_children():
        if isinstance(child, Recurrent):
            setattr(module, name, OneStep(child))
        else:
            replace_memories(child)


def _cell(cells: nn.RNNBase, features: Tensor, before: list[Tensor], weights: Any) -> tuple[Tensor, ...]:
    if isinstance(cells, nn.LSTM):
        return torch.lstm_cell(features, before, *weights)
    return (torch.gru_cell(features, before[0], *weights),)


@dataclass(frozen=True)
class Input:
    """A named input of the graph, with an example value for one row."""

    name: str
    example: Tensor

    def batch(self, num_rows: int) -> Tensor:
        """The example value repeated for every row."""
        return self.example.repeat(num_rows, *(1,) * self.example.dim())


class Deployed(nn.Module):
    """A deterministic step of a batch of rows; `forward` takes the `inputs` and returns the `outputs`, in order."""

    def __init__(self, policy: Policy, obs_spec: ObsSpec, mask_size: int) -> None:
        super().__init__()
        self.policy, self._obs_spec = deepcopy(policy), obs_spec
        replace_memories(self.policy)
        self.inputs = list(_inputs(policy, obs_spec, mask_size))
        with torch.no_grad():
            self.outputs = tuple(self.step({one.name: one.batch(2) for one in self.inputs}))

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        given = {one.name: value for one, value in zip(self.inputs, values, strict=True)}
        return tuple(self.step(given).values())

    def step(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        """Outputs by name from inputs by name."""
        obs = {key: _shifted(given[obs_name(key)], spec) for key, spec in tree_items(self._obs_spec)}
        state = tuple(value for name, value in given.items() if name.startswith(STATE))
        output = self.policy(
            obs if isinstance(self._obs_spec, dict) else obs[""], state, given[EPISODE_START], given.get(ACTION_MASK)
        )
        # Copies: a tensor that is also an input or another output would need two names in the graph.
        return {name: tensor.clone() for name, tensor in named_outputs(self.policy, output).items()}


def named_outputs(policy: Policy, output: PolicyOutput) -> dict[str, Tensor]:
    """The outputs of the graph: the env action, the next state, and the parameters of the distribution."""
    results = {ACTION: policy.head.to_env(output.distribution.mode())}
    results |= {f"{NEXT_STATE}{index}": tensor for index, tensor in enumerate(output.state)}
    return results | {f"{DISTRIBUTION}{name}": tensor for name, tensor in _parameters(output.distribution)}


def obs_name(key: str) -> str:
    """The input name of an observation key; a single observation has the empty key."""
    return f"{OBS}/{key}" if key else OBS


def acting_copy(policy: Policy) -> Policy:
    """A copy in evaluation mode that computes in float32: the weights are float32 regardless of `policy.precision`."""
    copy = deepcopy(policy).eval().requires_grad_(False)
    if isinstance(copy, ActorCritic):
        copy._config = copy._config.model_copy(update={"precision": "float32"})
    return copy


def _inputs(policy: Policy, obs_spec: ObsSpec, mask_size: int) -> Iterator[Input]:
    for key, spec in tree_items(obs_spec):
        first = torch.tensor(spec.start).reshape(spec.shape) if spec.start else torch.from_numpy(spec.zeros())
        yield Input(obs_name(key), first)
    for index, tensor in enumerate(policy.initial_state(1)):
        yield Input(f"{STATE}{index}", tensor[0])
    yield Input(EPISODE_START, torch.tensor(True))
    if mask_size:
        yield Input(ACTION_MASK, torch.ones(mask_size, dtype=torch.bool))


def _shifted(value: Tensor, spec: ArraySpec) -> Tensor:
    """Categories counted from 0, as policies expect, from categories that the env counts from `start`."""
    return value - torch.tensor(spec.start).reshape(spec.shape) if any(spec.start) else value


def _parameters(distribution: Distribution) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a distribution; those of a hybrid one by component."""
    if isinstance(distribution, Hybrid):
        for place, component in enumerate(distribution.components):
            yield from ((f"{place}/{name}", value) for name, value in _parameters(component))
    elif is_dataclass(distribution):
        for field in fields(distribution):
            value = getattr(distribution, field.name)
            if isinstance(value, Tensor):
                yield field.name, value
