"""One round of one member, as a job: train to the end of the round, keep the state, evaluate the policy.

A job that is started again continues bit for bit: from the newest checkpoint of this round, or from the states at the
end of the last one, which stay until all members have finished this round.
"""

import hashlib
import math
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from surefoot.assembly import assemble, entered, resumed
from surefoot.compose import EVALUATION_ROWS, build_env, build_saved_policy
from surefoot.data.records import IterationReport
from surefoot.envs.protocol.agent_parameters import AGENT_PARAMETERS, set_agent_values
from surefoot.errors import CheckpointError
from surefoot.evaluation.evaluate import evaluate
from surefoot.evaluation.evaluation import Evaluation, score
from surefoot.jobs.job import Say
from surefoot.learning.estimators.gae import GAE
from surefoot.philox import Stream, words
from surefoot.population.files import MemberFiles
from surefoot.population.settings import setting_of
from surefoot.run import Run
from surefoot.saved_run import SavedRun, saved_setup
from surefoot.settings.config import Config, TrainConfig
from surefoot.settings.layers import Raw, build_config
from surefoot.storage.saved import Saved, reading
from surefoot.storage.state import ModuleState, load_states
from surefoot.storage.trust import names_in
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.hooks import Hook
from surefoot.training.run_directory import RunDirectory
from surefoot.training.stateful import saved_agent_values
from surefoot.training.trainer import Trainer

_SAY_EVERY_S = 1.0
_PREFIXES = ("ppo.terms.", "optimizer.transforms.")
TAKEN = ("policy", "objective", "schedules", "scorer", AGENT_PARAMETERS)
"""Weights with their normalizers, and what terms, schedules and the scorer have learned."""
_RESAMPLES = 400


@dataclass(frozen=True)
class Task:
    """The arguments of the job."""

    folder: str
    """The directory of the population."""
    member: int
    round: int
    iteration: int
    """The iteration at which the round ends."""
    config: Raw
    tunables: tuple[str, ...]
    parent: int | None
    """The member whose state at the end of the last round is continued; None to start from scratch."""
    has_own: bool
    """Whether the member itself finished the last round."""
    optimizer: Literal["reset", "copy"]
    episodes: int
    seed: int
    """Seed of the evaluation."""

    def to_json(self) -> Raw:
        """Plain data."""
        return asdict(self)


def train_round(arguments: dict[str, Any], say: Say) -> dict[str, Any]:
    """The job; returns the fields of an outcome."""
    task = Task(**arguments)
    files = MemberFiles(Path(task.folder), task.member)
    directory = RunDirectory(files.path)
    with entered(directory):
        if not files.checkpoint(task.round).exists():
            _train(task, files, directory, say)
        say({"is_evaluated": True})
        return _evaluated(task, files.checkpoint(task.round))


def _train(task: Task, files: MemberFiles, directory: RunDirectory, say: Say) -> None:
    config = build_config(task.config)
    begun = _begun(directory, task.round)
    population = Path(task.folder)
    source = None if task.parent is None else MemberFiles(population, task.parent).checkpoint(task.round - 1)
    found = begun or (None if source is None else (source, read_checkpoint(source)))
    saved = None if found is None else SavedRun.of(found, names_in(task.config))
    with closing(build_env(config)) as env:
        take = resumed if begun or task.parent == task.member else partial(_taken_over, task, files)
        run = assemble(config, env, saved, take, directory=directory, hooks=[PopulationRound(task, say)])
        if begun is None:  # what is left are checkpoints of the last round, which is kept elsewhere
            directory.forget_checkpoints()
        directory.write_config(config)
        _, code = run.train()
    if code:  # a signal: without a result, the job is started again
        sys.exit(code)
    files.keep(directory.saved()[0], task.round)


def _taken_over(task: Task, files: MemberFiles, run: Run, donor: SavedRun) -> None:
    """The run takes over what a better member has learned."""
    own = read_checkpoint(files.checkpoint(task.round - 1)) if task.has_own else None
    take_over(run.trainer, donor.state, own, task.optimizer)
    run.load_hooks(donor.state["hooks"])


def _begun(directory: RunDirectory, number: int) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint, if it belongs to this round."""
    try:
        path, state = directory.newest()
    except CheckpointError:  # none, or none that can be read
        return None
    return (path, state) if _round_of(path, state) == number else None


def round_begun(folder: Path) -> int:
    """The round that the newest checkpoint of a member belongs to; 0 if there is none that can be read."""
    try:
        return _round_of(*RunDirectory(folder).newest())
    except CheckpointError:
        return 0


def _round_of(path: Path, state: Mapping[str, Any]) -> int:
    with reading(path):
        mark = Saved(state)["hooks"].get(PopulationRound.__name__)
        return 0 if mark is None else mark["round"].integer()


class PopulationRound(Hook):
    """Stops the run at the end of the round, reports progress, and records the values that were used.

    Its state marks checkpoints with their round: only those of the same round are continued.
    """

    run: Run

    def __init__(self, task: Task, say: Say) -> None:
        super().__init__()
        self._task, self._say = task, say
        self._said, self._used = 0.0, dict[str, Any]()
        self._knobs: Mapping[str, float] = {}

    def begin(self) -> None:
        self._stop_at_the_end()

    def before_rollout(self) -> None:
        if not self._used:
            self._knobs = self.run.trainer.schedules.at(self.run.progress)

    def after_iteration(self, report: IterationReport) -> None:
        self._used = self._used or read_back(
            self._task.tunables, self.run.trainer, self.run.config, self._knobs, report
        )
        self._stop_at_the_end()
        if time.monotonic() - self._said >= _SAY_EVERY_S:
            self._said, progress = time.monotonic(), report.progress
            rewards = [episode.total_reward for episode in report.stats.recent]
            reward = sum(rewards) / len(rewards) if rewards else None
            self._say({"iteration": progress.iteration, "step": progress.step, "reward": reward})

    def _stop_at_the_end(self) -> None:
        if self.run.progress.iteration >= self._task.iteration:
            self.run.stop(f"end of round {self._task.round}")

    def state(self) -> dict[str, Any]:
        return {"round": self._task.round, "used": self._used}

    def load_state(self, state: dict[str, Any]) -> None:
        if state["round"] == self._task.round:
            self._used = dict(state["used"])


def _evaluated(task: Task, path: Path) -> dict[str, Any]:
    state = read_checkpoint(path)
    config, specs = saved_setup(state, path, names_in(task.config))
    policy = build_saved_policy(config, specs, state, path)
    ModuleState(policy, "policy").load_state(state["policy"])
    with closing(build_env(config, None, task.seed, min(task.episodes, EVALUATION_ROWS))) as env:
        set_agent_values(env, saved_agent_values(state))
        evaluation = evaluate(policy.eval(), env, task.episodes, task.seed)
    step = int(state["progress"]["step"])
    return {
        "score": score_of(evaluation, config.train),
        "interval": interval_of(evaluation, config.train),
        "hash": hash_of(state["policy"]),
        "step": step,
        "is_done": step >= config.train.steps,
        "used": state["hooks"][PopulationRound.__name__]["used"],
    }


def hash_of(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 of tensors by name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def read_back(
    names: Iterable[str], trainer: Trainer, config: Config, knobs: Mapping[str, float], report: IterationReport
) -> dict[str, Any]:
    """Knobs after their schedules, as the update reports them; discounts of the estimator; other settings as built."""
    learned, dump = report.learned, config.model_dump(mode="json")
    seen = {**knobs, "lr": learned.lr, "clip": learned.clip, "entropy_coef": learned.entropy_coef}
    estimator = trainer.scorer.estimator
    if isinstance(estimator, GAE):
        seen |= dict(zip(("gamma", "gae_lambda"), estimator.discounts, strict=True))
    return {name: seen.get(_knob(name), setting_of(dump, name)) for name in names}


def _knob(setting: str) -> str:
    """The knob of a setting: `lr` of `optimizer.lr`, `penalty.weight` of `ppo.terms.penalty.weight`."""
    for prefix in _PREFIXES:
        if setting.startswith(prefix):
            return setting.removeprefix(prefix)
    section, _, key = setting.partition(".")
    return key if section in ("optimizer", "ppo") else setting


def take_over(
    trainer: Trainer,
    donor: Mapping[str, Any],
    own: Mapping[str, Any] | None,
    optimizer: Literal["reset", "copy"],
) -> None:
    """Load the donor's state into a new trainer, which was built from the member's changed config.

    States hold no settings, so the changed ones stay. Counters and what hooks froze are the member's own; one that
    failed has none, and counts on from the donor's. Rows start new episodes with new hidden states, and with their own
    randomness.
    """
    counted = donor if own is None else own
    stateful = trainer.stateful()
    taken = (*TAKEN, "gradient") if optimizer == "copy" else TAKEN  # a new trainer has neither moments nor steps
    with reading("the checkpoint of the donor"):
        load_states({name: stateful[name] for name in taken}, donor)
    with reading("the checkpoint of the member"):
        load_states({name: stateful[name] for name in ("progress", "frozen")}, counted)
    trainer.scorer.forget_running()
    rows = trainer.collector.rows
    rows.step = counted["collector"]["step"]
    envs = donor["collector"]["envs"] or {}
    rows.env.restore_parameters(donor["collector"].get("parameters") or envs.get("parameters", {}))
    rows.restart()


def score_of(evaluation: Evaluation, train: TrainConfig) -> float | None:
    """A number that is higher for better policies; None if no episode has a value."""
    value = score(evaluation, train)
    return value if value is not None and math.isfinite(value) else None


def interval_of(evaluation: Evaluation, train: TrainConfig) -> list[float] | None:
    """95% bootstrap interval of the score, by drawing episodes with counted randomness."""
    if train.best_metric == "mean_reward":
        return list(evaluation.interval())
    count = len(evaluation.rewards)
    drawn = words(0, np.arange(_RESAMPLES), [0], count, Stream.BOOTSTRAP)[:, 0] % np.uint64(count)
    found = [score_of(_chosen(evaluation, episodes), train) for episodes in drawn.astype(int).tolist()]
    known = [value for value in found if value is not None]
    return np.percentile(known, [2.5, 97.5]).tolist() if known else None


def _chosen(evaluation: Evaluation, episodes: list[int]) -> Evaluation:
    return Evaluation(
        tuple(evaluation.rewards[index] for index in episodes),
        tuple(evaluation.lengths[index] for index in episodes),
        {name: tuple(values[index] for index in episodes) for name, values in evaluation.metrics.items()},
    )
