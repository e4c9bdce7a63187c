"""What a population decides between rounds, from scores and counted randomness alone: nothing depends on time."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.errors import ConfigError
from surefoot.philox import Stream, uniforms
from surefoot.population.settings import Plan, setting_of

Values = dict[str, Any]
_ATTEMPTS = 16
"""Draws before a member gives up looking for values that fit together."""


@dataclass(frozen=True)
class Choice:
    """The member whose state a member continues from, and its values in the next round."""

    parent: int
    values: Values


def start_values(plan: Plan, member: int) -> Values:
    """The values of the first round."""
    population = plan.population
    dump = plan.config.model_dump(mode="json")
    given = {name: values[member] for name, values in population.values.items()}
    if population.start == "config":
        values = {name: setting_of(dump, name) for name in plan.names} | given
        plan.member_config(member, values)
        return values
    draws = _draws(plan, 0, member)
    for _ in range(_ATTEMPTS):
        drawn = {name: population.tunables[name].at(next(draws)) for name in plan.names} | given
        if _fits(plan, member, drawn):
            return drawn
    plan.member_config(member, drawn)  # says what does not fit
    raise AssertionError


def ranked(scores: Sequence[float | None], failed: Sequence[bool]) -> list[int]:
    """Members from best to worst. Those without a score come after all others, failed ones last."""

    def key(member: int) -> tuple[bool, float, int]:
        score = scores[member]
        return failed[member], math.inf if score is None else -score, member

    return sorted(range(len(scores)), key=key)


def choose(
    plan: Plan, number: int, values: Sequence[Values], order: Sequence[int], failed: Sequence[bool]
) -> list[Choice]:
    """After a round: the worst members, and all that failed, continue from one of the best with changed values."""
    count = min(math.ceil(plan.population.truncation * len(order)), len(order) // 2)
    best = [member for member in order[:count] if not failed[member]]
    worst = {*order[-count:], *(member for member in order if failed[member])} - set(best)
    choices = []
    for member in range(len(order)):
        if member in worst:
            draws = _draws(plan, number, member)
            parent = best[int(next(draws) * len(best))]
            choices.append(Choice(parent, _changed(plan, member, values[parent], draws)))
        else:
            choices.append(Choice(member, dict(values[member])))
    return choices


def _changed(plan: Plan, member: int, values: Values, draws: "_Draws") -> Values:
    """Every value is multiplied, divided or drawn again; the donor's own if no change fits the other settings."""
    for _ in range(_ATTEMPTS):
        changed = {}
        for name in plan.names:
            tunable = plan.population.tunables[name]
            is_new, grows, share = next(draws) < tunable.resample, next(draws) < 0.5, next(draws)
            changed[name] = tunable.at(share) if is_new else tunable.changed(values[name], grows)
        if _fits(plan, member, changed):
            return changed
    return dict(values)


def _fits(plan: Plan, member: int, values: Mapping[str, Any]) -> bool:
    try:
        plan.member_config(member, values)
    except ConfigError:
        return False
    return True


class _Draws:
    """Uniform numbers of a round and a member, one after the other."""

    def __init__(self, draw: Callable[[int], float]) -> None:
        self._draw, self._count = draw, 0

    def __next__(self) -> float:
        self._count += 1
        return self._draw(self._count - 1)


def _draws(plan: Plan, number: int, member: int) -> _Draws:
    count = 1 + 3 * len(plan.names) * _ATTEMPTS
    drawn = uniforms(plan.population.seed, [number], [member], count, Stream.POPULATION)[0, 0]
    return _Draws(lambda index: float(drawn[index]))
