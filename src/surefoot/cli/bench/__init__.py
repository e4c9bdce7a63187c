"""`surefoot bench train|rollout|scaling|stepping|peers ...`: finds the benchmark, one a module."""

import importlib

from surefoot.cli.arguments import print_settings, split_settings, wants_help
from surefoot.cli.bench.output import STDOUT
from surefoot.core.errors import ConfigError, SurefootError
from surefoot.core.registry import nearest

BENCHMARKS = {
    "train": "a run from end to end: steps/s by phase, RAM of all processes",
    "rollout": "the engines side by side, collecting only",
    "scaling": "speed and RAM against the number of envs, and the best one",
    "stepping": "envs alone with random actions: native, EnvPool, Gymnasium",
    "peers": "Surefoot beside other PPO systems, in a checkout (extra 'peers')",
}
WITHOUT_SETTINGS = ("stepping", "peers")
"""Their sides have nothing of a run's config in common."""


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
    try:
        module = importlib.import_module(f"surefoot.cli.bench.{name}")
        given = (arguments,) if name in WITHOUT_SETTINGS else (settings, arguments)
        code: int = module.main(*given, rest)
        return code
    finally:
        if wants_help(rest) and name not in WITHOUT_SETTINGS:
            print_settings()


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
