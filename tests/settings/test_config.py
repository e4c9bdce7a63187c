import math
import time
from collections import Counter
from functools import reduce
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from pydantic import ValidationError

from surefoot.errors import ConfigError
from surefoot.settings.config import Config, OptimizerConfig, known_keys, nearest_divisor
from surefoot.settings.layers import build_config, by_name, merge, read_yaml, to_yaml


def problems_of(*layers) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        build_config(*layers)
    return caught.value.problems


def test_everything_wrong_is_reported_at_once():
    problems = problems_of(
        {
            "ppo": {"gamma": 1.5, "gama": 0.9, "clip": -1, "batch_size": 100, "micro_batch_size": 300},
            "optimizer": {"lr": math.nan, "algorithm": "sgd", "betas": [0.9]},
            "policy": {"hidden": "64,many", "activation": "tahn", "log_std_groups": {"3-9": 0.5}},
            "train": {"steps": 0, "seed": -1},
            "polcy": {"std": "fixed"},
            "normalize": {"obs": "perhaps"},
        }
    )
    text = "\n".join(problems)
    for part in (
        "ppo.gamma: input should be less than or equal to 1 (got 1.5)",
        "ppo.gama: unknown key; did you mean 'ppo.gamma'?",
        "ppo.clip: input should be greater than 0 (got -1)",
        "optimizer.lr: input should be a finite number (got nan)",
        "optimizer.algorithm: input should be 'adam' or 'adamw' (got 'sgd')",
        "optimizer.betas.1: field required",
        "policy.hidden.1: input should be a valid integer",
        "policy.activation: input should be 'tanh', 'relu'",
        "policy.distribution.log_std_groups: '3-9' is not a slice; use 'start:stop' such as '0:3'",
        "train.steps: input should be greater than or equal to 1 (got 0)",
        "train.seed: input should be greater than or equal to 0 (got -1)",
        "polcy: unknown section; did you mean 'policy'?",
        "normalize.obs: input should be a valid boolean, true or false (got 'perhaps')",
        "ppo.batch_size: 100 does not divide the rollout of 2048 steps",
        "ppo.micro_batch_size: 300 is larger than ppo.batch_size 100",
    ):
        assert part in text
    assert len(problems) == 15


def test_many_problems_are_counted_and_one_is_said_plainly():
    many = ConfigError(["a: wrong", "b: wrong"])
    assert str(many) == "2 invalid settings:\n  - a: wrong\n  - b: wrong"
    assert str(ConfigError(["a: wrong"])) == "a: wrong"


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [
        ("ppo.gama", "ppo.gamma"),
        ("ppo.lr", "optimizer.lr"),  # the right key in the wrong section
        ("gamma", "ppo.gamma"),
        ("rolout", "rollout"),
        ("rollout.num_env", "rollout.num_envs"),
        ("optimzer.lr", "optimizer"),
        ("train.sed", "train.seed"),
    ],
)
def test_unknown_names_get_the_nearest_known_one(key, suggestion):
    (problem,) = problems_of({key: 1} if "." in key else {key: {}})
    assert problem.endswith(f"; did you mean '{suggestion}'?")


def test_an_unknown_key_of_an_encoder_gets_the_nearest_of_the_encoder():
    (problem,) = problems_of({"policy": {"encoder": {"kernel": [3]}}})
    assert problem == "policy.encoder.kernel: unknown key; did you mean 'kernels'?"
    (problem,) = problems_of({"policy": {"encoders": {"camera": {"stride": 3}}}})
    assert problem == "policy.encoders.camera.stride: unknown key; did you mean 'strides'?"


def test_nothing_is_suggested_for_a_name_unlike_any():
    assert problems_of({"ppo": {"xyzzy": 1}}) == ("ppo.xyzzy: unknown key",)
    assert problems_of({"xyzzy": {}}) == ("xyzzy: unknown section",)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "nan", ".nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "key", ["ppo.gamma", "ppo.clip", "optimizer.lr", "policy.distribution.log_std", "ppo.max_grad_norm"]
)
def test_nan_and_infinity_are_refused(key, bad):
    (problem,) = problems_of({key: bad})
    assert problem.startswith(f"{key}: ")


@pytest.mark.parametrize(
    ("key", "bad"),
    [("ppo.clip", 1e300), ("optimizer.lr", 1e39), ("env.max_episode_steps", 10**400), ("rollout.workers", 2**63)],
)
def test_numbers_that_arithmetic_cannot_hold_are_refused(key, bad):
    with pytest.raises(ConfigError, match=f"{key}: input should be less than or equal to"):
        build_config({key: bad})


@pytest.mark.parametrize("bad", [torch.zeros(2), np.zeros(2), object(), {1, 2}, b"x", {"deep": [1, [1j]]}])
def test_arguments_of_envs_that_no_file_can_hold_are_refused(bad):
    with pytest.raises(ConfigError, match=r"env\.kwargs: must consist of numbers, strings, lists and dicts, not"):
        build_config({"env.kwargs": {"x": bad}})
    assert build_config({"env.kwargs": {"x": (1, {"y": None})}}).env.kwargs == {"x": (1, {"y": None})}


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["a"] = value["b"] = value
    return value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (endless(), "contains itself"),
        (reduce(lambda inner, _: [inner], range(50_000), []), "more than 32 levels"),
        (reduce(lambda inner, _: [inner] * 10, range(30), [1]), "more than 100,000 values"),
        ([0] * 100_001, "more than 100,000 values"),
        (10**5000, "has a whole number of 16610 bits; the maximum is 8192"),
        ({1: 2}, "must have strings as keys, not 1"),
        ("\ud800", "has a text that is not Unicode"),
    ],
    ids=["endless", "deep", "bomb", "long", "huge", "key", "surrogate"],
)
@pytest.mark.parametrize("key", ["kwargs", "eval_kwargs"])
def test_arguments_that_no_file_holds(key: str, value: Any, problem: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=f"^env.{key}: .*{problem}"):
        build_config({f"env.{key}": {"x": value}})
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("bad", [3, "ppo", [1, 2]])
def test_a_section_must_be_a_mapping(bad):
    (problem,) = problems_of({"ppo": bad})
    assert problem.startswith("ppo: ")


def test_names_that_are_no_text_are_reported_too():
    # In YAML, `on:` and `1:` are a boolean and a number.
    assert problems_of({True: {}}) == ("True: unknown section",)
    (problem,) = problems_of({"ppo": {1: 2}})
    assert problem.startswith("ppo.1: ")


def test_a_batch_that_does_not_divide_names_the_nearest_that_does():
    (problem,) = problems_of({"rollout": {"num_envs": 6, "num_steps": 50}, "ppo": {"batch_size": 64}})
    assert problem.startswith("ppo.batch_size: 64 does not divide the rollout of 300 steps")
    assert problem.endswith("the nearest divisor is 60")


def test_a_bad_key_is_not_also_blamed_for_not_dividing():
    (problem,) = problems_of({"rollout": {"num_envs": 0}, "ppo": {"batch_size": 100}})
    assert problem.startswith("rollout.num_envs: ")
    (problem,) = problems_of({"rollout": 7, "ppo": {"batch_size": 100}})
    assert problem.startswith("rollout: ")


@pytest.mark.parametrize(
    ("number", "wanted", "nearest"),
    [(2048, 100, 128), (300, 64, 60), (7, 64, 7), (7, 2, 1), (13, 5, 13), (36, 6, 6), (1, 64, 1), (1000, 300, 250)],
)
def test_nearest_divisor(number, wanted, nearest):
    assert nearest_divisor(number, wanted) == nearest


def test_nearest_divisor_is_found_at_once_however_large_the_rollout():
    began = time.perf_counter()
    assert nearest_divisor(10**9 * 10**9, 48) == 50
    assert nearest_divisor(10**400, 7) == 8
    assert time.perf_counter() - began < 10


def test_micro_batches_fit_into_a_batch():
    assert "is larger than" in problems_of({"ppo": {"batch_size": 64, "micro_batch_size": 65}})[0]
    assert build_config({"ppo": {"batch_size": 64, "micro_batch_size": 48}}).ppo.micro_batch_size == 48


def test_bare_names_are_unique_across_sections():
    # by_name relies on it.
    names = Counter(key.partition(".")[2] for key in known_keys())
    assert [name for name, count in names.items() if count > 1] == []
    assert not set(names) & set(Config.model_fields), "a bare name is never a section's"


def test_every_key_says_what_it_means():
    assert all(known_keys().values())


def test_settings_by_name():
    raw = by_name({"gamma": 0.9, "optimizer.lr": 1e-3, "ppo": {"clip": 0.1}, "num_envs": 4, "std": "fixed"})
    assert raw == {
        "ppo": {"gamma": 0.9, "clip": 0.1},
        "optimizer": {"lr": 1e-3},
        "rollout": {"num_envs": 4},
        "policy": {"distribution": {"std": "fixed"}},
    }


def test_an_unknown_bare_name_is_reported_with_the_nearest():
    (problem,) = problems_of(by_name({"gama": 0.9}))
    assert problem == "gama: unknown section; did you mean 'gamma'?"


@pytest.mark.parametrize("written", ["64,32", "[64, 32]", "(64,32)", " 64 , 32 ", [64, 32], (64, 32), ["64", "32"]])
def test_lists_can_be_written_with_commas(written):
    assert build_config({"policy.hidden": written}).policy.hidden == (64, 32)


def test_lone_numbers_and_names_are_lists_of_one():
    config = build_config({"policy": {"hidden": 64, "critic_obs": "state"}})
    assert config.policy.hidden == (64,)
    assert config.policy.critic_obs == ("state",)
    assert build_config({"policy.hidden": ""}).policy.hidden == ()


def test_decay_rates_can_be_written_with_commas_and_are_below_one():
    config = build_config({"optimizer.betas": "0.8,0.95"})
    assert config.optimizer.betas == (0.8, 0.95)
    assert "less than 1" in problems_of({"optimizer.betas": [0.9, 1.0]})[0]
    # What passes here is what torch takes.
    torch.optim.Adam([torch.zeros(1, requires_grad=True)], betas=OptimizerConfig(betas=(0.0, 0.999999)).betas)


def test_an_encoder_by_its_kind_alone():
    config = build_config({"policy": {"encoder": "conv", "encoders": {"camera": "mlp"}}})
    assert config.policy.encoder.kind == "conv"
    assert config.policy.encoders["camera"].kind == "mlp"


def test_conv_layers_agree_in_number():
    (problem,) = problems_of({"policy": {"encoder": {"channels": [8, 8, 8], "kernels": [3, 3]}}})
    assert problem.startswith("policy.encoder: channels, kernels and strides must have the same number of entries")


def test_a_config_is_frozen():
    config = Config()
    with pytest.raises(ValidationError):
        config.ppo.gamma = 0.5


def test_derived_numbers_are_properties():
    assert build_config({"rollout": {"num_envs": 4, "num_steps": 32}}).rollout.size == 128


def test_the_defaults_are_sound():
    assert Config().cross_problems() == []
    assert build_config() == Config() == build_config({}, {})


def test_infinite_arguments_of_an_env_survive_the_yaml():
    # Hopper's healthy_z_range is (0.7, inf).
    config = build_config({"env": {"kwargs": {"healthy_z_range": [0.7, math.inf]}}})
    assert build_config(yaml.safe_load(to_yaml(config))) == config


def test_numbers_as_yaml_reads_them():
    # YAML 1.1 takes 1e-4 for text, and 1.0e-4 for a number.
    raw = yaml.safe_load("optimizer: {lr: 1e-4, adam_eps: 1.0e-8}\ntrain: {steps: 1_000_000}")
    config = build_config(raw)
    assert (config.optimizer.lr, config.optimizer.adam_eps, config.train.steps) == (1e-4, 1e-8, 1_000_000)


def test_layers_replace_whole_keys_and_keep_the_others():
    merged = merge({"ppo": {"gamma": 0.9, "clip": 0.1}}, {"ppo.gamma": 0.8}, {"ppo": {"epochs": 3}})
    assert merged == {"ppo": {"gamma": 0.8, "clip": 0.1, "epochs": 3}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ppo: [", "is not valid YAML"),
        (b"\xff\xfe\x00", "is not valid YAML"),
        (b"- ppo", "must contain sections such as 'ppo:', not a list"),
        (b"ppo", "must contain sections such as 'ppo:', not a str"),
    ],
)
def test_bad_files_are_named(tmp_path, content, message):
    path = tmp_path / "run.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        read_yaml(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the config file .*No such file"):
        read_yaml(tmp_path / "absent.yaml")
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing yet\n")
    assert read_yaml(empty) == {}


@pytest.mark.parametrize("written", ["1e6", 1e6, "1000000", "1_000_000", 1_000_000])
def test_counts_can_be_written_as_people_do(written):
    assert build_config({"train": {"steps": written}}).train.steps == 1_000_000


def test_a_count_is_whole():
    with pytest.raises(ConfigError, match=r"train\.steps"):
        build_config({"train": {"steps": "1.5e0"}})


def test_a_section_header_with_nothing_below_it_is_nothing():
    assert build_config({"ppo": None}) == build_config({})


def test_a_section_that_is_no_mapping_is_reported_even_if_a_key_of_it_is_given_later():
    with pytest.raises(ConfigError, match="ppo"):
        build_config({"ppo": 3}, {"ppo.gamma": 0.9})


def test_one_entry_of_the_memory_that_a_preset_has():
    for preset in ("lstm", {"kind": "lstm", "layers": 2}):
        memory = build_config({"policy": {"memory": preset}}, {"policy.memory.hidden_size": 32}).policy.memory
        assert (memory.kind, memory.hidden_size, memory.layers) == ("lstm", 32, 1 if preset == "lstm" else 2)
    memory = build_config(by_name({"policy.memory.layers": 2, "memory": "gru"})).policy.memory
    assert (memory.kind, memory.layers) == ("gru", 2)


@pytest.mark.parametrize(
    "change",
    [
        {"policy": {"memory": {"hidden_size": 32}}},
        by_name({"memory": {"hidden_size": 32}}),
        by_name({"policy.memory.hidden_size": 32}),
        merge({"policy.memory.hidden_size": 32}, {"train.steps": 9}),
    ],
    ids=["section", "by name", "by dotted name", "merged before"],
)
@pytest.mark.parametrize("preset", ["lstm", {"kind": "lstm", "hidden_size": 8}])
def test_other_entries_of_a_memory_stay_however_one_is_changed(preset, change):
    memory = build_config({"policy": {"memory": preset}}, change).policy.memory
    assert (memory.kind, memory.hidden_size) == ("lstm", 32)
    encoder = build_config({"policy": {"encoder": {"kind": "conv", "features": 9}}}, {"policy": {"encoder": "mlp"}})
    assert encoder.policy.encoder.kind == "mlp"


def test_an_unknown_key_of_the_memory_gets_the_nearest_of_the_memory():
    (problem,) = problems_of({"policy.memory": "gru", "policy.memory.hiden_size": 3})
    assert problem == "policy.memory.hiden_size: unknown key; did you mean 'hidden_size'?"
    (problem,) = problems_of({"policy.memory.hiden_size": 3})
    assert problem == "policy.memory.hiden_size: unknown key; 'hidden_size' is a setting of the kinds gru, lstm"
    (problem,) = problems_of({"policy.distribution": "beta", "policy.distribution.log_std": -1})
    assert problem.endswith("unknown key; 'log_std' is a setting of the kinds gaussian, tanh_gaussian")


@pytest.mark.parametrize("name", ["float16", "fp16"])
def test_float16_is_answered_with_the_reason(name: str) -> None:
    with pytest.raises(ConfigError, match=r"policy\.precision: float16 .*loss scaling; set bfloat16 or float32"):
        build_config({"policy.precision": name})
