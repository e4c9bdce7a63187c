"""Wrong settings, wrong classes and missing modules: one message, exit code 2, no traceback, nothing left behind."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from surefoot.cli.main import main
from tests.seams.runs import bring


@dataclass(frozen=True)
class Place:
    """Where a part is named, by which file, and a setting of it with a value out of range."""

    where: str
    module: str
    name: str
    base: str
    setting: str
    wrong: str


PLACES = [
    Place("policy.encoder", "fourier_encoder", "FourierEncoder", "Encoder", "num_frequencies", "0"),
    Place("policy.distribution", "epsilon_categorical", "EpsilonCategoricalHead", "DistributionHead", "epsilon", "1.5"),
    Place("policy.critic", "ensemble_critic", "EnsembleCritic", "Critic", "num_members", "1"),
    Place("ppo.terms.smooth", "smoothness_term", "Smoothness", "Term", "weight", "-1"),
    Place("ppo.estimator", "centered_reward", "CenteredReward", "Estimator", "rate", "0"),
    Place("optimizer.transforms.adaptive", "adaptive_clip", "AdaptiveClip", "GradientTransform", "decay", "1"),
    Place("schedules.entropy_coef", "entropy_target", "EntropyTarget", "Schedule", "factor", "1"),
    Place("hooks.stop", "early_stop", "EarlyStop", "Hook", "patience", "0"),
    Place("log.sinks.csv", "csv_sink", "CSVSink", "FileSink", "file", ""),
]
each_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.where)


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run `surefoot train` with flags that must be refused; the message."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # taken back after the test, with what was imported from there
    bring(tmp_path, [place.module for place in PLACES])

    def refuse(*flags: str) -> str:
        assert main(["train", "CartPole-v1", "--run-dir", "run", "--steps", "1", *flags]) == 2
        printed = capsys.readouterr()
        assert printed.err.startswith("error: ")
        assert printed.err.count("\n") == 1, printed.err
        assert "Traceback" not in printed.err
        assert not Path("run").exists()
        return printed.err

    return refuse


@each_place
def test_a_value_out_of_range(place: Place, refused) -> None:
    kind, more = f"{place.module}:{place.name}", ()
    if place.where.startswith("schedules"):
        more = (f"--{place.where}.target", "0.5")
    message = refused(f"--{place.where}", kind, f"--{place.where}.{place.setting}", place.wrong, *more)
    assert f"{place.where}.{place.setting}: " in message


@each_place
def test_an_unknown_setting(place: Place, refused) -> None:
    kind, misspelled = f"{place.module}:{place.name}", f"{place.setting}x"
    more = (f"--{place.where}.target", "0.5") if place.where.startswith("schedules") else ()
    message = refused(f"--{place.where}", kind, f"--{place.where}.{misspelled}", "1", *more)
    assert f"{place.where}.{misspelled}: unknown key; did you mean '{place.setting}'?" in message


@each_place
def test_a_class_of_another_kind(place: Place, refused) -> None:
    message = refused(f"--{place.where}", "fractions:Fraction")
    assert place.where in message
    assert "'fractions:Fraction' must be a subclass of surefoot." in message
    assert f"must be a subclass of surefoot.{place.base}" in message


@each_place
def test_a_missing_module(place: Place, refused) -> None:
    message = refused(f"--{place.where}", "no_such_module:Part")
    assert place.where in message
    assert "no module named 'no_such_module'; run in the directory of no_such_module.py" in message


@each_place
def test_a_missing_class(place: Place, refused) -> None:
    message = refused(f"--{place.where}", f"{place.module}:{place.name}s")
    assert place.where in message
    assert f"has no '{place.name}s'; did you mean '{place.name}'?" in message


def test_the_same_from_yaml(refused) -> None:
    Path("wrong.yaml").write_text("policy:\n  critic: {kind: 'ensemble_critic:EnsembleCritic', scale: -1}\n")
    assert "policy.critic.scale: " in refused("--config", "wrong.yaml")


def test_an_environment_that_is_not_there(refused, capsys) -> None:
    assert main(["train", "no_such_module:Env-v0", "--run-dir", "run"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: environment 'no_such_module:Env-v0' could not be created: No module named")
    assert message.count("\n") == 1


def test_a_module_that_cannot_be_imported(refused) -> None:
    Path("broken_part.py").write_text("1 / 0\n")
    message = refused("--policy.critic", "broken_part:Critic")
    assert "importing 'broken_part' failed: ZeroDivisionError" in message


def test_a_part_that_refuses_its_setup(refused) -> None:
    message = refused("--policy.critic", "ensemble_critic:EnsembleCritic", "--normalize.returns", "true")
    assert message == "error: EnsembleCritic does not normalize returns; set normalize.returns to false\n"


def test_twins_of_a_critic_without_an_expected_return(refused) -> None:
    Path("bare.py").write_text("from surefoot import Critic\n\nclass Bare(Critic):\n    pass\n")
    Path("twins.yaml").write_text("policy: {critic: {kind: twin, of: {kind: 'bare:Bare'}}}")
    message = refused("--config", "twins.yaml")
    assert message == "error: policy.critic.of: Bare must define expected(decoded) to be one of twins\n"
