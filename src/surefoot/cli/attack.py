"""The options of `surefoot evaluate` for attacks, and the results with and without one."""

from typing import TYPE_CHECKING

from surefoot.errors import ConfigError

if TYPE_CHECKING:
    from surefoot.evaluation.evaluation import Evaluation
    from surefoot.learning.attacks import Attack


def attack_of(method: str | None, epsilon: float | None, steps: int | None) -> "Attack | None":
    """The attack that the options describe."""
    if method is None:
        unused = [name for name, value in (("--epsilon", epsilon), ("--attack-steps", steps)) if value is not None]
        if unused:
            raise ConfigError([f"{name}: has no effect without --attack; add --attack pgd" for name in unused])
        return None
    if epsilon is None:
        raise ConfigError(["--attack: requires --epsilon, the maximum perturbation; add --epsilon 0.1, for example"])
    if method == "fgsm" and steps is not None:
        raise ConfigError(["--attack-steps: fgsm takes a single step; use --attack pgd for more"])
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
