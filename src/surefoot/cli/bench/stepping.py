"""`surefoot bench stepping`"""

from tyro.conf import OmitArgPrefixes

from surefoot.benchmark.rounds import Effort
from surefoot.cli.arguments import parse
from surefoot.cli.bench.output import Output, deliver, say


def main(arguments: list[str], rest: list[str]) -> int:
    """Parse, measure, show."""

    def stepping(
        env: str = "CartPole-v1",
        /,
        num_envs: int = 64,
        num_steps: int = 64,
        sides: tuple[str, ...] = (),
        effort: OmitArgPrefixes[Effort] = Effort(seconds=2.0),  # noqa: B008
        output: OmitArgPrefixes[Output] = Output(),  # noqa: B008
    ) -> int:
        """Measure envs alone with random actions, each side in its own process, in turns.

        Args:
            env: a Gymnasium id
            num_envs: number of envs
            num_steps: steps of each env in an iteration
            sides: native, native-core, envpool, gymnasium; all that are installed if not given
        """
        from surefoot.benchmark.checkout import import_from_checkout

        systems = import_from_checkout("benchmarks.stepping")
        course = systems.Course(env, num_envs, num_steps)
        return deliver(systems.bench_stepping(course, sides, effort, say), arguments, output)

    return parse(stepping, "bench stepping", rest)
