"""Small rollouts made by hand."""

import torch

from surefoot.data.records import Rollout, RolloutStats


def one_row(reward, terminated=None, truncated=None, final_value=None, valid=None) -> Rollout:
    """T steps of a single row, with everything that is not given empty or zero."""
    steps = len(reward)
    zeros = torch.zeros(steps, 1)

    def flags(values, default):
        return torch.tensor([default] * steps if values is None else values, dtype=torch.bool).unsqueeze(1)

    return Rollout(
        obs=zeros.unsqueeze(-1),
        action=zeros.unsqueeze(-1),
        log_prob=zeros,
        value=zeros,
        reward=torch.tensor(reward, dtype=torch.float32).unsqueeze(1),
        terminated=flags(terminated, False),
        truncated=flags(truncated, False),
        final_value=zeros if final_value is None else torch.tensor(final_value).unsqueeze(1),
        episode_start=zeros.bool(),
        valid=flags(valid, True),
        last_value=torch.zeros(1),
        action_mask=None,
        state=(),
        stats=RolloutStats(steps, (), ()),
    )
