"""The policy protocol."""

from dataclasses import dataclass, field

from torch import Tensor, nn

from surefoot.data.moments import ObsMoments
from surefoot.data.records import Obs, State
from surefoot.data.specs import ArraySpec
from surefoot.data.tree import tree_items
from surefoot.policies.critics import Critic
from surefoot.policies.distributions import Distribution, DistributionHead
from surefoot.policies.normalizer import RunningNormalizer


@dataclass(frozen=True)
class PolicyOutput:
    """The result of a forward pass for acting and learning."""

    distribution: Distribution
    prediction: Tensor  # in the form that the critic's loss expects
    value: Tensor  # [B] raw units
    state: State
    extras: dict[str, Tensor] = field(default_factory=dict)  # as `Policy.extras` declares them; kept in rollouts


class Policy(nn.Module):
    """The interface of policies for collectors, the learner and `predict`. Subclass it for a custom policy.

    `forward` must be pure: all results are in the PolicyOutput.
    """

    head: DistributionHead
    critic: Critic

    shares_parameters = True
    """Whether a parameter may have gradients of both actor and critic; those of parts named `critic...` are its own."""

    def forward(
        self,
        obs: Obs,
        state: State,
        episode_start: Tensor,
        action_mask: Tensor | None = None,
        batch_sizes: Tensor | None = None,
    ) -> PolicyOutput:
        """Distribution, value and next state of a batch of raw observations.

        Only recurrent policies receive `batch_sizes`: then the samples are sequences in the layout of torch's
        PackedSequence, without episode starts inside, and the state has one entry per sequence.
        """
        raise NotImplementedError

    def initial_state(self, num_rows: int) -> State:
        """The state at the start of an episode; empty without memory."""
        return ()

    @property
    def actor_parts(self) -> int:
        """Number of tensors of the state that acting needs; they come first. The others are the critic's."""
        return len(self.initial_state(1))

    def state_names(self) -> tuple[str, ...]:
        """Names of the tensors of a state, for metrics."""
        return tuple(f"part_{index}" for index in range(len(self.initial_state(1))))

    def extras(self) -> dict[str, ArraySpec]:
        """Specs of additional outputs that rollouts and minibatches include, by name, each for one row."""
        return {}

    def part_of(self, parameter: str) -> str:
        """The part of the network that a parameter belongs to, for metrics of its gradient."""
        return parameter.partition(".")[0]

    def obs_normalizers(self) -> dict[str, RunningNormalizer]:
        """Running statistics of observations by key, if there are any."""
        return {}

    def obs_units(self, obs: Obs) -> dict[str, Tensor]:
        """One unit of each continuous observation by key: its standard deviation if it is normalized, else 1.

        Perturbations of observations are measured in these units; other observations are not perturbed.
        """
        normalizers, floats = self.obs_normalizers(), (pair for pair in tree_items(obs) if pair[1].is_floating_point())
        return {key: normalizers[key].scale if key in normalizers else leaf.new_ones(()) for key, leaf in floats}

    def unread_obs(self) -> frozenset[str]:
        """Keys of a Dict observation that no network reads: rollouts have them, minibatches do not."""
        return frozenset()

    def absorb(self, obs: Obs, moments: ObsMoments | None = None) -> None:
        """Merge the valid observations `[B, ...]` of a rollout, or their moments if known, into running statistics."""
        if moments is None:
            self.absorb_obs(obs)
        else:
            self.absorb_moments(moments)

    def absorb_obs(self, obs: Obs) -> None:
        """Merge the valid observations `[B, ...]` of a rollout into running statistics, if there are any."""

    def absorb_moments(self, moments: ObsMoments) -> None:
        """The same with moments by key, which only collectors that know the exact policy class provide."""
