"""`bench stepping`: envs alone with random actions, no policy and no learning."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from benchmarks.comparison import refuse_unknown
from benchmarks.steppers import STEPPERS
from surefoot.benchmark.cells import FAILED, NOISE_NOTE, failures, megabytes, subject_to_json, times
from surefoot.benchmark.report import MISSING, Report, Table
from surefoot.benchmark.rounds import Effort, Measured, Say, Spread, measure, ratio
from surefoot.benchmark.subject import Plan, Recipe
from surefoot.benchmark.subject_process import SubjectError
from surefoot.errors import ConfigError
from surefoot.machine.extras import install_hint

NATIVE = "native"


@dataclass(frozen=True)
class Course:
    """What is stepped; an iteration is so many steps of every env."""

    env_id: str
    num_envs: int = 64
    num_steps: int = 64

    def __post_init__(self) -> None:
        problems = [
            f"--{name.replace('_', '-')}: must be at least 1 (got {value})"
            for name, value in asdict(self).items()
            if name != "env_id" and value < 1
        ]
        if problems:
            raise ConfigError(problems)


def bench_stepping(course: Course, sides: Sequence[str], effort: Effort, say: Say) -> Report:
    """All sides in turns; one that does not know the env says so in its row."""
    refuse_unknown("--sides", sides, list(STEPPERS))
    wanted = [side for side in STEPPERS if side in sides or not sides]
    absent = {side: _missing(side) for side in wanted if _missing(side)}
    plans = [Plan(side, stepping_recipe(side, **asdict(course))) for side in wanted if side not in absent]
    rounds = measure(plans, effort, say)
    if all(subject.has_failed for subject in rounds.subjects):
        raise SubjectError("; ".join(failures(rounds.subjects)))
    native = next((one for one in rounds.subjects if one.name == NATIVE and not one.has_failed), None)
    title = f"Stepping {course.env_id}, {course.num_envs} envs, random actions"
    columns = ["side", "steps/s", "us a step", "native over it", "peak MB"]
    table = Table(title, columns, [_row(subject, native) for subject in rounds.subjects])
    results = {
        **asdict(course),
        "effort": asdict(effort),
        "order": rounds.order,
        "subjects": [_to_json(subject, native) for subject in rounds.subjects],
        "absent": absent,
    }
    notes = [f"{NOISE_NOTE} Steps are counted as executed; one that only resets is none."]
    notes += [f"{STEPPERS[side].title} left out: {reason}." for side, reason in absent.items()]
    return Report("stepping", title, [table], notes + failures(rounds.subjects), results, rounds.load)


def _missing(side: str) -> str:
    packages = [package for package in STEPPERS[side].needs if find_spec(package) is None]
    return f"{', '.join(packages)} is not installed; {install_hint('envpool')}" if packages else ""


def native_over(subject: Measured, native: Measured | None) -> Spread | None:
    """How many times as fast the native vector env is, round by round."""
    if native is None or subject is native or subject.has_failed:
        return None
    return ratio(native.values("steps_per_s"), subject.values("steps_per_s"))


def _row(subject: Measured, native: Measured | None) -> list[str]:
    title = STEPPERS[subject.name].title
    if subject.has_failed:
        return [title, FAILED, *[MISSING] * 3]
    over = "1" if subject is native else times(native_over(subject, native))
    cost = f"{subject.spread('step_us').median:,.3g}"
    return [title, subject.spread("steps_per_s").with_noise(), cost, over, megabytes(subject.peak_ram)]


def _to_json(subject: Measured, native: Measured | None) -> dict[str, Any]:
    over = native_over(subject, native)
    return {**subject_to_json(subject), "native_over_it": None if over is None else over.to_json()}


def stepping_recipe(side: str, env_id: str, num_envs: int, num_steps: int) -> Recipe:
    """Envs stepped with random actions by someone of the registry."""
    return {"kind": "benchmarks.steppers", "side": side, "env_id": env_id, "num_envs": num_envs, "num_steps": num_steps}
