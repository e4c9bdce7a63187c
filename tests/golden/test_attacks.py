"""State-adversarial PPO on policies whose worst perturbation is known."""

from typing import Any

import torch

from surefoot.data.records import Obs, State
from surefoot.learning.attacks import Attack, Neighborhood
from surefoot.policies.distributions.gaussian import Gaussian
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy, PolicyOutput

from .cases import Case, float64, golden

ROWS = 5


class LinearPolicy(Policy):
    """mean = W s, with a fixed standard deviation."""

    def __init__(self, weight: Any, std: Any) -> None:
        super().__init__()
        self.weight, self.std = torch.nn.Parameter(float64(weight)), float64(std)

    def forward(self, obs: Obs, state: State, episode_start: torch.Tensor, action_mask=None) -> PolicyOutput:
        assert isinstance(obs, torch.Tensor)
        mean = obs @ self.weight.T
        return PolicyOutput(Gaussian(mean, self.std.expand(mean.shape[1])), mean, mean[:, 0], state)


def around(policy: Policy) -> Neighborhood:
    obs = torch.randn(ROWS, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Neighborhood(policy, (obs, (), torch.zeros(ROWS, dtype=torch.bool)))


def same(values: torch.Tensor) -> torch.Tensor:
    """The value that all rows have."""
    torch.testing.assert_close(values, values[:1].expand_as(values), rtol=0, atol=1e-12)
    return values[0]


@golden("sa_ppo_linear")
def test_the_worst_perturbation_of_a_linear_policy(case: Case):
    given, epsilon = case.given, case.given["eps_linf"]
    problem = around(LinearPolicy([given["w"]], given["sigma"]))
    for attack in (Attack("fgsm", epsilon), Attack("pgd", epsilon), Attack("pgd", epsilon, 3)):
        delta = problem.worst(problem.start(seed=1, count=0, epsilon=epsilon), attack)
        divergence = same(problem.divergence(delta))
        case.agrees(divergence, "max_KL")
        case.agrees(2 * divergence, "sa_ppo_repo_value_without_half")
        case.differs(divergence, "pgd_started_at_delta_0")
        case.agrees(same((delta @ float64(given["w"])).abs()), "max_abs_dmu")
        case.agrees(same(delta * delta[:, :1].sign()), "argmax_delta")  # both signs are as bad

    nothing = torch.zeros(ROWS, 2, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(problem.divergence(nothing).sum(), nothing)
    case.agrees(same(slope), "grad_at_zero_perturbation")
    start = float64([[0.01, 0.0]]).expand(ROWS, 2)
    one_step = problem.worst(start, Attack("pgd", epsilon, steps=1, step_size=1.0))
    case.agrees(same(problem.divergence(one_step)), "KL_at_one_step_sign_from_delta_0_01_0")


@golden("sa_ppo_multidim")
def test_two_actions(case: Case):
    given, epsilon = case.given, case.given["eps_linf"]
    problem = around(LinearPolicy(given["W"], given["sigma"]))
    worst = problem.worst(problem.start(2, 0, epsilon), Attack("pgd", epsilon))
    case.agrees(same(problem.divergence(worst)), "max_KL")
    case.agrees(2 * same(problem.divergence(worst)), "ibp_bound_sum_u2_over_sigma2")


@golden("sa_ppo_stale_stats")
def test_epsilon_is_in_units_of_normalized_observations(case: Case):
    class Normalized(LinearPolicy):
        def obs_normalizers(self) -> dict[str, RunningNormalizer]:
            return {"": normalizer}

    normalizer = RunningNormalizer((2,))
    normalizer.var.copy_(float64(case.given["obs_std"]).square())
    normalizer.refresh()
    problem = around(Normalized([[1.0, 1.0]], 1.0))
    corner = torch.full((ROWS, 2), case.given["eps"], dtype=torch.float64)
    case.agrees(same(problem.obs(corner) - problem.obs(0 * corner)), "raw_radius")
