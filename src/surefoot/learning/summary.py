"""From what an update watched to plain numbers."""

from dataclasses import fields

import torch
from torch import Tensor

from surefoot.core.moments import explained_variance
from surefoot.core.records import Batch, Knobs, Learned
from surefoot.learning.losses import Losses
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import Samples

WATCHED = tuple(item.name for item in fields(Losses) if item.name != "total")
KL = WATCHED.index("approx_kl")
_STD_SAMPLES = 256


def watched(losses: Losses) -> Tensor:
    """All that is watched of one batch, as one tensor."""
    return torch.stack([getattr(losses, name).detach() for name in WATCHED])


def summarize(
    epochs: list[Tensor], samples: Samples, policy: Policy, knobs: Knobs, metrics: dict[str, float]
) -> Learned:
    """What an update did, from a row a minibatch, weighted by its share, an epoch.

    Means over the epochs; but the KL of the last one, which is where the policy ended up.
    """
    batch = samples.batch
    means = torch.stack([rows.sum(0) for rows in epochs]).mean(0).tolist()
    named = dict(zip((*WATCHED, "grad_norm", "skipped"), means, strict=True))
    skips = torch.cat([rows[:, -1] for rows in epochs]).bool().tolist()
    return Learned(
        policy_loss=named["policy"],
        value_loss=named["value"],
        entropy=named["entropy"],
        approx_kl=float(epochs[-1][:, KL].sum()),
        clip_fraction=named["clip_fraction"],
        grad_norm=named["grad_norm"],
        explained_variance=float(explained_variance(batch.value, batch.returns)),
        epochs=len(epochs),
        skipped_steps=sum(skips),
        lr=knobs.lr,
        clip=knobs.clip,
        entropy_coef=knobs.entropy_coef,
        std=_mean_std(samples, policy),
        value_error=_value_error(batch),
        skips=tuple(skips),
        metrics=metrics,
    )


def _value_error(batch: Batch) -> float:
    """Unlike explained variance it stays small where returns hardly differ and the values are nearly right."""
    error = (batch.returns - batch.value).std(correction=0)
    return float(error / batch.returns.square().mean().sqrt())


@torch.no_grad()
def _mean_std(samples: Samples, policy: Policy) -> float | None:
    """Over some samples: mostly the std is the same for all, and another pass over the whole batch would cost time."""
    some = next(samples.minibatches(_STD_SAMPLES))
    output = policy(*some.inputs)
    std = output.distribution.mean_std()
    return None if std is None else float(std)
