"""Remedies of runs whose environment has a preset."""

from surefoot.inspection.preset_advice import advised, preset_of
from surefoot.presets import load_preset
from surefoot.settings.layers import build_config
from surefoot.telemetry.remedies import changed, switched


def test_what_differs_from_the_preset_comes_first_and_what_it_sets_last() -> None:
    config = build_config(load_preset("CartPole-v1"), {"optimizer.lr": 0.05})
    remedies = [
        changed(config, "ppo.epochs", 3),
        switched("ppo.target_kl", 0.02),
        changed(config, "optimizer.lr", 0.02),
    ]
    assert advised(remedies, config) == (
        "set optimizer.lr from 0.05 to 0.003, as in the preset CartPole-v1",
        "set ppo.target_kl to 0.02",
        "lower ppo.epochs from 6 to 3 (the preset CartPole-v1 sets 6 on purpose)",
    )


def test_a_preset_in_the_other_direction_is_no_advice() -> None:
    config = build_config(load_preset("CartPole-v1"), {"optimizer.lr": 1e-4})
    assert advised([changed(config, "optimizer.lr", 5e-5)], config) == ("lower optimizer.lr from 0.0001 to 5e-05",)


def test_without_a_preset_remedies_stay_as_they_are() -> None:
    config = build_config({"env.id": "make_env"})
    assert preset_of(config) is None
    assert advised([switched("normalize.obs", True)], config) == ("set normalize.obs to true",)


def test_of_several_presets_the_one_that_was_used_counts() -> None:
    for name in ("Walker2d-v5", "Walker2d-v5/fast"):
        preset = preset_of(build_config(load_preset(name), {"optimizer.lr": 0.9}))
        assert preset is not None
        assert preset.name == name
