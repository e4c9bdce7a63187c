"""How much verify compares in tests: as little as every planted fault is still found."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from surefoot.verification import check, contract, rollouts, subject, updates

_RESUME = {"compare_resumed", "compare_elsewhere"}
_CHECKS = {"compare_engines", "compare_alone", "compare_threads", "compare_rows"} | _RESUME


def less(patch: pytest.MonkeyPatch, rows: int = 4, steps: int = 32, limits: tuple[int, ...] = (7,)) -> None:
    """Two legs of fewer steps; one early time limit that some episodes reach and others do not."""
    patch.setattr(check, "LEGS", 2)
    patch.setattr(check, "TIME_LIMITS", limits)
    patch.setattr(check, "ENOUGH_TRUNCATIONS", 1)
    patch.setattr(subject, "ROWS", rows)
    patch.setattr(subject, "STEPS", steps)
    patch.setattr(rollouts, "MORE_ROWS", 2 * rows)
    patch.setattr(rollouts, "THREADS", (1, 2, 3))
    patch.setattr(contract, "STEPS_ALONE", 20)


@contextmanager
def only(*checks: str) -> Iterator[None]:
    """Leave out what is not asked for, but the comparison of both paths: other tests cover it."""

    def skip(*_: Any, **__: Any) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        for name in _CHECKS.difference(checks):
            patch.setattr(check, name, skip)
        if not _RESUME & set(checks):
            patch.setattr(check, "interrupted", lambda *_: nullcontext())
        if "compare_first_step" not in checks:
            patch.setattr(updates, "compare_first_step", skip)
        yield
