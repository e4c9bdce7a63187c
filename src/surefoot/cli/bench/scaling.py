"""`surefoot bench scaling`"""

from pathlib import Path

from tyro.conf import OmitArgPrefixes

from surefoot.benchmark.rounds import Effort
from surefoot.cli.arguments import Switch, parse
from surefoot.cli.bench import named_engines, run_config
from surefoot.cli.bench.output import Output, deliver, say
from surefoot.errors import ConfigError
from surefoot.settings.layers import Raw


def main(settings: Raw, arguments: list[str], rest: list[str]) -> int:
    """Parse, measure, print."""

    def scaling(
        target: str | None = None,
        /,
        config: Path | None = None,
        num_envs_list: tuple[int, ...] = (2, 4, 8, 16, 32, 64),
        engines: tuple[str, ...] = (),
        only_rollout: Switch = False,
        effort: OmitArgPrefixes[Effort] = Effort(seconds=3.0),  # noqa: B008
        output: OmitArgPrefixes[Output] = Output(),  # noqa: B008
    ) -> int:
        """Measure speed and RAM for different numbers of envs, and recommend one.

        Args:
            target: a preset or a Gymnasium id; default: the default preset
            config: a YAML file with settings that override the preset
            num_envs_list: numbers of envs to measure
            engines: engines to measure; default: the configured engine
            only_rollout: measure rollouts without learning, and the cost of a rollout step
        """
        from surefoot.benchmark.scaling import Sweep, bench_scaling

        if not num_envs_list or min(num_envs_list) < 1:
            raise ConfigError(f"--num-envs-list: must be numbers of at least 1 (got {num_envs_list})")
        run = run_config(target, config, settings)
        sweep = Sweep(num_envs_list, named_engines(engines) or [run.rollout.engine.kind], only_rollout)
        return deliver(bench_scaling(run, sweep, effort, say), arguments, output)

    return parse(scaling, "bench scaling", rest)
