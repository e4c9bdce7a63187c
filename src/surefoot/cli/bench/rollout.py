"""`surefoot bench rollout`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from surefoot.benchmark.rounds import Effort
from surefoot.cli.arguments import parse
from surefoot.cli.bench.output import Output, deliver, say
from surefoot.cli.bench.settings import Switch, Target, known_engines, named_engines, run_config
from surefoot.core.errors import ConfigError
from surefoot.core.layers import Raw

if TYPE_CHECKING:
    from surefoot.benchmark.engines import Contest


def main(settings: Raw, arguments: list[str], rest: list[str]) -> int:
    """Parse, measure, show."""

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
        return deliver(bench_rollout(run_config(target, config, settings), contest, effort, say), arguments, output)

    return parse(rollout, "bench rollout", rest)


def _contest(engines: tuple[str, ...], only_native: bool, only_python: bool, threads: tuple[int, ...]) -> "Contest":
    """Who collects; two ways to say so at once are refused."""
    from surefoot.benchmark.engines import NATIVE, Contest

    given = {"--engines": bool(engines), "--only-native": only_native, "--only-python": only_python}
    if sum(given.values()) > 1:
        names = " and ".join(name for name, is_given in given.items() if is_given)
        raise ConfigError([f"{names}: exclude each other, give one of them"])
    chosen = named_engines(engines) or known_engines()
    if only_native or only_python:
        chosen = [name for name in chosen if (name == NATIVE) == only_native]
    if threads and min(threads) < 1:
        raise ConfigError([f"--threads-list: needs numbers of at least 1 (got {threads})"])
    if threads and NATIVE not in chosen:
        raise ConfigError(["--threads-list: is of the native engine, which is not among those chosen"])
    return Contest(chosen, tuple(dict.fromkeys(threads)))
