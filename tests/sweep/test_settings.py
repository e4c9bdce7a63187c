"""Wrong settings of a sweep are typed errors that name the key."""

import re
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.settings.strict_yaml import parse_yaml
from surefoot.sweep.presets import sweep_presets
from surefoot.sweep.settings import SweepConfig, read_settings
from tests.sweep.sweeps import LR, RUN, raw


def ranged(key: str, **values: Any) -> dict[str, Any]:
    return {"tunables": {key: values}}


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"sampler": "tp"}, "sweep.sampler: input should be 'tpe', 'random' or 'grid'"),
        ({"trails": 3}, "sweep.trails: unknown key; did you mean 'trials'?"),
        ({"tunables": {}}, "sweep.tunables: "),
        (ranged("optimizer.lrr", low=0, high=1), "sweep.tunables.optimizer.lrr: unknown key; did you mean"),
        (ranged("ppo.gamma", low=0.9, high=1.1), "sweep.tunables.ppo.gamma: input should be less than or equal to 1"),
        (ranged("ppo.epochs", low=1, high=10), "fractional part (got 4.33); set integer: true"),
        (ranged("ppo.batch_size", choices=[32, 50]), "sweep.tunables.ppo.batch_size: 50 does not divide the rollout"),
        (ranged("train.seed", choices=[1, 2]), "sweep.tunables.train.seed: the sweep sets train.seed by sweep.seeds"),
        ({"sampler": "grid"}, "sweep.tunables.optimizer.lr: the sampler grid needs choices"),
        (ranged("optimizer.lr", low=1), "sweep.tunables.optimizer.lr: give low and high, or choices"),
        ({"objective": {"time_to": {}}}, "sweep.objective.time_to.score: field required"),
        ({"address": "10.0.0.1:6379"}, "sweep.address: only the backend ray has an address"),
    ],
)
def test_wrong_settings_are_named(sweep: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_settings(raw(sweep), {})
    assert message in str(raised.value)
    assert len(raised.value.problems) == 1


@pytest.mark.parametrize("sweep", [{"pruner": "median"}, {"objective": {"time_to": {"score": 3}}}])
def test_what_needs_evaluations_says_so(sweep: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"train\.eval_every: sweep\..* needs evaluations during a run"):
        read_settings(raw(sweep, train={"eval_every": 0}), {})


def test_a_config_without_the_section_is_refused() -> None:
    with pytest.raises(ConfigError, match="no section 'sweep:'"):
        read_settings(RUN, {})


def test_values_that_fit_each_other_only_together_are_allowed() -> None:
    both = {"rollout.num_steps": {"choices": [16, 32]}, "ppo.batch_size": {"choices": [64, 128]}}
    assert read_settings(raw({"tunables": both}), {})[1].num_trials == 20


def test_the_command_line_changes_both_kinds_of_settings() -> None:
    changes = {"train.steps": "512", "sweep.trials": "7", "sweep.tunables.optimizer.lr.high": "0.5"}
    config, sweep = read_settings(raw({"objective": "cvar"}), changes)
    assert (config.train.steps, sweep.trials, sweep.objective.metric) == (512, 7, "cvar")
    assert (sweep.tunables["optimizer.lr"].low, sweep.tunables["optimizer.lr"].high) == (1e-4, 0.5)
    assert LR["optimizer.lr"]["high"] == 1e-2


def test_the_page_about_sweeps_has_every_setting_and_a_valid_example() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `sweep\.(\w+)` \|", page, re.MULTILINE))
    assert named - {"db", "yaml"} == set(SweepConfig.model_fields)
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert read_settings(parse_yaml(example), {})[1].trials == 20


def test_the_preset_of_the_env_is_below_the_file() -> None:
    own = {name: section for name, section in raw({}).items() if name != "preset"}
    assert read_settings(own, {})[0].schedules["lr"].kind == "linear"
    assert read_settings(own, {"preset": "none"})[0].schedules == {}


@pytest.mark.parametrize("env_id", ["CartPoleNoVel-v1", "PendulumNoVel-v1"])
@pytest.mark.parametrize("name", sweep_presets.names())
def test_every_preset_is_a_valid_sweep(name: str, env_id: str) -> None:
    config, sweep = read_settings(sweep_presets.read(name), {"env.id": env_id})
    assert config.env.id == env_id
    assert sweep.tunables
    assert sweep_presets.describe(name)


def test_preset_of_recurrent_policies() -> None:
    config, sweep = read_settings(sweep_presets.load("recurrent"), {})
    assert config.policy.memory.kind == "lstm"
    assert set(sweep.tunables) == {"optimizer.lr", "ppo.clip", "ppo.entropy_coef", "rollout.sequence_length"}


def test_file_comes_before_a_preset_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigError, match=r"'recurent' is neither a file nor a preset \(recurrent\); did you mean 'recurrent'"
    ):
        sweep_presets.read("recurent")
    with pytest.raises(ConfigError, match=r"cannot read the config file recurrent\.yml: No such file"):
        sweep_presets.read("recurrent.yml")
    Path("recurrent").write_text("env: {id: CartPole-v1}")
    assert sweep_presets.read("recurrent") == {"env": {"id": "CartPole-v1"}}
