"""Policy-only checkpoints, what names a model, and new runs that start from one."""

import pytest
import torch

from surefoot import PPO
from surefoot.cli.main import main
from surefoot.errors import CheckpointError, CheckpointMismatchError, ConfigError
from surefoot.models import find_model
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.training.states import assert_same

TINY = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "epochs": 2, "hidden": 4, "eval_episodes": 0}
SETTINGS = TINY | {"normalize": {"obs": True, "reward": True}}
FLAGS = (
    *("--rollout.num_envs", "2", "--rollout.num_steps", "16", "--ppo.batch_size", "16", "--ppo.epochs", "2"),
    *("--policy.hidden", "4", "--train.eval_episodes", "0", "--normalize.obs", "--normalize.reward"),
    *("--log.console", "off", "--log.tensorboard", "false"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of 64 steps, with a policy-only file of its final agent beside it."""
    folder = tmp_path_factory.mktemp("start") / "run"
    agent = PPO("CartPole-v1", seed=3, **SETTINGS)
    agent.learn(64, run_dir=folder)
    agent.save(folder.parent / "policy.safetensors", policy_only=True)
    agent.close()
    return folder


@pytest.fixture(scope="module")
def policy(run):
    return run.parent / "policy.safetensors"


def weights(agent):
    return {name: weight.clone() for name, weight in agent.policy.state_dict().items()}


# What names a model.


def test_a_run_folder_is_a_model(run):
    newest = RunDirectory(run).saved()[0]
    assert find_model(run).file == newest
    by_folder, by_file = PPO.load(run), PPO.load(str(newest))
    assert_same(weights(by_folder), weights(by_file))
    assert by_folder._started().progress.step == 64
    by_folder.close()


def test_the_best_policy_of_a_run_comes_first(run, tmp_path):
    (tmp_path / "best.safetensors").write_bytes(RunDirectory(run).saved()[0].read_bytes())
    assert find_model(tmp_path).file == tmp_path / "best.safetensors"


def test_folders_without_a_policy_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="neither a run directory nor a model file"):
        PPO.load(tmp_path)
    (tmp_path / "config.yaml").write_text("env: {id: CartPole-v1}\n")
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        PPO.load(tmp_path)


def test_the_config_of_a_run_folder_is_trusted(run, tmp_path):
    (tmp_path / "config.yaml").write_text("hooks: {mine: {kind: 'my_hooks:Mine'}}\n")
    (tmp_path / "best.safetensors").touch()
    model = find_model(tmp_path)
    assert "my_hooks:Mine" in model.trusted(False)
    assert {"other:Name", "my_hooks:Mine"} <= set(model.trusted({"other:Name"}))
    assert model.trusted(True) is True
    assert find_model(run.parent / "policy.safetensors").trusted(False) is False


# Policy-only checkpoints.


def test_a_policy_only_file_acts_alike_and_has_no_trainer(run, policy):
    state = read_checkpoint(policy)
    assert set(state) == {"config", "obs_spec", "action_spec", "policy", "masked", "reward_scaler"}
    assert len(state["reward_scaler"]["carried"]) == 0, "sums of episodes that are left behind"
    whole, alone = PPO.load(run), PPO.load(policy)
    assert whole.evaluate(4).rewards == alone.evaluate(4).rewards


def test_learning_from_a_policy_only_file_is_new_training(run, policy, tmp_path):
    """Adam, the counters and the schedules are new; weights and statistics continue."""
    whole, alone = PPO.load(run), PPO.load(policy)
    old, new = whole._started(), alone._started()
    assert (old.progress.step, new.progress.step) == (64, 0)
    assert_same(weights(whole), weights(alone))
    before, after = (trainer.scorer.state()["reward_scaler"] for trainer in (old, new))
    assert (after["var"], after["count"]) == (before["var"], before["count"])
    assert torch.equal(after["carried"], torch.zeros(2))
    alone.learn(32)
    alone.save(tmp_path / "whole.safetensors")
    assert PPO.load(tmp_path / "whole.safetensors")._started().progress.step == 32
    for agent in (whole, alone):
        agent.close()


def test_a_policy_only_file_is_copied_and_saved_again(policy, tmp_path):
    agent = PPO.load(policy)
    agent.save(tmp_path / "same.safetensors")
    assert_same(read_checkpoint(tmp_path / "same.safetensors"), read_checkpoint(policy))


def test_wrong_statistics_are_named(policy, tmp_path):
    state = read_checkpoint(policy)
    state["reward_scaler"]["var"] = torch.tensor(-1.0, dtype=torch.float64)
    write_checkpoint(tmp_path / "wrong.safetensors", state)
    agent = PPO.load(tmp_path / "wrong.safetensors")
    with pytest.raises(CheckpointError, match=r"reward_scaler\.var must be 0 or more"):
        agent.learn(32)
    agent.close()


# New runs from a model.


@pytest.mark.parametrize("kind", ["run", "file"])
def test_train_from_a_model(kind, run, policy, tmp_path, capsys):
    model, folder = str(run if kind == "run" else policy), tmp_path / "new"
    assert main(["train", "CartPole-v1", "--from", model, "--run-dir", str(folder), "--steps", "32", *FLAGS]) == 0
    assert f"from      {model}" in capsys.readouterr().out
    agent = PPO.load(folder)
    assert agent._started().progress.step == 32, "the count starts at 0"
    assert agent.config.train.start_from == model
    agent.close()
    assert main(["resume", str(folder), "--steps", "64", "--train.start_from", "elsewhere"]) == 2
    assert "train.start_from: cannot change on resume" in capsys.readouterr().err
    assert main(["resume", str(folder), "--steps", "64"]) == 0


def test_an_agent_starts_from_a_model(policy):
    agent = PPO("CartPole-v1", start_from=str(policy), seed=8, **SETTINGS)
    assert_same(weights(agent), weights(PPO.load(policy)))
    trainer = agent._started()
    assert trainer.scorer.state()["reward_scaler"]["count"] == read_checkpoint(policy)["reward_scaler"]["count"]
    assert trainer.progress.step == 0
    agent.learn(32)
    agent.close()


def test_a_file_of_an_agent_that_started_from_a_model_has_its_own_config(policy, tmp_path):
    agent = PPO("CartPole-v1", start_from=str(policy), seed=8, **SETTINGS)
    agent.save(tmp_path / "own.safetensors")
    agent.close()
    assert PPO.load(tmp_path / "own.safetensors").config.train.seed == 8


def test_a_run_that_was_killed_before_its_first_checkpoint_still_starts_from_the_model(run, tmp_path):
    folder = tmp_path / "killed"
    common = ["train", "CartPole-v1", "--from", str(run), "--steps", "32", *FLAGS, "--run-dir"]
    assert main([*common, str(folder)]) == 0
    (kept,) = RunDirectory(folder).saved()
    first = read_checkpoint(kept)["policy"]
    for path in (kept, folder / "metrics.jsonl"):
        path.unlink()
    assert main(["resume", str(folder)]) == 0
    assert_same(read_checkpoint(RunDirectory(folder).saved()[0])["policy"], first)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"hidden": 8}, r"policy\.hidden: .* was trained with \(4,\), this run has \(8,\)"),
        ({"normalize.obs": False}, r"normalize\.obs: .* was trained with True, this run has False"),
    ],
)
def test_other_policies_are_refused(policy, settings, problem):
    with pytest.raises(ConfigError, match=problem):
        PPO("CartPole-v1", start_from=str(policy), **SETTINGS | settings)


def test_only_the_policy_of_a_model_matters(policy, tmp_path):
    """Hooks of its run are not imported; a part of the policy must be named by the new run, too."""
    state, changed = read_checkpoint(policy), tmp_path / "changed.safetensors"
    state["config"]["hooks"] = {"mine": {"kind": "nowhere_to_be_found:Mine"}}
    write_checkpoint(changed, state)
    PPO("CartPole-v1", start_from=str(changed), **SETTINGS).learn(32)
    state["config"]["policy"]["critic"] = {"kind": "nowhere_to_be_found:Mine"}
    write_checkpoint(changed, state)
    with pytest.raises(CheckpointError, match=r"import 'nowhere_to_be_found:Mine'; name it in this run"):
        PPO("CartPole-v1", start_from=str(changed), **SETTINGS).learn(32)


def test_encoders_with_the_same_layers_are_the_same(policy):
    """Without an image, the settings of convolutions do not matter: older models have other defaults."""
    conv = {"kind": "auto", "kernels": [4, 3], "strides": [2, 2]}
    agent = PPO("CartPole-v1", start_from=str(policy), encoder=conv, **SETTINGS)
    assert_same(weights(agent), weights(PPO.load(policy)))
    with pytest.raises(ConfigError, match=r"policy\.encoder: .* was trained with"):
        PPO("CartPole-v1", start_from=str(policy), encoder="mlp", **SETTINGS)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "CartPoleNoVel-v1"])
def test_runs_start_from_the_zoo(name):
    agent = PPO(name, start_from=f"zoo:{name}")
    assert_same(weights(agent), weights(PPO.load(f"zoo:{name}")))


def test_other_spaces_are_refused(policy, tmp_path, capsys):
    with pytest.raises(CheckpointMismatchError, match=r"trained on CartPole-v1, whose observation or action space"):
        PPO("Acrobot-v1", start_from=str(policy), **SETTINGS)
    folder = tmp_path / "run"
    assert main(["train", "Acrobot-v1", "--from", str(policy), "--run-dir", str(folder), *FLAGS]) == 2
    assert "choose a model with the same spaces" in capsys.readouterr().err
    assert not folder.exists()


def test_from_needs_a_target(policy, capsys):
    assert main(["train", "--from", str(policy)]) == 2
    assert "also name what to train on" in capsys.readouterr().err


def test_a_policy_of_the_zoo_has_no_run_to_resume(capsys):
    assert main(["resume", "zoo:Walker2d-v5/fast"]) == 2
    assert "surefoot train Walker2d-v5/fast --from zoo:Walker2d-v5/fast" in capsys.readouterr().err
