"""`surefoot bench learn`"""

from tyro.conf import OmitArgPrefixes

from surefoot.cli.arguments import Switch, parse
from surefoot.cli.bench.output import Output, deliver, say


def main(arguments: list[str], rest: list[str]) -> int:
    """Parse, measure, print."""

    def learn(
        batch: tuple[int, ...] = (),
        network: tuple[str, ...] = (),
        repeats: int = 5,
        seconds: float = 0.1,
        threads: int = 0,
        quick: Switch = False,
        output: OmitArgPrefixes[Output] = Output(),  # noqa: B008
    ) -> int:
        """Measure the learners alone: milliseconds per minibatch, and the share of what the arithmetic allows.

        Args:
            batch: numbers of samples in a minibatch; default: 64, 256, 1024, 4096, 16384
            network: 64-64, 256-256, 3x512, gru-256; default: all
            repeats: number of measurements of each learner
            seconds: length of a measurement, rounded up to whole updates
            threads: number of threads; 0 means one per core
            quick: only batches of 64 and 1024 and the networks 64-64 and gru-256, unless they are given
        """
        from surefoot.benchmark.arithmetic import NETWORKS
        from surefoot.benchmark.learn import BATCHES, QUICK_BATCHES, QUICK_NETWORKS, Course, bench_learn

        batches, networks = (QUICK_BATCHES, QUICK_NETWORKS) if quick else (BATCHES, tuple(NETWORKS))
        course = Course(batch or batches, network or networks, repeats, seconds, threads)
        return deliver(bench_learn(course, say), arguments, output)

    return parse(learn, "bench learn", rest)
