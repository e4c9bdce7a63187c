"""Policies of all kinds with weights that matter, and the core's copies of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_items
from surefoot.native import core
from surefoot.philox import Stream, uniforms
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.native_plan import NativePlan, native_tensors, plan_policy
from surefoot.settings.config import NormalizeConfig, PolicyConfig

SEED, STEP = 2**40 + 17, 5
NARROW = ArraySpec("box", (3,), "float32", low=(-1.0, -2.0, 0.0), high=(1.0, 0.5, 3.0))
ACTIONS = {
    "gaussian": NARROW,
    "tanh_gaussian": NARROW,
    "beta": NARROW,
    "categorical": ArraySpec("discrete", (), "int64", sizes=(3,), start=(1,)),
    "multi_discrete": ArraySpec("multi_discrete", (3,), "int64", sizes=(2, 5, 3), start=(0, 0, 0)),
    "bernoulli": ArraySpec("multi_binary", (5,), "int64"),
}


def box(*shape: int) -> ArraySpec:
    """An unbounded observation."""
    return ArraySpec("box", shape, "float32")


def build(
    obs: ObsSpec, action: ArraySpec, normalize: NormalizeConfig | None = None, seed: int = 0, **settings: object
) -> ActorCritic:
    """A policy whose heads speak up, with statistics of something if it normalizes."""
    torch.manual_seed(seed)
    policy = ActorCritic(obs, action, PolicyConfig(**settings), normalize or NormalizeConfig())
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if name.endswith("bias") or name.startswith(("head.", "critic.head")):
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    policy.absorb_obs(observations(policy, 500, scale=2.0))
    policy.critic.absorb(torch.randn(300) * 12 + 40)
    return policy


def observations(policy: ActorCritic, rows: int, scale: float = 1.0, seed: int = 1) -> Any:
    """Random observations as torch takes them."""
    generator = torch.Generator().manual_seed(seed)
    spec = policy.preprocess.spec
    leaves = {key: torch.randn(rows, *part.shape, generator=generator) * scale for key, part in tree_items(spec)}
    return leaves if isinstance(spec, dict) else leaves[""]


def leaves_of(obs: Any) -> list[NDArray[np.float32]]:
    """Observations as the core takes them."""
    return [leaf.flatten(1).numpy() if leaf.dim() > 1 else leaf[:, None].numpy() for _, leaf in tree_items(obs)]


def native(policy: ActorCritic, instructions: str = "") -> Any:
    """The core's copy."""
    plan = plan_policy(policy)
    assert isinstance(plan, NativePlan), plan
    copy = core().Policy(plan.plain, instructions)
    copy.sync(native_tensors(policy))
    return copy


def torch_noise(policy: ActorCritic, rows: int) -> torch.Tensor:
    """What the learner samples these rows from."""
    head = policy.head
    drawn = uniforms(SEED, [STEP], np.arange(rows), head.noise_size, Stream.ACTION)[0]
    return head.noise(torch.from_numpy(drawn))


def assert_close(ours: Any, theirs: Any, tolerance: float = 1e-6, size: Any = 1.0) -> None:
    """Within `tolerance` of the number, or of the size of what it is the sum of."""
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    assert ours.shape == theirs.shape
    worst = np.max(np.abs(ours - theirs) / np.maximum(size, np.abs(theirs)), initial=0.0)
    assert worst <= tolerance, f"{worst:.2e}"


@torch.no_grad()
def assert_same(
    policy: ActorCritic,
    rows: int,
    mask: torch.Tensor | None = None,
    copy: Any = None,
    scale: float = 1.0,
    terms: float = 1.0,
) -> None:
    """The core acts as torch does: noise to the bit, choices equal, all else within rounding.

    Sums over layers are added in another order, and a small std amplifies what that does to the mean. `terms` is the
    size of what cancels in the sum of a value or a log-probability: PyTorch rounds it differently on every processor.
    """
    copy = native(policy) if copy is None else copy
    obs = observations(policy, rows, scale)
    allowed = None if mask is None else mask.numpy()
    action, log_prob, value = copy.act(leaves_of(obs), allowed, seed=SEED, step=STEP)
    noise, size = torch_noise(policy, rows), max(1.0, scale)
    np.testing.assert_array_equal(copy.noise(rows, seed=SEED, step=STEP), noise.numpy())
    output = policy(obs, (), torch.zeros(rows, dtype=torch.bool), mask)
    expected = output.distribution.sample(noise)
    ours = torch.from_numpy(action).view(expected.shape)
    if copy.is_discrete:
        np.testing.assert_array_equal(action, expected.view(action.shape).numpy())
    else:
        assert_close(ours, expected, 4e-6, size)
        assert_close(copy.to_env(action), policy.head.to_env(ours).reshape(action.shape))
    size = max(size, terms)
    assert_close(log_prob, output.distribution.log_prob(ours), 5e-6, size)
    assert_close(value, output.value, 2e-6, size=50.0 if getattr(policy.critic, "returns", None) else size)
    np.testing.assert_array_equal(copy.value(leaves_of(obs)), value)


def masks(policy: ActorCritic, rows: int, sizes: Sequence[int]) -> torch.Tensor:
    """Random masks that leave a choice of each element."""
    generator = torch.Generator().manual_seed(2)
    mask = torch.rand(rows, sum(sizes), generator=generator) < 0.6
    ends = np.cumsum(sizes)
    for start, end in zip(ends - sizes, ends, strict=True):
        kept = torch.randint(int(start), int(end), (rows,), generator=generator)
        mask[torch.arange(rows), kept] = True
    return mask
