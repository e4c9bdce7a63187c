"""`surefoot evaluate RUN|MODEL ...`"""

import json as json_text
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import tyro

from surefoot.cli.arguments import parse
from surefoot.cli.attack import attack_of, side_by_side
from surefoot.cli.trained import load_agent
from surefoot.core.errors import ConfigError
from surefoot.core.risk import DEFAULT_ALPHA, Estimate, Risk, check_alpha, percent

if TYPE_CHECKING:
    from surefoot.evaluation.evaluation import Evaluation


def main(arguments: list[str]) -> int:
    """Parse, then evaluate."""
    return parse(evaluate_model, "evaluate", arguments)


def evaluate_model(
    model: Annotated[str, tyro.conf.Positional],
    /,
    episodes: int = 20,
    seed: int = 0,
    alpha: float = DEFAULT_ALPHA,
    stochastic: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    env: str | None = None,
    trust: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    attack: str | None = None,
    epsilon: float | None = None,
    attack_steps: int | None = None,
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
    """
    from surefoot.telemetry.console import warnings_on_stderr

    if episodes < 1:
        raise ConfigError([f"--episodes: must be at least 1 (got {episodes})"])
    check_alpha(alpha, "--alpha")
    adversary = attack_of(attack, epsilon, attack_steps)
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


def _lines(evaluation: "Evaluation", risk: Risk) -> list[str]:
    count = len(evaluation.rewards)
    return [
        f"mean reward     {evaluation.mean_reward:.2f} ± {evaluation.std_reward:.2f}",
        f"worst reward    {risk.worst_reward:.2f} (episode {risk.worst_episode}; the first is 0)",
        f"mean length     {evaluation.mean_ep_length:.1f}",
        f"episodes        {count}",
        *(_metric_line(evaluation, name) for name in evaluation.metrics),
        "",
        *_table(risk),
    ]


def _metric_line(evaluation: "Evaluation", name: str) -> str:
    values, mean = evaluation.metrics[name], evaluation.mean_metric(name)
    if mean is None:
        return f"{name:15s} unknown: no episode has a value"
    known = sum(not math.isnan(value) for value in values)
    few = f" (mean of {known} episodes that have a value)" if known < len(values) else ""
    return f"{name:15s} {mean:.4g}{few}"


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
