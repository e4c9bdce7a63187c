"""Chooses the collector for envs and a policy in this process."""

from surefoot.core.records import Chunks
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.protocol import VecEnv
from surefoot.policies.native_plan import plan_policy
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector
from surefoot.rollout.native import NativeCollector
from surefoot.rollout.stepwise import StepwiseCollector


def collector_of(
    env: VecEnv,
    policy: Policy,
    num_steps: int,
    seed: int,
    chunks: Chunks | None = None,
    native: type[NativeCollector] = NativeCollector,
) -> Collector:
    """The native collector if both the envs and the policy have native implementations, else the stepwise one."""
    plan = plan_policy(policy)
    if isinstance(env, NativeEngine) and not isinstance(plan, str):
        return native(env, policy, plan, num_steps, seed, chunks)
    return StepwiseCollector(env, policy, num_steps, seed, chunks)
