"""The trials of a sweep in a SQLite file, through Optuna: values are chosen, scores and endings kept."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from surefoot.errors import SurefootError, SweepError
from surefoot.machine.extras import install_hint
from surefoot.output.failures import brief
from surefoot.settings.ranges import Range, Scalar
from surefoot.sweep.settings import SweepConfig

STUDY = "sweep"
_ERROR, _DISCARDED, _RESULT, _FINALS = "error", "discarded", "result", "finals"
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RuntimeError)
"""What Optuna raises where a file has other values than it wrote."""
_ONE_MINUS = "1 - "
"""Optuna has no such scale: it sees 1 - x on a logarithmic one."""


@with_config(ConfigDict(strict=True, allow_inf_nan=False, revalidate_instances="always"))
@dataclass(frozen=True)
class Trial:
    """A trial as the sweep sees it."""

    number: int
    state: str
    """running, complete, pruned or fail"""
    values: dict[str, Scalar]
    """Settings by name."""
    objective: float | None = None
    evaluations: tuple[tuple[int, float], ...] = ()
    """(step, score), means over the seeds."""
    error: str = ""
    result: dict[str, list[float] | float | int] = field(default_factory=dict)
    """Of a complete trial: objective of each seed (`scores`), `steps` and `seconds` of all."""
    final_scores: tuple[float, ...] = ()
    """Of a finalist: objective of each of its other seeds."""

    @property
    def final(self) -> float | None:
        """Of a finalist: the objective with other seeds."""
        return sum(self.final_scores) / len(self.final_scores) if self.final_scores else None


_TRIAL = TypeAdapter(Trial)


class Study:
    """A context manager around the file."""

    def __init__(self, path: Path, sweep: SweepConfig, eval_every: int = 1) -> None:
        self._optuna = import_optuna()
        self._path, self._sweep, self._eval_every = path, sweep, max(1, eval_every)
        self._sign = -1 if sweep.minimizes else 1
        with self._storage_errors():
            self._storage = self._open_storage()
            self._study = self._optuna.create_study(
                storage=self._storage,
                study_name=STUDY,
                direction="minimize" if sweep.minimizes else "maximize",
                load_if_exists=True,
                pruner=self._pruner(),
            )

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *exception: object) -> None:
        with self._storage_errors():
            self._storage.remove_session()
            self._storage.engine.dispose()

    def trials(self) -> list[Trial]:
        """All trials in order, without those that a kill left without values."""
        with self._storage_errors():
            finals = self._study.user_attrs.get(_FINALS, {})
            return [self._seen(one, finals) for one in self._kept()]

    def numbers(self) -> set[int]:
        """The numbers of all trials, also of those that were given up."""
        with self._storage_errors():
            return {one.number for one in self._study.get_trials(deepcopy=False)}

    def discard_torn(self) -> None:
        """Give up trials that have not all their values: the sweep was killed while it began them."""
        self.trials()  # everything is checked before anything is changed
        with self._storage_errors():
            for one in self._kept():
                if not one.state.is_finished() and len(one.params) < len(self._sweep.tunables):
                    self._storage.set_trial_user_attr(one._trial_id, _DISCARDED, True)
                    self._study.tell(one.number, state=self._optuna.trial.TrialState.FAIL)

    def begin(self, wanted: Mapping[str, Any] | None = None) -> Trial:
        """A new trial with the wanted values; the sampler chooses those that are missing.

        The sampler is seeded by the number of trials before, so that a continued sweep chooses like one that was never
        interrupted.
        """
        with self._storage_errors():
            self._study.sampler = self._sampler(len(self._kept()))
            if wanted:
                values = {key: self._sweep.tunables[key] for key in wanted}
                self._study.enqueue_trial({_name(key, one): _stored(one, wanted[key]) for key, one in values.items()})
            space = {_name(key, one): self._distribution(one) for key, one in self._sweep.tunables.items()}
            return self._seen(self._frozen(self._study.ask(space).number), {})

    def report(self, number: int, step: int, score: float) -> None:
        """Record an evaluation; an earlier one at the same step is replaced."""
        with self._storage_errors():
            self._storage.set_trial_intermediate_value(self._frozen(number)._trial_id, step, self._sign * score)

    def should_prune(self, number: int) -> bool:
        """Whether a trial is so bad, compared with others at its last step, that it should be stopped."""
        with self._storage_errors():
            return bool(self._study.pruner.prune(self._study, self._frozen(number)))

    def complete(self, number: int, objective: float, scores: Sequence[float], steps: int, seconds: float) -> None:
        """Record the result of a trial."""
        with self._storage_errors():
            result = {"scores": list(scores), "steps": steps, "seconds": seconds}
            self._storage.set_trial_user_attr(self._frozen(number)._trial_id, _RESULT, result)
            self._study.tell(number, objective)

    def prune(self, number: int) -> None:
        """Record that a trial was stopped."""
        with self._storage_errors():
            self._study.tell(number, state=self._optuna.trial.TrialState.PRUNED)

    def fail(self, number: int, error: str) -> None:
        """Record why a trial failed."""
        with self._storage_errors():
            self._storage.set_trial_user_attr(self._frozen(number)._trial_id, _ERROR, error)
            self._study.tell(number, state=self._optuna.trial.TrialState.FAIL)

    def ranked(self) -> list[Trial]:
        """Complete trials, the best first; the first of equal ones."""
        complete = [one for one in self.trials() if one.objective is not None]
        return sorted(complete, key=lambda one: -self._sign * (one.objective or 0.0))

    def keep_finals(self, scores: Mapping[int, Sequence[float]]) -> None:
        """Record the objectives of the finalists with other seeds."""
        with self._storage_errors():
            self._study.set_user_attr(_FINALS, {str(number): list(own) for number, own in scores.items()})

    def best(self) -> Trial | None:
        """The best of the finalists; of all complete trials if there are none."""
        ranked = self.ranked()
        finalists = [one for one in ranked if one.final is not None]
        return max(finalists, key=lambda one: self._sign * (one.final or 0.0), default=ranked[0] if ranked else None)

    def importances(self) -> dict[str, float]:
        """The share of each setting in the differences between good trials and all, most important first.

        PED-ANOVA (Watanabe et al. 2023); empty with fewer than four complete trials or only one setting.
        """
        complete = self.ranked()
        if len(complete) < 4 or len({one.objective for one in complete}) == 1 or len(self._sweep.tunables) == 1:
            return {}
        evaluator = self._optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
        with self._storage_errors():
            found = self._optuna.importance.get_param_importances(self._study, evaluator=evaluator)
        return {name.removeprefix(_ONE_MINUS): float(share) for name, share in found.items()}

    def _kept(self) -> list[Any]:
        return [one for one in self._study.get_trials(deepcopy=False) if not one.user_attrs.get(_DISCARDED)]

    def _frozen(self, number: int) -> Any:
        return self._study.get_trials(deepcopy=False)[number]

    def _seen(self, one: Any, finals: Mapping[str, Sequence[float]]) -> Trial:
        """A trial of the file, whose values are checked: anybody may have written them."""
        try:
            return _TRIAL.validate_python(self._found(one, finals))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else brief(error)
            raise SweepError(
                f"trial {one.number} in {self._path} has values that are not those of this sweep ({why}); restore the"
                " file, or choose another --run-dir for a new sweep"
            ) from error

    def _found(self, one: Any, finals: Mapping[str, Sequence[float]]) -> Trial:
        ranges = {_name(key, found): (key, found) for key, found in self._sweep.tunables.items()}
        values = {ranges[name][0]: _setting(ranges[name][1], value) for name, value in one.params.items()}
        is_complete = one.state.name == "COMPLETE"
        if is_complete and (not one.values or one.values[0] is None):
            raise ValueError("it is complete, but has no objective")
        if is_complete and len(values) < len(self._sweep.tunables):
            raise ValueError("it is complete, but some values are missing")
        return Trial(
            number=one.number,
            state=one.state.name.lower(),
            values={key: values[key] for key in self._sweep.tunables if key in values},
            objective=one.values[0] if is_complete else None,
            evaluations=tuple((step, self._sign * value) for step, value in sorted(one.intermediate_values.items())),
            error=one.user_attrs.get(_ERROR, ""),
            result=one.user_attrs.get(_RESULT, {}),
            final_scores=tuple(finals.get(str(one.number), ())),
        )

    def _sampler(self, ordinal: int) -> Any:
        seed = int(np.random.SeedSequence([self._sweep.seed, ordinal]).generate_state(1)[0])
        if self._sweep.sampler == "tpe":
            return self._optuna.samplers.TPESampler(seed=seed)
        return self._optuna.samplers.RandomSampler(seed=seed)  # of a grid, all values are given

    def _pruner(self) -> Any:
        pruners = self._optuna.pruners
        if self._sweep.pruner == "median":
            return pruners.MedianPruner()
        if self._sweep.pruner == "halving":
            return pruners.SuccessiveHalvingPruner(min_resource=self._eval_every)
        return pruners.NopPruner()

    def _distribution(self, values: Range) -> Any:
        kinds = self._optuna.distributions
        if values.choices:
            return kinds.CategoricalDistribution(values.choices)
        assert values.low is not None
        assert values.high is not None
        if values.scale == "one_minus":
            return kinds.FloatDistribution(1 - values.high, 1 - values.low, log=True)
        if values.integer:
            return kinds.IntDistribution(round(values.low), round(values.high), log=values.scale == "log")
        return kinds.FloatDistribution(values.low, values.high, log=values.scale == "log")

    def _open_storage(self) -> Any:
        from sqlalchemy import URL

        url = URL.create("sqlite", database=str(self._path.resolve()))
        wait = {"connect_args": {"timeout": 60}}
        return self._optuna.storages.RDBStorage(url.render_as_string(), engine_kwargs=wait)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SurefootError:
            raise
        except (SQLAlchemyError, self._optuna.exceptions.OptunaError, *_UNREADABLE) as error:
            why = brief(error.__cause__ or error)
            raise SweepError(
                f"the trials in {self._path} cannot be read or written ({why}); free space or move the file away, then"
                " run the same command again"
            ) from error


def import_optuna() -> Any:
    """Optuna without its log lines, or a typed error if the extra is missing."""
    try:
        import optuna
    except ImportError as error:
        raise SweepError(f"sweeps require Optuna; {install_hint('sweep')}") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _name(key: str, values: Range) -> str:
    return _ONE_MINUS + key if values.scale == "one_minus" and not values.choices else key


def _stored(values: Range, value: Any) -> Any:
    return 1 - value if values.scale == "one_minus" and not values.choices else value


def _setting(values: Range, stored: Any) -> Any:
    """Both ways round to the same float, except near 0, where the range decides."""
    return values.clamped(1 - stored) if values.scale == "one_minus" and not values.choices else stored
