"""`surefoot bench train|learn|rollout|scaling|stepping|peers ...`: runs the benchmark, one module each.

Those of a configured run share its settings, and engines by name.
"""

import importlib
from pathlib import Path

from surefoot.cli.arguments import print_settings, split_settings, wants_help
from surefoot.cli.bench.output import STDOUT
from surefoot.errors import ConfigError, SurefootError
from surefoot.settings.config import Config
from surefoot.settings.layers import Raw
from surefoot.settings.registry import nearest

BENCHMARKS = {
    "train": "a complete run: steps per second by phase, RAM of all processes",
    "learn": "the learners only: milliseconds per minibatch, and the limit of the arithmetic",
    "rollout": "compare the engines, rollouts only",
    "scaling": "speed and RAM for different numbers of envs, with a recommendation",
    "stepping": "environments only, with random actions: native, EnvPool, Gymnasium",
    "peers": "compare Surefoot with other PPO libraries; needs a checkout and the extra 'peers'",
}
WITHOUT_SETTINGS = ("learn", "stepping", "peers")
"""Benchmarks that do not use the settings of a run."""


def main(arguments: list[str]) -> int:
    """Select the benchmark, parse its options, measure and print."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_usage())
        return 0 if arguments else 2
    name, rest = arguments[0], arguments[1:]
    if name not in BENCHMARKS:
        raise SurefootError(f"unknown benchmark '{name}'{nearest(name, BENCHMARKS)} (see surefoot bench --help)")
    rest, settings = split_settings(_with_json_value(rest))
    if name in WITHOUT_SETTINGS and settings:
        raise ConfigError(
            [f"{key}: bench {name} does not accept settings; it uses the same ones for every side" for key in settings]
        )
    try:
        module = importlib.import_module(f"surefoot.cli.bench.{name}")
        given = (arguments,) if name in WITHOUT_SETTINGS else (settings, arguments)
        code: int = module.main(*given, rest)
        return code
    finally:
        if wants_help(rest) and name not in WITHOUT_SETTINGS:
            print_settings()


def _with_json_value(arguments: list[str]) -> list[str]:
    """`--json` without a value means standard output."""
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
    return "\n".join([*lines, "", "run 'surefoot bench BENCHMARK --help' for details"])


def run_config(target: str | None, file: Path | None, settings: Raw) -> Config:
    """The config to measure."""
    from surefoot.cli.train import chosen

    # A benchmark has no fixed number of steps, so schedules must not reach their end.
    return chosen(target, file, {"train.steps": 10**12}, settings).config


def known_engines() -> list[str]:
    """Names of all engines that run on this machine; one for a cluster must be asked for."""
    from surefoot.envs.engines import engines

    return [name for name in engines.names() if engines[name].steps_here]


def named_engines(names: tuple[str, ...]) -> list[str]:
    """The given engine names, validated."""
    from surefoot.envs.engines import engines

    for name in names:
        engines[name]
    return list(dict.fromkeys(names))
