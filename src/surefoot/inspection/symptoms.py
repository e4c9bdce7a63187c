"""Problems of a run beyond its alerts; each symptom is a function that returns a finding or None."""

import json
import statistics
from collections.abc import Callable

from surefoot.inspection.evaluation_symptoms import eval_below_best, eval_below_training
from surefoot.inspection.findings import Evidence, Finding
from surefoot.inspection.preset_advice import advised, preset_of
from surefoot.inspection.run_record import RunRecord, Series, lock_holder
from surefoot.settings.config import Config
from surefoot.storage.files import readable_text
from surefoot.telemetry import names
from surefoot.telemetry.remedies import changed, gentler_updates, switched

Symptom = Callable[[RunRecord, Config], Finding | None]

_ENDS = 5
"""Number of records that represent the beginning, and the end, of a run."""
_FEWEST = 20
_LONG_EPISODE = 5_000
_SLOW_ROLLOUT, _SLOW_LEARNING = 300.0, 50.0
_LITTLE_MEMORY = 0.1
_GROWTH, _GROWTH_MB = 1.5, 500.0


def ended_in_nan(run: RunRecord, config: Config) -> Finding | None:
    """NaN in updates, whether or not rollbacks fixed it."""
    rollbacks = run.series(names.ROLLBACKS)
    dumps = sorted(run.path.glob("nonfinite_step_*.json"))
    if not rollbacks and not dumps:
        return None
    evidence = tuple(Evidence(names.ROLLBACKS, value, step) for step, value in rollbacks[-1:])
    slower = [changed(config, "optimizer.lr", config.optimizer.lr / 10, about="about ")]
    slower += [] if config.ppo.max_grad_norm else [switched("ppo.max_grad_norm", 0.5)]
    tips = [*advised(slower, config), "check your own modules for log, sqrt, exp and division"]
    meaning = "updates were not finite, and the run rolled back to its last good weights"
    if not dumps:
        when = f"{len(rollbacks)} rollback{'s' * (len(rollbacks) > 1)}, the last one at step {rollbacks[-1][0]:,}"
        return Finding("rolled_back", "medium", "updates rolled back", meaning, evidence, when, tuple(tips))
    step, trouble = _dumped(readable_text(dumps[-1]))
    tips.insert(0, f"see {dumps[-1].name} for the weights and data that are not finite or very large")
    return Finding(
        "ended_in_nan",
        "high",
        "ended in NaN",
        f"{meaning} repeatedly before it ended with an error: {trouble}",
        evidence,
        f"ended at step {step:,}",
        tuple(tips),
    )


def ended_by_error(run: RunRecord, config: Config) -> Finding | None:
    """The last process ended with an error, such as NaN from an environment; NaN in updates is a finding of its own."""
    error = run.log.error
    if error is None or lock_holder(run.path) is not None or any(run.path.glob("nonfinite_step_*.json")):
        return None
    step, (cause, _, remedy) = int(run.records[-1]["step"]), error.partition("; ")
    return Finding(
        "ended_by_error",
        "high",
        "ended with an error",
        cause,
        (),
        f"at step {step:,} of {config.train.steps:,}",
        (
            remedy or "see log.txt for the traceback, and fix its cause",
            f"'surefoot resume {run.path}' continues the run from its last checkpoint",
        ),
    )


def return_collapsed(run: RunRecord, config: Config) -> Finding | None:
    """The return fell back by more than half of its improvement."""
    series = run.series(names.EPISODE_REWARD)
    if len(series) < _FEWEST:
        return None
    first, last = _median(series[:_ENDS]), _median(series[-_ENDS:])
    best_step, best = max(series[_ENDS:], key=lambda pair: pair[1])
    # An improvement that is small relative to the returns may be noise, and so may its loss.
    if best - first < 0.3 * (abs(best) + abs(first)) or best - last < 0.5 * (best - first):
        return None
    evidence = (
        Evidence(names.EPISODE_REWARD, best, best_step),
        Evidence(names.EPISODE_REWARD, last, series[-1][0]),
    )
    tips = [*advised(gentler_updates(config, _high_kl(run)), config)]
    if "lr" not in config.schedules or config.schedules["lr"].kind == "constant":
        preset = preset_of(config)
        is_theirs = preset is not None and "lr" in preset.config.schedules
        tips.insert(
            0 if is_theirs else len(tips),
            "set schedules.lr to linear to decay the learning rate" + ", as the preset does" * is_theirs,
        )
    tips.append("if train.eval_every is set, best.safetensors still contains the best policy")
    return Finding(
        "return_collapsed",
        "high",
        "return collapsed",
        "the mean return has lost more than half of its improvement",
        evidence,
        f"best at step {best_step:,}",
        tuple(tips),
    )


def no_episode_ends(run: RunRecord, config: Config) -> Finding | None:
    """Without finished episodes there are no returns."""
    step = int(run.records[-1]["step"])
    steps_each = step / config.rollout.num_envs
    if run.series(names.EPISODE_REWARD) or steps_each < _LONG_EPISODE:
        return None
    return Finding(
        "no_episode_ends",
        "medium",
        "no episode ever ends",
        f"no episode has ended after {steps_each:,.0f} steps per environment, so there are no returns to compare",
        (Evidence(names.EPISODES, 0.0, step),),
        "in the whole run",
        ("set env.max_episode_steps, for example to 1000", "check that the environment sets terminated or truncated"),
    )


def out_of_bounds(run: RunRecord, config: Config) -> Finding | None:
    """Observations outside the observation space."""
    series = [(step, value) for step, value in run.series(names.OBS_OUT_OF_BOUNDS) if value > 0]
    if not series:
        return None
    step, most = max(series, key=lambda pair: pair[1])
    return Finding(
        "obs_out_of_bounds",
        "low",
        "observations out of bounds",
        "the environment returns observations outside its observation_space; they are not clipped",
        (Evidence(names.OBS_OUT_OF_BOUNDS, most, step),),
        f"in {len(series)} records, first at step {series[0][0]:,}",
        (
            "fix the bounds of the environment's observation_space",
            *([] if config.normalize.obs else ["if the values are large, set normalize.obs to true"]),
        ),
    )


def memory_short(run: RunRecord, config: Config) -> Finding | None:
    """Little memory is left, or memory usage keeps growing."""
    left, taken = run.series(names.RAM_AVAILABLE), run.series(names.RAM)
    if not left or not taken:
        return None
    step, share = min(left, key=lambda pair: pair[1])
    early, late = taken[len(taken) // 4][1], taken[-1][1]
    grows = len(taken) >= _FEWEST and late > _GROWTH * early and late - early > _GROWTH_MB
    if share >= _LITTLE_MEMORY and not grows:
        return None
    rollout = config.rollout
    tips = []
    if grows:
        tips.append(
            "check the environment and hooks for memory leaks: rollout memory is allocated once and does not grow"
        )
    tips.append(f"lower rollout.num_steps from {rollout.num_steps} or rollout.num_envs from {rollout.num_envs}")
    tips.append(
        f"set ppo.micro_batch_size to {max(1, config.ppo.batch_size // 4)}: the same update in a quarter of the memory"
    )
    evidence = (Evidence(names.RAM_AVAILABLE, share, step), Evidence(names.RAM, late, taken[-1][0]))
    what = f"memory usage grew from {early:,.0f} to {late:,.0f} MB" if grows else "the machine is almost out of memory"
    return Finding(
        "out_of_memory",
        "high" if share < _LITTLE_MEMORY else "medium",
        "memory running out",
        f"{what}; the system kills a process that exceeds the available memory, without a message",
        evidence,
        f"at step {step:,}",
        tuple(tips),
    )


def too_slow(run: RunRecord, config: Config) -> Finding | None:
    """One phase takes most of the time and is slow in absolute terms."""
    rollout_rate, learn_rate = run.series(names.ROLLOUT_STEPS_PER_SECOND), run.series(names.LEARN_STEPS_PER_SECOND)
    if len(rollout_rate) < _ENDS or len(learn_rate) < _ENDS:
        return None
    rollout, learn, step = _median(rollout_rate), _median(learn_rate), rollout_rate[-1][0]
    if rollout + learn <= 0:
        return None
    rollout_share = learn / (rollout + learn)  # of the time, which is the inverse of the rate
    if rollout_share >= 0.7 and rollout < _SLOW_ROLLOUT:
        tips = _faster_rollout(run.log.engine or config.rollout.engine.kind, config.rollout.num_envs)
        slow = (names.ROLLOUT_STEPS_PER_SECOND, rollout, "stepping the environments", rollout_share)
    elif rollout_share <= 0.3 and learn < _SLOW_LEARNING:
        tips = _faster_learning(config)
        slow = (names.LEARN_STEPS_PER_SECOND, learn, "learning", 1 - rollout_share)
    else:
        return None
    metric, rate, what, share = slow
    return Finding(
        "too_slow",
        "low",
        f"{what} is slow",
        f"{what} takes {share:.0%} of the time",
        (Evidence(metric, rate, step),),
        "median of the run",
        tuple(tips),
    )


SYMPTOMS: dict[str, Symptom] = {
    "ended_in_nan": ended_in_nan,
    "ended_by_error": ended_by_error,
    "return_collapsed": return_collapsed,
    "eval_below_training": eval_below_training,
    "eval_below_best": eval_below_best,
    "no_episode_ends": no_episode_ends,
    "out_of_memory": memory_short,
    "too_slow": too_slow,
    "obs_out_of_bounds": out_of_bounds,
}


def _faster_rollout(engine: str, num_envs: int) -> list[str]:
    tips = []
    if engine == "local":  # the native engine is already parallel
        tips.append("set rollout.engine to processes to step the environments in parallel")
    if num_envs < 8:
        tips.append(f"raise rollout.num_envs from {num_envs} to 8 for more parallel environments")
    return [*tips, "profile the environment's step: it takes most of the time"]


def _faster_learning(config: Config) -> list[str]:
    ppo = config.ppo
    tips = []
    if ppo.epochs > 4:
        tips.append(f"lower ppo.epochs from {ppo.epochs} to 4")
    tips.append(f"raise ppo.batch_size from {ppo.batch_size} to {4 * ppo.batch_size}: fewer, larger gradient steps")
    return [*tips, "set train.threads to the number of cores if the network is large"]


def _high_kl(run: RunRecord) -> dict[str, float]:
    """The KL divergence of the largest updates: a tenth of them exceeds it."""
    values = [value for _, value in run.series(names.APPROX_KL)]
    return {names.APPROX_KL: statistics.quantiles(values, n=10)[-1]} if len(values) > 1 else {}


def _median(series: Series) -> float:
    return statistics.median(value for _, value in series)


def _dumped(text: str) -> tuple[int, str]:
    """Step and error of a dump; a damaged dump still counts as a dump."""
    try:
        content = json.loads(text)
        return int(content["step"]), str(content["trouble"])
    except (ValueError, KeyError, TypeError):
        return 0, "the dump cannot be read"
