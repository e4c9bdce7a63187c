"""The zoo: every preset has a policy or a reason, the policies reach their scores, and they can be trained further."""

import json

import pytest
import torch

from surefoot import PPO
from surefoot.cli.main import main
from surefoot.errors import ZooError
from surefoot.models import find_model
from surefoot.presets import configured, preset_names
from surefoot.saved_run import differing
from surefoot.training.checkpoint import read_checkpoint
from surefoot.zoo import folder, rounded, zoo_entries, zoo_entry, zoo_missing

DEFINING = ("env", "policy", "ppo", "optimizer", "normalize", "rollout.num_envs", "rollout.num_steps", "train.steps")
"""Settings that make a policy what it is."""


def test_every_preset_has_a_policy_or_a_reason():
    entries, missing = zoo_entries(), zoo_missing()
    assert set(entries) | set(missing) == set(preset_names()), "run: make zoo"
    assert not set(entries) & set(missing)
    assert all(missing.values())
    files = {str(path.relative_to(folder())) for path in folder().rglob("*.safetensors")}
    assert files == {f"{name}.safetensors" for name in entries}


@pytest.mark.parametrize("name", zoo_entries())
def test_a_policy_is_what_its_entry_says(name):
    """It belongs to the preset as it is now, and has nothing but what acting and fine-tuning need."""
    entry = zoo_entry(name)
    agent, wanted = PPO.load(f"zoo:{name}"), configured(name).config
    assert not list(differing(agent.config, wanted, DEFINING)), "the preset has changed; run: make zoo"
    assert agent.config.schedules == wanted.schedules
    assert (agent.config.env.id, agent.config.train.seed) == (entry.env, entry.seed)
    assert not agent._envs._untrusted, "evaluating it needs no --trust"
    assert set(read_checkpoint(entry.file)) == {
        "config",
        "obs_spec",
        "action_spec",
        "policy",
        "masked",
        "reward_scaler",
    }
    assert entry.seeds[entry.seed] == max(entry.seeds.values()), "the best seed is shipped"
    assert entry.interval[0] <= entry.mean_reward <= entry.interval[1]
    assert entry.train == f"surefoot train {name} --seed {entry.seed}"


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "TMaze-v0", "RepeatPrevious-v0"])
def test_a_policy_reaches_its_score(name):
    """From the same seeds; on another machine the last bits may differ, so that episodes end a little differently."""
    entry = zoo_entry(name)
    evaluation = PPO.load(f"zoo:{name}").evaluate(entry.episodes, seed=entry.evaluation_seed)
    assert evaluation.mean_reward == pytest.approx(entry.mean_reward, rel=0.02)
    assert len(evaluation.rewards) == entry.episodes == 100


def test_a_policy_is_trained_further():
    """The optimizer and the progress are new, the statistics of the rewards are not."""
    agent = PPO.load("zoo:CartPoleNoVel-v1")
    before = {name: weight.clone() for name, weight in agent.policy.state_dict().items()}
    scaler = read_checkpoint(find_model("zoo:CartPoleNoVel-v1").file)["reward_scaler"]
    trainer = agent._started()
    assert trainer.progress.step == 0
    assert trainer.scorer.state()["reward_scaler"]["var"] == scaler["var"] > 1
    assert all(torch.equal(weight, before[name]) for name, weight in agent.policy.state_dict().items())
    agent.learn(256)
    assert trainer.progress.step == 256
    assert any(not torch.equal(weight, before[name]) for name, weight in agent.policy.state_dict().items())
    agent.close()


def test_unknown_names_are_answered():
    with pytest.raises(ZooError, match=r"no policy 'CartPole-v2'; did you mean 'CartPole-v1'\? \('surefoot zoo' lists"):
        PPO.load("zoo:CartPole-v2")
    name, reason = "muscle-512", zoo_missing()["muscle-512"]
    with pytest.raises(ZooError, match=f"no policy for {name} yet .{reason}.; train it: surefoot train {name}"):
        find_model(f"zoo:{name}")


def test_commands_take_a_name(capsys):
    assert main(["evaluate", "zoo:CartPole-v1", "--episodes", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["model"] == str(zoo_entry("CartPole-v1").file)
    assert result["rewards"] == list(PPO.load("zoo:CartPole-v1").evaluate(2).rewards)
    for command in (["evaluate"], ["export", "--onnx", "policy.onnx"]):
        assert main([*command, "zoo:CartPole-v1/slow"]) == 2
        assert "no policy 'CartPole-v1/slow'; did you mean 'CartPole-v1'?" in capsys.readouterr().err


def test_the_list_and_one_policy(capsys):
    assert main(["zoo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, entry in zoo_entries().items():
        (line,) = (line for line in lines if line.split()[:1] == [f"zoo:{name}"])
        assert rounded(entry.mean_reward) in line
        assert f"{entry.steps:,}" in line
    for name, reason in zoo_missing().items():
        assert any(line.startswith(f"zoo:{name} ") and line.endswith(f"missing: {reason}") for line in lines)
    assert main(["zoo", "zoo:CartPole-v1"]) == 0
    shown = capsys.readouterr().out
    assert zoo_entry("CartPole-v1").train in shown
    assert "surefoot evaluate zoo:CartPole-v1 --episodes 100" in shown
    assert main(["zoo", "CartPole"]) == 2
    assert "did you mean 'CartPole-v1'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "text"),
    [(12345.6, "12,346"), (-161.26, "-161"), (93.04, "93.0"), (-9.876, "-9.88"), (0.0123, "0.012"), (0.0, "0.00")],
)
def test_scores_are_rounded(value, text):
    assert rounded(value) == text


def test_an_agent_of_the_zoo_says_what_it_is():
    """Its file has no progress."""
    assert "ActorCritic 64-64 with 9,155 parameters, trained for 0 steps" in repr(PPO.load("zoo:CartPole-v1"))
