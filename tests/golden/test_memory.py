"""Memory: forgotten before the cell where an episode starts, carried to its final observation, cut at resets."""

import torch
from torch import Tensor

from surefoot.data.records import Chunks, State
from surefoot.data.specs import ArraySpec
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.memory import Memory
from surefoot.rollout.open_ends import OpenEnds
from surefoot.rollout.sequences import split
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.settings.parts import PartSettings

from .cases import Case, golden

ONE = ArraySpec("box", (1,), "float32")


class Leaky(Memory):
    """h = 0.5 h + x, which is also the output."""

    output_size = 1

    def initial_state(self, num_rows: int) -> State:
        return (torch.zeros(num_rows, 1),)

    def forward(self, features: Tensor, state: State, batch_sizes: Tensor | None) -> tuple[Tensor, State]:
        hidden = 0.5 * state[0] + features
        return hidden, (hidden,)


def leaky_policy() -> ActorCritic:
    """V = h."""
    policy = ActorCritic(ONE, ONE, PolicyConfig(hidden=(), share_trunk=True), NormalizeConfig())
    policy.actor_body.memory = Leaky(1, PartSettings())
    policy._actor_parts = 1
    with torch.no_grad():
        policy.critic.head.weight.fill_(1.0)
    return policy


def run(policy: ActorCritic, inputs: list[float], starts: list[int], hidden: float) -> list[float]:
    state, seen = (torch.tensor([[hidden]]),), []
    for value, start in zip(inputs, starts, strict=True):
        state = policy(torch.tensor([[value]]), state, torch.tensor([bool(start)])).state
        seen.append(state[0].item())
    return seen


@golden("rnn_reset")
def test_memory_is_forgotten_before_the_cell(case: Case):
    hidden = run(leaky_policy(), case.given["x"], case.given["episode_start"], case.given["h0"])
    case.agrees(hidden, "h")
    case.differs(hidden, "never_reset")
    case.differs(hidden, "reset_one_step_early_on_done")


@golden("rnn_truncation_bootstrap")
def test_the_final_observation_belongs_to_the_old_episode(case: Case):
    given = case.given
    ends, value = OpenEnds(), torch.zeros(1, 1)
    final_obs = torch.tensor([[given["final_obs_x"]]]).numpy()
    ends.keep(0, slice(0, 1), torch.tensor([True]).numpy(), final_obs, (torch.tensor([[given["h_after_last_step"]]]),))
    with torch.no_grad():
        ends.value_into(value, leaky_policy())
    case.agrees(value.item(), "V_final")
    case.agrees(given["reward"] + given["gamma"] * value.item() - given["V_t"], "delta")
    assert value.item() != case.known_wrong["hidden_reset_before_final_obs"]["V_final"]


@golden("rnn_sequence_split")
def test_sequences_are_cut_at_resets(case: Case):
    starts = torch.tensor(case.given["episode_starts_env_by_time"]).bool().T
    runs = split(starts, torch.ones_like(starts), Chunks(len(starts), 100))
    case.agrees(runs.length, "seq_lengths")
    assert [len(runs.length), int(runs.length.max())] == case.expect["padded_shape"]
    case.agrees(runs.length.sum(), "mask_sum")
    begins_anew = starts.T.flatten()[runs.first]
    case.agrees(begins_anew, "initial_hidden_zero")
    case.agrees(~begins_anew, "initial_hidden_from_buffer")
