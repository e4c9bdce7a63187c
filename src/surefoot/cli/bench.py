"""`surefoot bench train|rollout|scaling|stepping|peers ...`"""

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
    from surefoot.benchmark.engines import Contest
    from surefoot.benchmark.report import Report

BENCHMARKS = {
    "train": "a run from end to end: steps/s by phase, memory of all processes",
    "rollout": "the engines side by side, collecting only",
    "scaling": "speed and memory against the number of envs, and the best one",
    "stepping": "envs alone with random actions: native, EnvPool, Gymnasium",
    "peers": "Surefoot beside other PPO systems (extra 'peers')",
}
STDOUT = "-"
WITHOUT_SETTINGS = ("stepping", "peers")
"""Their sides have nothing of a run's config in common."""

Target = Annotated[str | None, tyro.conf.Positional]
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]


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
    if name in WITHOUT_SETTINGS and settings:
        raise ConfigError([f"{key}: bench {name} has settings of its own, the same on every side" for key in settings])
    commands: dict[str, Callable[..., int]] = {
        "train": partial(_train, settings, arguments),
        "rollout": partial(_rollout, settings, arguments),
        "scaling": partial(_scaling, settings, arguments),
        "stepping": partial(_stepping, arguments),
        "peers": partial(_peers, arguments),
    }
    try:
        return commands[name](rest)
    finally:
        if wants_help(rest) and name not in WITHOUT_SETTINGS:
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
        only_native: Switch = False,
        only_python: Switch = False,
        threads_list: tuple[int, ...] = (),
        effort: Annotated[Effort, tyro.conf.OmitArgPrefixes] = Effort(repeats=5),  # noqa: B008
        output: Annotated[Output, tyro.conf.OmitArgPrefixes] = Output(),  # noqa: B008
    ) -> int:
        """Measure the engines side by side, in turns: collecting only, and the limit of the native one.

        Args:
            target: a preset or a Gymnasium id; the default preset if not given
            config: a YAML file with settings, on top of the preset's
            engines: which ones; all if not given
            only_native: the native engine and its limit
            only_python: all engines but the native one
            threads_list: numbers of threads that the native engine is measured with besides, such as 1 2
        """
        from surefoot.benchmark.engines import bench_rollout

        contest = _contest(engines, only_native, only_python, threads_list)
        return _deliver(bench_rollout(_config(target, config, settings), contest, effort, say), arguments, output)

    return parse(rollout, "bench rollout", rest)


def _contest(engines: tuple[str, ...], only_native: bool, only_python: bool, threads: tuple[int, ...]) -> "Contest":
    """Who collects; two ways to say so at once are refused."""
    from surefoot.benchmark.engines import NATIVE, Contest

    given = {"--engines": bool(engines), "--only-native": only_native, "--only-python": only_python}
    if sum(given.values()) > 1:
        names = " and ".join(name for name, is_given in given.items() if is_given)
        raise ConfigError([f"{names}: exclude each other, give one of them"])
    chosen = _engines(engines) or _known_engines()
    if only_native or only_python:
        chosen = [name for name in chosen if (name == NATIVE) == only_native]
    if threads and min(threads) < 1:
        raise ConfigError([f"--threads-list: needs numbers of at least 1 (got {threads})"])
    if threads and NATIVE not in chosen:
        raise ConfigError(["--threads-list: is of the native engine, which is not among those chosen"])
    return Contest(chosen, tuple(dict.fromkeys(threads)))


def _scaling(settings: Raw, arguments: list[str], rest: list[str]) -> int:
    def scaling(
        target: Target = None,
        /,
        config: Path | None = None,
        num_envs_list: tuple[int, ...] = (2, 4, 8, 16, 32, 64),
        engines: tuple[str, ...] = (),
        only_rollout: Switch = False,
        effort: Annotated[Effort, tyro.conf.OmitArgPrefixes] = Effort(seconds=3.0),  # noqa: B008
        output: Annotated[Output, tyro.conf.OmitArgPrefixes] = Output(),  # noqa: B008
    ) -> int:
        """Measure speed and memory against the number of envs, and recommend one.

        Args:
            target: a preset or a Gymnasium id; the default preset if not given
            config: a YAML file with settings, on top of the preset's
            num_envs_list: the numbers of envs
            engines: which ones; the configured one if not given
            only_rollout: no learning, and what a step of the rollout costs
        """
        from surefoot.benchmark.scaling import Sweep, bench_scaling

        if not num_envs_list or min(num_envs_list) < 1:
            raise ConfigError([f"--num-envs-list: needs numbers of at least 1 (got {num_envs_list})"])
        run = _config(target, config, settings)
        sweep = Sweep(num_envs_list, _engines(engines) or [run.rollout.engine], only_rollout)
        return _deliver(bench_scaling(run, sweep, effort, say), arguments, output)

    return parse(scaling, "bench scaling", rest)


def _stepping(arguments: list[str], rest: list[str]) -> int:
    def stepping(
        env: Annotated[str, tyro.conf.Positional] = "CartPole-v1",
        /,
        num_envs: int = 64,
        num_steps: int = 64,
        sides: tuple[str, ...] = (),
        effort: Annotated[Effort, tyro.conf.OmitArgPrefixes] = Effort(seconds=2.0),  # noqa: B008
        output: Annotated[Output, tyro.conf.OmitArgPrefixes] = Output(),  # noqa: B008
    ) -> int:
        """Measure envs alone with random actions, each side in its own process, in turns.

        Args:
            env: a Gymnasium id
            num_envs: envs side by side
            num_steps: steps of each env in an iteration
            sides: native, native-core, envpool, gymnasium; all that are installed if not given
        """
        from surefoot.benchmark.stepping import Course, bench_stepping

        return _deliver(bench_stepping(Course(env, num_envs, num_steps), sides, effort, say), arguments, output)

    return parse(stepping, "bench stepping", rest)


def _peers(arguments: list[str], rest: list[str]) -> int:
    def peers(
        tasks: tuple[str, ...] = (),
        peers: tuple[str, ...] = (),
        engines: tuple[str, ...] = (),
        threads: int = 0,
        effort: Annotated[Effort, tyro.conf.OmitArgPrefixes] = Effort(),  # noqa: B008
        output: Annotated[Output, tyro.conf.OmitArgPrefixes] = Output(),  # noqa: B008
    ) -> int:
        """Measure Surefoot beside others: same envs and hyperparameters, each in its own process, in turns.

        Args:
            tasks: cartpole-8, cartpole-64, halfcheetah-8, halfcheetah-64, ant-64, humanoid-16, masked-16; all if
                not given
            peers: sb3, sb3-subproc, sb3-contrib, envpool, skrl, rsl-rl; all that are installed if not given
            engines: native, local, processes: Surefoot's sides; all if not given
            threads: torch threads of every side; 0: what each uses by itself
        """
        from surefoot.benchmark.comparison import Comparison, bench_peers, choose_sides, choose_tasks
        from surefoot.benchmark.report import Occasion, write

        if threads < 0:
            raise ConfigError([f"--threads: must be 0 or more (got {threads})"])
        comparison = Comparison(choose_tasks(tasks), choose_sides(engines, peers), threads)

        def keep(report: "Report") -> None:
            if output.output is not None:
                write(report, Occasion.now(arguments), output.output)

        report = bench_peers(comparison, effort, say, keep)
        _deliver(report, arguments, output)
        failed = report.results["failed"]
        if failed:
            say(f"failed: {', '.join(failed)}")
        return 1 if failed else 0

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
