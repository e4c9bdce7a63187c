"""What each example must have done to a run: seen in its checkpoint, its metrics and its log."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.training.stateful import AGENT_PARAMETERS
from tests.cli.runs import column, records

Check = Callable[[Path, dict[str, Any]], None]
CORE = "rollouts: native on "


def _encoder(run: Path, state: dict[str, Any]) -> None:
    frequencies = [tensor for name, tensor in state["policy"].items() if name.endswith("encoder.frequencies")]
    assert [tensor.tolist() for tensor in frequencies] == [[1.0, 2.0, 4.0]] * 2, "actor and critic each have one"
    assert (4, 4 * (1 + 2 * 3)) in {tuple(tensor.shape) for tensor in state["policy"].values()}, "the trunk's input"


def _distribution(run: Path, state: dict[str, Any]) -> None:
    assert state["config"]["policy"]["distribution"]["epsilon"] == 0.2
    assert state["policy"]["head.logits.weight"].shape == (2, 4)
    least = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert all(-loss > least for loss in column(run, "train/entropy_loss")), "no action is rarer than epsilon / 2"


def _critic(run: Path, state: dict[str, Any]) -> None:
    settings = state["config"]["policy"]["critic"]
    assert (settings["num_members"], settings["pessimism"], settings["scale"]) == (3, 0.25, 20.0)
    assert state["policy"]["critic.heads.weight"].shape == (3, 4)
    assert min(column(run, "train/value_loss")) > 0


def _term(run: Path, state: dict[str, Any]) -> None:
    assert state["objective"]["smooth"]["generator"].dtype == torch.uint8
    assert min(column(run, "smooth/loss")) > 0
    assert min(column(run, "smooth/max_change")) > 0
    assert np.allclose(column(run, "smooth/weight"), 0.5 * (1 - np.arange(5) / 5)), "a schedule moves the weight"


def _estimator(run: Path, state: dict[str, Any]) -> None:
    means = column(run, "estimator/mean_reward")
    assert len(set(means)) == len(means) == 5
    assert state["scorer"]["estimator"]["mean"] == means[-1] < 0, "Pendulum's rewards are costs"


def _gradient_transform(run: Path, state: dict[str, Any]) -> None:
    saved = state["gradient"]["transforms"]["adaptive"]
    assert torch.equal(saved["limit"], 0.8 * saved["average"])
    limits, norms = column(run, "adaptive/limit"), column(run, "train/grad_norm")
    assert all(0 < norm <= limit * 1.001 for norm, limit in zip(norms, limits, strict=True)), "measured after it"


def _schedule(run: Path, state: dict[str, Any]) -> None:
    values, entropies = column(run, "train/entropy_coef"), [-loss for loss in column(run, "train/entropy_loss")]
    expected = [0.01]
    for entropy in entropies:
        expected.append(expected[-1] * 1.5 if entropy < 0.8 else expected[-1] / 1.5)
    assert values == expected[:-1]
    assert state["schedules"]["entropy_coef"]["state"] == {"now": expected[-1]}


def _early_stop(run: Path, state: dict[str, Any]) -> None:
    waited = column(run, "early_stop/waited")
    assert waited == [0, 1, 2, 3]
    assert state["hooks"]["early_stop"]["waited"] == 3
    assert state["progress"]["step"] == records(run)[-1]["step"] < state["config"]["train"]["steps"]
    log = (run / "log.txt").read_text()
    assert f"stopped at step {state['progress']['step']}: no improvement over a mean return of" in log


def _curriculum(run: Path, state: dict[str, Any]) -> None:
    levels = column(run, "curriculum/level")
    assert levels[0] < levels[-1] == state["hooks"]["curriculum"]["level"]
    wind = state["collector"]["envs"]["parameters"]["wind"]
    assert np.array_equal(wind, np.linspace(0, levels[-2], 4)), "each row has a value of its own"


def _frozen_rows(run: Path, state: dict[str, Any]) -> None:
    assert column(run, "frozen_rows/share") == [0.5] * 10
    assert [record["step"] for record in records(run)] == [16 * (1 + index) for index in range(10)], "half count"
    actors = state["collector"]["actors"]
    assert actors["acting"] == actors["wanted"] == ["", "", "frozen", "frozen"]
    assert actors["numbers"] == {"": 0, "frozen": 1}
    memory = actors["memory"]["frozen"][0]
    assert memory.shape[0] == 4
    assert memory[2:].abs().sum() > 0 == memory[:2].abs().sum(), "it remembers its own rows alone"


def _teacher(run: Path, state: dict[str, Any]) -> None:
    assert len(records(run)) == 10, "half of the rows count"
    losses = column(run, "clone/loss")
    assert losses[-1] < losses[0], "it learns what the teacher does"
    assert state["config"]["ppo"]["surrogate_coef"] == 0.1
    assert state["collector"]["actors"]["acting"] == ["teacher", "teacher", "", ""]


def _env(run: Path, state: dict[str, Any]) -> None:
    for name in ("is_success", "reward_effort", "position"):
        assert column(run, f"env/{name}"), name
    assert 0 <= column(run, "env/is_success")[-1] <= 1
    assert column(run, "env/reward_effort")[-1] < 0


def _teach_reflex(run: Path, state: dict[str, Any]) -> None:
    losses = column(run, "reflex/loss")
    assert losses[-1] < losses[0], "the network learns"
    weights = state[AGENT_PARAMETERS]["reflex"]
    assert weights.shape == (33,)
    assert weights.any()


def _sink(run: Path, state: dict[str, Any]) -> None:
    with (run / "metrics.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    names = ["train/approx_kl", "train/entropy_loss"]
    assert lines[0] == ["step", *names]
    expected = [[record["step"], *(record[name] for name in names)] for record in records(run)]
    assert [[float(cell) for cell in line] for line in lines[1:]] == expected


@dataclass(frozen=True)
class Seam:
    """An example, what it needs beside its own file, and what it must have done."""

    module: str
    check: Check
    native_line: str = CORE
    """What log.txt says about rollouts on the native engine."""
    others: tuple[str, ...] = ()
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return self.module


_NOT_IN_CORE = "rollouts: step by step, native (the {} has no native implementation)"
_NO_NATIVE = "rollouts: step by step, local ('corridor:Corridor-v0' has no native implementation)"
SEAMS = [
    Seam("fourier_encoder", _encoder, _NOT_IN_CORE.format("encoder FourierEncoder")),
    Seam("epsilon_categorical", _distribution, _NOT_IN_CORE.format("distribution EpsilonCategoricalHead")),
    Seam(
        "ensemble_critic",
        _critic,
        "rollouts: step by step, native (the critic EnsembleCritic has no native implementation)",
    ),
    Seam("smoothness_term", _term),
    Seam("centered_reward", _estimator),
    Seam("adaptive_clip", _gradient_transform),
    Seam("entropy_target", _schedule),
    Seam("early_stop", _early_stop, arguments=("--steps", 320)),
    Seam("curriculum", _curriculum, _NO_NATIVE, others=("corridor",), arguments=("--rollout.workers", 2)),
    Seam(
        "frozen_rows",
        _frozen_rows,
        arguments=("--rollout.workers", 2),
    ),
    Seam(
        "teacher",
        _teacher,
        arguments=("--rollout.workers", 2),
    ),
    Seam("corridor", _env, _NO_NATIVE),
    Seam("teach_reflex", _teach_reflex, others=("reflex",)),
    Seam("csv_sink", _sink),
]
