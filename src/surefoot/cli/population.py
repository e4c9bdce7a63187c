"""`surefoot population CONFIG ...`, `surefoot population resume DIR`, `surefoot population replay DIR ...`"""

from pathlib import Path

from surefoot.cli.arguments import parse, print_settings, split_settings, wants_help
from surefoot.cli.lines import tell, tell_next
from surefoot.errors import ConfigError, RunDirectoryError
from surefoot.settings.layers import Raw, read_yaml


def main(arguments: list[str]) -> int:
    """Parse, then train, resume or replay."""
    rest, settings = split_settings(arguments)
    if rest[:1] == ["resume"]:
        return parse(resume, "population resume", rest[1:])
    if rest[:1] == ["replay"]:
        return parse(replay, "population replay", rest[1:])

    def population(config: str, /, run_dir: Path | None = None) -> int:
        """Train a population: the worst members continue from the best, with changed settings.

        'surefoot population resume DIR' continues a population that was stopped; 'surefoot population replay DIR'
        trains one run with the settings of the winner.

        Args:
            config: a YAML file with the section `population`, or the name of a preset ('market')
            run_dir: directory of the population; default: runs/population-<name>
        """
        raw = _with_settings(_read(config), settings)
        return train(raw, run_dir or Path("runs") / f"population-{Path(config).stem}")

    try:
        return parse(population, "population", rest)
    finally:
        if wants_help(rest):
            _print_own_settings()
            print_settings()


def resume(directory: Path, /) -> int:
    """Continue a population that was stopped or killed; the same as repeating its command.

    Args:
        directory: the directory of the population
    """
    return train(_read_directory(directory), directory)


def replay(directory: Path, /, run_dir: Path | None = None) -> int:
    """Train one run with the settings that the winner and its ancestors had, round by round.

    Args:
        directory: the directory of the population
        run_dir: directory of the new run; default: <directory>/replay
    """
    from surefoot.population.replay import REPLAY, replay_winner
    from surefoot.population.settings import build_plan

    run = run_dir or directory / REPLAY
    code = replay_winner(directory, build_plan(_read_directory(directory)), run)
    if code == 0:
        tell_next(("surefoot", "evaluate", run), ("surefoot", "doctor", run), ("surefoot", "report", run))
    return code


def train(raw: Raw, directory: Path) -> int:
    """Run or continue a population."""
    from surefoot.population.coordinator import run_population
    from surefoot.population.decisions import ranked
    from surefoot.population.display import build_display, shown_score
    from surefoot.population.settings import build_plan

    plan = build_plan(raw)
    display = build_display(plan, f"population of {plan.population.members} · {plan.config.env.id} · {directory}")
    try:
        last = run_population(directory, plan, display)
    except KeyboardInterrupt:
        print(f"stopped; 'surefoot population resume {directory}' continues the population")
        raise
    finally:
        display.close()
    best = last[ranked([entry.score for entry in last], [entry.has_failed for entry in last])[0]]
    tell("winner", f"member {best.member:02d}, score {shown_score(best.score, best.interval)}")
    tell("members", f"{directory / 'members'}  (run directories)")
    tell("log", str(directory / "population.jsonl"))
    tell("best", str(directory / "best.safetensors"))
    tell_next(("surefoot", "report", directory), ("surefoot", "population", "replay", directory))
    return 0


def _read(config: str) -> Raw:
    from surefoot.population.presets import population_presets

    return population_presets.read(config)


def _read_directory(directory: Path) -> Raw:
    file = directory / "population.yaml"
    if not file.is_file():
        raise RunDirectoryError(
            f"{directory} is not the directory of a population (it has no population.yaml); pass the one that"
            " 'surefoot population' printed"
        )
    return read_yaml(file)


def _with_settings(raw: Raw, settings: Raw) -> Raw:
    from surefoot.population.settings import NAME, split_population
    from surefoot.presets import configured

    own, rest = split_population(settings)
    section = raw.get(NAME) or {}
    if not isinstance(section, dict):
        raise ConfigError(f"{NAME}: must be a section with keys such as members and tunables")
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(section.get(key), dict)
        section = {**section, key: {**section[key], **value} if both else value}
    found = configured(None, {key: value for key, value in raw.items() if key != NAME}, rest)
    tell("preset", found.line)
    return {**found.config.model_dump(mode="json"), NAME: section}


def _print_own_settings() -> None:
    from surefoot.population.settings import PopulationConfig

    defaults = PopulationConfig()
    print(f"settings of populations:\n\n  population: {PopulationConfig.__doc__}")
    for key, field in PopulationConfig.model_fields.items():
        default = getattr(defaults, key)
        print(f"    --population.{key:18s} {'none' if default in (None, {}) else default!s:14s} {field.description}")
    print()
