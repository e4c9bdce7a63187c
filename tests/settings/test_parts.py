"""Parts with settings: kinds by name and from outside, layers, short names, and the names of earlier versions."""

import itertools
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from surefoot import PPO
from surefoot.cli.arguments import split_settings
from surefoot.errors import ConfigError
from surefoot.policies.distributions.gaussian import GaussianHead
from surefoot.policies.encoders.conv import ConvEncoder
from surefoot.policies.encoders.mlp import MLPEncoder
from surefoot.policies.memory.recurrent import Recurrent
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config, by_name, read_yaml, to_yaml
from surefoot.settings.old_settings import OLD_NAMES

OLD_RUNS = sorted((Path(__file__).parents[1] / "training" / "checkpoints" / "v1").iterdir())
_numbers = itertools.count()


def problems_of(*layers: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        build_config(*layers)
    return caught.value.problems


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Writes a module into a folder on the path, under a name that no other test has used."""
    monkeypatch.syspath_prepend(str(tmp_path))
    written = []

    def write(source: str) -> str:
        name = f"outside_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        written.append(name)
        return name

    yield write
    for name in written:
        sys.modules.pop(name, None)


MEMORY = """
    from pydantic import Field

    from surefoot import Memory, PartSettings

    class Tape(Memory):
        class Settings(PartSettings):
            length: int = Field(8, ge=1, description="steps that are remembered")

    class NotAMemory:
        pass

    tape = Tape
    number = 3
"""


def test_a_bare_kind_and_a_mapping_with_nothing_but_the_kind_are_the_same():
    for kind, settings in (("conv", ConvEncoder.Settings), ("mlp", MLPEncoder.Settings)):
        bare = build_config({"policy.encoder": kind})
        assert bare == build_config({"policy.encoder": {"kind": kind}}) == build_config({"policy.encoder.kind": kind})
        assert type(bare.policy.encoder) is settings
        assert bare.policy.encoder == settings(kind=kind)


def test_a_mapping_sets_what_the_kind_declares():
    memory = build_config({"policy": {"memory": {"kind": "gru", "hidden_size": 12}}}).policy.memory
    assert isinstance(memory, Recurrent.Settings)
    assert (memory.kind, memory.hidden_size, memory.layers) == ("gru", 12, 1)


def test_settings_without_a_kind_are_those_of_the_default():
    head = build_config({"policy": {"distribution": {"log_std": -1.0}}}).policy.distribution
    assert (head.kind, head.log_std) == ("auto", -1.0)
    assert isinstance(head, GaussianHead.Settings)


@pytest.mark.parametrize("bad", [3, ["gru"], True])
def test_what_is_neither_a_kind_nor_a_mapping_is_reported(bad):
    (problem,) = problems_of({"policy": {"memory": bad}})
    assert problem.startswith("policy.memory: must be a kind or a mapping with the key 'kind'")
    (problem,) = problems_of({"ppo": {"terms": bad}})
    assert problem.startswith("ppo.terms: must be a mapping from names to parts")


@pytest.mark.parametrize(
    ("settings", "where", "nearest"),
    [
        ({"policy.encoder": "mpl"}, "policy.encoder", "mlp"),
        ({"policy.encoders": {"camera": {"kind": "cnov"}}}, "policy.encoder", "conv"),
        ({"policy.memory": {"kind": "ltsm"}}, "policy.memory", "lstm"),
        ({"policy.distribution": "gausian"}, "policy.distribution", "gaussian"),
        ({"policy.critic": "scaler"}, "policy.critic", "scalar"),
        ({"rollout.engine": "proceses"}, "rollout.engine", "processes"),
        ({"ppo.estimator": "gea"}, "ppo.estimator", "gae"),
        ({"ppo.terms": {"more": "entropie"}}, "ppo.terms.more", "entropy"),
        ({"optimizer.transforms": {"clipnorm": {}}}, "optimizer.transforms.clipnorm", "clip_norm"),
        ({"schedules.lr": "liner"}, "schedules.lr", "linear"),
        ({"hooks": {"stop": {"kind": "stop_at_retrun"}}}, "hooks.stop", "stop_at_return"),
    ],
)
def test_an_unknown_kind_gets_the_nearest(settings, where, nearest):
    (problem,) = problems_of(settings)
    assert problem.startswith(where)
    assert f"did you mean '{nearest}'?" in problem
    assert problem.endswith("; or module:Name)")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"policy.memory": {"kind": "gru", "hiden_size": 3}}, "policy.memory.hiden_size: unknown key; did you mean"),
        ({"policy.distribution.log_sdt": 3}, "policy.distribution.log_sdt: unknown key; did you mean 'log_std'?"),
        ({"rollout.engine": {"kind": "processes", "max_restart": 3}}, "did you mean 'max_restarts'?"),
        ({"schedules": {"lr": {"kind": "cosine", "flor": 0.1}}}, "schedules.lr.flor: unknown key; did you mean"),
        ({"optimizer.transforms": {"a": {"kind": "clip_norm", "maxnorm": 1}}}, "optimizer.transforms.a.maxnorm:"),
        ({"hooks": {"stop_at_return": {"value": 1, "iteration": 1}}}, "hooks.stop_at_return.iteration: unknown key"),
    ],
)
def test_an_unknown_key_of_a_part_gets_the_nearest(settings, problem):
    (found,) = problems_of(settings)
    assert problem in found


def test_everything_wrong_in_parts_is_reported_at_once():
    problems = problems_of(
        {
            "policy.memory": {"kind": "gru", "hidden_size": 0, "layers": "many"},
            "policy.critic": "scaler",
            "schedules": {"lr": {"kind": "cosine", "floor": 7}},
            "hooks": {"stop_at_return": {"iterations": 0}},
            "ppo.gamma": 3,
        }
    )
    starts = sorted(problem.partition(":")[0] for problem in problems)
    assert starts == [
        "hooks.stop_at_return.iterations",
        "hooks.stop_at_return.value",
        "policy.critic",
        "policy.memory.hidden_size",
        "policy.memory.layers",
        "ppo.gamma",
        "schedules.lr.floor",
    ]


def test_a_kind_from_outside_has_its_own_settings(outside):
    kind = f"{outside(MEMORY)}:Tape"
    memory = build_config({"policy.memory": {"kind": kind, "length": 3}}).policy.memory
    assert (memory.kind, memory.length) == (kind, 3)
    assert build_config({"policy.memory": kind}).policy.memory.length == 8
    (problem,) = problems_of({"policy.memory": {"kind": kind, "length": 0}})
    assert problem == "policy.memory.length: input should be greater than or equal to 1 (got 0)"
    (problem,) = problems_of({"policy.memory": {"kind": kind, "lenght": 3}})
    assert problem.startswith("policy.memory.lenght: unknown key")


@pytest.mark.parametrize("attribute", ["NotAMemory", "number"])
def test_what_is_not_such_a_part_is_refused(outside, attribute):
    kind = f"{outside(MEMORY)}:{attribute}"
    (problem,) = problems_of({"policy.memory": kind})
    assert problem == f"policy.memory: '{kind}' must be a subclass of surefoot.Memory"


def test_a_part_of_another_sort_is_refused(outside):
    kind = f"{outside(MEMORY)}:Tape"
    (problem,) = problems_of({"policy.encoder": kind})
    assert problem == f"policy.encoder: '{kind}' must be a subclass of surefoot.Encoder"


def test_a_missing_attribute_is_named_with_the_nearest(outside):
    module = outside(MEMORY)
    (problem,) = problems_of({"policy.memory": f"{module}:Taep"})
    assert problem == f"policy.memory: module '{module}' has no 'Taep'; did you mean 'Tape'?"


def test_a_module_that_raises_on_import_is_named_with_its_error(outside):
    module = outside("raise RuntimeError('no license')")
    (problem,) = problems_of({"policy.memory": f"{module}:Tape"})
    assert f"'{module}:Tape': importing '{module}' failed: RuntimeError: no license" in problem
    module = outside("import a_module_that_is_not_there")
    (problem,) = problems_of({"policy.memory": f"{module}:Tape"})
    assert f"importing '{module}' failed: No module named 'a_module_that_is_not_there'" in problem


def test_a_missing_module_is_named():
    (problem,) = problems_of({"policy.memory": "nowhere_to_be_found:Tape"})
    assert problem.startswith("policy.memory: ")
    assert "no module named 'nowhere_to_be_found'" in problem
    assert "PYTHONPATH" in problem


def test_a_missing_part_is_reported_beside_everything_else():
    problems = problems_of({"policy.memory": "nowhere_to_be_found:Tape", "ppo.gamma": 3})
    assert len(problems) == 2


def test_auto_takes_the_settings_of_the_kinds_that_it_may_choose():
    config = build_config({"policy": {"distribution": {"std": "state"}, "encoder": {"features": 9}}})
    assert (config.policy.distribution.kind, config.policy.distribution.std) == ("auto", "state")
    assert (config.policy.encoder.kind, config.policy.encoder.features) == ("auto", 9)
    assert config == build_config({"policy.distribution.std": "state", "policy.encoder.features": 9})
    agent = PPO("Pendulum-v1", num_envs=1, num_steps=8, batch_size=8, distribution={"std_floor": 0.25})
    assert agent.policy.head.std_floor == 0.25
    agent.close()


def test_auto_refuses_settings_of_kinds_that_it_never_chooses():
    (problem,) = problems_of({"policy.encoder": {"layers": [8]}})
    assert problem.startswith("policy.encoder.layers: unknown key")


def test_another_kind_in_a_later_layer_keeps_only_the_settings_that_it_knows():
    memory = {"policy.memory": {"kind": "gru", "hidden_size": 9, "layers": 2}}
    kept = build_config(memory, {"policy.memory": {"kind": "lstm", "layers": 3}}).policy.memory
    assert (kept.kind, kept.hidden_size, kept.layers) == ("lstm", 9, 3)
    assert build_config(memory, {"policy.memory.kind": "none"}).policy.memory == Config().policy.memory
    adaptive = {"schedules.lr": {"kind": "kl_adaptive", "desired_kl": 0.1}}
    assert build_config(adaptive, {"schedules.lr.kind": "cosine"}).schedules["lr"].floor == 0.1


def test_a_bare_kind_in_a_later_layer_replaces_the_part():
    memory = {"policy.memory": {"kind": "gru", "hidden_size": 9}}
    assert build_config(memory, {"policy.memory": "gru"}).policy.memory.hidden_size == 64


def test_a_bare_kind_in_a_later_layer_keeps_settings_that_were_given_without_a_kind():
    settings = {"policy.distribution": {"log_std": -1.0}}
    assert build_config(settings, {"policy.distribution": "gaussian"}).policy.distribution.log_std == -1.0
    assert build_config({"policy": {"log_std": -1.0}}, {"policy.distribution": "gaussian"}) == build_config(
        {"policy.distribution": {"kind": "gaussian", "log_std": -1.0}}
    )
    assert build_config(settings, {"policy.distribution": "beta"}).policy.distribution.kind == "beta"


def test_an_unknown_kind_in_a_later_layer_is_reported():
    problems = problems_of({"policy.memory": {"kind": "gru", "hidden_size": 9}}, {"policy.memory.kind": "ltsm"})
    assert len(problems) == 1
    assert "did you mean 'lstm'?" in problems[0]


def test_named_parts_are_changed_added_and_removed_by_name():
    preset = {"optimizer.transforms": {"first": {"kind": "clip_norm", "max_norm": 1.0}, "second": "clip_norm"}}
    more = {"optimizer": {"transforms": {"first": {"max_norm": 2.0}, "third": "clip_norm", "second": None}}}
    transforms = build_config(preset, more).optimizer.transforms
    assert list(transforms) == ["first", "third"]
    assert transforms["first"].max_norm == 2.0
    flag = split_settings(["--optimizer.transforms.first", "null"])[1]
    assert list(build_config(preset, flag).optimizer.transforms) == ["second"]
    assert build_config({"schedules": {"lr": "linear"}}, {"schedules.lr": None}).schedules == {}


def test_the_kind_of_a_named_part_is_its_name_unless_it_says_another():
    config = build_config({"hooks": {"stop_at_return": {"value": 3}, "again": {"kind": "stop_at_return", "value": 9}}})
    assert {name: (hook.kind, hook.value) for name, hook in config.hooks.items()} == {
        "stop_at_return": ("stop_at_return", 3.0),
        "again": ("stop_at_return", 9.0),
    }


def test_a_schedule_of_an_unknown_knob_is_refused():
    (problem,) = problems_of({"schedules": {"clop": "linear"}})
    assert problem.startswith("schedules.clop: unknown knob; did you mean 'clip'? (known: lr, clip, ")


@pytest.mark.parametrize(
    ("name", "value", "section", "key"),
    [("gamma", 0.5, "ppo", "gamma"), ("lr", 0.5, "optimizer", "lr"), ("num_envs", 4, "rollout", "num_envs")],
)
def test_short_names_reach_keys_and_never_parts(name, value, section, key):
    assert getattr(getattr(build_config(by_name({name: value})), section), key) == value


def test_an_ambiguous_short_name_lists_the_full_ones(monkeypatch):
    from surefoot.settings import layers

    keys = layers.known_keys()
    monkeypatch.setattr(layers, "known_keys", lambda: keys | {"train.gamma": "another one"})
    with pytest.raises(ConfigError, match=r"gamma: ambiguous; use one of ppo\.gamma, train\.gamma"):
        by_name({"gamma": 0.5})
    assert by_name({"ppo.gamma": 0.5}) == {"ppo": {"gamma": 0.5}}


# Old name -> a value, what else has to be said for it to have a meaning, and where it is now.
OLD: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "policy.std": ("state", {}, lambda c: c.policy.distribution.std),
    "policy.log_std": (-1.5, {}, lambda c: c.policy.distribution.log_std),
    "policy.log_std_groups": ({"0:1": -0.5}, {}, lambda c: c.policy.distribution.log_std_groups),
    "policy.std_floor": (0.125, {}, lambda c: c.policy.distribution.std_floor),
    "policy.action_bounds": ("rescale", {}, lambda c: c.policy.distribution.action_bounds),
    "policy.memory.shared": (True, {"policy.memory.kind": "gru"}, lambda c: c.policy.share_memory),
    "rollout.step_timeout_s": (7.5, {"rollout.engine": "processes"}, lambda c: c.rollout.engine.step_timeout_s),
    "rollout.max_restarts": (3, {"rollout.engine": "processes"}, lambda c: c.rollout.engine.max_restarts),
    "optimizer.lr_schedule": ("cosine", {}, lambda c: c.schedules["lr"].kind),
    "optimizer.desired_kl": (
        *(0.25, {"optimizer.lr_schedule": "kl_adaptive"}),
        lambda c: c.schedules["lr"].desired_kl,
    ),
    "optimizer.schedule_floor": (0.5, {"optimizer.lr_schedule": "cosine"}, lambda c: c.schedules["lr"].floor),
    "ppo.clip_schedule": ("linear", {}, lambda c: c.schedules["clip"].kind),
    "ppo.entropy_schedule": ("linear", {}, lambda c: c.schedules["entropy_coef"].kind),
}


def flags(settings: dict[str, Any]) -> dict[str, Any]:
    """As the command line gives them."""
    texts = {name: yaml.safe_dump(value, default_flow_style=True).split("\n")[0] for name, value in settings.items()}
    rest, found = split_settings([part for name, text in texts.items() for part in (f"--{name}={text}",)])
    assert rest == []
    return found


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    """As a YAML file has them."""
    sections: dict[str, Any] = {}
    for name, value in settings.items():
        *path, last = name.split(".")
        place = sections
        for key in path:
            place = place.setdefault(key, {})
        place[last] = value
    return yaml.safe_load(yaml.safe_dump(sections))


def test_every_old_name_is_tried():
    assert set(OLD) == set(OLD_NAMES)


@pytest.mark.parametrize("name", OLD)
def test_old_names_work_in_files_flags_and_by_name(name):
    value, beside, now = OLD[name]
    whole = {**beside, name: value}
    for layers in (
        (whole,),
        (nested(whole),),
        (flags(whole),),
        (beside, flags({name: value})),
        (nested(beside), nested({name: value})),
        (nested({name: value}), flags(beside)),
        (by_name(whole),),
    ):
        assert now(build_config(*layers)) == value, layers
    new = {OLD_NAMES[name]: value}
    present = {OLD_NAMES.get(key, key): one for key, one in beside.items()}
    assert build_config(whole) == build_config(present, new)


@pytest.mark.parametrize("name", OLD)
def test_old_names_work_as_keywords_of_ppo(name):
    value, beside, now = OLD[name]
    small = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "hidden": [4], "engine": "local"}
    if name == "policy.memory.shared":
        keywords = {"memory": {"kind": "gru", "shared": True}}
    else:
        keywords = {key.rpartition(".")[2]: one for key, one in {**beside, name: value}.items()}
    agent = PPO("Pendulum-v1", **{**small, **keywords})
    try:
        assert now(agent.config) == value
    finally:
        agent.close()


def test_old_settings_that_a_kind_never_used_are_dropped():
    # Complete configs of earlier versions listed the settings of the Gaussian beside any distribution.
    config = build_config({"policy": {"distribution": "categorical", "log_std": -1.0, "std": "learned"}})
    assert config.policy.distribution.kind == "categorical"
    config = build_config({"rollout": {"engine": "local", "step_timeout_s": 60.0, "max_restarts": 10}})
    assert config.rollout.engine.kind == "local"


@pytest.mark.parametrize("run", OLD_RUNS, ids=lambda run: run.name)
def test_a_complete_config_of_an_earlier_version_builds_the_same_run(run):
    old = read_yaml(run / "config.yaml")
    config = build_config(old)
    for section, keys in old.items():
        for key, value in keys.items():
            name = f"{section}.{key}"
            if name in OLD_NAMES or name in (
                "policy.encoder",
                "policy.memory",
                "policy.distribution",
                "rollout.engine",
            ):
                continue
            found = getattr(getattr(config, section), key)
            found = getattr(found, "kind", list(found) if isinstance(found, tuple) else found)
            assert found == value, name
    assert config.policy.memory.kind == old["policy"]["memory"]["kind"]
    if config.policy.memory.kind != "none":
        assert config.policy.memory.hidden_size == old["policy"]["memory"]["hidden_size"]
        assert config.policy.memory.layers == old["policy"]["memory"]["layers"]
    assert config.policy.share_memory == old["policy"]["memory"]["shared"]
    assert config.policy.encoder.kind == old["policy"]["encoder"]["kind"]
    assert config.policy.distribution.kind == old["policy"]["distribution"]
    for key in ("std", "log_std", "log_std_groups", "std_floor", "action_bounds"):
        if hasattr(config.policy.distribution, key):
            assert getattr(config.policy.distribution, key) == old["policy"][key]
    assert config.rollout.engine.kind == old["rollout"]["engine"]
    kinds = {knob: schedule.kind for knob, schedule in config.schedules.items()}
    assert kinds["lr"] == old["optimizer"]["lr_schedule"]
    assert kinds["clip"] == old["ppo"]["clip_schedule"]
    assert kinds["entropy_coef"] == old["ppo"]["entropy_schedule"]
    if kinds["lr"] == "kl_adaptive":
        assert config.schedules["lr"].desired_kl == old["optimizer"]["desired_kl"]
    assert build_config(yaml.safe_load(to_yaml(config))) == config


def test_parts_survive_their_yaml(outside):
    kind = f"{outside(MEMORY)}:Tape"
    config = build_config(
        {
            "policy.memory": {"kind": kind, "length": 3},
            "policy.distribution": {"kind": "tanh_gaussian", "log_std_groups": {"0:2": -1.0}},
            "policy.encoders": {"camera": {"kind": "conv", "features": 7}},
            "rollout.engine": {"kind": "processes", "max_restarts": 2},
            "ppo.terms": {"more": {"kind": "entropy"}},
            "optimizer.transforms": {"less": {"kind": "clip_norm", "max_norm": 0.25}},
            "schedules": {"lr": {"kind": "cosine", "floor": 0.5}, "value_coef": "linear"},
            "hooks": {"enough": {"kind": "stop_at_return", "value": 100}},
        }
    )
    text = to_yaml(config)
    again = build_config(yaml.safe_load(text))
    assert again == config
    assert to_yaml(again) == text
    assert again.policy.memory.length == 3
    assert again.hooks["enough"].value == 100


@pytest.mark.parametrize("name", ["surrogate", "value", "entropy", "clip_again"])
def test_a_term_does_not_take_the_name_of_another_part(name):
    with pytest.raises(ConfigError, match=rf"ppo\.terms\.{name}: the name is used by another part"):
        build_config(
            {"ppo": {"terms": {name: "entropy"}}, "optimizer": {"transforms": {"clip_again": {"kind": "clip_norm"}}}}
        )


def test_what_a_complete_old_config_lists_for_other_kinds_is_dropped():
    conv = {"channels": [8, 8], "kernels": [3, 3], "strides": [1, 1], "features": 9}
    old = {
        "encoder": {"kind": "mlp", "layers": [7], **conv},
        "memory": {"kind": "none", "hidden_size": 32, "layers": 2},
    }
    config = build_config({"policy": old})
    assert config.policy.encoder.layers == (7,)
    assert config.policy.memory.kind == "none"
