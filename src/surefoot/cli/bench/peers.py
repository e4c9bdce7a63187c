"""`surefoot bench peers`"""

from typing import TYPE_CHECKING

from tyro.conf import OmitArgPrefixes

from surefoot.benchmark.rounds import Effort
from surefoot.cli.arguments import parse
from surefoot.cli.bench.output import Output, deliver, say
from surefoot.errors import ConfigError

if TYPE_CHECKING:
    from surefoot.benchmark.report import Report


def main(arguments: list[str], rest: list[str]) -> int:
    """Parse, measure, show."""

    def peers(
        tasks: tuple[str, ...] = (),
        peers: tuple[str, ...] = (),
        engines: tuple[str, ...] = (),
        threads: int = 0,
        effort: OmitArgPrefixes[Effort] = Effort(),  # noqa: B008
        output: OmitArgPrefixes[Output] = Output(),  # noqa: B008
    ) -> int:
        """Measure Surefoot beside others: same envs and hyperparameters, each in its own process, in turns.

        Args:
            tasks: cartpole-8, cartpole-64, halfcheetah-8, halfcheetah-64, ant-64, humanoid-16, masked-16,
                cartpole-memory-8; all if not given
            peers: sb3, sb3-subproc, sb3-contrib, envpool, skrl, rsl-rl; all that are installed if not given
            engines: native, local, processes: Surefoot's sides; all if not given
            threads: torch threads of every system; 0 means its default
        """
        from surefoot.benchmark.checkout import import_from_checkout
        from surefoot.benchmark.report import Occasion, write

        if threads < 0:
            raise ConfigError(f"--threads: must be 0 or more (got {threads})")
        systems = import_from_checkout("benchmarks.comparison")
        comparison = systems.Comparison(systems.choose_tasks(tasks), systems.choose_sides(engines, peers), threads)

        def keep(report: "Report") -> None:
            if output.output is not None:
                write(report, Occasion.now(arguments), output.output)

        report = systems.bench_peers(comparison, effort, say, keep)
        deliver(report, arguments, output)
        failed = report.results["failed"]
        if failed:
            say(f"failed: {', '.join(failed)}")
        return 1 if failed else 0

    return parse(peers, "bench peers", rest)
