"""The steps that parameters missed while they were frozen: Adam corrects its bias by the steps of each parameter."""

from collections.abc import Collection, Mapping

from surefoot.learning.adam import Stretch
from surefoot.learning.transforms import Layout


class MissedSteps:
    """Counts for parameters by name; `count` is always the optimizer's number of steps."""

    def __init__(self, missed: Mapping[str, int] | None = None) -> None:
        self._missed = dict(missed or {})  # without those since a parameter was frozen
        self._since: dict[str, int] = {}

    def follow(self, frozen: Collection[str], count: int) -> None:
        """Note which parameters are frozen from now on."""
        for name in [name for name in self._since if name not in frozen]:
            self._missed[name] = self._missed.get(name, 0) + count - self._since.pop(name)
        for name in frozen:
            self._since.setdefault(name, count)

    def until(self, count: int) -> dict[str, int]:
        """How many steps each parameter has missed; those that have missed none are left out."""
        missed = {name: self._missed.get(name, 0) for name in {**self._missed, **self._since}}
        missed |= {name: missed[name] + count - since for name, since in self._since.items()}
        return {name: steps for name, steps in sorted(missed.items()) if steps}

    def stretches(self, learning: Layout) -> list[Stretch]:
        """Parameters that learn; neighbors that have missed as many steps are joined."""
        stretches: list[Stretch] = []
        for name, place in learning.items():
            begin, missed = place.start, self._missed.get(name, 0)
            if stretches and (stretches[-1][0].stop, stretches[-1][1]) == (begin, missed):
                begin = stretches.pop()[0].start
            stretches.append((slice(begin, place.stop), missed))
        return stretches
