"""What the engine `ray` costs on one machine: iterations with two actors over those of `native`, and what travels.

    python -m benchmarks.many_machines
    python -m benchmarks.many_machines --rounds 15

Both have the same cores, so the difference is the cost of the cluster. Results go to
benchmarks/results/many_machines/.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.benchmark.load import Load, OthersClock
from surefoot.benchmark.report import describe_machine, machine
from surefoot.benchmark.rounds import Spread, ratio, spread
from surefoot.compose import Specs, build_env, build_policy, build_trainer
from surefoot.envs.engines.ray import RayEngine
from surefoot.rollout.ray import RayCollector
from surefoot.settings.layers import build_config
from surefoot.training.trainer import Trainer

RESULTS = Path(__file__).parent / "results" / "many_machines"
ACTORS = 2
ENGINES: dict[str, dict[str, Any]] = {
    "native": {"rollout.engine": "native", "rollout.workers": ACTORS},
    "ray": {"rollout.engine": {"kind": "ray", "actors": ACTORS}, "rollout.workers": 1},
}
NORMALIZED = {"normalize.obs": True, "normalize.returns": True}


@dataclass(frozen=True)
class Task:
    """What is trained."""

    name: str
    env_id: str
    num_envs: int
    num_steps: int
    settings: dict[str, Any]

    def started(self, engine: str) -> Trainer:
        """A trainer with an engine."""
        whole = self.num_envs * self.num_steps
        size = {"rollout.num_envs": self.num_envs, "rollout.num_steps": self.num_steps, "train.steps": 10**12}
        learning = {"ppo.batch_size": whole // 8, "ppo.epochs": 4}
        config = build_config({"env.id": self.env_id}, size, learning, self.settings, ENGINES[engine])
        env = build_env(config)
        return build_trainer(config, env, build_policy(config, Specs(env.obs_spec, env.action_spec)))


TASKS = [
    Task("CartPole, 64 envs x 128", "CartPole-v1", 64, 128, {}),
    Task("CartPole, 4096 envs x 64", "CartPole-v1", 4096, 64, {}),
    Task("CartPole with an LSTM, 256 envs x 64", "CartPoleNoVel-v1", 256, 64, {"policy.memory": "lstm"}),
    Task("HalfCheetah, 64 envs x 64", "HalfCheetah-v5", 64, 64, NORMALIZED),
    Task("HalfCheetah, 512 envs x 64", "HalfCheetah-v5", 512, 64, NORMALIZED | {"policy.hidden": [256, 256]}),
]


@dataclass(frozen=True)
class Traveled:
    """Bytes of one iteration: of the policy, once per machine, and of everything else, per row."""

    policy: int
    to_actors: float
    rollout: float
    env_states: float


def num_bytes(value: Any) -> int:
    """Of all arrays inside a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, bytes):
        return len(value)
    if is_dataclass(value):
        return sum(num_bytes(getattr(value, item.name)) for item in fields(value))
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return sum(map(num_bytes, parts))


class Watch:
    """Measures what a collector sends, receives and copies."""

    def __init__(self, collector: RayCollector) -> None:
        self.seconds = {"send the policy": 0.0, "actors collect": 0.0, "copy": 0.0}
        self.env, self.traveled = collector.rows.env, {"policy": 0, "to_actors": 0, "rollout": 0, "env_states": 0}
        assert isinstance(self.env, RayEngine)
        self.env.put = self._timed("send the policy", self.env.put, self._put)  # type: ignore[method-assign]
        self.env.ask = self._timed("actors collect", self.env.ask, self._asked)  # type: ignore[method-assign]
        collector._copy = self._timed("copy", collector._copy)  # type: ignore[method-assign]

    def _timed(self, name: str, function: Callable[..., Any], look: Callable[..., None] | None = None) -> Any:
        def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = function(*arguments)
            self.seconds[name] += time.perf_counter() - began
            if look is not None:
                look(result, *arguments)
            return result

        return timed

    def _put(self, result: Any, sent: Any) -> None:
        self.traveled["policy"] = num_bytes(sent)

    def _asked(self, result: Any, function: Any, arguments: Any, *others: Any) -> None:
        assert isinstance(self.env, RayEngine)
        parts = range(len(self.env.shares))
        self.traveled["to_actors"] = sum(num_bytes(arguments(part)[1:]) for part in parts)
        self.traveled["rollout"] = num_bytes(result)
        self.traveled["env_states"] = num_bytes(self.env._states)

    def bytes_of(self) -> Traveled:
        """Of the last iteration."""
        rows, of = self.env.num_rows, self.traveled
        return Traveled(of["policy"], of["to_actors"] / rows, of["rollout"] / rows, of["env_states"] / rows)


@dataclass(frozen=True)
class Result:
    """Of one task: milliseconds, and ratios of the same round."""

    name: str
    native_rollout: Spread
    ray_rollout: Spread
    rollout_ratio: Spread
    iteration_ratio: Spread
    overhead_ms: Spread
    learning: Spread
    phases_ms: dict[str, float]
    traveled: Traveled


def measured(task: Task, rounds: int) -> Result:
    """Iterations of both engines in turns."""
    trainers = {name: task.started(name) for name in ENGINES}
    collector = trainers["ray"].collector
    assert isinstance(collector, RayCollector)
    for trainer in trainers.values():
        trainer.iterate()  # threads, views and workspaces are made now
    watch = Watch(collector)
    rollout: dict[str, list[float]] = {name: [] for name in ENGINES}
    whole: dict[str, list[float]] = {name: [] for name in ENGINES}
    for _ in range(rounds):
        for name, trainer in trainers.items():
            report = trainer.iterate()
            rollout[name].append(1e3 * report.rollout_s)
            whole[name].append(1e3 * (report.rollout_s + report.learn_s))
    for trainer in trainers.values():
        trainer.collector.rows.env.close()
    pairs = zip(rollout["ray"], rollout["native"], strict=True)
    return Result(
        task.name,
        spread(rollout["native"]),
        spread(rollout["ray"]),
        ratio(rollout["ray"], rollout["native"]),
        ratio(whole["ray"], whole["native"]),
        spread([ours - theirs for ours, theirs in pairs]),
        spread([all_of - part for all_of, part in zip(whole["native"], rollout["native"], strict=True)]),
        {name: 1e3 * seconds / rounds for name, seconds in watch.seconds.items()},
        watch.bytes_of(),
    )


def page(results: list[Result], command: str, facts: dict[str, Any], load: Load) -> str:
    """The tables."""
    speed = [
        f"| {one.name} | {one.native_rollout.with_range('.1f')} | {one.ray_rollout.with_range('.1f')}"
        f" | {one.overhead_ms.with_range('.1f')} | {one.rollout_ratio.with_range('.2f')}"
        f" | {one.learning.with_range('.0f')} | {one.iteration_ratio.with_range('.2f')} |"
        for one in results
    ]
    phases = [f"| {one.name} | " + " | ".join(f"{ms:.2f}" for ms in one.phases_ms.values()) + " |" for one in results]
    traveled = [
        f"| {one.name} | {one.traveled.policy:,} | {one.traveled.to_actors:,.0f} | {one.traveled.rollout:,.0f}"
        f" | {one.traveled.env_states:,.0f} |"
        for one in results
    ]
    return "\n".join(
        [
            "# Many machines",
            "",
            f"`ray` with {ACTORS} actors of one thread each, over `native` with {ACTORS} threads, in turns on the same",
            "machine: median (lowest to highest). 4 epochs of 8 minibatches.",
            "",
            "| task | rollout, native, ms | rollout, ray, ms | overhead, ms | rollout, ratio | learning, ms"
            " | iteration, ratio |",
            "|---|---:|---:|---:|---:|---:|---:|",
            *speed,
            "",
            "Milliseconds of a rollout by phase, means:",
            "",
            f"| task | {' | '.join(results[0].phases_ms)} |",
            "|---|---:|---:|---:|",
            *phases,
            "",
            "Bytes of one iteration: the policy once per machine, everything else per row.",
            "",
            "| task | policy | to the actors, per row | rollout, per row | states of the envs, per row |",
            "|---|---:|---:|---:|---:|",
            *traveled,
            "",
            f"`{command}`, {describe_machine(facts)}. {load.describe()}",
            "",
        ]
    )


def main() -> None:
    """Measure all tasks and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    results, before, clock = [], os.getloadavg()[0], OthersClock([])
    for task in TASKS:
        results.append(measured(task, rounds))
        print(results[-1], flush=True)
    load = Load(before, share := clock.share(), share)
    command, facts = f"python -m benchmarks.many_machines --rounds {rounds}", machine()
    RESULTS.mkdir(parents=True, exist_ok=True)
    record = {
        "command": command,
        "results": [asdict(result) for result in results],
        "machine": facts,
        "load": asdict(load),
    }
    (RESULTS / "many_machines.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    text = page(results, command, facts, load)
    (RESULTS / "README.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
