"""Checks that a graph matches its policy, step by step over a real episode, each with its own recurrent state."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.records import State
from surefoot.data.specs import ArraySpec
from surefoot.data.tree import tree_items, tree_map
from surefoot.envs.protocol import Slot, VecEnv, slot_for, step_all
from surefoot.envs.protocol.checks import check_step
from surefoot.errors import ExportError
from surefoot.export.deployed import ACTION, ACTION_MASK, EPISODE_START, NEXT_STATE, STATE, named_outputs, obs_name
from surefoot.policies.distributions import Distribution, DistributionHead
from surefoot.policies.hybrid_head import Hybrid
from surefoot.policies.policy import Policy, PolicyOutput

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

TOLERANCE = 1e-5
"""Largest difference that counts as rounding, for numbers around 1."""
LONGEST_EPISODE = 10_000
"""Maximum number of compared steps if the episode does not end."""
_STEPS_AFTER = 8
"""Steps of the next episode, to check that the recurrent state is reset."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Parity:
    """Number of compared steps, and the largest difference: absolute up to 1, relative above."""

    steps: int
    largest_difference: float


@torch.no_grad()
def check_parity(policy: Policy, session: "InferenceSession", env: VecEnv, tolerance: float) -> Parity:
    """Raise an error if the graph's action, distribution or state differs from the policy's at any step."""
    slot = slot_for(env)
    env.reset(slot)
    check_step(env, slot, 0)
    state, start = policy.initial_state(env.num_rows), np.ones(env.num_rows, dtype=bool)
    graph = GraphMemory(session, state)
    step, last, largest = 0, LONGEST_EPISODE, 0.0
    while step < last + _STEPS_AFTER:
        mask = None if slot.action_mask is None else torch.tensor(slot.action_mask)
        output = policy(tree_map(torch.tensor, slot.obs), state, torch.tensor(start), mask)
        differences = _differences(policy, output, graph.step(_raw_inputs(env, slot, start)), env.action_spec)
        largest = max(largest, _checked(differences, step, tolerance))
        state = output.state
        step_all(env, policy.head.to_env(output.distribution.mode()).numpy(), slot)
        step += 1
        check_step(env, slot, step)
        if (slot.ended & slot.valid).any():
            last = min(last, step)
        start = slot.ended | ~slot.valid | (step == LONGEST_EPISODE)
    return Parity(step, largest)


class GraphMemory:
    """A session with its recurrent state."""

    def __init__(self, session: "InferenceSession", state: State) -> None:
        self._session = session
        self._outputs = [one.name for one in session.get_outputs()]
        self._inputs = [one.name for one in session.get_inputs()]
        self._state: Arrays = {f"{STATE}{index}": one.numpy() for index, one in enumerate(state)}

    def step(self, given: Arrays) -> Arrays:
        """Run one step; returns all outputs by name and ignores inputs that the graph does not have."""
        feed = {name: value for name, value in {**given, **self._state}.items() if name in self._inputs}
        results: Arrays = dict(zip(self._outputs, self._session.run(None, feed), strict=True))
        self._state |= {
            name.replace(NEXT_STATE, STATE): one for name, one in results.items() if name.startswith(NEXT_STATE)
        }
        return results


def _raw_inputs(env: VecEnv, slot: Slot, start: NDArray[np.bool_]) -> Arrays:
    """The raw values of a step, with categories counted from the env's `start`."""
    given: Arrays = {EPISODE_START: start}
    specs = dict(tree_items(env.obs_spec))
    for key, leaf in tree_items(slot.obs):
        spec = specs[key]
        given[obs_name(key)] = leaf + np.reshape(spec.start, spec.shape) if spec.start else leaf
    return given if slot.action_mask is None else given | {ACTION_MASK: slot.action_mask}


def _differences(policy: Policy, output: PolicyOutput, theirs: Arrays, action: ArraySpec) -> dict[str, float]:
    """The largest difference in each output of the graph."""
    ours = named_outputs(policy, output)
    found = {name: _difference(ours[name], array, np.ones(())) for name, array in theirs.items() if name != ACTION}
    return found | {ACTION: _action_difference(policy.head, output.distribution, ours[ACTION], theirs[ACTION], action)}


def _action_difference(
    head: DistributionHead, distribution: Distribution, ours: Tensor, theirs: NDArray[Any], spec: ArraySpec
) -> float:
    if isinstance(distribution, Hybrid) and theirs.shape == ours.shape:
        sizes = [leaf.size for leaf in spec.leaves]
        pieces = zip(ours.split(sizes, -1), np.split(theirs, np.cumsum(sizes)[:-1], axis=-1), strict=True)
        components = zip(distribution.heads, distribution.components, pieces, spec.leaves, strict=True)
        return max(_action_difference(one, component, *both, leaf) for one, component, both, leaf in components)
    if spec.kind == "box":
        bounds = np.nan_to_num(np.abs(spec.bounds()), posinf=0.0).max(axis=0).reshape(ours.shape[1:])
        return _difference(ours, theirs, np.maximum(bounds, 1))
    # Between two equally good choices, the last bit may decide.
    chosen = theirs - np.reshape(spec.start, theirs.shape[1:]) if spec.start else theirs
    raw = torch.tensor(chosen).reshape(-1, *head.action_shape).to(head.action_dtype)
    best, given = (distribution.log_prob(choice) for choice in (distribution.mode(), raw))
    return _difference(best, given.numpy(), np.ones(()))


def _difference(ours: Tensor, theirs: NDArray[Any], scale: NDArray[np.float64]) -> float:
    wanted = ours.double().numpy()
    if wanted.shape != theirs.shape:
        return np.inf
    with np.errstate(invalid="ignore"):
        distance = np.abs(wanted - theirs) / np.maximum(np.abs(wanted), scale)
    return float(np.where(wanted == theirs, 0.0, np.nan_to_num(distance, nan=np.inf)).max(initial=0.0))


def _checked(differences: dict[str, float], step: int, tolerance: float) -> float:
    name, largest = max(differences.items(), key=lambda item: item[1])
    if not largest <= tolerance:  # also catches NaN
        raise ExportError(
            f"the graph differs from the policy by {largest:.2g} in '{name}' at step {step}, more than {tolerance:.2g};"
            " nothing was written; if this difference is acceptable, raise the tolerance"
        )
    return largest
