"""`bench learn`: milliseconds per minibatch of each learner, and the limit that the arithmetic sets."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from surefoot.benchmark.arithmetic import (
    ACTION_SIZE,
    NETWORKS,
    OBS_SIZE,
    PRODUCT_SIZE,
    SEQUENCE_LENGTH,
    Network,
    product_rate,
)
from surefoot.benchmark.cells import share, spread_to_json, times
from surefoot.benchmark.load import OthersClock, loadavg, summarize_load
from surefoot.benchmark.noise_env import NoiseEnv
from surefoot.benchmark.report import Report, Table
from surefoot.benchmark.rounds import Say, Spread, ratio, spread
from surefoot.compose import Specs, build_policy, build_trainer
from surefoot.errors import ConfigError, SurefootError
from surefoot.machine.torch_defaults import torch_threads
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config

LEARNERS = ("native", "torch")
BATCHES = (64, 256, 1024, 4096, 16384)
QUICK_BATCHES, QUICK_NETWORKS = (64, 1024), ("64-64", "gru-256")
SMALLEST_ROLLOUT, EPOCHS = 1024, 2
RATE_S = 0.03
"""How long the machine's rate is measured in each round."""


@dataclass(frozen=True)
class Course:
    """What is measured, how often, and with how many threads (0: one per core)."""

    batches: Sequence[int] = BATCHES
    networks: Sequence[str] = tuple(NETWORKS)
    repeats: int = 5
    seconds: float = 0.1
    threads: int = 0

    def __post_init__(self) -> None:
        known = ", ".join(NETWORKS)
        problems = [
            *(f"--network: unknown '{name}'; choose from {known}" for name in self.networks if name not in NETWORKS),
            *(
                f"--batch: must be a multiple of {SEQUENCE_LENGTH}, the length of a sequence (got {batch})"
                for batch in self.batches
                if batch < 1 or batch % SEQUENCE_LENGTH
            ),
        ]
        if self.repeats < 1 or self.seconds <= 0 or self.threads < 0:
            problems.append("--repeats and --seconds must be greater than 0, --threads 0 or more")
        if problems:
            raise ConfigError(problems)


@dataclass
class Side:
    """One learner at one size, or why it cannot run."""

    milliseconds: list[float] = field(default_factory=list)
    """Per minibatch, one number per repeat."""
    error: str | None = None

    @property
    def spread(self) -> Spread | None:
        """Median and range."""
        return None if self.error is not None else spread(self.milliseconds)


@dataclass
class Cell:
    """All repeats of one network with one batch size."""

    network: Network
    batch: int
    sides: dict[str, Side]
    limit_ms: list[float] = field(default_factory=list)

    def share(self, learner: str) -> Spread | None:
        """The limit divided by the learner's time, per round."""
        side = self.sides[learner]
        return None if side.error is not None else ratio(self.limit_ms, side.milliseconds)

    @property
    def speedup(self) -> Spread | None:
        """How many times faster the native learner is."""
        native, torch = (self.sides[name] for name in LEARNERS)
        return None if native.error or torch.error else ratio(torch.milliseconds, native.milliseconds)


class Learning:
    """A learner with a rollout of noise, built as in a run."""

    def __init__(self, network: Network, batch: int, learner: str, threads: int) -> None:
        config = config_of(network, batch, learner, threads)
        env = NoiseEnv(config.rollout.num_envs, OBS_SIZE, ACTION_SIZE)
        policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
        self._trainer = trainer = build_trainer(config, env, policy)
        self._knobs = trainer.schedules.at(trainer.progress)
        self._rollout = trainer.collector.collect(policy)
        self._targets = trainer.scorer.score(self._rollout, policy.critic)
        self.threads = trainer.execution.threads

    def run(self, updates: int) -> float:
        """Milliseconds per minibatch of some updates of the same rollout."""
        with self._trainer.execution.learning():
            began = time.perf_counter()
            learned = [self._trainer.learner.learn(self._rollout, self._targets, self._knobs) for _ in range(updates)]
            taken_s = time.perf_counter() - began
        skips = [skipped for one in learned for skipped in one.skips]
        if any(skips):
            raise SurefootError("a gradient step was skipped, so its time is not that of a minibatch")
        return 1000 * taken_s / len(skips)


def config_of(network: Network, batch: int, learner: str, threads: int) -> Config:
    """Everything else is the default; the learning rate is so small that every repeat does the same work."""
    size = -(-max(batch, SMALLEST_ROLLOUT) // batch) * batch
    settings: dict[str, Any] = {
        "policy": {"hidden": network.hidden},
        "rollout": {
            "num_envs": size // SEQUENCE_LENGTH,
            "num_steps": SEQUENCE_LENGTH,
            "sequence_length": SEQUENCE_LENGTH,
        },
        "ppo": {"batch_size": batch, "epochs": EPOCHS},
        "optimizer": {"lr": 1e-8},
        "train": {"threads": threads, "learner": learner},
    }
    memory = {"policy.memory": {"kind": "gru", "hidden_size": network.gru, "layers": 1}} if network.gru else {}
    return build_config(settings, memory)


def bench_learn(course: Course, say: Say) -> Report:
    """Measure all sizes; a learner that cannot run a network has the reason in a note."""
    before, shares = loadavg(), list[float]()
    cells = []
    for name in course.networks:
        for batch in course.batches:
            clock = OthersClock([])
            cells.append(_measure(NETWORKS[name], batch, course))
            shares.append(clock.share())
            say(f"{name}, batch {batch}: {_told(cells[-1])}")
    tables = [_table(name, [cell for cell in cells if cell.network.name == name]) for name in course.networks]
    title = "Learning: milliseconds per minibatch"
    load = summarize_load(before, shares)
    return Report("learn", title, tables, _notes(cells, course), _results(cells, course), load)


def _measure(network: Network, batch: int, course: Course) -> Cell:
    """Build both learners, warm them up, then measure them and the machine's rate in turns."""
    cell = Cell(network, batch, {name: Side() for name in LEARNERS})
    subjects: dict[str, Learning] = {}
    for name, side in cell.sides.items():
        try:
            subjects[name] = Learning(network, batch, name, course.threads)
        except SurefootError as error:
            side.error = str(error)
    if not subjects:
        raise SurefootError("; ".join(dict.fromkeys(str(side.error) for side in cell.sides.values())))
    updates = {name: _updates(subject, course.seconds) for name, subject in subjects.items()}
    threads = max(subject.threads for subject in subjects.values())
    for _ in range(course.repeats):
        for name, subject in subjects.items():
            cell.sides[name].milliseconds.append(subject.run(updates[name]))
        with torch_threads(threads):
            cell.limit_ms.append(1000 * network.multiply_adds(batch) / product_rate(RATE_S))
    return cell


def _updates(subject: Learning, seconds: float) -> int:
    """Updates per window; the first one is not representative, but long ones need no second try."""
    for _ in range(2):
        began = time.perf_counter()
        subject.run(1)
        taken_s = time.perf_counter() - began
        if taken_s > 10 * seconds:
            break
    return math.ceil(seconds / taken_s)


def _table(name: str, cells: Sequence[Cell]) -> Table:
    columns = [
        *("batch", "native ms", "torch ms", "limit ms", "native, share of limit", "torch, share of limit"),
        "native, times torch's speed",
    ]
    return Table(f"{name}, ms per minibatch", columns, [_row(cell) for cell in cells])


def _row(cell: Cell) -> list[str]:
    return [
        f"{cell.batch:,}",
        *(times(cell.sides[name].spread) for name in LEARNERS),
        times(spread(cell.limit_ms)),
        *(share(cell.share(name)) for name in LEARNERS),
        times(cell.speedup),
    ]


def _told(cell: Cell) -> str:
    told = [f"{name} {times(side.spread)} ms" for name, side in cell.sides.items()]
    return ", ".join([*told, f"limit {times(spread(cell.limit_ms))} ms"])


def _notes(cells: Sequence[Cell], course: Course) -> list[str]:
    sides = [item for cell in cells for item in cell.sides.items()]
    return [
        *sorted({f"{name} is not available: {side.error}" for name, side in sides if side.error is not None}),
        f"Medians of {course.repeats} repeats, with their range; shares and ratios are computed within each repeat.",
        f"Limit: the multiply-adds of forward, weight gradients and input gradients (none for observations), at the"
        f" rate of PyTorch's float32 product of {PRODUCT_SIZE} x {PRODUCT_SIZE} matrices on the same threads.",
        f"Whole updates of {EPOCHS} epochs on noise: {OBS_SIZE} observations, {ACTION_SIZE} actions; sequences of"
        f" {SEQUENCE_LENGTH} steps for the GRU.",
    ]


def _results(cells: Sequence[Cell], course: Course) -> dict[str, Any]:
    return {
        "course": asdict(course),
        "cells": [
            {
                "network": cell.network.name,
                "batch": cell.batch,
                "multiply_adds": cell.network.multiply_adds(cell.batch),
                "limit_ms": {**spread(cell.limit_ms).to_json(), "repeats": cell.limit_ms},
                "learners": {name: _side_to_json(cell, name) for name in LEARNERS},
                "speedup": spread_to_json(cell.speedup),
            }
            for cell in cells
        ],
    }


def _side_to_json(cell: Cell, name: str) -> dict[str, Any]:
    side = cell.sides[name]
    if side.spread is None:
        return {"error": side.error}
    return {"ms": side.spread.to_json(), "repeats": side.milliseconds, "share": spread_to_json(cell.share(name))}
