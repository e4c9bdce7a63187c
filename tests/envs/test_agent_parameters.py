"""Parameters that belong to the agent: saved with the policy, and set wherever envs are made for it."""

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from surefoot import PPO, Hook
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import slot_for, step_all
from surefoot.errors import CheckpointError, CheckpointMismatchError, EnvError
from surefoot.population.member import take_over
from surefoot.settings.config import EnvConfig, RolloutConfig
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.stateful import AGENT_PARAMETERS
from tests.compiled import compiled
from tests.envs.agent_envs import Weighted
from tests.envs.grows import Grows
from tests.training.states import assert_same

EXAMPLES = Path(__file__).parents[2] / "docs/extend/examples"
WEIGHTED = "tests.envs.agent_envs:Weighted-v0"
TINY = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "epochs": 1, "hidden": 8, "preset": "none", "eval_episodes": 2}
TeachReflex = runpy.run_path(str(EXAMPLES / "teach_reflex.py"))["TeachReflex"]
pytestmark = pytest.mark.xdist_group("agent_parameters")


@pytest.fixture(scope="module")
def reflex(tmp_path_factory) -> str:
    """The library, with its twin beside it."""
    folder = tmp_path_factory.mktemp("reflex")
    for name in ("reflex.cpp", "reflex.py"):
        shutil.copy(EXAMPLES / name, folder)
    return str(compiled(folder / "reflex.cpp"))


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """An agent that was trained for three iterations, and its checkpoint."""
    folder = tmp_path_factory.mktemp("grown")
    agent = PPO(WEIGHTED, **TINY).learn(48, hooks=[Grows()], progress=False, run_dir=folder / "run")
    agent.save(folder / "whole.safetensors")
    agent.save(folder / "policy.safetensors", policy_only=True)
    return agent, folder


def test_every_env_for_the_agent_has_them(grown, tmp_path):
    agent, folder = grown
    for where in ("run", "whole.safetensors", "policy.safetensors"):
        loaded = PPO.load(folder / where)
        assert loaded.evaluate(2).rewards == agent.evaluate(2).rewards == (9.0, 9.0), where
        assert loaded.record(tmp_path / "film.gif").returns == (9.0,)
        assert loaded.evaluate_over({"wind": [0.0, 1.0]}, 1).figure().tolist() == [9.0, 9.0]
    assert PPO(WEIGHTED, start_from=str(folder / "policy.safetensors"), **TINY).evaluate(1).rewards == (9.0,)
    assert "weights" not in read_checkpoint(folder / "whole.safetensors")["collector"]["envs"]["parameters"]


def test_evaluations_during_training_have_them(grown):
    lines = (grown[1] / "run" / "evaluations.jsonl").read_text().splitlines()
    assert '"rewards": [9.0, 9.0]' in lines[-1]


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_a_resumed_run_continues_bit_for_bit(grown, engine):
    whole = PPO(WEIGHTED, engine=engine, **TINY).learn(96, hooks=[Grows()], progress=False)
    half = PPO.load(grown[1] / "whole.safetensors").learn(48, hooks=[Grows()], progress=False)
    assert half.evaluate(1).rewards == whole.evaluate(1).rewards == (18.0,)
    assert_same(half.policy.state_dict(), whole.policy.state_dict(), "policy")
    whole.close()


def test_starting_from_a_model_takes_them(grown):
    agent = PPO(WEIGHTED, start_from=str(grown[1] / "policy.safetensors"), **TINY)
    assert agent.learn(16, hooks=[Grows()], progress=False).evaluate(1).rewards == (12.0,)


def test_they_roll_back_with_the_policy(tmp_path):
    class Poison(Hook):
        def after_rollout(self, rollout) -> None:
            if self.run.progress.iteration == 2:
                self.run.envs.set_parameters({"weights": [100.0, 0.0, 0.0, 0.0]})
                with torch.no_grad():
                    next(self.run.policy.parameters()).fill_(float("nan"))

    agent = PPO(WEIGHTED, **TINY).learn(64, hooks=[Poison(), Grows()], progress=False)
    # The good state is that of the end of iteration 1, before the hooks of that iteration; two more iterations follow.
    assert agent.evaluate(1).rewards == (3.0 * 3,)


def test_a_takeover_takes_them(grown):
    donor = read_checkpoint(grown[1] / "whole.safetensors")
    trainer = PPO(WEIGHTED, **TINY)._started()
    take_over(trainer, donor, None, "reset")
    assert trainer.stateful()[AGENT_PARAMETERS].state()["weights"].tolist() == [3.0, 0.0, 0.0, 0.0]
    without = {name: part for name, part in donor.items() if name != AGENT_PARAMETERS}
    take_over(trainer, without, None, "reset")  # of an older version


def test_envs_of_a_process_share_one_copy():
    agent = PPO(WEIGHTED, **TINY)
    env = agent._envs.training
    env.set_parameters({"weights": np.full(4, 0.1)})
    one, other = (single.unwrapped.weights for single in env._shards[0]._envs)
    assert one is other
    assert one.dtype == np.float32
    assert not one.flags.writeable
    assert env.parameter_values["weights"] is not None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "takes one array of shape"),
        ([1.0, 2.0, 3.0, np.inf], "finite float32"),
        ([1e300, 0, 0, 0], "finite float32"),
        ([np.nan] * 4, "must not be NaN"),
        ([-1.0, 0, 0, 0], "the first weight is negative"),
    ],
)
def test_wrong_values_are_refused_and_nothing_is_set(values, message):
    env = PPO(WEIGHTED, **TINY)._envs.training
    env.set_parameters({"weights": np.ones(4)})
    with pytest.raises(EnvError, match=message):
        env.set_parameters({"weights": values})
    assert env.parameter_values["weights"].tolist() == [1.0] * 4


def test_wrong_declarations_are_refused():
    for names, parameters in (
        ("weights", {"weights": np.zeros(4)}),
        (["other"], {"weights": [0.0]}),
        (["a"], {"a": 1.0}),
    ):
        kind = type("Wrong", (Weighted,), {"parameters": parameters, "agent_parameters": names})
        with pytest.raises(EnvError, match="agent"):
            PPO(kind, **TINY)


def test_checkpoints_that_do_not_fit_are_refused(grown, tmp_path):
    state = read_checkpoint(grown[1] / "whole.safetensors")
    for value, error, message in (
        (torch.zeros(3), CheckpointMismatchError, "agent_parameters"),
        (torch.tensor([1.0, 2.0, 3.0, float("nan")]), CheckpointError, "weights"),
        ("text", CheckpointError, "weights"),
    ):
        write_checkpoint(tmp_path / "bad.safetensors", state | {AGENT_PARAMETERS: {"weights": value}})
        with pytest.raises(error, match=message):
            PPO.load(tmp_path / "bad.safetensors").learn(16, progress=False)


def test_the_network_is_the_same_in_cpp_and_in_python(reflex):
    values = np.random.default_rng(1).normal(size=33)
    for threads in (1, 2, 3):
        rollout = RolloutConfig(engine="native", workers=threads)
        envs = [
            make_vec_env(reflex, EnvConfig(), 5, 3, rollout),
            make_vec_env(reflex, EnvConfig(), 5, 3, RolloutConfig(engine="local")),
        ]
        assert isinstance(envs[0], NativeEngine)
        slots = [slot_for(env) for env in envs]
        for env, slot in zip(envs, slots, strict=True):
            env.set_parameters({"reflex": values})
            env.reset(slot)
        start = slots[0].obs.copy()
        for _ in range(40):
            actions = np.random.default_rng(2).uniform(-1, 1, (5, 1)).astype(np.float32)
            for env, slot in zip(envs, slots, strict=True):
                step_all(env, actions, slot)
            assert np.array_equal(slots[0].obs, slots[1].obs)
            assert np.array_equal(slots[0].reward, slots[1].reward)
        assert (slots[0].obs[:, 0] != start[:, 0]).all()
        saved = envs[0].save_state()
        assert "parameters" not in saved
        with pytest.raises(EnvError, match="finite"):
            envs[0].set_parameters({"reflex": np.full(33, np.inf)})


@pytest.mark.parametrize(("engine", "workers"), [("local", 0), ("native", 1), ("native", 3)])
def test_a_network_is_trained_beside_the_policy(reflex, tmp_path, engine, workers):
    settings = {**TINY, "engine": engine, "rollout.workers": workers}
    whole = PPO(reflex, **settings).learn(64, hooks=[TeachReflex()], progress=False)
    half = PPO(reflex, **settings).learn(32, hooks=[TeachReflex()], progress=False)
    half.save(tmp_path / "half.safetensors")
    half = PPO.load(tmp_path / "half.safetensors", trust=True)
    at_rest = PPO(reflex, **settings).evaluate(3).rewards
    assert half.evaluate(3).rewards != at_rest
    half.learn(32, hooks=[TeachReflex()], progress=False)
    assert_same(half.policy.state_dict(), whole.policy.state_dict(), "policy")
    assert half.evaluate(3).rewards == whole.evaluate(3).rewards
    values = [agent._agent_values()["reflex"] for agent in (half, whole)]
    assert values[0].tobytes() == values[1].tobytes()


class Breaks(Hook):
    """Its network and the policy are lost in the third iteration."""

    def after_rollout(self, rollout):
        if self.run.progress.iteration == 2:
            self.run.envs.set_parameters({"reflex": np.full(33, 9.0)})
            with torch.no_grad():
                next(self.run.policy.parameters()).fill_(float("nan"))


@pytest.mark.parametrize("hooks", [[TeachReflex], [TeachReflex, Breaks]])
def test_native_envs_roll_back_with_any_number_of_threads(reflex, hooks):
    found = []
    for workers in (1, 2, 3):
        settings = {**TINY, "engine": "native", "rollout.workers": workers}
        agent = PPO(reflex, **settings).learn(64, hooks=[hook() for hook in hooks], progress=False)
        found.append([agent._agent_values()["reflex"].tobytes(), *agent.policy.state_dict().values()])
        assert np.abs(agent._agent_values()["reflex"]).max() < 8
        for one, other in zip(found[-1][1:], found[0][1:], strict=True):
            assert torch.equal(one, other)
            assert one.isfinite().all()
        assert found[-1][0] == found[0][0]
