"""`--section.key value` beside a command's own options."""

import pytest

from surefoot.cli.arguments import split_settings
from surefoot.errors import ConfigError
from surefoot.settings.layers import build_config


def config_of(*arguments: str):
    rest, settings = split_settings(list(arguments))
    assert rest == []
    return build_config(settings)


def test_a_value_follows_or_is_joined():
    assert config_of("--ppo.gamma", "0.9").ppo.gamma == 0.9
    assert config_of("--ppo.gamma=0.9").ppo.gamma == 0.9
    assert config_of("--env.id=module:Name=3-v0").env.id == "module:Name=3-v0"


def test_a_lone_flag_is_true():
    assert config_of("--normalize.obs").normalize.obs is True
    assert config_of("--normalize.obs", "--normalize.reward").normalize.reward is True
    assert config_of("--normalize.obs", "--ppo.gamma", "0.5").normalize.obs is True


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("false", False), ("no", False), ("1", True), ("on", True)]
)
def test_booleans(text, value):
    assert config_of("--normalize.obs", text).normalize.obs is value


def test_words_that_yaml_takes_for_booleans():
    assert config_of("--log.console", "off").log.console == "off"
    assert config_of("--log.console=off").log.console == "off"


def test_negative_numbers_are_values():
    assert config_of("--policy.distribution.log_std", "-1.5").policy.distribution.log_std == -1.5
    assert config_of("--policy.log_std", "-1.5").policy.distribution.log_std == -1.5


def test_numbers_as_people_write_them():
    config = config_of("--optimizer.lr", "3e-4", "--train.steps", "100_000", "--optimizer.betas", "0.8,0.9")
    assert (config.optimizer.lr, config.train.steps, config.optimizer.betas) == (3e-4, 100_000, (0.8, 0.9))


@pytest.mark.parametrize("text", ["32,16", "[32, 16]", "(32, 16)", "32, 16"])
def test_lists(text):
    assert config_of("--policy.hidden", text).policy.hidden == (32, 16)


def test_several_values_after_an_option():
    config = config_of("--policy.hidden", "32", "16", "8", "--optimizer.betas", "0.8", "0.9", "--ppo.gamma", "0.5")
    assert (config.policy.hidden, config.optimizer.betas, config.ppo.gamma) == ((32, 16, 8), (0.8, 0.9), 0.5)
    assert config_of("--policy.critic_hidden", "32", "16").policy.critic_hidden == (32, 16)
    assert config_of("--policy.critic_hidden", "none").policy.critic_hidden is None
    of_part = config_of("--policy.encoder", "conv", "--policy.encoder.channels", "8", "16")
    assert of_part.policy.encoder.channels == (8, 16)
    assert split_settings(["--policy.hidden", "32", "16", "CartPole-v1"])[0] == ["CartPole-v1"]
    assert split_settings(["--policy.hidden=32", "16"])[0] == ["16"]
    assert split_settings(["--ppo.gamma", "0.9", "3"]) == (["3"], {"ppo.gamma": "0.9"}), "it has one value"


def test_one_number_is_a_list_of_one():
    assert config_of("--policy.hidden", "32").policy.hidden == (32,)


def test_mappings_and_nothing():
    config = config_of(
        "--env.kwargs", "{render_mode: null, size: 3}", "--ppo.target_kl", "null", "--policy.encoder=conv"
    )
    assert config.env.kwargs == {"render_mode": None, "size": 3}
    assert config.ppo.target_kl is None
    assert config.policy.encoder.kind == "conv"


def test_dashes_are_underscores():
    assert config_of("--ppo.gae-lambda", "0.5").ppo.gae_lambda == 0.5


def test_the_last_of_two_wins():
    assert config_of("--ppo.gamma", "0.5", "--ppo.gamma=0.6").ppo.gamma == 0.6


def test_what_is_no_setting_stays_in_order():
    arguments = ["CartPole-v1", "--ppo.gamma", "0.9", "--steps", "5", "--run-dir", "a.b/c", "--config=x.y.yaml", "-h"]
    rest, settings = split_settings(arguments)
    assert rest == ["CartPole-v1", "--steps", "5", "--run-dir", "a.b/c", "--config=x.y.yaml", "-h"]
    assert settings == {"ppo.gamma": "0.9"}


def test_yaml_that_cannot_be_read_is_named():
    with pytest.raises(ConfigError, match=r"env\.kwargs: cannot parse the value '\{a: '"):
        split_settings(["--env.kwargs", "{a: "])


def test_nothing_is_a_word_where_a_setting_cannot_be_nothing():
    assert config_of("--ppo.advantage_norm", "none").ppo.advantage_norm == "none"
    assert config_of("--policy.memory", "none").policy.memory.kind == "none"
    assert config_of("--policy.memory.kind=none").policy.memory.kind == "none"
    assert config_of("--ppo.max-grad-norm", "none").ppo.max_grad_norm is None


def test_settings_within_a_setting_whatever_comes_first():
    kind, size = ("--policy.memory", "gru"), ("--policy.memory.hidden-size", "256")
    for arguments in (kind + size, size + kind, ("--policy.memory.kind", "gru", *size)):
        memory = config_of(*arguments).policy.memory
        assert (memory.kind, memory.hidden_size, memory.layers) == ("gru", 256, 1)
