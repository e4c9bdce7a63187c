"""`diagnose`: reads a run and says what is wrong with it, with evidence and remedies."""

import statistics
from pathlib import Path

from surefoot.core.config import Config
from surefoot.core.layers import build_config
from surefoot.inspection.alert_findings import alert_findings
from surefoot.inspection.findings import Diagnosis, worst_first
from surefoot.inspection.run_record import RunRecord, lock_holder, read_run
from surefoot.inspection.symptoms import SYMPTOMS
from surefoot.telemetry import names
from surefoot.telemetry.alerts import ALERTS

_BUSY = 0.2
"""Share of the time spent waiting for a CPU from which on it is worth a word."""


_FEW = max(alert.window for alert in ALERTS)


def diagnose(path: Path) -> Diagnosis:
    """Look at a run directory; the run may still be going on."""
    run = read_run(path)
    config = build_config(run.config)
    found = [finding for symptom in SYMPTOMS.values() if (finding := symptom(run, config))]
    step, process = int(run.records[-1]["step"]), lock_holder(path)
    return Diagnosis(
        run=path,
        env=config.env.id,
        step=step,
        total_steps=config.train.steps,
        process=process,
        findings=worst_first([*alert_findings(run, config), *found]),
        notes=tuple(_notes(run, config, process)),
        checked=(*(alert.name for alert in ALERTS), *SYMPTOMS),
    )


def _notes(run: RunRecord, config: Config, process: str | None) -> list[str]:
    """What is good to know but not wrong."""
    step, total = int(run.records[-1]["step"]), config.train.steps
    notes = []
    if process is not None:
        notes.append(f"process {process} is still running it")
    elif step < total:
        notes.append(
            f"it stopped at step {step:,}, before its {total:,} steps were used up;"
            f" 'surefoot resume {run.path}' goes on from there"
        )
    if len(run.records) < _FEW:
        notes.append(f"it has {len(run.records)} records so far: too few for alerts that watch {_FEW} iterations")
    return [*notes, *_speed_notes(run), *_return_note(run)]


def _speed_notes(run: RunRecord) -> list[str]:
    rates = [record for record in run.records if {names.ROLLOUT_SECONDS, names.LEARN_SECONDS} <= set(record)]
    if not rates:
        return []
    rollout, learn = (sum(record[name] for record in rates) for name in (names.ROLLOUT_SECONDS, names.LEARN_SECONDS))
    speed = statistics.median(value for _, value in run.series(names.STEPS_PER_SECOND))
    share = rollout / max(rollout + learn, 1e-9)
    notes = [f"{speed:,.0f} steps/s: {share:.0%} of the time collecting, {1 - share:.0%} learning"]
    waits = [value for _, value in run.series(names.CPU_WAIT)]
    if waits and statistics.mean(waits) > _BUSY:
        notes.append(f"it waited {statistics.mean(waits):.0%} of its time for a CPU: others keep this machine busy")
    return notes


def _return_note(run: RunRecord) -> list[str]:
    series = run.series(names.EPISODE_REWARD)
    if not series:
        return []
    (_, first), (step, best) = series[0], max(series, key=lambda pair: pair[1])
    rose = f"return {first:,.1f} at first, {series[-1][1]:,.1f} at the end, best {best:,.1f} at step {step:,}"
    if len(series) >= 50 and best - first < 0.05 * (abs(best) + abs(first)):
        rose += ": it has not risen; compare it with what the task can give"
    return [rose]
