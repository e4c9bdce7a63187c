"""Final observations of a whole rollout, valued in one batch."""

import numpy as np
import torch

from surefoot.data.records import Obs, State
from surefoot.policies.policy import PolicyOutput
from surefoot.rollout.open_ends import OpenEnds
from tests.envs.tasks import counters
from tests.rollout.known_policies import CountingPolicy, KnownPolicy


class CallCountingPolicy(KnownPolicy):
    """Remembers how large its batches were."""

    def __init__(self) -> None:
        super().__init__(counters(1).action_spec)
        self.batches: list[int] = []

    def forward(self, obs: Obs, state: State, episode_start: torch.Tensor, action_mask=None) -> PolicyOutput:
        self.batches.append(len(episode_start))
        assert not episode_start.any(), "the final observation belongs to the old episode"
        return super().forward(obs, state, episode_start, action_mask)


ALL = slice(0, 3)


def final_obs(step: int, rows: int = 3) -> np.ndarray:
    """Row i's final observation, were its episode 10 + i to end at this step."""
    return np.array([[row, 10 + row, step, 0, 0] for row in range(rows)], dtype=np.float32)


def test_values_land_where_the_episodes_were_cut_off():
    policy, open_ends, shared = CallCountingPolicy(), OpenEnds(), np.zeros((3, 5), dtype=np.float32)
    for step, where in enumerate([[True, False, True], [False] * 3, [False, True, False], [True] * 3]):
        shared[:] = final_obs(step)  # the env reuses its buffer
        open_ends.keep(step, ALL, np.array(where), shared, ())
    shared[:] = np.nan
    final_value = torch.full((5, 3), 77.0)
    open_ends.value_into(final_value, policy)
    expected = torch.zeros(5, 3)
    expected[0, 0], expected[0, 2], expected[2, 1] = 1000.5, 21200.5, 11102.5
    expected[3] = torch.tensor([1003.5, 11103.5, 21203.5])
    assert torch.equal(final_value, expected)
    assert policy.batches == [6], "all of them in one batch"


def test_without_any_the_policy_is_not_asked():
    policy, final_value = CallCountingPolicy(), torch.full((2, 3), 77.0)
    open_ends = OpenEnds()
    open_ends.keep(0, ALL, np.zeros(3, dtype=bool), final_obs(0), ())
    open_ends.value_into(final_value, policy)
    assert final_value.eq(0).all()
    assert policy.batches == []


def test_each_is_valued_with_the_memory_its_row_had_then():
    policy, open_ends = CountingPolicy(counters(1).action_spec), OpenEnds()
    open_ends.keep(0, ALL, np.array([False, True, False]), final_obs(0), (torch.tensor([4.0, 5.0, 6.0]),))
    open_ends.keep(1, ALL, np.array([True, False, True]), final_obs(1), (torch.tensor([7.0, 8.0, 9.0]),))
    final_value = torch.zeros(2, 3)
    open_ends.value_into(final_value, policy)
    assert final_value.tolist() == [[0, 6, 0], [8, 0, 10]]


def test_observations_may_be_dicts():
    class DictPolicy(KnownPolicy):
        def forward(self, obs: Obs, state: State, episode_start: torch.Tensor, action_mask=None) -> PolicyOutput:
            return super().forward(torch.cat((obs["where"], obs["luck"]), dim=1), state, episode_start, action_mask)

    open_ends = OpenEnds()
    where = final_obs(2)[:, :3]
    open_ends.keep(1, ALL, np.array([False, True, True]), {"where": where, "luck": np.zeros((3, 1), np.float32)}, ())
    final_value = torch.zeros(2, 3)
    open_ends.value_into(final_value, DictPolicy(counters(1).action_spec))
    assert final_value.tolist() == [[0, 0, 0], [0, 11102.5, 21202.5]]
