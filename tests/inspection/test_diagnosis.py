"""Symptoms on made-up records; the alerts are tripped by real runs in tests/cli/test_doctor.py."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from surefoot.errors import ConfigError, RunDirectoryError
from surefoot.inspection.diagnosis import diagnose
from surefoot.inspection.findings import Diagnosis, Finding
from surefoot.settings.config import known_keys
from surefoot.telemetry import names
from surefoot.training.run_directory import RunDirectory

SETTING = re.compile(r"\b(?:env|policy|rollout|ppo|optimizer|normalize|train)\.[a-z_]+\b")


def examined(folder: Path, settings: dict[str, Any] | None = None, **series: Sequence[float]) -> Diagnosis:
    """The diagnosis of a run with these metrics, a record every 1000 steps."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(settings or {"train": {"steps": 1000}}))
    metrics = {getattr(names, name): values for name, values in series.items()}
    count = max(len(values) for values in metrics.values())
    with (folder / "metrics.jsonl").open("w") as file:
        for index in range(count):
            record = {name: values[index] for name, values in metrics.items() if index < len(values)}
            record = {name: value for name, value in record.items() if value is not None}
            file.write(json.dumps({"step": 1000 * (index + 1), **record}) + "\n")
    return diagnose(folder)


def found(diagnosis: Diagnosis, name: str) -> Finding:
    (finding,) = [finding for finding in diagnosis.findings if finding.name == name]
    settings = [key for remedy in finding.remedies for key in SETTING.findall(remedy)]
    assert set(settings) <= set(known_keys()), "remedies name settings that exist"
    return finding


def climb(start: float, stop: float, count: int) -> list[float]:
    return [start + (stop - start) * index / (count - 1) for index in range(count)]


def test_a_collapse_of_the_return_is_found(tmp_path):
    rewards = [*climb(20, 500, 40), *climb(500, 100, 20)]
    finding = found(examined(tmp_path, {"optimizer": {"lr": 0.01}}, EPISODE_REWARD=rewards), "return_collapsed")
    assert finding.severity == "high"
    best, last = finding.evidence
    assert (best.value, best.step) == (500, 40_000)
    assert (last.value, last.step) == (pytest.approx(142, abs=1), 60_000)
    assert "set optimizer.lr from 0.01 to 0.003, as in the preset CartPole-v1" in finding.remedies
    assert any("schedules.lr to linear" in remedy for remedy in finding.remedies)


@pytest.mark.parametrize(
    "rewards",
    [
        climb(20, 500, 60),
        [*climb(20, 500, 40), *climb(500, 300, 20)],  # less than half is lost
        [20.0, 25.0, 21.0, 19.0, 24.0] * 12,  # noise
        [*climb(-1400, -160, 40), *climb(-160, -200, 20)],
        [500.0] * 60,
        [*climb(20, 500, 10), 20.0],  # too short to say
    ],
)
def test_what_is_no_collapse(tmp_path, rewards):
    assert examined(tmp_path, EPISODE_REWARD=rewards).is_healthy


def test_negative_returns_collapse_too(tmp_path):
    rewards = [*climb(-1400, -160, 40), *climb(-160, -1300, 20)]
    found(examined(tmp_path, EPISODE_REWARD=rewards), "return_collapsed")


def evaluated(
    folder: Path, scores: dict[int, tuple[float, float]], settings: dict[str, Any] | None = None, training: float = 395
) -> Diagnosis:
    """The diagnosis of a run of 40 records that is evaluated at some of them: mean and std of the returns."""
    means: list[Any] = [scores.get(index, (None, None))[0] for index in range(40)]
    stds: list[Any] = [scores.get(index, (None, None))[1] for index in range(40)]
    returns = climb(20 if training > 0 else -1200, training, 40)
    return examined(folder, settings, EPISODE_REWARD=returns, EVAL_REWARD=means, EVAL_REWARD_STD=stds)


def test_an_evaluation_far_below_training_and_its_own_best(tmp_path):
    settings = {"env": {"id": "Mine-v0"}, "ppo": {"entropy_coef": 0.01}}
    diagnosis = evaluated(tmp_path, {9: (60, 30), 29: (282, 60), 39: (122, 50)}, settings)
    below = found(diagnosis, "eval_below_training")
    assert [evidence.value for evidence in below.evidence] == [pytest.approx(376, abs=1), 122]
    assert below.severity == "high"
    assert f"'surefoot evaluate {tmp_path} --stochastic'" in below.remedies[0]
    assert any("lower ppo.entropy_coef from 0.01 to 0.001" in remedy for remedy in below.remedies)
    best = found(diagnosis, "eval_below_best")
    assert [(evidence.value, evidence.step) for evidence in best.evidence] == [(282, 30_000), (122, 40_000)]
    assert any("best.safetensors, the policy of step 30,000" in remedy for remedy in best.remedies)


@pytest.mark.parametrize(
    ("scores", "settings", "training"),
    [
        ({39: (250, 50)}, {}, 395),  # more than half
        ({9: (10, 5), 39: (300, 50)}, {}, 395),  # bad at first: deterministic policies often are
        ({39: (122, 50)}, {"env": {"eval_kwargs": {"reward_clip": False}}}, 395),  # other rewards
        ({29: (282, 90), 39: (122, 900)}, {}, 100),  # chance
        ({39: (-500, 100)}, {}, -200),  # little of what was gained
        ({39: (122, 50)}, {"train": {"eval_episodes": 3}}, 395),  # too few to say
        ({29: (100, 5), 39: (40, 5)}, {"train": {"best_metric": "cvar"}}, 60),  # the mean is not what counts
        ({29: (100, 5), 39: (40, 5)}, {"ppo": {"estimator": "risk", "gamma": 1.0}}, 60),
    ],
    ids=str,
)
def test_what_is_no_failed_evaluation(tmp_path, scores, settings, training):
    assert evaluated(tmp_path, scores, settings or None, training).findings == ()


def test_no_episode_ends(tmp_path):
    one, many = {"rollout": {"num_envs": 1, "num_steps": 64}}, {"rollout": {"num_envs": 64, "num_steps": 64}}
    found(examined(tmp_path, one, EPISODES=[0.0] * 6), "no_episode_ends")
    assert examined(tmp_path, one, EPISODES=[0.0] * 4).is_healthy, "the first may still be on its way"
    assert examined(tmp_path, many, EPISODES=[0.0] * 6).is_healthy
    assert examined(tmp_path, one, EPISODES=[0.0] * 6, EPISODE_REWARD=[1.0]).is_healthy


def test_memory_that_runs_out(tmp_path):
    settings = {"rollout": {"num_envs": 16, "num_steps": 512}, "ppo": {"batch_size": 256}}
    left = [0.5, 0.3, 0.04, 0.06]
    finding = found(examined(tmp_path, settings, RAM_AVAILABLE=left, RAM=[900.0] * 4), "out_of_memory")
    assert finding.severity == "high"
    assert (finding.evidence[0].value, finding.evidence[0].step) == (0.04, 3000)
    assert "lower rollout.num_steps from 512 or rollout.num_envs from 16" in finding.remedies
    assert any("ppo.micro_batch_size to 64" in remedy for remedy in finding.remedies)


def test_memory_that_grows(tmp_path):
    growing = climb(800, 3000, 40)
    finding = found(examined(tmp_path, RAM_AVAILABLE=[0.5] * 40, RAM=growing), "out_of_memory")
    assert finding.severity == "medium"
    assert "memory usage grew from 1,364 to 3,000 MB" in finding.meaning
    steady = [*climb(300, 800, 5), *[810.0] * 35]
    assert examined(tmp_path, RAM_AVAILABLE=[0.5] * 40, RAM=steady, EPISODE_REWARD=[1.0]).is_healthy


def test_environments_that_are_slow(tmp_path):
    settings = {"rollout": {"num_envs": 2, "num_steps": 64, "engine": "local"}}
    slow = {"ROLLOUT_STEPS_PER_SECOND": [100.0] * 9, "LEARN_STEPS_PER_SECOND": [5000.0] * 9}
    finding = found(examined(tmp_path, settings, **slow), "too_slow")
    assert finding.title == "stepping the environments is slow"
    assert finding.meaning == "stepping the environments takes 98% of the time"
    assert "set rollout.engine to processes to step the environments in parallel" in finding.remedies
    settings["rollout"] |= {"engine": "processes", "num_envs": 8}
    assert len(found(examined(tmp_path, settings, **slow), "too_slow").remedies) == 1
    quick = {"ROLLOUT_STEPS_PER_SECOND": [1000.0] * 9, "LEARN_STEPS_PER_SECOND": [50_000.0] * 9}
    assert examined(tmp_path, **quick).is_healthy, "nearly all the time, but fast"


@pytest.mark.parametrize(
    ("rollouts", "is_parallel"),
    [
        ("native on 2 threads", True),
        ("step by step, native (the head is not one of the core's)", True),
        ("step by step, local (there is no native 'Mine-v0')", False),
    ],
)
def test_slow_environments_that_auto_stepped(tmp_path, rollouts, is_parallel):
    (tmp_path / "log.txt").write_text(f"x INFO from step 0 to 100\nx INFO rollouts: {rollouts}\nx INFO further\n")
    slow = {"ROLLOUT_STEPS_PER_SECOND": [100.0] * 9, "LEARN_STEPS_PER_SECOND": [5000.0] * 9}
    remedies = found(examined(tmp_path, {"rollout": {"engine": "auto"}}, **slow), "too_slow").remedies
    assert ("set rollout.engine to processes to step the environments in parallel" not in remedies) is is_parallel
    assert remedies[-1] == "profile the environment's step: it takes most of the time"


def test_learning_that_is_slow(tmp_path):
    slow = {"ROLLOUT_STEPS_PER_SECOND": [5000.0] * 9, "LEARN_STEPS_PER_SECOND": [20.0] * 9}
    finding = found(examined(tmp_path, {"ppo": {"batch_size": 64, "epochs": 20}}, **slow), "too_slow")
    assert finding.title == "learning is slow"
    assert finding.remedies[:2] == (
        "lower ppo.epochs from 20 to 4",
        "raise ppo.batch_size from 64 to 256: fewer, larger gradient steps",
    )


def test_a_run_that_ended_in_nan(tmp_path):
    assert found(examined(tmp_path, ROLLBACKS=[1.0, 2.0]), "rolled_back").evidence[0].value == 2.0
    dump = tmp_path / "nonfinite_step_000000002000.json"
    dump.write_text(json.dumps({"step": 2000, "trouble": "12 consecutive gradient steps were not finite"}))
    finding = found(examined(tmp_path, ROLLBACKS=[1.0, 2.0]), "ended_in_nan")
    assert finding.severity == "high"
    assert finding.when == "ended at step 2,000"
    assert finding.meaning.endswith("before it ended with an error: 12 consecutive gradient steps were not finite")
    assert dump.name in finding.remedies[0]
    dump.write_text("{")
    assert "cannot be read" in found(examined(tmp_path, ROLLBACKS=[1.0]), "ended_in_nan").meaning


def test_the_worst_comes_first_and_an_alert_that_is_over_last(tmp_path):
    kl = [0.1] * 12 + [0.0] * 38
    rewards = [*climb(20, 500, 30), *climb(500, 50, 20)]
    diagnosis = examined(tmp_path, APPROX_KL=kl, EPISODE_REWARD=rewards, WORKER_RESTARTS=[0.0] * 49 + [2.0])
    assert [(finding.name, finding.severity) for finding in diagnosis.findings] == [
        ("return_collapsed", "high"),
        ("worker_restarted", "medium"),
        ("kl_high", "low"),
    ]
    assert diagnosis.findings[-1].when == "raised at step 10,000, cleared at step 22,000"
    assert diagnosis.verdict == "3 findings: return collapsed, worker restarted, KL high"


def test_what_the_run_recorded_wins_over_its_replay(tmp_path):
    """Alerts are watched every iteration, records may be fewer."""
    (tmp_path / "config.yaml").write_text("log: {log_every: 100}")
    lines = [{"step": 500, "train/approx_kl": 0.4, "warn/kl_high": 1.0}, {"step": 900, "warn/kl_high": 0.0}]
    lines += [{"step": 1000, "train/approx_kl": 0.0}, {"step": 1500, "train/approx_kl": 0.3, "warn/kl_high": 1.0}]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    finding = found(diagnose(tmp_path), "kl_high")
    assert finding.when == "raised 2 times, most recently at step 1,500, still active in the last record"
    assert (finding.evidence[0].value, finding.evidence[0].step) == (0.4, 500)


def test_an_alert_that_a_resumed_run_no_longer_has_is_over(tmp_path):
    (tmp_path / "config.yaml").write_text("{}")
    lines = [{"step": 500, "train/approx_kl": 0.4, "warn/kl_high": 1.0}, {"step": 900, "train/approx_kl": 0.01}]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    finding = found(diagnose(tmp_path), "kl_high")
    assert (finding.severity, finding.when) == ("low", "raised at step 500, cleared at step 900")


def test_a_run_that_stopped_early_is_a_note(tmp_path):
    settings = {"train": {"steps": 10_000}}
    diagnosis = examined(tmp_path, settings, APPROX_KL=[0.0] * 3)
    assert diagnosis.is_healthy
    assert diagnosis.notes[0].startswith("the run stopped at step 3,000 of 10,000")
    with RunDirectory(tmp_path):
        diagnosis = examined(tmp_path, settings, APPROX_KL=[0.0] * 3)
        assert diagnosis.process is not None
        assert diagnosis.notes[0] == f"the run is still in progress (process {diagnosis.process})"
    assert diagnose(tmp_path).process is None


def test_a_return_that_never_rose_is_a_note(tmp_path):
    flat = examined(tmp_path, EPISODE_REWARD=[100.0, 101.0] * 30)
    assert any("it has not improved" in note for note in flat.notes)
    assert not any("it has not improved" in note for note in examined(tmp_path, EPISODE_REWARD=climb(1, 2, 60)).notes)


def test_speed_is_a_note(tmp_path):
    times = {"ROLLOUT_SECONDS": [3.0] * 4, "LEARN_SECONDS": [1.0] * 4, "STEPS_PER_SECOND": [250.0] * 4}
    assert examined(tmp_path, **times).notes[1:] == ("250 steps/s: 75% of the time in rollouts, 25% in learning",)
    busy = examined(tmp_path, **times, CPU_WAIT=[0.5] * 4)
    assert busy.is_healthy
    assert busy.notes[2] == "the run waited for a CPU 50% of the time: other processes keep this machine busy"


def test_a_short_run_says_that_it_is_short(tmp_path):
    short = "the run has only 4 records so far; some alerts need 30 iterations"
    assert short in examined(tmp_path, APPROX_KL=[0.0] * 4).notes
    assert short not in examined(tmp_path, APPROX_KL=[0.0] * 40).notes


def test_events_are_counted_over_the_whole_run(tmp_path):
    (finding,) = examined(tmp_path, WORKER_RESTARTS=[0.0, 2.0, 0.0, 1.0, 1.0, 0.0]).findings
    (evidence,) = finding.evidence
    assert evidence.value == 4.0


def test_the_evidence_shows_what_raised_an_alert(tmp_path):
    """The median of ten is bad, the last value is not."""
    (finding,) = examined(tmp_path, APPROX_KL=[0.2] * 9 + [0.01]).findings
    assert finding.evidence[0].value == 0.2


def test_what_cannot_be_read_is_typed(tmp_path):
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        diagnose(tmp_path)
    with pytest.raises(ConfigError, match="lerning"):
        examined(tmp_path, {"optimizer": {"lerning_rate": 1}}, APPROX_KL=[0.0])
