"""`surefoot bench rollout`"""

from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import OmitArgPrefixes

from surefoot.benchmark.rounds import Effort
from surefoot.cli.arguments import Switch, parse
from surefoot.cli.bench import known_engines, named_engines, run_config
from surefoot.cli.bench.output import Output, deliver, say
from surefoot.errors import ConfigError
from surefoot.settings.layers import Raw

if TYPE_CHECKING:
    from surefoot.benchmark.engines import Contest


def main(settings: Raw, arguments: list[str], rest: list[str]) -> int:
    """Parse, measure, print."""

    def rollout(
        target: str | None = None,
        /,
        config: Path | None = None,
        engines: tuple[str, ...] = (),
        only_native: Switch = False,
        only_python: Switch = False,
        threads_list: tuple[int, ...] = (),
        effort: OmitArgPrefixes[Effort] = Effort(repeats=5),  # noqa: B008
        output: OmitArgPrefixes[Output] = Output(),  # noqa: B008
    ) -> int:
        """Compare the engines on rollouts only, with interleaved repeats, and measure the limit of the native engine.

        Args:
            target: a preset or a Gymnasium id; default: the default preset
            config: a YAML file with settings that override the preset
            engines: engines to measure; default: all
            only_native: measure only the native engine and its limit
            only_python: measure all engines except the native one
            threads_list: additional numbers of threads for the native engine, such as 1 2
        """
        from surefoot.benchmark.engines import bench_rollout

        contest = _contest(engines, only_native, only_python, threads_list)
        return deliver(bench_rollout(run_config(target, config, settings), contest, effort, say), arguments, output)

    return parse(rollout, "bench rollout", rest)


def _contest(engines: tuple[str, ...], only_native: bool, only_python: bool, threads: tuple[int, ...]) -> "Contest":
    """The engines to compare; conflicting options are rejected."""
    from surefoot.benchmark.engines import NATIVE, Contest

    given = {"--engines": bool(engines), "--only-native": only_native, "--only-python": only_python}
    if sum(given.values()) > 1:
        names = " and ".join(name for name, is_given in given.items() if is_given)
        raise ConfigError(f"{names} are mutually exclusive; use one of them")
    chosen = named_engines(engines) or known_engines()
    if only_native or only_python:
        chosen = [name for name in chosen if (name == NATIVE) == only_native]
    if threads and min(threads) < 1:
        raise ConfigError(f"--threads-list: must be numbers of at least 1 (got {threads})")
    if threads and NATIVE not in chosen:
        raise ConfigError(
            "--threads-list: applies only to the native engine, which is not selected; add it to --engines"
        )
    return Contest(chosen, tuple(dict.fromkeys(threads)))
