"""Names of other libraries lead to ours: in files, as options and as keywords."""

import gymnasium
import pytest

from surefoot import PPO
from surefoot.cli.main import main
from surefoot.errors import ConfigError
from surefoot.settings.config import Config, key_types, known_keys
from surefoot.settings.layers import build_config
from surefoot.settings.parts import settings_class
from surefoot.settings.synonyms import KNOWN, elsewhere_called

PARTS = {
    "policy.memory": ("surefoot.policies.memory", "lstm"),
    "policy.distribution": ("surefoot.policies.distributions", "gaussian"),
}


@pytest.mark.parametrize("setting", sorted(set(KNOWN.values())))
def test_what_a_name_stands_for_is_a_setting(setting: str) -> None:
    part, _, key = setting.rpartition(".")
    assert setting in known_keys() or setting in key_types() or key in settings_class(*PARTS[part]).model_fields


def test_none_of_our_own_names_is_taken() -> None:
    own = {key.rpartition(".")[2] for key in known_keys()} | set(Config.model_fields)
    assert not own & set(KNOWN)


@pytest.mark.parametrize(
    ("key", "ours"),
    [
        ("ppo.clip_range", "'ppo.clip'"),
        ("train.learning_rate", "'optimizer.lr'"),
        ("n_steps", "'rollout.num_steps'"),
        ("policy.distribution.log_std_init", "'policy.distribution.log_std'"),
        ("ppo.num_mini_batches", "set ppo.batch_size to"),
        ("ppo.bptt_length", "'rollout.sequence_length'"),
        ("log.log_freq", "'log.log_every'"),
        ("train.checkpoint_interval", "'train.checkpoint_every'"),
        ("env.env_file", r"env\.id my_module:MyEnv-v0"),
        ("train.updates", "set train.steps"),
        ("log.wandb_run_name", "'log.wandb_name'"),
        ("ppo.ent_coef_min", r"schedules\.entropy_coef\.floor"),
        ("ppo.e_clip", "'ppo.clip'"),
        ("ppo.learning_epochs", "'ppo.epochs'"),
        ("log.wandb_entity", "WANDB_ENTITY"),
    ],
)
def test_unknown_keys(key: str, ours: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}: unknown .*{ours}"):
        build_config({key: 1})


@pytest.mark.parametrize(
    ("option", "ours"),
    [
        ("--learning_rate", "Surefoot calls it --optimizer.lr"),
        ("--n-envs=8", "Surefoot calls it --rollout.num_envs"),
        ("--gamma", "use --ppo.gamma"),
        ("--sed", "did you mean 'seed'?"),
    ],
)
def test_unknown_options(option: str, ours: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "CartPole-v1", option, "1"]) == 2
    assert capsys.readouterr().err == f"error: {option.partition('=')[0]}: unknown option; {ours}\n"


def test_unknown_keywords() -> None:
    with pytest.raises(ConfigError, match=r"'ppo\.entropy_coef'"):
        PPO("CartPole-v1", ent_coef=0.1)
    with pytest.raises(ConfigError, match=r"learn takes steps, run_dir, hooks and progress; pass it first: learn\(1"):
        PPO("CartPole-v1").learn(total_timesteps=1000)


@pytest.mark.parametrize("arguments", [("MlpPolicy", "CartPole-v1"), ("MlpPolicy",), ("CartPole-v1", "MlpPolicy")])
def test_a_policy_as_the_first_argument(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="pass the env first and everything else by name"):
        PPO(*arguments)
    with pytest.raises(ConfigError, match="pass the env first"):
        PPO("MlpPolicy", gymnasium.make("CartPole-v1"))


def test_other_names_lead_nowhere() -> None:
    assert elsewhere_called("no_such_name") == ""
