"""The objects of a trainer that have state, by the names they have in checkpoints (S15, docs/semantics.md)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from surefoot.data.records import Progress
from surefoot.envs.protocol import VecEnv
from surefoot.envs.protocol.agent_parameters import AGENT_PARAMETERS, Values, agent_values, set_agent_values
from surefoot.errors import CheckpointMismatchError
from surefoot.policies.policy import Policy
from surefoot.policies.until_changed import UntilChanged
from surefoot.storage.saved import Saved
from surefoot.storage.snapshot import FlatCopy, FlatTensors
from surefoot.storage.state import ModuleState, Stateful

if TYPE_CHECKING:
    from surefoot.training.trainer import Trainer

LEARNED = ("policy", "gradient", "objective", "schedules", AGENT_PARAMETERS)
"""Parts that an update changes and a rollback restores."""
KEPT = (*LEARNED, "scorer", "progress")
"""Parts that an iteration changes after its rollout; an error in the middle of it restores them."""


class _Counters:
    """Steps and iterations of a trainer, and updates of its learner; the total comes from the config."""

    def __init__(self, trainer: "Trainer") -> None:
        self._trainer = trainer

    def state(self) -> dict[str, Any]:
        trainer = self._trainer
        return {
            "step": trainer.progress.step,
            "iteration": trainer.progress.iteration,
            "update": trainer.learner.update,
        }

    def check_state(self, saved: Saved) -> None:
        for name in ("step", "iteration", "update"):
            saved[name].integer()

    def load_state(self, state: dict[str, Any]) -> None:
        trainer = self._trainer
        trainer.progress = Progress(state["step"], trainer.progress.total, state["iteration"])
        trainer.learner.update = state["update"]


class PolicyState(ModuleState):
    """The policy, with fast snapshots: a rollback needs one in every iteration."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, "policy")
        self._in_place = UntilChanged(_in_place)

    def snapshot(self) -> FlatCopy:
        tensors = self._in_place.of(self._module)
        return (FlatTensors(self.state()) if tensors is None else tensors).copy()

    def go_back(self, snapshot: FlatCopy) -> None:
        self.load_state(snapshot.tensors())


def _in_place(module: nn.Module) -> FlatTensors | None:
    """The state of a module, if it consists of its parameters and buffers themselves, as `state_dict` returns them."""
    state, own = module.state_dict(), [*module.parameters(), *module.buffers()]
    places = {tensor.data_ptr() for tensor in own if tensor.is_contiguous()}
    is_own = all(isinstance(one, Tensor) and one.is_contiguous() and one.data_ptr() in places for one in state.values())
    return FlatTensors(state) if is_own else None


class AgentParameters:
    """Parameters of the envs that belong to the agent, as the weights of a network inside the envs do."""

    is_optional = True
    """Older checkpoints have none."""

    def __init__(self, env: VecEnv) -> None:
        self._env = env

    def state(self) -> dict[str, Any]:
        return {name: torch.tensor(value) for name, value in agent_values(self._env).items()}

    def check_state(self, saved: Saved) -> None:
        own = self.state()
        for name, entry in saved.entries().items():
            if name not in own:
                raise CheckpointMismatchError(f"{entry.path}: these envs declare no such parameter of the agent")
            entry.like(own[name])

    def load_state(self, state: dict[str, Any]) -> None:
        set_agent_values(self._env, {name: value.numpy() for name, value in state.items()})


def saved_agent_values(state: Mapping[str, Any]) -> Values:
    """The parameters of the agent in a checkpoint, for envs that are made for it."""
    saved = Saved(state).get(AGENT_PARAMETERS)
    entries = {} if saved is None else saved.entries()
    for entry in entries.values():
        if not isinstance(entry.array(), Tensor) or entry.value.dtype != torch.float32:
            raise entry.wrong("a float32 tensor")
        entry.finite()
    return {name: entry.value.numpy() for name, entry in entries.items()}


def stateful_of(trainer: "Trainer") -> dict[str, Stateful]:
    """Everything that is saved, restored, checked and rolled back."""
    learner = trainer.learner
    return {
        "policy": trainer.policy_state,
        "gradient": learner.gradient,
        "frozen": learner.gradient.frozen,
        "objective": learner.objective,
        "scorer": trainer.scorer,
        "schedules": trainer.schedules,
        "progress": _Counters(trainer),
        AGENT_PARAMETERS: AgentParameters(trainer.collector.rows.env),  # before the states of the envs
        "collector": trainer.collector.rows,
    }
