"""Chooses the collector for envs and a policy."""

from functools import singledispatch

from surefoot.data.records import Chunks
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.engines.ray import RayEngine
from surefoot.envs.protocol import VecEnv
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector
from surefoot.rollout.native import native_collector
from surefoot.rollout.ray import RayCollector
from surefoot.rollout.stepwise import StepwiseCollector


@singledispatch
def collector_of(env: VecEnv, policy: Policy, num_steps: int, seed: int, chunks: Chunks | None = None) -> Collector:
    """The collector of an engine; an engine outside the package brings its own with `collector_of.register`."""
    return StepwiseCollector(env, policy, num_steps, seed, chunks)


collector_of.register(NativeEngine, native_collector)
collector_of.register(RayEngine, RayCollector)
