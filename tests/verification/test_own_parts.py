"""Envs and policies that the core does not know are held to the protocol; each mistake is found under its name."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from surefoot.compose import Specs, build_env, build_policy
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.protocol import Slot
from surefoot.errors import EnvError
from surefoot.learning.terms import surrogate
from surefoot.policies.actor_critic import ActorCritic
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.verification import Report, protocol, verify
from tests.envs.teams import TeamEnv
from tests.verification import own_envs
from tests.verification.sizes import less

ALL = {"protocol", "final observations", "ratio one", "seeding", "observation aliasing", "resume"}


@pytest.fixture(autouse=True)
def _less_patience(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    less(monkeypatch)
    monkeypatch.setattr(protocol, "PATIENCE_S", 0.5)
    if "with_processes" not in request.fixturenames:  # starting them takes longer than all the rest
        monkeypatch.setattr(protocol, "_check_engines", lambda *arguments: None)


@pytest.fixture
def with_processes() -> None:
    """For tests that compare with the engine `processes`."""


def verdicts(report: Report) -> dict[str, set[str]]:
    return {
        part.name: {same.verdict for same in report.components if same.name == part.name} for part in report.components
    }


def note(report: Report, name: str) -> str:
    return " ".join(part.note for part in report.components if part.name == name)


@pytest.mark.parametrize("env", [own_envs.WalkEnv, TeamEnv])
@pytest.mark.usefixtures("with_processes")
def test_engines_agree(env: Any) -> None:
    report = verify(env=env)
    assert report.ok, report.components
    assert verdicts(report)["engines agree"] == {"ok"}


@pytest.mark.usefixtures("with_processes")
def test_engines_that_do_not_agree() -> None:
    report = verify(env=own_envs.HomesickEnv)
    assert report.differing == ("engines agree",), report.components


@pytest.mark.parametrize("env", [own_envs.WalkEnv, own_envs.ReusingEnv, TeamEnv])
def test_sound_env_keeps_every_promise(env: Any) -> None:
    report = verify(env=env)
    assert report.path == "stepwise"
    assert "not an env object or a factory" in report.reason
    assert report.ok, report.components
    assert report.target == env.__name__
    assert {name for name, found in verdicts(report).items() if found == {"ok"}} >= ALL


def test_env_that_cannot_save_is_told_the_weaker_promise() -> None:
    report = verify(env=own_envs.UnsavableEnv)
    assert report.ok
    assert verdicts(report)["resume"] == {"not applicable"}
    assert "keeps its weights" in note(report, "resume")


@pytest.mark.usefixtures("with_processes")
def test_existing_env_is_used_again_and_left_open() -> None:
    env = own_envs.WalkEnv()
    report = verify(env=env)
    assert report.ok, report.components
    assert verdicts(report)["engines agree"] == verdicts(report)["resume"] == {"not compared"}
    env.step(1)


def test_vector_env() -> None:
    report = verify(env=own_envs.vector_env(loses_final_obs=False))
    assert report.ok, report.components
    assert verdicts(report)["final observations"] == {"ok"}


def test_native_env_with_a_policy_of_ones_own() -> None:
    class Own(ActorCritic):
        pass

    config = build_config({"env.id": "CartPole-v1"})
    env = build_env(config)
    specs = Specs(env.obs_spec, env.action_spec)
    policy = Own(specs.obs, specs.action, config.policy, config.normalize)
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    report = verify(config, policy=policy)
    assert report.ok, report.components
    assert "Own" in report.reason
    assert {name for name, found in verdicts(report).items() if found == {"ok"}} >= ALL | {"engine contract"}
    assert all(torch.equal(before[name], value) for name, value in policy.state_dict().items())


@pytest.mark.parametrize(
    ("env", "name", "told"),
    [
        (own_envs.UnseededEnv, "seeding", "differ"),
        (own_envs.SelfResettingEnv, "final observations", "equal the first observation of the next episode"),
        (own_envs.DoubleEnv, "protocol", "float64; its space has float32"),
        (own_envs.CrookedEnv, "protocol", "shape"),
        (own_envs.ForgetfulEnv, "resume", "differ"),
        (own_envs.CrowdedTeam, "observation aliasing", "are given the same array"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_mistake_is_found(env: Any, name: str, told: str) -> None:
    report = verify(env=env)
    assert report.differing == (name,), report.components
    assert told in note(report, name)


def test_learners_are_compared_if_the_native_one_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    report = verify(env=own_envs.WalkEnv)
    assert verdicts(report)["gradients"] == verdicts(report)["weights"] == {"ok"}
    assert note(report, "learner").startswith("native")
    readable_only = verify(build_config({"train.learner": "torch"}), env=own_envs.WalkEnv)
    assert verdicts(readable_only)["learner"] == {"not compared"}
    assert verdicts(readable_only)["minibatches"] == {"ok"}, "PyTorch's learner is compared with numpy"

    monkeypatch.setattr(
        surrogate, "clipped_surrogate", lambda log_ratio, advantage, clip: -(advantage * log_ratio).mean()
    )
    assert {"losses", "gradients", "weights"} <= set(verify(env=own_envs.WalkEnv).differing)


def test_vector_env_without_final_observations() -> None:
    report = verify(env=own_envs.vector_env(loses_final_obs=True))
    assert report.differing == ("protocol",)
    assert "without infos['final_obs']" in note(report, "protocol")


def test_rollout_that_looks_too_late_at_a_reused_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """The readable path reads an observation before the env writes the next one into it; this one does not."""
    step_env = GymnasiumEnvs._step_env

    def step(self: GymnasiumEnvs, actions: NDArray[Any], slot: Slot) -> None:
        for row in range(self.num_rows):
            step = step_env(self, row, actions[row])
            obs = step.obs
            if step.terminated or step.truncated:
                obs, _ = self._reset_env(row, None)
                self._writer.write(step.obs, self.final_obs, row, self.describe)
            self._write(row, obs, step.info, slot)
            slot.reward[row], slot.terminated[row], slot.truncated[row] = step.reward, step.terminated, step.truncated
        slot.valid[:] = True

    monkeypatch.setattr(GymnasiumEnvs, "step", step)
    assert "observation aliasing" in verify(env=own_envs.ReusingEnv).differing
    assert "observation aliasing" not in verify(env=own_envs.WalkEnv).differing


def test_seed_that_nothing_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.rollout.rows.uniforms", lambda seed, *rest: _uniforms(0, *rest))
    fixed = build_policy(Config(), Specs(*_specs(own_envs.DeafEnv)))
    monkeypatch.setattr("surefoot.verification.subject.perturbed", lambda policy, seed: policy)
    report = verify(env=own_envs.DeafEnv, policy=fixed)
    assert report.differing == ("seeding",)
    assert "does not change with the seed" in note(report, "seeding")


def _uniforms(seed: int, *rest: Any) -> NDArray[np.float32]:
    from surefoot.philox import uniforms

    return uniforms(seed, *rest)


def _specs(env: Any) -> tuple[Any, Any]:
    made = build_env(Config(), env)
    return made.obs_spec, made.action_spec


def test_policy_that_sees_other_numbers_when_it_learns() -> None:
    class Centered(nn.Module):
        """Depends on who else is in the batch, as batch normalization does."""

        def forward(self, obs: torch.Tensor) -> torch.Tensor:
            return obs - obs.mean(0)

    assert verify(env=own_envs.WalkEnv, encoder=Centered()).differing == ("ratio one",)


def test_env_that_cannot_be_made_is_an_error() -> None:
    def broken() -> Any:
        raise EnvError("no such thing")

    with pytest.raises(EnvError, match="no such thing"):
        verify(env=broken)
