"""The values of tunables as a trainer really uses them."""

from collections.abc import Iterable, Mapping
from typing import Any

from surefoot.data.records import IterationReport
from surefoot.learning.estimators.gae import GAE
from surefoot.population.settings import setting_of
from surefoot.settings.config import Config
from surefoot.training.trainer import Trainer

_PARTS = ("ppo.terms.", "optimizer.transforms.")


def read_back(
    names: Iterable[str], trainer: Trainer, config: Config, knobs: Mapping[str, float], report: IterationReport
) -> dict[str, Any]:
    """Knobs after their schedules, as the update reports them; discounts of the estimator; other settings as built."""
    learned, dump = report.learned, config.model_dump(mode="json")
    seen = {**knobs, "lr": learned.lr, "clip": learned.clip, "entropy_coef": learned.entropy_coef}
    estimator = trainer.scorer.estimator
    if isinstance(estimator, GAE):
        seen |= dict(zip(("gamma", "gae_lambda"), estimator.discounts, strict=True))
    return {name: seen.get(_knob(name), setting_of(dump, name)) for name in names}


def _knob(setting: str) -> str:
    """The knob of a setting: `lr` of `optimizer.lr`, `penalty.weight` of `ppo.terms.penalty.weight`."""
    for part in _PARTS:
        if setting.startswith(part):
            return setting.removeprefix(part)
    section, _, key = setting.partition(".")
    return key if section in ("optimizer", "ppo") else setting
