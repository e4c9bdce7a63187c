"""`surefoot bench train`"""

from pathlib import Path

from tyro.conf import OmitArgPrefixes

from surefoot.benchmark.rounds import Effort
from surefoot.cli.arguments import parse
from surefoot.cli.bench import run_config
from surefoot.cli.bench.output import Output, deliver, say
from surefoot.settings.layers import Raw


def main(settings: Raw, arguments: list[str], rest: list[str]) -> int:
    """Parse, measure, print."""

    def train(
        target: str | None = None,
        /,
        config: Path | None = None,
        effort: OmitArgPrefixes[Effort] = Effort(repeats=5, seconds=8.0),  # noqa: B008
        output: OmitArgPrefixes[Output] = Output(),  # noqa: B008
    ) -> int:
        """Measure a complete run in a separate process: rollout, learning, RAM.

        Args:
            target: a preset or a Gymnasium id; default: the default preset
            config: a YAML file with settings that override the preset
        """
        from surefoot.benchmark.train import bench_train

        return deliver(bench_train(run_config(target, config, settings), effort, say), arguments, output)

    return parse(train, "bench train", rest)
