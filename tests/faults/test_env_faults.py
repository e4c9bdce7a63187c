"""Environments that break their contract, in real rollouts: faults 13, 16, 17 and 19 to 24 of FAULTS.md."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from surefoot.data.records import Rollout
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import VecEnv
from surefoot.errors import EnvError, NonFiniteError
from surefoot.learning.scorer import Scorer
from surefoot.philox import Stream, derived_seed
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import EnvConfig, NormalizeConfig, PolicyConfig, PPOConfig
from tests.envs.tasks import (
    ENDLESS,
    CounterEnv,
    LooseTypesEnv,
    MaskMethodEnv,
    OldStyleEnv,
    RaisingEnv,
    ReusingEnv,
    SpoiledEnv,
    factories,
)
from tests.rollout.known_policies import KnownPolicy

SEED = 17
Makers = Sequence[Callable[[], gym.Env[Any, Any]]]


def named(row: int) -> str:
    """How messages name a row: its index, and the seed to reproduce it with."""
    return re.escape(f"env {row} (seed {derived_seed(SEED, row, Stream.ENV_SEED)})")


def healthy_but(row: int, **kwargs: Any) -> Makers:
    """Three endless counters, one of which is spoiled."""
    makers: list[Callable[[], gym.Env[Any, Any]]] = list(factories(3, lengths=[ENDLESS]))
    makers[row] = lambda: SpoiledEnv(index=row, **({"lengths": [ENDLESS]} | kwargs))
    return makers


def engines(makers: Makers) -> list[VecEnv]:
    vectors = [SyncVectorEnv(makers, autoreset_mode=mode) for mode in AutoresetMode]
    return [GymnasiumEnvs(makers, SEED), *(make_vec_env(vector, EnvConfig(), 0, SEED) for vector in vectors)]


ENGINES = ["local", *(mode.value for mode in AutoresetMode)]


def collect(env: VecEnv, num_steps: int = 8, rollouts: int = 1) -> list[Rollout]:
    policy = KnownPolicy(env.action_spec, choose=None)
    collector = StepwiseCollector(env, policy, num_steps, SEED)
    return [collector.collect(policy) for _ in range(rollouts)]


def spoiled(part: int, change: Callable[[Any], Any]) -> Callable[[tuple[Any, ...]], Any]:
    """Changes one of the five values that step returns."""
    return lambda result: tuple(change(value) if i == part else value for i, value in enumerate(result))


def with_element(dimension: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(obs: np.ndarray) -> np.ndarray:
        obs[dimension] = value
        return obs

    return change


# 13 and 16: an env raises


def test_what_a_constructor_raises_is_told_with_the_index():
    makers = [CounterEnv, lambda: RaisingEnv("constructor")]
    with pytest.raises(
        EnvError, match=r"env 1 could not be created: RuntimeError: the constructor is broken"
    ) as caught:
        GymnasiumEnvs(makers, SEED)
    assert isinstance(caught.value.__cause__, RuntimeError), "the original traceback is kept"


@pytest.mark.parametrize("where", ["reset", "step"])
def test_what_an_env_raises_is_told_with_index_and_seed(where):
    makers = [CounterEnv, lambda: RaisingEnv(where)]
    with pytest.raises(
        EnvError, match=rf"{named(1)} raised an exception in {where}: RuntimeError: the {where} is broken"
    ) as caught:
        collect(GymnasiumEnvs(makers, SEED))
    assert isinstance(caught.value.__cause__, RuntimeError)


# 17: NaN or infinity


@pytest.mark.parametrize("engine", range(4), ids=ENGINES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_observations_are_named_by_env_step_and_dimension(engine, value):
    env = engines(healthy_but(2, spoil=spoiled(0, with_element(3, value)), at=5))[engine]
    with pytest.raises(
        NonFiniteError, match=rf"^{named(2)} returned {value} in its observation, dimension 3 at step 5; \S.*"
    ):
        collect(env)


@pytest.mark.parametrize("engine", range(4), ids=ENGINES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_rewards(engine, value):
    env = engines(healthy_but(1, spoil=spoiled(1, lambda reward: value), at=2))[engine]
    with pytest.raises(NonFiniteError, match=rf"^{named(1)} returned {value} in its reward at step 2; \S.*"):
        collect(env)


@pytest.mark.parametrize("engine", range(4), ids=ENGINES)
def test_bad_final_observations_of_truncated_episodes(engine):
    spoil = spoiled(0, with_element(4, np.nan))
    env = engines(healthy_but(1, spoil=spoil, at=3, lengths=[4], endings=["truncated"]))[engine]
    # With NEXT_STEP the final observation is shown as an observation too.
    with pytest.raises(
        NonFiniteError, match=rf"^{named(1)} returned nan in its (final )?observation, dimension 4 at step 3"
    ):
        collect(env)


def test_the_final_observation_of_a_terminated_episode_is_never_used():
    spoil = spoiled(0, with_element(4, np.nan))
    (rollout,) = collect(GymnasiumEnvs(healthy_but(1, spoil=spoil, at=3, lengths=[4], endings=["terminated"]), SEED))
    assert rollout.obs.isfinite().all()
    assert rollout.final_value.eq(0).all()


def test_a_bad_first_observation_is_found_before_the_first_step():
    class BadStartEnv(CounterEnv):
        def reset(self, **kwargs: Any) -> Any:
            obs, info = super().reset(**kwargs)
            return obs * np.nan, info

    env = GymnasiumEnvs([CounterEnv, BadStartEnv], SEED)
    with pytest.raises(NonFiniteError, match=rf"{named(1)} returned nan in its observation, dimension 0 at step 0"):
        collect(env)


def test_steps_are_counted_over_rollouts():
    env = GymnasiumEnvs(healthy_but(0, spoil=spoiled(0, with_element(0, np.nan)), at=9), SEED)
    with pytest.raises(NonFiniteError, match="at step 9;"):
        collect(env, num_steps=4, rollouts=3)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_numbers_too_large_for_float32_are_infinite():
    makers = healthy_but(0, spoil=spoiled(0, with_element(1, 1e300)), at=1, form="double")
    env = GymnasiumEnvs(makers[:1], SEED)
    with pytest.raises(NonFiniteError, match=rf"{named(0)} returned inf in its observation, dimension 1 at step 1"):
        collect(env)


def test_statistics_are_not_poisoned():
    """The rollout with the NaN never arrives, so there is nothing for a normalizer or an episode to absorb."""
    env = GymnasiumEnvs(healthy_but(0, spoil=spoiled(1, lambda reward: np.nan), at=5), SEED)
    policy = KnownPolicy(env.action_spec)
    collector = StepwiseCollector(env, policy, 4, SEED)
    collector.collect(policy)
    before = collector.rows.episodes.state()
    with pytest.raises(NonFiniteError):
        collector.collect(policy)
    after = collector.rows.episodes.state()
    assert np.isfinite(after["reward"]).all()
    assert before["reward"].tolist() == after["reward"].tolist()


# 19: another shape or dtype, or outside the Box


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda obs: obs[:4], r"returned an observation of shape \(4,\); its space has shape \(5,\)"),
        (lambda obs: obs[None], r"returned an observation of shape \(1, 5\); its space has shape \(5,\)"),
        (lambda obs: 3.0, r"returned an observation of shape \(\); its space has shape \(5,\)"),
        (lambda obs: None, r"returned an observation of shape \(\); its space has shape \(5,\)"),
        (lambda obs: [[1, 2], [3]], r"returned an observation that cannot be converted to an array"),
        (lambda obs: obs.astype(complex), r"returned an observation of dtype complex128; its space has dtype float32"),
        (lambda obs: obs.astype(str), r"returned an observation of dtype <U\d+; its space has dtype float32"),
        (lambda obs: obs.astype(object), r"returned an observation of dtype object; its space has dtype float32"),
        (lambda obs: {"where": obs}, r"returned an observation of shape \(\); its space has shape \(5,\)"),
    ],
)
def test_observations_of_another_shape_or_dtype(change, message):
    env = GymnasiumEnvs(healthy_but(2, spoil=spoiled(0, change), at=3), SEED)
    with pytest.raises(EnvError, match=f"^{named(2)} {message}"):
        collect(env)


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        ("dict", lambda obs: {"where": obs["where"]}, "returned an observation without 'luck'"),
        ("dict", lambda obs: obs["where"], "returned an observation without 'luck'"),
        ("dict", lambda obs: obs | {"luck": np.zeros(2)}, r"returned an observation 'luck' of shape \(2,\)"),
        ("nested", lambda obs: obs | {"arm": {"joint": np.zeros(2)}}, "returned an observation without 'arm/grip'"),
        ("tuple", lambda obs: obs[:2], "returned an observation without '2/luck'"),
        ("discrete", lambda obs: 1000, "returned the observation 1000, which its space does not contain"),
        ("shifted discrete", lambda obs: -8, "returned the observation -8, which its space does not contain"),
        ("discrete", lambda obs: 2.0, "returned an observation of dtype float64; its space requires integers"),
        ("multi_discrete", lambda obs: [0, 0, 0], r"returned the observation \[0, 0, 0\], which its space"),
        ("image", lambda obs: obs / 255, "returned an observation of dtype float64; its space has dtype uint8"),
    ],
)
def test_observations_of_other_forms(form, change, message):
    policy_config = PolicyConfig(hidden=(8,))
    makers = [lambda: CounterEnv(0, form=form), lambda: SpoiledEnv(spoiled(0, change), at=1, index=1, form=form)]
    env = GymnasiumEnvs(makers, SEED)
    policy = ActorCritic(env.obs_spec, env.action_spec, policy_config, NormalizeConfig())
    with pytest.raises(EnvError, match=f"^{named(1)} {message}"):
        StepwiseCollector(env, policy, 8, SEED).collect(policy)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_another_shape_inside_a_vector_env_is_typed_too(mode):
    makers = healthy_but(1, spoil=spoiled(0, lambda obs: obs[:4]), at=3)
    env = make_vec_env(SyncVectorEnv(makers, autoreset_mode=mode), EnvConfig(), 0, SEED)
    with pytest.raises(EnvError, match="the vector env raised an exception in step: ValueError"):
        collect(env)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.uint8, bool])
def test_other_numbers_are_taken_as_they_are(dtype):
    (rollout,) = collect(GymnasiumEnvs(healthy_but(0, spoil=spoiled(0, lambda obs: obs.astype(dtype)), at=2), SEED))
    assert rollout.obs[3, 0, 2] == np.array(3).astype(dtype)


class LeavingEnv(CounterEnv):
    """Its steps are said to stay below 5."""

    def __init__(self, index: int = 0) -> None:
        super().__init__(index, lengths=[ENDLESS])
        high = np.array([np.inf, np.inf, 4.5, np.inf, np.inf])
        self.observation_space = spaces.Box(-np.inf, high.astype(np.float32))


def test_outside_the_box_is_counted_and_goes_on():
    rollouts = collect(GymnasiumEnvs(factories(2, LeavingEnv), SEED), num_steps=4, rollouts=3)
    # Steps 0 to 3, 4 to 7, 8 to 11, of two envs.
    assert [rollout.stats.obs_out_of_bounds for rollout in rollouts] == [0, 6, 8]
    assert rollouts[-1].obs[-1, 0, 2] == 11, "the number itself is left alone"


# 20: an env that reuses its observation array


def test_a_reused_array_gives_the_same_rollout_and_advantages():
    rollouts = [collect(GymnasiumEnvs(factories(3, kind), SEED), num_steps=12)[0] for kind in (CounterEnv, ReusingEnv)]
    for name in ("obs", "value", "final_value", "reward", "last_value"):
        assert torch.equal(getattr(rollouts[0], name), getattr(rollouts[1], name)), name
    assert rollouts[0].final_value.any(), "an episode must be truncated for this test to say anything"


# 21: old-style tuples, int flags, array rewards


@pytest.mark.parametrize("kind", [OldStyleEnv, LooseTypesEnv])
def test_unambiguous_answers_are_accepted(kind):
    endings = ["terminated", "truncated"]
    rollouts = [collect(GymnasiumEnvs(factories(2, k, endings=endings), SEED), 12)[0] for k in (CounterEnv, kind)]
    for name in ("obs", "reward", "terminated", "truncated", "final_value", "episode_start"):
        assert torch.equal(getattr(rollouts[0], name), getattr(rollouts[1], name)), name
    assert rollouts[0].truncated.any()
    assert rollouts[0].terminated.any()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda result: result[:3], r"step must return \(obs, reward, terminated, truncated, info\), got 3"),
        (lambda result: result[0], r"step must return \(obs, reward, terminated, truncated, info\), got ndarray"),
        (spoiled(2, lambda flag: 2), "terminated and truncated must be booleans, got 2"),
        (spoiled(3, lambda flag: None), "terminated and truncated must be booleans, got None"),
        (spoiled(1, lambda reward: np.zeros(2)), r"the reward must be one number, got array\(\[0\., 0\.\]\)"),
        (spoiled(1, lambda reward: None), "the reward must be one number, got None"),
        (spoiled(4, lambda info: None), "step must return its info as a dict, got None"),
    ],
)
def test_ambiguous_answers_are_refused(spoil, message):
    env = GymnasiumEnvs(healthy_but(1, spoil=spoil, at=2), SEED)
    with pytest.raises(EnvError, match=f"^{named(1)}: {message}"):
        collect(env)


@pytest.mark.parametrize(
    "answer", [lambda obs, info: obs, lambda obs, info: (obs, info, 1), lambda obs, info: (obs, None)]
)
def test_other_resets_are_refused(answer):
    class OtherResetEnv(CounterEnv):
        def reset(self, **kwargs: Any) -> Any:
            return answer(*super().reset(**kwargs))

    with pytest.raises(EnvError, match=rf"^{named(0)}: reset must return (\(obs, info\)|its info as a dict, got None)"):
        GymnasiumEnvs([OtherResetEnv], SEED)


# 22: no final observation at truncation


class ForgetfulVectorEnv(VectorWrapper):
    """Resets in the same step and forgets the final observations."""

    def step(self, actions: Any) -> Any:
        *rest, infos = super().step(actions)
        infos.pop("final_obs", None)
        return (*rest, infos)


def forgetful_vector() -> ForgetfulVectorEnv:
    makers = factories(2, lengths=[3], endings=["truncated"])
    return ForgetfulVectorEnv(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP))


def test_truncation_without_a_final_observation_is_refused():
    remedy = re.escape("set env.truncation_as_termination: true")
    with pytest.raises(EnvError, match=rf"^{named(0)} was truncated without infos\['final_obs'\].*{remedy}"):
        collect(make_vec_env(forgetful_vector(), EnvConfig(), 0, SEED))


def test_unless_truncation_counts_as_termination():
    config = EnvConfig(truncation_as_termination=True)
    (rollout,) = collect(make_vec_env(forgetful_vector(), config, 0, SEED))
    assert rollout.terminated[:, 0].tolist() == [False, False, True, False, False, True, False, False]
    assert not rollout.truncated.any()
    assert rollout.final_value.eq(0).all()


# 23: one-step episodes, and episodes that never end


def advantages(rollout: Rollout, gamma: float = 0.5) -> torch.Tensor:
    config = PPOConfig(gamma=gamma, gae_lambda=1.0, advantage_norm="none")
    return Scorer(config, None).score(rollout, ScalarCritic(1, PolicyConfig(), NormalizeConfig())).advantage


@pytest.mark.parametrize("engine", range(4), ids=ENGINES)
def test_one_step_episodes(engine):
    """V is the code plus a half: a terminated episode's advantage is r - V = -0.5, a truncated one adds V(final)."""
    env = engines(factories(2, lengths=[1], endings=["terminated", "truncated"]))[engine]
    (rollout,) = collect(env)
    seen = advantages(rollout)[:, 1][rollout.valid[:, 1]]
    codes = [10_000 + 100 * episode for episode in range(len(seen))]
    expected = [-0.5 + 0.5 * (code + 1.5) * (episode % 2) for episode, code in enumerate(codes)]
    assert seen.tolist() == expected
    assert [episode.length for episode in rollout.stats.finished] == [1] * rollout.num_steps
    assert all(np.isfinite(episode.total_reward) for episode in rollout.stats.recent)


@pytest.mark.parametrize("engine", range(4), ids=ENGINES)
def test_episodes_that_never_end(engine):
    env = engines(factories(2, lengths=[ENDLESS]))[engine]
    *_, rollout = collect(env, num_steps=3, rollouts=2)
    # Steps 3, 4 and 5 with rewards of the same number, then V = 6.5 halved three times, minus V of the step itself.
    assert advantages(rollout)[:, 0].tolist() == [
        3 + 4 / 2 + 5 / 4 + 6.5 / 8 - 3.5,
        4 + 5 / 2 + 6.5 / 4 - 4.5,
        5 + 6.5 / 2 - 5.5,
    ]
    assert rollout.stats.recent == ()
    assert rollout.num_steps == 6


# 24: every action masked


@pytest.mark.parametrize("actions", ["discrete", "multi_discrete"])
@pytest.mark.parametrize("way", ["info", "method"])
def test_a_mask_that_forbids_everything(actions, way):
    class DeadEndEnv(MaskMethodEnv if way == "method" else CounterEnv):
        def current_mask(self) -> np.ndarray:
            mask = super().current_mask()
            return mask & (self.place.step < 2)

    kwargs = {"lengths": [ENDLESS], "actions": actions, "masks_in_info": way == "info"}
    healthy = MaskMethodEnv if way == "method" else CounterEnv
    env = GymnasiumEnvs([lambda: healthy(0, **kwargs), lambda: DeadEndEnv(1, **kwargs)], SEED)
    policy = ActorCritic(env.obs_spec, env.action_spec, PolicyConfig(hidden=(8,)), NormalizeConfig())
    with pytest.raises(
        EnvError, match=rf"^{named(1)} returned an action mask that forbids every action at step 1; \S.*"
    ):
        StepwiseCollector(env, policy, 8, SEED).collect(policy)


def test_a_mask_of_another_length():
    class ShortMaskEnv(MaskMethodEnv):
        def action_masks(self) -> np.ndarray:
            return np.ones(3, dtype=bool)

    env = GymnasiumEnvs([MaskMethodEnv, ShortMaskEnv], SEED)
    with pytest.raises(
        EnvError, match=rf"^{named(1)} returned an action mask with 3 entries; its action space requires 4"
    ):
        collect(env)


def test_a_mask_that_goes_missing():
    forget = spoiled(4, lambda info: {})
    env = GymnasiumEnvs([lambda: SpoiledEnv(forget, at=1, masks_in_info=True)], SEED)
    with pytest.raises(EnvError, match=rf"^{named(0)} returned no 'action_mask' in its info; return one in every"):
        collect(env)
