"""`surefoot bench train|rollout|scaling|peers ...`"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from surefoot.benchmark.rounds import Effort
from surefoot.cli.arguments import parse, print_settings, split_settings, wants_help
from surefoot.core.config import Config
from surefoot.core.errors import ConfigError, SurefootError
from surefoot.core.layers import Raw, build_config, read_yaml
from surefoot.core.registry import nearest

if TYPE_CHECKING:
    from surefoot.benchmark.report import Report

BENCHMARKS = {
    "train": "a run from end to end: steps/s by phase, memory of all processes",
    "rollout": "the engines side by side, collecting only",
    "scaling": "speed and memory against the number of envs, and the best one",
    "peers": "Surefoot beside other PPO systems (extra 'peers')",
}
STDOUT = "-"

Target = Annotated[str | None, tyro.conf.Positional]


@dataclass(frozen=True)
class Output:
    """Where results go besides the screen."""

    json: str | None = None
    """a file for the numbers; alone or with - they are printed instead of tables"""
    output: Path | None = None
    """a folder for <benchmark>.json and <benchmark>.md"""

    def __post_init__(self) -> None:
        """Refuse places that cannot be written to before anything is measured."""
        folders = {} if self.output is None else {"--output": self.output}
        if self.json is not None and self.json != STDOUT:
            folders["--json"] = Path(self.json).parent
        for option, folder in folders.items():
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError([f"{option}: {folder} cannot be written to ({error.strerror})"]) from error


def main(arguments: list[str]) -> int:
    """Find the benchmark, parse, measure, show."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_usage())
        return 0 if arguments else 2
    name, rest = arguments[0], arguments[1:]
    if name not in BENCHMARKS:
        raise SurefootError(f"there is no benchmark '{name}'{nearest(name, BENCHMARKS)} (see surefoot bench --help)")
    rest, settings = split_settings(_with_json_value(rest))
    if name == "peers" and settings:
        raise ConfigError([f"{key}: bench peers has settings of its own, the same on every side" for key in settings])
    commands: dict[str, Callable[..., int]] = {
        "train": partial(_train, settings, arguments),
        "rollout": partial(_rollout, settings, arguments),
        "scaling": partial(_scaling, settings, arguments),
        "peers": partial(_peers, arguments),
    }
    try:
        return commands[name](rest)
    finally:
        if wants_help(rest) and name != "peers":
            print_settings()


def _train(settings: Raw, arguments: list[str], rest: list[str]) -> int:
    def train(
        target: Target = None,
        /,
        config: Path | None = None,
        effort: Annotated[Effort, tyro.conf.OmitArgPrefixes] = Effort(repeats=5, seconds=8.0),  # noqa: B008
        output: Annotated[Output, tyro.conf.OmitArgPrefixes] = Output(),  # noqa: B008
    ) -> int:
        """Measure a run from end to end in a process of its own: rollout, learning, memory.

        Args:
            target: a preset or a Gymnasium id; the default preset if not given
            config: a YAML file with settings, on top of the preset's
        """
        from surefoot.benchmark.train import bench_train

        return _deliver(bench_train(_config(target, config, settings), effort, say), arguments, output)

    return parse(train, "bench train", rest)


def _rollout(settings: Raw, arguments: list[str], rest: list[str]) -> int:
    def rollout(
        target: Target = None,
        /,
        config: Path | None = None,
        engines: tuple[str, ...] = (),
        effort: Annotated[Effort, tyro.conf.OmitArgPrefixes] = Effort(repeats=5),  # noqa: B008
        output: Annotated[Output, tyro.conf.OmitArgPrefixes] = Output(),  # noqa: B008
    ) -> int:
        """Measure the engines side by side, in turns: collecting only.

        Args:
            target: a preset or a Gymnasium id; the default preset if not given
            config: a YAML file with settings, on top of the preset's
            engines: which ones; all if not given
        """
        from surefoot.benchmark.engines import bench_rollout

        chosen = _engines(engines) or _known_engines()
        report = bench_rollout(_config(target, config, settings), chosen, effort, say)
        return _deliver(report, arguments, output)

    return parse(rollout, "bench rollout", rest)


def _scaling(settings: Raw, arguments: list[str], rest: list[str]) -> int:
    def scaling(
        target: Target = None,
        /,
        config: Path | None = None,
        num_envs_list: tuple[int, ...] = (2, 4, 8, 16, 32, 64),
        engines: tuple[str, ...] = (),
        effort: Annotated[Effort, tyro.conf.OmitArgPrefixes] = Effort(seconds=3.0),  # noqa: B008
        output: Annotated[Output, tyro.conf.OmitArgPrefixes] = Output(),  # noqa: B008
    ) -> int:
        """Measure speed and memory against the number of envs, and recommend one.

        Args:
            target: a preset or a Gymnasium id; the default preset if not given
            config: a YAML file with settings, on top of the preset's
            num_envs_list: the numbers of envs
            engines: which ones; the configured one if not given
        """
        from surefoot.benchmark.scaling import bench_scaling

        if not num_envs_list or min(num_envs_list) < 1:
            raise ConfigError([f"--num-envs-list: needs numbers of at least 1 (got {num_envs_list})"])
        run = _config(target, config, settings)
        report = bench_scaling(run, num_envs_list, _engines(engines) or [run.rollout.engine], effort, say)
        return _deliver(report, arguments, output)

    return parse(scaling, "bench scaling", rest)


def _peers(arguments: list[str], rest: list[str]) -> int:
    def peers(
        tasks: tuple[str, ...] = (),
        peers: tuple[str, ...] = (),
        engines: tuple[str, ...] = (),
        threads: int = 1,
        effort: Annotated[Effort, tyro.conf.OmitArgPrefixes] = Effort(),  # noqa: B008
        output: Annotated[Output, tyro.conf.OmitArgPrefixes] = Output(),  # noqa: B008
    ) -> int:
        """Measure Surefoot beside others: same envs, hyperparameters and threads, each in its own process, in turns.

        Args:
            tasks: cartpole-8, cartpole-64, halfcheetah-8, halfcheetah-64, ant-64, humanoid-16, masked-16; all if
                not given
            peers: sb3, sb3-subproc, sb3-contrib, envpool; all that are installed if not given
            engines: Surefoot's sides; all if not given
            threads: torch threads of every side
        """
        from surefoot.benchmark.comparison import Comparison, bench_peers, choose_sides, choose_tasks
        from surefoot.benchmark.report import Occasion, write

        if threads < 1:
            raise ConfigError([f"--threads: must be at least 1 (got {threads})"])
        comparison = Comparison(choose_tasks(tasks), choose_sides(engines, peers), threads)

        def keep(report: "Report") -> None:
            if output.output is not None:
                write(report, Occasion.now(arguments), output.output)

        return _deliver(bench_peers(comparison, effort, say, keep), arguments, output)

    return parse(peers, "bench peers", rest)


def say(line: str) -> None:
    """Progress, where it does not mix with results."""
    print(line, file=sys.stderr, flush=True)


def _config(target: str | None, file: Path | None, settings: Raw) -> Config:
    from surefoot.cli.train import target_settings

    # A benchmark is no run of a fixed length: schedules must not reach their end in it.
    endless = {"train": {"steps": 10**12}}
    yaml = {} if file is None else read_yaml(file)
    return build_config(target_settings(target, has_config=file is not None), yaml, endless, settings)


def _known_engines() -> list[str]:
    from surefoot.envs.engines import engines

    return engines.names()


def _engines(names: tuple[str, ...]) -> list[str]:
    """The named ones, checked."""
    from surefoot.envs.engines import engines

    for name in names:
        engines[name]
    return list(dict.fromkeys(names))


def _deliver(report: "Report", arguments: list[str], output: Output) -> int:
    """Files first, so that nothing measured is lost; then the screen."""
    from rich.console import Console

    from surefoot.benchmark.report import Occasion, show, to_json, write, write_text

    occasion = Occasion.now(arguments)
    written = [] if output.output is None else write(report, occasion, output.output)
    if output.json is not None and output.json != STDOUT:
        written.append(Path(output.json))
        write_text(written[-1], to_json(report, occasion) + "\n")
    if output.json == STDOUT:
        print(to_json(report, occasion))
    else:
        show(report, Console())
    for file in written:
        say(f"wrote {file}")
    return 0


def _with_json_value(arguments: list[str]) -> list[str]:
    """A lone `--json` means standard output."""
    result = []
    for place, argument in enumerate(arguments):
        result.append(argument)
        following = arguments[place + 1 : place + 2]
        if argument == "--json" and (not following or following[0].startswith("--")):
            result.append(STDOUT)
    return result


def _usage() -> str:
    lines = ["usage: surefoot bench BENCHMARK ...", ""]
    lines += [f"  {name:10s} {text}" for name, text in BENCHMARKS.items()]
    return "\n".join([*lines, "", "surefoot bench BENCHMARK --help says more"])
