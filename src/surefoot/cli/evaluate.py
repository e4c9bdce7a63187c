"""`surefoot evaluate RUN|MODEL ...`"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro

from surefoot.cli.arguments import parse
from surefoot.cli.attack import attack_of, side_by_side
from surefoot.cli.trained import load_agent


def main(arguments: list[str]) -> int:
    """Parse, then evaluate."""
    return parse(evaluate_model, "evaluate", arguments)


def evaluate_model(
    model: Annotated[Path, tyro.conf.Positional],
    /,
    episodes: int = 10,
    seed: int = 0,
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
        model: a run directory or a .safetensors file
        episodes: number of episodes
        seed: seed of the episodes; the same seed gives the same episodes
        stochastic: sample actions instead of using the deterministic ones
        json: print JSON
        env: a Gymnasium id to use instead of the one the policy was trained on
        trust: import modules and load libraries that the model names
        attack: also evaluate with adversarial observations, from the same seeds: pgd or fgsm
        epsilon: maximum perturbation of each element of the observation, in standard deviations if it is normalized
        attack_steps: number of steps of pgd; 10 if not given
    """
    from surefoot.core.errors import ConfigError

    if episodes < 1:
        raise ConfigError([f"--episodes: must be at least 1 (got {episodes})"])
    adversary = attack_of(attack, epsilon, attack_steps)
    agent, path = load_agent(model, env, trust)
    evaluation = agent.evaluate(episodes, seed=seed, deterministic=not stochastic)
    result = evaluation.to_json()
    if adversary is None:
        _print(result, json, path)
        return 0
    attacked = agent.evaluate(episodes, seed=seed, deterministic=not stochastic, attack=adversary)
    _print(result | {"attack": asdict(adversary), "attacked": attacked.to_json()}, json, path)
    if not json:
        print("\n".join(["", *side_by_side(adversary, evaluation, attacked)]))
    return 0


def _print(result: dict[str, Any], as_json: bool, path: Path) -> None:
    if as_json:
        print(json.dumps({"model": str(path), **result}))
        return
    low, high = result["confidence_interval"]
    print(f"model           {path}")
    print(f"mean reward     {result['mean_reward']:.2f} ± {result['std_reward']:.2f}")
    print(f"95% interval    {low:.2f} to {high:.2f} (bootstrap, of the mean)")
    print(f"mean length     {result['mean_ep_length']:.1f}")
    print(f"episodes        {result['episodes']}")
    for name, found in result["metrics"].items():
        known = sum(value is not None for value in found["values"])
        few = f" (mean of {known} episodes that have a value)" if known < result["episodes"] else ""
        print(f"{name:15s} {found['mean']:.4g}{few}" if known else f"{name:15s} unknown: no episode has a value")
