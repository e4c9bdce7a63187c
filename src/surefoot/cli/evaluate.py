"""`surefoot evaluate RUN|MODEL ...`"""

import json as json_text
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import UseAppendAction

from surefoot.cli.arguments import Switch
from surefoot.cli.lines import wrapped
from surefoot.cli.trained import load_agent, or_in_python
from surefoot.errors import ConfigError
from surefoot.output.quoted import quoted
from surefoot.settings.strict_yaml import YamlError, parse_yaml
from surefoot.statistics.alpha import DEFAULT_ALPHA, check_alpha, percent
from surefoot.statistics.risk import Estimate, Risk

if TYPE_CHECKING:
    from surefoot.evaluation.evaluation import Evaluation
    from surefoot.learning.attacks import Attack

_RANGE = re.compile(r"(-?\d{1,9})-(-?\d{1,9})")
_MOST_VALUES = 1000


def run(
    model: str,
    /,
    episodes: int = 20,
    seed: int = 0,
    alpha: float = DEFAULT_ALPHA,
    stochastic: Switch = False,
    json: Switch = False,
    env: str | None = None,
    trust: Switch = False,
    attack: str | None = None,
    epsilon: float | None = None,
    attack_steps: int | None = None,
    over: UseAppendAction[tuple[str, ...]] = (),
    metric: str = "mean_reward",
    heat_map: Path | None = None,
) -> int:
    """Evaluate a run (its best policy, or the newest if there is none) or a model file over complete episodes.

    Args:
        model: a run directory, a .safetensors file, or zoo:NAME ('surefoot zoo')
        episodes: number of episodes
        seed: seed of the episodes; the same seed gives the same episodes
        alpha: share of the worst episodes that the CVaR is the mean of
        stochastic: sample actions instead of using the deterministic ones
        json: print JSON
        env: a Gymnasium id to use instead of the one the policy was trained on
        trust: import modules and load libraries that the model names
        attack: also evaluate with adversarial observations, from the same seeds: pgd or fgsm
        epsilon: maximum perturbation of each element of the observation, in standard deviations if it is normalized
        attack_steps: number of steps of pgd; 10 if not given
        over: NAME=VALUES: evaluate at each of these values of a parameter of the env, or of an argument of its
            constructor, such as level=0-9 or terrain=stairs,gaps; several make a grid
        metric: with --over, the figure in the table: mean_reward, cvar, win_rate or a metric of the env
        heat_map: with --over, a .png file for a picture of the table
    """
    from surefoot.telemetry.console import warnings_on_stderr

    if episodes < 1:
        raise ConfigError(f"--episodes: must be at least 1 (got {episodes})")
    check_alpha(alpha, "--alpha")
    adversary = attack_of(attack, epsilon, attack_steps)
    if over:
        if adversary is not None:
            raise ConfigError("--over: cannot be combined with --attack; evaluate without one of them")
        options = {"episodes": episodes, "seed": seed, "deterministic": not stochastic}
        return _evaluate_over(model, env, trust, axes_of(over), options, _Shown(metric, alpha, json, heat_map))
    if heat_map is not None:
        raise ConfigError("--heat-map: needs --over NAME=VALUES")
    with or_in_python(model, f"evaluate({episodes})", env):
        agent, path = load_agent(model, env, trust)
        clean = agent.evaluate(episodes, seed=seed, deterministic=not stochastic)
    attacked = None
    if adversary is not None:
        attacked = agent.evaluate(episodes, seed=seed, deterministic=not stochastic, attack=adversary)
    with warnings_on_stderr():
        if json:
            result = {"model": str(path), **clean.to_json(alpha)}
            if adversary is not None and attacked is not None:
                result |= {"attack": asdict(adversary), "attacked": attacked.to_json(alpha)}
            print(json_text.dumps(result))
        else:
            print("\n".join([f"model           {path}", *_lines(clean, clean.risk(alpha))]))
            if adversary is not None and attacked is not None:
                print("\n".join(["", *side_by_side(adversary, clean, attacked)]))
    return 0


@dataclass(frozen=True)
class _Shown:
    """What is shown of a grid, and how."""

    metric: str
    alpha: float
    json: bool
    heat_map: Path | None


def _evaluate_over(
    model: str, env: str | None, trust: bool, axes: dict[str, list[Any]], options: dict[str, Any], shown: _Shown
) -> int:
    """Evaluate over a grid: a table or JSON, and a heat map."""
    from surefoot.evaluation.grid import check_heat_map_file
    from surefoot.telemetry.console import warnings_on_stderr

    if shown.heat_map is not None:
        check_heat_map_file(shown.heat_map, "--heat-map")
    with or_in_python(model, f"evaluate_over({axes}, {options['episodes']})", env):
        agent, path = load_agent(model, env, trust)
        with cell_progress(prod(map(len, axes.values()))) as tell:
            grid = agent.evaluate_over(axes, **options, tell=tell)
    table = grid.table(shown.metric, shown.alpha)
    if shown.heat_map is not None:
        grid.save_heat_map(shown.heat_map, shown.metric, shown.alpha)
    with warnings_on_stderr():
        if shown.json:
            print(json_text.dumps({"model": str(path), **grid.to_json(shown.alpha)}))
        else:
            heat_map = [] if shown.heat_map is None else [f"heat map        {shown.heat_map}"]
            print("\n".join([f"model           {path}", *heat_map, "", *table]))
    return 0


def _lines(evaluation: "Evaluation", risk: Risk) -> list[str]:
    count = len(evaluation.rewards)
    return [
        f"mean reward     {evaluation.mean_reward:.2f} ± {evaluation.std_reward:.2f}",
        f"worst reward    {risk.worst_reward:.2f} (episode {risk.worst_episode}; the first is 0)",
        f"mean length     {evaluation.mean_ep_length:.1f}",
        f"episodes        {count}",
        *(f"{name:15s} {evaluation.shown_metric(name)}" for name in evaluation.metrics),
        *([] if evaluation.note is None else [wrapped(f"{'note':16s}{evaluation.note}", 16)]),
        "",
        *_table(risk),
    ]


def _table(risk: Risk) -> list[str]:
    """Figures with their intervals, aligned at the right."""
    figures: dict[str, Estimate | None] = {
        "mean reward": risk.mean,
        f"CVaR {percent(risk.alpha)}": risk.cvar,
        **{f"quantile {percent(share)}": found for share, found in risk.quantiles.items()},
        "mean / std": risk.sharpe,
        "win rate": risk.win_rate,
    }
    cells = {name: [f"{value:.2f}" for value in found] for name, found in figures.items() if found is not None}
    wide = max(len(cell) for row in cells.values() for cell in row)
    width = max(wide, len("value"))
    head = f"{'':15s} {'value':>{width}}   95% bootstrap interval"
    return [head] + [
        f"{name:15s} {value:>{width}}   {low:>{wide}} to {high:>{wide}}" for name, (value, low, high) in cells.items()
    ]


def axes_of(options: Sequence[str]) -> dict[str, list[Any]]:
    """The values of each name: `level=0-9`, `terrain=stairs,gaps` or a YAML list, `terrain=[stairs, "0-9"]`."""
    axes: dict[str, list[Any]] = {}
    for option in options:
        name, equals, text = (part.strip() for part in option.partition("="))
        if not name or not equals or not text:
            raise ConfigError(f"--over: pass NAME=VALUES, such as level=0-9 or terrain=stairs,gaps (got {option!r})")
        if name in axes:
            raise ConfigError(f"--over: {name} is given twice; put its values in one list")
        axes[name] = _values(name, text)
    return axes


def _values(name: str, text: str) -> list[Any]:
    if text.startswith("["):
        return list(_parsed(name, text))
    return [value for part in text.split(",") for value in _part(name, part.strip())]


def _part(name: str, text: str) -> list[Any]:
    match = _RANGE.fullmatch(text)
    if match is None:
        return [_parsed(name, text)]
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + _MOST_VALUES:
        raise ConfigError(f"--over: {name}: {text} is not a range of 1 to {_MOST_VALUES} numbers, lowest first")
    return list(range(first, last + 1))


def _parsed(name: str, text: str) -> Any:
    try:
        value = parse_yaml(text)
    except YamlError as error:
        raise ConfigError(f"--over: {name}: cannot parse {quoted(text)}: {error}") from error
    if value is None:
        raise ConfigError(f"--over: {name}: a value is missing in {quoted(text)}")
    return value


@contextmanager
def cell_progress(cells: int) -> Iterator[Callable[[Any], None]]:
    """A bar on a terminal that is called with every cell; elsewhere nothing."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from surefoot.output.terminal import Terminal

    console = Terminal(stderr=True)
    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("cells"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=cells)
        yield lambda cell: progress.advance(bar)


def attack_of(method: str | None, epsilon: float | None, steps: int | None) -> "Attack | None":
    """The attack that the options describe."""
    if method is None:
        unused = [name for name, value in (("--epsilon", epsilon), ("--attack-steps", steps)) if value is not None]
        if unused:
            raise ConfigError([f"{name}: has no effect without --attack; add --attack pgd" for name in unused])
        return None
    if epsilon is None:
        raise ConfigError("--attack: requires --epsilon, the maximum perturbation; add --epsilon 0.1, for example")
    if method == "fgsm" and steps is not None:
        raise ConfigError("--attack-steps: fgsm takes a single step; use --attack pgd for more")
    from surefoot.learning.attacks import Attack

    return Attack(method, epsilon) if steps is None else Attack(method, epsilon, steps)


def side_by_side(attack: "Attack", clean: "Evaluation", attacked: "Evaluation") -> list[str]:
    """A table of both results."""
    how = f", {attack.steps} steps" if attack.method == "pgd" else ""
    rows = [
        ("", "clean", "attacked"),
        ("mean reward", *(f"{one.mean_reward:.2f} ± {one.std_reward:.2f}" for one in (clean, attacked))),
        ("95% interval", *("{:.2f} to {:.2f}".format(*one.interval()) for one in (clean, attacked))),
        ("mean length", *(f"{one.mean_ep_length:.1f}" for one in (clean, attacked))),
    ]
    width = max(len(row[1]) for row in rows)
    return [
        f"attack          {attack.method}, epsilon {attack.epsilon:g}{how}",
        *(f"{name:15s} {left:{width}s}   {right}" for name, left, right in rows),
    ]
