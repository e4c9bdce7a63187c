"""`python -m tests.fuzz [ATTACK ...] [--seconds S] [--seed N]`; `ATTACK --seed N --case C` repeats one case."""

import argparse
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.fuzz.campaign import ATTACKS, Campaign, attack
from tests.fuzz.worker import prepared, run_case


def main() -> int:
    """Attack, print a line per attack, and for every failure how to repeat it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"all if none is named: {', '.join(ATTACKS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for all attacks together")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other cases")
    parser.add_argument("--jobs", type=int, default=2, help="attacks at the same time")
    parser.add_argument("--case", type=int, help="run only this case of one attack, in this process")
    asked = parser.parse_args()
    unknown = set(asked.attacks) - set(ATTACKS)
    if unknown or (asked.case is not None and len(asked.attacks) != 1):
        parser.error(f"unknown attacks: {', '.join(sorted(unknown))}" if unknown else "--case needs exactly one attack")
    if asked.case is not None:
        with tempfile.TemporaryDirectory(prefix="surefoot-fuzz-") as folder:
            run_case(*prepared(asked.attacks[0], Path(folder)), asked.seed, asked.case)
        print(f"{asked.attacks[0]}, seed {asked.seed}, case {asked.case}: ok")
        return 0
    names = asked.attacks or list(ATTACKS)
    jobs = max(1, min(asked.jobs, len(names)))
    share = asked.seconds * jobs / len(names)
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        campaigns = [pool.submit(attack, name, asked.seed, share) for name in names]
        results = [told(campaign.result()) for campaign in campaigns]
    print(
        f"{sum(result.cases for result in results):,} cases, {sum(len(result.failures) for result in results)} failed"
    )
    return int(any(result.failures for result in results))


def told(result: Campaign) -> Campaign:
    """Print what came of an attack."""
    print(
        f"{result.name:20s} {result.cases:8,} cases in {result.seconds:6.1f} s, {len(result.failures)} failed",
        flush=True,
    )
    for failure in result.failures:
        print(failure, flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
