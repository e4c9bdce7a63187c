"""The best trials once more, with other seeds: the best of many noisy scores is partly luck."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from surefoot.jobs.job import Job
from surefoot.jobs.pool import MOST_DEATHS, Pool


def run_finals(
    pool: Pool, jobs: Mapping[int, Sequence[Job]], say: Callable[[str, str], None]
) -> dict[int, list[dict[str, Any]]]:
    """The results of the jobs of each trial, in their order; a trial of which a run fails is left out."""
    trial_of = {job.name: number for number, own in jobs.items() for job in own}
    results: dict[str, dict[str, Any]] = {}
    deaths: Counter[int] = Counter()
    failed: set[int] = set()
    for own in jobs.values():
        for job in own:
            pool.submit(job)
    for event in pool.events():
        number = trial_of[event.job.name]
        if event.progress is not None:
            continue
        if event.death:
            deaths[number] += 1
            say(event.job.name, f"{event.death}; started again")
        if event.error is not None or deaths[number] >= MOST_DEATHS:
            failed.add(number)
            say(event.job.name, f"failed in the finals: {event.error or event.death}")
            for job in jobs[number]:
                pool.stop(job.name)
        elif event.is_last:
            results[event.job.name] = event.result
    return {number: [results[job.name] for job in own] for number, own in jobs.items() if number not in failed}
